//! An agent at any point of its work: what it recalls from its log is what it had, byte for byte.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::{Value, json};
use tidemill::agent::budget::Budget;
use tidemill::agent::conversation::Conversation;
use tidemill::agent::deadline::Deadline;
use tidemill::agent::recall::Recalled;
use tidemill::agent::resume::Start;
use tidemill::agent::tools::{Class, Given, Told, Tool, Toolbox};
use tidemill::agent::{Agent, Continuity, Ended, Journal, Keeper};
use tidemill::clock::SystemClock;
use tidemill::diagnostic::Result;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::payload::Payload;
use tidemill::event::said::Occasion;
use tidemill::event::verdict::{Stage, Verdict};
use tidemill::event::{Event, ToolOutcome, What};
use tidemill::guard::{Guard, Pipeline, Subject};
use tidemill::model::chat::Chat;
use tidemill::model::responses::Responses;
use tidemill::model::server::Settings;
use tidemill::model::{Model, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::support::wire::{Protocol, Reply, Seen, Wire};

const INSTRUCTIONS: &str = "Be thorough.";

/// A log in memory.
#[derive(Default)]
struct Log(Mutex<Vec<Event>>);

impl Log {
    fn of(events: &[Event]) -> Self {
        Self(Mutex::new(events.to_vec()))
    }

    fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Journal for Log {
    async fn append(&self, what: What) -> Result<()> {
        let mut events = self.0.lock().unwrap();
        let seq = events.len() as u64 + 1;
        let run = RunId::parse("20261201-120000-aaaa").unwrap();
        events.push(Event { run, seq, at: Timestamp::UNIX_EPOCH, what });
        Ok(())
    }

    fn clean(&self, text: &str) -> String {
        text.to_owned()
    }

    async fn payload(&self, text: &str) -> Result<Payload> {
        Ok(Payload::Inline(text.to_owned()))
    }

    async fn keep(&self, _: &Path) -> Result<Payload> {
        Ok(Payload::default())
    }
}

#[async_trait]
impl Keeper for Log {
    async fn keep(&self, turn: u32) -> Result<()> {
        self.append(What::Checkpointed { turn, tree: Digest::of("tree"), files: 0, bytes: 0 }).await
    }
}

/// A place that outlives its host, with a tool of one class: what was done in it, and the commands it knows.
#[derive(Debug, Clone)]
struct Place {
    class: Class,
    done: Arc<Mutex<Vec<String>>>,
    commands: Arc<Mutex<BTreeMap<u32, String>>>,
}

impl Place {
    fn of(class: Class) -> Self {
        Self { class, done: Arc::default(), commands: Arc::default() }
    }

    fn act(&self, what: &str) -> String {
        self.done.lock().unwrap().push(what.to_owned());
        format!("did {what}")
    }
}

#[async_trait]
impl Tool for Place {
    fn spec(&self) -> ToolSpec {
        let properties = json!({ "what": { "type": "string" } });
        ToolSpec {
            name: name(self.class).to_owned(),
            description: "Does it.".to_owned(),
            parameters: json!({
                "type": "object", "properties": properties, "required": ["what"], "additionalProperties": false
            }),
        }
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        arguments["what"].as_str().map(drop).ok_or_else(|| "`what` is missing".to_owned())
    }

    fn class(&self) -> Class {
        self.class
    }

    async fn call(&self, arguments: &Value, given: Given) -> Result<Told> {
        let what = arguments["what"].as_str().unwrap();
        let output = match given.process {
            // A command that is known is followed, not started.
            Some(id) => {
                let known = self.commands.lock().unwrap().get(&id).cloned();
                known.unwrap_or_else(|| {
                    let output = self.act(what);
                    self.commands.lock().unwrap().insert(id, output.clone());
                    output
                })
            }
            None => self.act(what),
        };
        Ok(Told::of(ToolOutcome::Done, output))
    }
}

fn name(class: Class) -> &'static str {
    match class {
        Class::Sandboxed => "command",
        Class::Once => "once",
        Class::Repeatable => "note",
    }
}

/// Denies what is forbidden.
#[derive(Debug)]
struct Strict;

#[async_trait]
impl Guard for Strict {
    fn name(&self) -> &'static str {
        "strict"
    }

    fn watches(&self, stage: Stage) -> bool {
        stage == Stage::ToolCall
    }

    async fn judge(&self, subject: &Subject<'_>) -> Result<Verdict> {
        Ok(match subject {
            Subject::ToolCall { arguments, .. } if arguments["what"] == "forbidden" => {
                Verdict::Deny { reason: "it is forbidden".to_owned() }
            }
            _ => Verdict::Pass,
        })
    }
}

/// A model server that gives every conversation an answer of its own, the same one whenever it is asked again.
async fn server(protocol: Protocol) -> (Wire, Box<dyn Model>) {
    let wire = Wire::start(protocol).await;
    let known: Mutex<Vec<Value>> = Mutex::default();
    wire.otherwise(move |seen| {
        let body = plain(seen);
        let mut known = known.lock().unwrap();
        let at = known.iter().position(|one| *one == body).unwrap_or_else(|| {
            known.push(body);
            known.len() - 1
        });
        reply(at)
    });
    let settings = Settings { model: "wire-1".to_owned(), ..Settings::new("double", wire.base_url()) };
    let model: Box<dyn Model> = match protocol {
        Protocol::Responses => Box::new(Responses::new(settings).unwrap()),
        Protocol::Chat => Box::new(Chat::new(settings).unwrap()),
    };
    (wire, model)
}

/// The answer number `at`: every kind there is.
fn reply(at: usize) -> Reply {
    let what = |what: &str| json!({ "what": what });
    match at {
        0 => Reply::calls([("command", what("one")), ("note", what("two")), ("command", what("three"))])
            .saying("I look first."),
        1 => Reply::text(""),
        2 => Reply::text("A long tale that is").finish("length"),
        3 => Reply::calls([
            ("note", what("forbidden")),
            ("no_such_tool", what("four")),
            ("note", json!({ "wrong": true })),
        ]),
        4 => Reply::text("done, I think"),
        5 => Reply::calls([("command", what("five"))]),
        _ => Reply::text("now it is"),
    }
    .usage([100, 10, 20, 5])
}

/// A request's body with the ids of its calls numbered as they come: a server draws them.
fn plain(seen: &Seen) -> Value {
    fn number(value: &mut Value, ids: &mut Vec<String>) {
        match value {
            Value::String(text) if text.starts_with("call_") => {
                let at = ids.iter().position(|id| id == text).unwrap_or_else(|| {
                    ids.push(text.clone());
                    ids.len() - 1
                });
                *text = format!("id {at}");
            }
            Value::Array(values) => values.iter_mut().for_each(|value| number(value, ids)),
            Value::Object(map) => map.values_mut().for_each(|value| number(value, ids)),
            _ => {}
        }
    }
    let mut body = seen.body.clone();
    number(&mut body, &mut Vec::new());
    body
}

/// Everything an agent needs besides its log.
struct World {
    wire: Wire,
    model: Box<dyn Model>,
    max_turns: u32,
    places: Vec<Place>,
}

impl World {
    /// Goes on from a log to the end, through one repair. Gives the whole log and how it ended.
    async fn go_on(&self, events: &[Event], continuity: Continuity) -> (Vec<Event>, Result<Ended>) {
        let log = Log::of(events);
        let recalled = Recalled::of(INSTRUCTIONS, events).unwrap();
        let mut conversation = recalled.conversation.expect("a prompt");
        let mut budget = Budget::new(None, Some(1_000_000), None);
        budget.settle(recalled.used);
        let tools = Toolbox::new(self.places.iter().map(|place| Box::new(place.clone()) as _).collect());
        let clock = Arc::new(SystemClock::new());
        let guards = Pipeline::new(vec![Box::new(Strict)]);
        let agent = Agent {
            model: self.model.as_ref(),
            tools: &tools,
            guards: &guards,
            journal: &log,
            keeper: &log,
            continuity,
            clock: clock.as_ref(),
            deadline: &Deadline::new(clock.clone(), CancellationToken::new(), Duration::from_secs(3600)),
            max_turns: self.max_turns,
            max_output_tokens: None,
        };
        let start = Start { place: recalled.place, lost: recalled.lost, loss: None };
        let mut ended = agent.resume(start, &mut conversation, &mut budget).await;
        let is_repaired = |log: &Log| {
            let said = |event: &Event| matches!(event.what, What::Said { occasion: Occasion::Findings, .. });
            log.events().iter().any(said)
        };
        if matches!(ended, Ok(Ended::Answered(_))) && !is_repaired(&log) {
            agent.say(&mut conversation, Occasion::Findings, "It is wrong.").await.unwrap();
            ended = agent.work(&mut conversation, &mut budget).await;
        }
        assert_eq!(self.wire.complaints(), Vec::<String>::new());
        (log.events(), ended)
    }
}

async fn world(protocol: Protocol, max_turns: u32) -> World {
    let (wire, model) = server(protocol).await;
    World { wire, model, max_turns, places: vec![Place::of(Class::Sandboxed), Place::of(Class::Repeatable)] }
}

fn prompted() -> Vec<Event> {
    let run = RunId::parse("20261201-120000-aaaa").unwrap();
    let what =
        What::PromptReady { prompt: Payload::Inline("Do it.".to_owned()), digest: Digest::of("Do it.") };
    vec![Event { run, seq: 1, at: Timestamp::UNIX_EPOCH, what }]
}

/// What of a log a person would call its story: without numbers that differ from time to time.
fn done_in(events: &[Event]) -> BTreeSet<String> {
    let mut calls = BTreeMap::new();
    let mut done = BTreeSet::new();
    for event in events {
        match &event.what {
            What::ToolStarted { call, .. } => {
                calls.insert(call.id.clone(), call.arguments.clone());
            }
            What::ToolEnded { id, outcome: ToolOutcome::Done, .. } => {
                done.insert(calls[id].clone());
            }
            _ => {}
        }
    }
    done
}

/// Interrupted after any event, and gone on with.
async fn at_any_point(protocol: Protocol, max_turns: u32) {
    let world = world(protocol, max_turns).await;
    let (whole, ended) = world.go_on(&prompted(), Continuity::New).await;
    let ended = format!("{:?}", ended.unwrap());
    let original = world.wire.requests();
    let all_done: Vec<_> = world.places.iter().map(|place| place.done.lock().unwrap().clone()).collect();
    assert!(original.len() > 4 && whole.len() > 20, "too short a story: {whole:#?}");
    for cut in 1..=whole.len() {
        let events = &whole[..cut];
        let point = format!("{protocol:?}, after event {cut}: {:?}", events[cut - 1].what);
        for (place, before) in world.places.iter().zip(&all_done) {
            // What was done by then, and the commands that were begun by then.
            place.done.lock().unwrap().clear();
            let begun: BTreeMap<u32, String> = events
                .iter()
                .filter_map(|event| match &event.what {
                    What::ToolStarted { call, process: Some(id), .. } => {
                        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                        Some((*id, format!("did {}", arguments["what"].as_str().unwrap())))
                    }
                    _ => None,
                })
                .collect();
            *place.commands.lock().unwrap() = begun;
            assert!(!before.is_empty());
        }
        let seen = world.wire.requests().len();
        let (log, again) = world.go_on(events, Continuity::Same).await;
        assert_eq!(format!("{:?}", again.unwrap()), ended, "{point}");
        // Nothing is asked that was answered, and the rest is asked as it would have been.
        let answered =
            events.iter().filter(|event| matches!(event.what, What::ModelResponded { .. })).count();
        let asked = &world.wire.requests()[seen..];
        assert_eq!(asked.len(), original.len() - answered, "{point}");
        if let Some(first) = asked.first() {
            assert_eq!(first.body.to_string(), original[answered].body.to_string(), "{point}");
        }
        for (asked, original) in asked.iter().zip(&original[answered..]) {
            assert_eq!(plain(asked), plain(original), "{point}");
        }
        // Nothing that ended, and no command that had begun, is done again.
        let ended = done_in(events);
        for place in &world.places {
            for what in place.done.lock().unwrap().iter() {
                assert!(!ended.contains(&json!({ "what": what }).to_string()), "{what} again, {point}");
            }
        }
        assert_eq!(done_in(&log), done_in(&whole), "{point}");
        // What a lost call may have cost is booked, once.
        let is_lost = matches!(events[cut - 1].what, What::ModelRequested { .. });
        let cuts = log.iter().filter(|event| matches!(event.what, What::ModelCut { .. })).count();
        assert_eq!(cuts, usize::from(is_lost), "{point}");
    }
}

#[tokio::test]
async fn an_agent_goes_on_where_it_was_over_responses() {
    at_any_point(Protocol::Responses, 20).await;
}

#[tokio::test]
async fn an_agent_goes_on_where_it_was_over_chat_completions() {
    at_any_point(Protocol::Chat, 20).await;
}

#[tokio::test]
async fn an_agent_goes_on_where_it_was_at_its_limit_of_turns() {
    at_any_point(Protocol::Responses, 4).await;
}

/// A log that ends with a begun call of this class, and how going on in a new place ends.
async fn begun(class: Class) -> (Vec<Event>, Result<Ended>) {
    let wire = Wire::start(Protocol::Chat).await;
    wire.reply(Reply::calls([(name(class), json!({ "what": "it" }))])).reply(Reply::text("done"));
    wire.reply(Reply::text("done"));
    let settings = Settings { model: "wire-1".to_owned(), ..Settings::new("double", wire.base_url()) };
    let model: Box<dyn Model> = Box::new(Chat::new(settings).unwrap());
    let world = World { wire, model, max_turns: 20, places: vec![Place::of(class)] };
    let (whole, _) = world.go_on(&prompted(), Continuity::New).await;
    let at = whole.iter().position(|event| matches!(event.what, What::ToolStarted { .. })).unwrap();
    world.wire.reply(Reply::text("done")).reply(Reply::text("done"));
    world.go_on(&whole[..=at], Continuity::New).await
}

#[tokio::test]
async fn a_command_whose_sandbox_is_gone_was_interrupted() {
    let (log, ended) = begun(Class::Sandboxed).await;
    assert!(matches!(ended, Ok(Ended::Answered(_))), "{ended:?}");
    let told = log.iter().find_map(|event| match &event.what {
        What::ToolEnded { outcome, output, .. } => Some((*outcome, output.preview().to_owned())),
        _ => None,
    });
    let (outcome, output) = told.unwrap();
    assert_eq!(outcome, ToolOutcome::Interrupted);
    assert!(output.contains("Run it again"), "{output}");
}

#[tokio::test]
async fn what_may_happen_only_once_waits_for_a_person() {
    let (log, ended) = begun(Class::Once).await;
    let error = ended.unwrap_err();
    assert_eq!(error.code(), "agent::once_interrupted");
    assert!(error.advice().unwrap().contains(r#"{"what":"it"}"#), "{error:?}");
    assert!(!log.iter().any(|event| matches!(event.what, What::ToolEnded { .. })));
}

#[tokio::test]
async fn what_can_be_repeated_is_repeated() {
    let (log, ended) = begun(Class::Repeatable).await;
    assert!(matches!(ended, Ok(Ended::Answered(_))), "{ended:?}");
    let started = log.iter().filter(|event| matches!(event.what, What::ToolStarted { .. })).count();
    assert_eq!((started, done_in(&log).len()), (1, 1));
}

/// Logs of versions that did not keep an answer word for word.
#[test]
fn an_older_log_is_recalled_as_far_as_it_goes() {
    let old = json!({
        "type": "model_responded", "turn": 1, "text": { "inline": "I look." },
        "calls": [{ "id": "call_1", "tool": "shell", "arguments": "{}" }],
        "usage": { "input_tokens": 1, "cached_tokens": 0, "output_tokens": 1, "reasoning_tokens": 0 },
        "cost": null, "millis": 1
    });
    let mut events = prompted();
    let what: What = serde_json::from_value(old).unwrap();
    events.push(Event { seq: 2, what, ..events[0].clone() });
    let recalled = Recalled::of(INSTRUCTIONS, &events).unwrap();
    let Conversation { items, turn, .. } = recalled.conversation.unwrap();
    assert_eq!((items.len(), turn), (3, 1), "{items:?}");
}
