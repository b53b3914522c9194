//! A model that plays a part: a list or a function says what it answers.

use std::fmt;

use async_trait::async_trait;

use super::{Delta, Finish, Item, Model, ModelError, Request, Response, Retry};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::ToolCall;
use crate::event::usage::Usage;

/// One answer of a scripted model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// What it says to people; may be empty.
    pub text: String,
    /// The tools it asks for: name and arguments, as the text a model would write.
    pub calls: Vec<(String, String)>,
}

/// Says what a scripted model answers; implemented here for lists and in `script` for Lua functions.
#[async_trait]
pub trait Play: Send + Sync + fmt::Debug {
    /// The answer to turn `turn` (from 1) of a conversation; `None` when the script has come to its end.
    async fn step(&self, turn: usize, items: &[Item]) -> Result<Option<Step>>;
}

/// A script that is a list: turn 1 gets the first answer, turn 2 the second.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List(pub Vec<Step>);

#[async_trait]
impl Play for List {
    async fn step(&self, turn: usize, _items: &[Item]) -> Result<Option<Step>> {
        Ok(turn.checked_sub(1).and_then(|index| self.0.get(index)).cloned())
    }
}

/// A model whose answers a [`Play`] gives.
///
/// It keeps no state: which turn it is follows from the conversation it is sent, so that one model serves many runs
/// and a resumed run goes on where it was.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    play: Box<dyn Play>,
}

impl Scripted {
    /// The model `name`, played by `play`.
    pub fn new(name: &str, play: Box<dyn Play>) -> Self {
        Self {
            name: name.to_owned(),
            play,
        }
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn respond(
        &self,
        request: &Request<'_>,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Response, ModelError> {
        let turn = answers(request.items) + 1;
        let step = match self.play.step(turn, request.items).await {
            Ok(Some(step)) => step,
            Ok(None) => return Err(never(self.ended(turn))),
            Err(diagnostic) => return Err(never(diagnostic)),
        };
        let mut items = Vec::new();
        if !step.text.is_empty() {
            deltas(Delta::Text(step.text.clone()));
        }
        // An empty answer leaves an empty item behind, so that it counts as a turn.
        if !step.text.is_empty() || step.calls.is_empty() {
            items.push(Item::Assistant { text: step.text });
        }
        for (index, (tool, arguments)) in step.calls.into_iter().enumerate() {
            items.push(Item::Call(ToolCall {
                id: format!("call_{turn}_{}", index + 1),
                tool,
                arguments,
            }));
        }
        Ok(Response {
            items,
            finish: Finish::Stop,
            usage: Some(Usage::default()),
            model: Some(self.name.clone()),
        })
    }
}

impl Scripted {
    fn ended(&self, turn: usize) -> Diagnostic {
        Diagnostic::new(
            "model::script_ended",
            format!("the script of model `{}` has no answer for turn {turn}", self.name),
        )
        .help("give the script one more answer, and let its last one ask for no tool, so that the agent is done")
    }
}

fn never(diagnostic: Diagnostic) -> ModelError {
    ModelError {
        diagnostic,
        retry: Retry::Never,
    }
}

/// How many times the model has answered: runs of items from it, each ended by one from us.
fn answers(items: &[Item]) -> usize {
    let mut count = 0;
    let mut answering = false;
    for item in items {
        let from_model = !matches!(item, Item::User { .. } | Item::Output { .. });
        count += usize::from(from_model && !answering);
        answering = from_model;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Item {
        Item::Call(ToolCall {
            id: id.to_owned(),
            tool: "shell".to_owned(),
            arguments: "{}".to_owned(),
        })
    }

    fn output(id: &str) -> Item {
        Item::Output {
            call: id.to_owned(),
            output: "done".to_owned(),
        }
    }

    fn say(text: &str) -> Item {
        Item::User {
            text: text.to_owned(),
        }
    }

    fn scripted(steps: Vec<Step>) -> Scripted {
        Scripted::new("analyst", Box::new(List(steps)))
    }

    async fn ask(model: &Scripted, items: &[Item]) -> Result<Response, ModelError> {
        let request = Request {
            instructions: "",
            items,
            tools: &[],
            max_output_tokens: None,
        };
        model.respond(&request, &|_| {}).await
    }

    #[test]
    fn the_turn_follows_from_the_conversation() {
        assert_eq!(answers(&[say("go")]), 0);
        let first = [say("go"), call("a"), call("b"), output("a"), output("b")];
        assert_eq!(answers(&first), 1);
        let second = [
            &first[..],
            &[Item::Assistant { text: "ok".into() }, say("fix it")],
        ]
        .concat();
        assert_eq!(answers(&second), 2);
    }

    #[tokio::test]
    async fn a_list_is_played_and_its_end_is_said() {
        let model = scripted(vec![Step {
            text: "looking".into(),
            calls: vec![("shell".into(), r#"{"command":"ls"}"#.into()); 2],
        }]);
        let response = ask(&model, &[say("go")]).await.expect("there is a first step");
        let ids: Vec<_> = response.calls().map(|call| call.id.clone()).collect();
        assert_eq!(ids, ["call_1_1", "call_1_2"]);
        assert_eq!(response.text(), "looking");
        assert_eq!(response.usage, Some(Usage::default()));
        let items = [say("go"), call("call_1_1"), output("call_1_1")];
        let error = ask(&model, &items).await.expect_err("there is no second step");
        assert_eq!(error.diagnostic.code(), "model::script_ended");
        assert!(error.diagnostic.message().contains("turn 2"));
        assert_eq!(error.retry, Retry::Never);
    }
}
