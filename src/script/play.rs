//! Scripted models: a Lua file that plays the model's part.

use async_trait::async_trait;
use mlua::{LuaSerdeExt as _, Value};

use super::api::objects::Thing;
use super::api::test;
use super::files::Files;
use super::hooks::Script;
use super::load::{self, Gave};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::model::Item;
use crate::model::scripted::{List, Play, Step};
use crate::workflow::Hook;

/// Loads a scripted model from the root-relative path `file`.
///
/// The file returns `test.script { ... }`, or a function of the turn (from 1) and the conversation that returns a
/// step, a list of steps to take in one turn, or nothing at its end.
pub async fn load_model(project: &Project, file: &str) -> Result<Box<dyn Play>> {
    let ran = load::run(project, file, Files::disk(&project.root)).await?;
    let mut mistakes: Vec<Diagnostic> =
        ran.mistakes.into_iter().filter(|mistake| !mistake.is_warning()).collect();
    if let Some(first) = mistakes.pop() {
        mistakes.reverse();
        return Err(first.related(mistakes));
    }
    let value = match ran.gave {
        Gave::Other(value) => value,
        _ => Value::Nil,
    };
    match (Thing::of(&value), value, ran.lua) {
        (Some(Thing::Part(steps)), _, _) => Ok(Box::new(List(steps))),
        (_, Value::Function(function), Some(lua)) => {
            let hook = ran.host.keep(function);
            Ok(Box::new(Function { script: Script::new(lua, ran.host, Vec::new()), hook }))
        }
        (_, value, _) => {
            let message =
                format!("{file} returns {}, and not a scripted model", super::value::describe(&value));
            Err(Diagnostic::new("script::no_model", message)
                .help("return test.script { ... }, or a function (turn, items) that returns a step"))
        }
    }
}

#[derive(Debug)]
struct Function {
    script: Script,
    hook: Hook,
}

#[async_trait]
impl Play for Function {
    async fn step(&self, turn: usize, items: &[Item]) -> Result<Option<Step>> {
        let items = items.to_vec();
        let played = self
            .script
            .call(self.hook, move |lua, function| {
                let value: Value = function.call((turn, lua.to_value(&items)?))?;
                Ok(match value {
                    Value::Nil => Ok(None),
                    other => test::turn(&other).map(Some).ok_or_else(|| super::value::describe(&other)),
                })
            })
            .await?;
        played.map_err(|what| {
            Diagnostic::new("hook::bad_step", format!("the scripted model returned {what}, which is no step"))
                .help("return test.shell(...), test.call(...), test.say(...), a list of them, or nothing at the end")
        })
    }
}
