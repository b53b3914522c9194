//! `mill.workflow { ... }`: the whole declaration.

use mlua::Value;

use super::{agent, environment, limits, manifest, mounts, network, queueing, sandbox};
use crate::config::{Config, Provider};
use crate::diagnostic::Diagnostic;
use crate::event::id::Digest;
use crate::event::verdict::Stage;
use crate::script::api::notify::targets;
use crate::script::api::objects::Thing;
use crate::script::api::{Class, advice, field, guard};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::Workflow;
use crate::workflow::agent::{Agent, Memory, Prompt, Repair};
use crate::workflow::expectation::Output;
use crate::workflow::guardrail::Guardrail;
use crate::workflow::image::Image;
use crate::workflow::limits::Limits;
use crate::workflow::manifest::Manifest;
use crate::workflow::schedule::Schedule;
use crate::workflow::trigger::Drop;
use crate::workflow::webhook::Webhook;

/// What `mill.workflow` takes.
pub(in crate::script) const WORKFLOW: Class = Class {
    name: "tidemill.Workflow",
    word: "mill.workflow",
    doc: "What `mill.workflow` takes.",
    fields: &[
        field("name", "string", "a word of `a-z`, `0-9`, `-` and `_`, unique in the project"),
        field("description", "string?", "One line for lists."),
        field("triggers", "tidemill.Trigger[]?", "What starts it besides `tidemill run`."),
        field("priority", "integer?", "Runs of a higher one begin first; 0 without."),
        field("concurrency", "integer?", "Runs of it at once; as many as the project allows without."),
        field("retry", "tidemill.Retry?", "What happens when a service fails that a run needs."),
        field(
            "image",
            "tidemill.Image?",
            "Where its commands run: mill.image. Needed unless `sandbox` is another one.",
        ),
        field(
            "sandbox",
            "\"docker\"|\"local\"|\"none\"?",
            "`docker` without: a hardened container. `local`: this machine's own programs behind bubblewrap, which holds \
             less. `none`: files, and no commands.",
        ),
        field(
            "manifest",
            "(table<string, tidemill.Content>|fun(run: tidemill.Run): table<string, tidemill.Content|tidemill.Published>)?",
            "What is placed in /workspace before the agent starts: path = content, or a function of the run that gives it.",
        ),
        field(
            "environment",
            "table<string, string>?",
            "Environment variables of the commands in the sandbox: name = text.",
        ),
        field(
            "mounts",
            "string[]?",
            "Places of host folders that `mounts` under [sandbox] in tidemill.toml allows, e.g. `/ref`.",
        ),
        field("agent", "tidemill.Agent", "who does the work: { model = ... }"),
        field(
            "prompt",
            "string|tidemill.Content|fun(run: tidemill.Run): string",
            "what the agent is asked: text, a mill.file, or a function of the run",
        ),
        field("limits", "tidemill.Limits?", "What it may use."),
        field("network", "tidemill.Network?", "What its commands may reach; nothing without."),
        field(
            "guardrails",
            "(tidemill.Guardrail|tidemill.InlineGuardrail)[]?",
            "What is checked before something happens, in order.",
        ),
        field(
            "outputs",
            "table<string, tidemill.Expectation>?",
            "What must come out: path in /workspace = expectation.",
        ),
        field(
            "validate",
            "fun(artifacts: table<string, tidemill.Artifact>, run: tidemill.Run): (tidemill.Finding|tidemill.Finding[]|nil)?",
            "A check across files: returns nothing, a finding, or a list of findings.",
        ),
        field("repair", "tidemill.Repair?", "What happens when a check fails."),
        field(
            "notify",
            "tidemill.Notification|tidemill.Notification[]?",
            "Who is told what becomes of its runs.",
        ),
        field(
            "on_success",
            "tidemill.Notification|tidemill.Notification[]?",
            "Who is told of runs that published.",
        ),
        field(
            "on_failure",
            "tidemill.Notification|tidemill.Notification[]?",
            "Who is told of runs that ended in any other way.",
        ),
    ],
};

/// What `repair` takes.
pub(in crate::script) const REPAIR: Class = Class {
    name: "tidemill.Repair",
    word: "repair",
    doc: "What happens when a check fails.",
    fields: &[field("attempts", "integer", "how often findings go back to the agent")],
};

/// A model that has not understood by then will not.
const MOST_REPAIRS: u64 = 20;
/// Names become folders and parts of ids.
const LONGEST_NAME: usize = 64;

/// Reads the declaration. What cannot be read is noted and replaced, so that all mistakes are found at once.
pub(in crate::script) fn read(host: &Host, value: Value, place: Place) -> Option<Workflow> {
    let fields = Fields::read(host, value, place, &WORKFLOW)?;
    let agent = fields.with("agent", |host, place, _, value| agent::read(host, place, value));
    let limits =
        fields.with("limits", |host, place, _, value| limits::read(host, place, value)).unwrap_or_default();
    if let Some(agent) = &agent {
        check_price(host, &fields, agent, &limits);
    }
    let sandbox = sandbox::read(host, &fields);
    let (triggers, schedules, webhooks) = triggers(host, &fields);
    Some(Workflow {
        name: fields.with("name", name).unwrap_or_default(),
        description: fields.text("description").unwrap_or_default(),
        file: String::new(),
        digest: Digest::of(""),
        triggers,
        schedules,
        queueing: queueing::read(host, &fields),
        webhooks,
        image: fields.with("image", image).unwrap_or_default(),
        sandbox,
        manifest: manifest(host, &fields),
        environment: fields.with("environment", environment::read).unwrap_or_default(),
        mounts: mounts::read(host, &fields),
        agent: agent.unwrap_or(Agent {
            name: String::new(),
            model: String::new(),
            instructions: String::new(),
            max_turns: Agent::DEFAULT_MAX_TURNS,
            memory: Memory::None,
        }),
        prompt: fields.with("prompt", prompt).unwrap_or(Prompt::Text(String::new())),
        limits,
        network: fields
            .with("network", |host, place, _, value| network::read(host, place, value))
            .unwrap_or_default(),
        guardrails: guardrails(host, &fields),
        outputs: outputs(host, &fields),
        validate: fields.function("validate").map(|function| host.keep(function)),
        repair: fields.with("repair", repair).unwrap_or_default(),
        notify: targets(host, &fields),
    })
}

/// Reads the name of a workflow.
pub(in crate::script) fn name(host: &Host, place: &Place, path: &str, value: &Value) -> Option<String> {
    let text = value::text(host, place, path, value)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = text.starts_with(plain)
        && text.len() <= LONGEST_NAME
        && text.chars().all(|c| plain(c) || c == '-' || c == '_');
    if fits {
        return Some(text);
    }
    let message = format!("`{}` cannot be the name of a workflow", value::shorten(&text));
    let help = "a name has 1 to 64 of `a-z`, `0-9`, `-` and `_`, and starts with a letter or a digit";
    value::bad(host, place, "script::bad_name", message, help)
}

fn triggers(host: &Host, fields: &Fields<'_>) -> (Vec<Drop>, Vec<Schedule>, Vec<Webhook>) {
    let (mut drops, mut schedules, mut webhooks) = (Vec::new(), Vec::new(), Vec::new());
    for (index, (place, value)) in fields.list("triggers").into_iter().enumerate() {
        match Thing::of(&value) {
            Some(Thing::Drop(drop)) => drops.push(*drop),
            Some(Thing::Schedule(schedule)) => schedules.push(*schedule),
            Some(Thing::Webhook(webhook)) if webhooks.iter().any(|known| is_same(known, &webhook)) => {
                let message = format!("two webhooks have the path `{}`", webhook.path);
                let help = "a path leads to one webhook; give it another, or leave one out";
                value::bad::<()>(host, &place, "script::duplicate_webhook", message, help);
            }
            Some(Thing::Webhook(webhook)) => webhooks.push(*webhook),
            _ => {
                let path = format!("triggers[{}]", index + 1);
                let wanted = "a trigger such as mill.drop { glob = ... }, mill.schedule { cron = ... } or mill.webhook { path = ... }";
                value::wrong::<()>(host, &place, &path, wanted, &value);
            }
        }
    }
    (drops, schedules, webhooks)
}

/// Whether two webhooks have one path; one that could not be read is none.
fn is_same(known: &Webhook, other: &Webhook) -> bool {
    known.path == other.path && !other.path.is_empty()
}

fn image(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Image> {
    match Thing::of(value) {
        Some(Thing::Image(image)) => Some(image),
        _ => value::wrong(host, place, path, "a mill.image", value),
    }
}

fn manifest(host: &Host, fields: &Fields<'_>) -> Manifest {
    match fields.value("manifest") {
        Value::Function(function) => Manifest::Hook(host.keep(function)),
        _ => Manifest::Entries(manifest::read(host, fields.map("manifest"))),
    }
}

fn prompt(host: &Host, place: &Place, path: &str, value: &Value) -> Option<Prompt> {
    if let Value::Function(function) = value {
        return Some(Prompt::Hook(host.keep(function.clone())));
    }
    let text = agent::words(host, place, path, value)?;
    if text.trim().is_empty() {
        let help = "say what the agent is to do";
        return value::bad(host, place, "script::wrong_type", "the prompt is empty".into(), help);
    }
    Some(Prompt::Text(text))
}

fn guardrails(host: &Host, fields: &Fields<'_>) -> Vec<Guardrail> {
    let mut found = Vec::new();
    for (index, (place, value)) in fields.list("guardrails").into_iter().enumerate() {
        match (Thing::of(&value), &value) {
            (Some(Thing::Guardrail(guardrail)), _) => found.push(guardrail),
            (None, Value::Table(_)) => found.extend(inline(host, place, value, index + 1)),
            _ => guard::not_a_guardrail(host, &place, &value),
        }
    }
    found
}

/// `{ on = ..., name = ..., check = function }`
fn inline(host: &Host, place: Place, value: Value, number: usize) -> Option<Guardrail> {
    let fields = Fields::read(host, value, place, &guard::INLINE)?;
    let on = fields.with("on", |host, place, path, value| {
        let word = value::text(host, place, path, value)?;
        Stage::parse(&word).or_else(|| {
            let words = Stage::ALL.map(Stage::as_str);
            let message = format!("`{path}` is \"{}\", which is no stage of a run", value::shorten(&word));
            let help = advice(crate::diagnostic::nearest(&word, words), &words);
            value::bad(host, place, "script::wrong_type", message, &help)
        })
    });
    let check = fields.function("check");
    let name = fields.text("name");
    let on = on?;
    Some(Guardrail::Hook {
        on,
        name: name.unwrap_or_else(|| format!("{on}-{number}")),
        hook: host.keep(check?),
    })
}

fn outputs(host: &Host, fields: &Fields<'_>) -> Vec<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    for (text, place, value) in fields.map("outputs") {
        let Some(path) = manifest::workspace_path(host, &place, &text) else {
            continue;
        };
        let message = if path.is_folder() {
            Some(format!("the output `{path}` is a folder"))
        } else if matches!(path.as_str(), "receipt.json" | "output/receipt.json") {
            Some(format!("the output `{path}` takes the name of the receipt"))
        } else if outputs.iter().any(|output| output.path == path) {
            Some(format!("the output `{path}` is declared twice"))
        } else {
            None
        };
        if let Some(message) = message {
            let mistake = Diagnostic::new("script::bad_path", message);
            host.mistake(place.mark_name(mistake, "here").help("each output is one file, declared once"));
            continue;
        }
        if let Some(Thing::Expect(expect)) = Thing::of(&value) {
            outputs.push(Output { path, expect });
        } else {
            let wanted = "an expectation such as expect.csv { ... }";
            value::wrong::<()>(host, &place, &format!("outputs[\"{path}\"]"), wanted, &value);
        }
    }
    outputs.sort_by(|left, right| left.path.cmp(&right.path));
    outputs
}

fn repair(host: &Host, place: &Place, _: &str, value: &Value) -> Option<Repair> {
    let fields = Fields::read(host, value.clone(), place.clone(), &REPAIR)?;
    let attempts = fields.count("attempts")?;
    match u32::try_from(attempts) {
        Ok(attempts) if u64::from(attempts) <= MOST_REPAIRS => Some(Repair { attempts }),
        _ => {
            let message = format!("`repair.attempts` is {attempts}");
            let help = format!("it is from 0 to {MOST_REPAIRS}");
            value::bad(host, &fields.at("attempts"), "script::bad_limit", message, &help)
        }
    }
}

/// A dollar limit that cannot be counted protects nobody.
fn check_price(host: &Host, fields: &Fields<'_>, agent: &Agent, limits: &Limits) {
    if limits.cost.is_none() || agent.model.is_empty() || is_priced(&host.project().config, &agent.model) {
        return;
    }
    let model = value::shorten(&agent.model);
    let message = format!("the run has a dollar limit, and the price of `{model}` is not known");
    let help = format!(
        "add it to tidemill.toml: [models.\"{model}\"] price = {{ input = ..., output = ... }} (dollars per million \
         tokens), or limit `tokens` instead"
    );
    let place = fields.at("agent").name("model");
    value::bad::<()>(host, &place, "script::unknown_price", message, &help);
}

fn is_priced(config: &Config, name: &str) -> bool {
    let model = config.models.get(name);
    model.is_some_and(|model| model.provider == Provider::Scripted)
        || crate::model::price(name, model).is_some()
}
