//! From a file to a workflow, its functions and what it was made of.

use mlua::{Lua, Value};

use super::api::objects::Thing;
use super::errors::{self, Phase};
use super::files::Files;
use super::hooks::Script;
use super::host::Host;
use super::limits::Limits;
use super::place::Place;
use super::{Bundle, Loaded, require, vm};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::workflow::Workflow;

/// What running a file came to.
#[derive(Debug)]
pub(super) struct Ran {
    /// The state; absent when it was lost.
    pub(super) lua: Option<Lua>,
    /// What stands behind it.
    pub(super) host: Host,
    /// What the file returned.
    pub(super) gave: Gave,
    /// Everything wrong with it.
    pub(super) mistakes: Vec<Diagnostic>,
}

/// What a file returned.
#[derive(Debug)]
pub(super) enum Gave {
    /// A workflow, read to its end.
    Workflow(Box<Workflow>),
    /// Something else.
    Other(Value),
    /// It did not come to its end.
    Nothing,
}

/// Runs the file `file` in a fresh state, within the limits of loading.
pub(super) async fn run(project: &Project, file: &str, files: Files) -> Result<Ran> {
    let (lua, host) = vm::new(project, files)
        .map_err(|error| Diagnostic::new("script::host", "the Lua host cannot start").cause(error))?;
    let text = match host.files().text(file) {
        Ok(text) => text,
        Err(why) => {
            return Err(Diagnostic::new("script::unreadable", format!("{file} {why}"))
                .help("name a Lua file of the project, such as workflows/energy.lua"));
        }
    };
    let name = file.to_owned();
    // The state goes along and comes back: one that is lost is dropped by its own thread, for dropping waits for it.
    let done = vm::within(&host, Limits::LOAD, move || {
        let result = require::run(&lua, &name, &text);
        (lua, result)
    })
    .await;
    let Some((lua, result)) = done else {
        let message = format!("{file} did not load in time");
        let mistake = Diagnostic::new("script::limit", message)
            .help("look for a string pattern such as `.-.-.-x` on long text; a script only declares");
        return Ok(Ran {
            lua: None,
            host,
            gave: Gave::Nothing,
            mistakes: vec![mistake],
        });
    };
    let mut mistakes = host.take_mistakes();
    let gave = match result {
        Ok(value) => match Thing::of(&value) {
            Some(Thing::Workflow(workflow)) => Gave::Workflow(workflow),
            _ => Gave::Other(value),
        },
        Err(error) => {
            let home = host.chunk(file).map(|chunk| (chunk, 1));
            mistakes.push(errors::diagnostic(&host, &error, Phase::Load, home));
            Gave::Nothing
        }
    };
    if let (Gave::Other(_), Some(place)) = (&gave, host.declared())
        && mistakes.is_empty()
    {
        mistakes.push(not_returned(&place));
    }
    mistakes.sort_by_cached_key(|mistake| {
        mistake
            .report()
            .place
            .map(|place| (place.file, place.line, place.column))
    });
    mistakes.dedup_by_key(|mistake| {
        let place = mistake
            .report()
            .place
            .map(|place| (place.file, place.line, place.column));
        (place, mistake.message().to_owned())
    });
    Ok(Ran {
        lua: Some(lua),
        host,
        gave,
        mistakes,
    })
}

fn not_returned(place: &Place) -> Diagnostic {
    let mistake = Diagnostic::new(
        "script::no_workflow",
        "the script declares a workflow and does not return it",
    );
    place
        .mark_name(mistake, "declared here")
        .help("write `return mill.workflow { ... }`")
}

/// The workflow of a file that ran, or all its mistakes in one diagnostic.
pub(super) fn finish(file: &str, ran: Ran) -> Result<Loaded> {
    let (warnings, mut mistakes): (Vec<_>, Vec<_>) =
        ran.mistakes.into_iter().partition(Diagnostic::is_warning);
    let workflow = match ran.gave {
        Gave::Workflow(workflow) => Some(workflow),
        Gave::Other(value) if mistakes.is_empty() => {
            let what = super::value::describe(&value);
            let what = if value == Value::Nil {
                "nothing".to_owned()
            } else {
                what
            };
            let message = format!("{file} returns {what}, and not a workflow");
            let mistake = Diagnostic::new("script::no_workflow", message);
            mistakes.push(mistake.help("end it with `return mill.workflow { ... }`"));
            None
        }
        _ => None,
    };
    let (Some(mut workflow), Some(lua), true) = (workflow, ran.lua, mistakes.is_empty()) else {
        return Err(together(file, mistakes));
    };
    let bundle = Bundle {
        entry: file.to_owned(),
        files: ran.host.files().all(),
    };
    file.clone_into(&mut workflow.file);
    workflow.digest = bundle.digest();
    let outputs = workflow
        .outputs
        .iter()
        .map(|output| output.path.to_string())
        .collect();
    Ok(Loaded {
        script: Script::new(lua, ran.host, outputs),
        workflow: *workflow,
        bundle,
        warnings,
    })
}

/// One diagnostic of all mistakes.
fn together(file: &str, mut mistakes: Vec<Diagnostic>) -> Diagnostic {
    if mistakes.len() == 1 {
        return mistakes.remove(0);
    }
    let message = format!("{file} has {} mistakes", mistakes.len());
    Diagnostic::new("script::invalid", message).related(mistakes)
}
