//! What the Rust functions that a script calls know: the project, the sources, the mistakes found so far.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Function, Lua, MultiValue, Value};

use super::api;
use super::files::Files;
use super::limits::Budget;
use super::published::Filling;
use super::raised::{Raised, running};
use super::spans::{CallNode, Spans};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Source};
use crate::workflow::Hook;

use super::place::Place;

/// The state behind one Lua state; clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    project: Project,
    files: Files,
    budget: Arc<Budget>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: bool,
    chunks: HashMap<String, Arc<Chunk>>,
    mistakes: Vec<Diagnostic>,
    hooks: Vec<Kept>,
    declared: Option<Place>,
    required: Vec<String>,
    named: Vec<(String, Place)>,
    /// Set while a manifest function works.
    filling: Option<Filling>,
}

/// A function for later, and where it stands: asked now, for the state may be busy then.
#[derive(Debug)]
struct Kept {
    function: Function,
    defined: Option<(Arc<Chunk>, usize)>,
}

/// A loaded piece of Lua.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Its text.
    pub(super) source: Source,
    /// Where things stand in it.
    pub(super) spans: Spans,
}

impl Host {
    /// For one Lua state.
    pub(super) fn new(project: Project, files: Files) -> Self {
        Self(Arc::new(Inner { project, files, budget: Budget::new(), state: Mutex::default() }))
    }

    /// The host of a Lua state.
    pub(super) fn of(lua: &Lua) -> mlua::Result<Self> {
        let host = lua.app_data_ref::<Self>();
        host.map(|host| host.clone()).ok_or_else(|| mlua::Error::runtime("this Lua state has no host"))
    }

    /// The project the script belongs to.
    pub(super) fn project(&self) -> &Project {
        &self.0.project
    }

    /// The files it may read.
    pub(super) fn files(&self) -> &Files {
        &self.0.files
    }

    /// What it may use.
    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.0.budget
    }

    /// Loading is over: from now on functions run, and nothing can be declared.
    pub(super) fn run(&self) {
        self.state().running = true;
    }

    /// Whether loading is over.
    pub(super) fn is_running(&self) -> bool {
        self.state().running
    }

    /// Raises when `what` is called by a function of a run: declarations belong to loading.
    pub(super) fn loading(&self, what: &str) -> mlua::Result<()> {
        if self.is_running() {
            return Err(Raised::misuse(format!("`{what}` declares something while a run works"))
                .help("call it at the top of the script, outside of functions")
                .into());
        }
        Ok(())
    }

    /// Raises when `what` is called by a function of a run that is no manifest function: content is declared when the
    /// script loads, or there.
    pub(super) fn filling(&self, what: &str) -> mlua::Result<()> {
        if self.is_running() && !self.is_filling() {
            return Err(Raised::misuse(format!("`{what}` is content for a manifest"))
                .help("call it at the top of the script, or in the function that is its `manifest`")
                .into());
        }
        Ok(())
    }

    /// Whether a manifest function works.
    pub(super) fn is_filling(&self) -> bool {
        self.state().filling.is_some()
    }

    /// What a manifest function may ask, while one works.
    pub(super) fn asked(&self) -> Option<Filling> {
        self.state().filling.clone()
    }

    /// A manifest function begins to work, or has ended.
    pub(super) fn fill(&self, filling: Option<Filling>) {
        self.state().filling = filling;
    }

    /// Remembers a mistake; loading goes on, so that all are found.
    pub(super) fn mistake(&self, mistake: Diagnostic) {
        self.state().mistakes.push(mistake);
    }

    /// Whether a mistake of that message was noted.
    pub(super) fn has_mistake(&self, message: &str) -> bool {
        self.state().mistakes.iter().any(|mistake| mistake.message() == message)
    }

    /// Takes the mistakes found so far.
    pub(super) fn take_mistakes(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.state().mistakes)
    }

    /// Keeps a function for later.
    pub(super) fn keep(&self, function: Function) -> Hook {
        let info = function.info();
        let chunk = info.source.as_deref().and_then(|source| self.chunk(source.strip_prefix('@')?));
        let defined = chunk.zip(info.line_defined);
        let mut state = self.state();
        state.hooks.push(Kept { function, defined });
        Hook(state.hooks.len() - 1)
    }

    /// A function kept before.
    pub(super) fn kept(&self, hook: Hook) -> Option<Function> {
        self.state().hooks.get(hook.0).map(|kept| kept.function.clone())
    }

    /// Where a function kept before begins: its file and line.
    pub(super) fn defined(&self, hook: Hook) -> Option<(Arc<Chunk>, usize)> {
        self.state().hooks.get(hook.0).and_then(|kept| kept.defined.clone())
    }

    /// A workflow was declared; its name stands at `place`.
    pub(super) fn declare(&self, place: Place) {
        self.state().declared = Some(place);
    }

    /// Where the name of the declared workflow stands, when one was declared.
    pub(super) fn declared(&self) -> Option<Place> {
        self.state().declared.clone()
    }

    /// A module was required.
    pub(super) fn require(&self, file: &str) {
        self.state().required.push(file.to_owned());
    }

    /// The files of the modules that were required.
    pub(super) fn required(&self) -> Vec<String> {
        self.state().required.clone()
    }

    /// Another workflow was named at `place`.
    pub(super) fn name(&self, workflow: &str, place: Place) {
        self.state().named.push((workflow.to_owned(), place));
    }

    /// Takes the other workflows that were named.
    pub(super) fn take_named(&self) -> Vec<(String, Place)> {
        std::mem::take(&mut self.state().named)
    }

    /// Remembers a piece of Lua by its name.
    pub(super) fn add_source(&self, name: &str, text: &str) {
        let chunk = Chunk { source: Source::new(name, text), spans: Spans::default() };
        self.state().chunks.insert(name.to_owned(), Arc::new(chunk));
    }

    /// Finds where things stand in a piece that compiles, and notes the names it takes from modules that do not have
    /// them: they are found here even where loading does not come by.
    pub(super) fn add_spans(&self, name: &str) {
        let Some(known) = self.chunk(name) else { return };
        let chunk = Chunk { source: known.source.clone(), spans: Spans::parse(known.source.text()) };
        for taken in chunk.spans.uses() {
            if let Some(raised) = api::unknown_name(&taken.module, &taken.name) {
                let mistake = Diagnostic::new("script::unknown_name", raised.message);
                let mistake = mistake.label(&chunk.source, taken.span.clone(), "here");
                self.mistake(mistake.help(raised.help.unwrap_or_default()));
            }
        }
        self.state().chunks.insert(name.to_owned(), Arc::new(chunk));
    }

    /// A piece of Lua by its name; Lua shortens long names from the left.
    pub(super) fn chunk(&self, name: &str) -> Option<Arc<Chunk>> {
        let state = self.state();
        let tail = name.strip_prefix("...");
        state.chunks.get(name).cloned().or_else(|| {
            let found = state.chunks.iter().find(|(full, _)| tail.is_some_and(|tail| full.ends_with(tail)));
            found.map(|(_, chunk)| Arc::clone(chunk))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the Lua code stands that called the Rust function `name` (its last word) with `arguments`.
    pub(super) fn call_site(&self, lua: &Lua, name: &str, arguments: &MultiValue) -> Site {
        let Some((chunk, line)) = self.caller(lua) else {
            return Site { chunk: None, call: None, line: 0 };
        };
        let candidates: Vec<_> = chunk.spans.calls(name, line).collect();
        // A function may have been renamed by a local, or its name misspelled.
        let call = candidates
            .iter()
            .copied()
            .find(|call| fits(call, arguments))
            .or(candidates.first().copied())
            .or_else(|| chunk.spans.calls_on(line).find(|call| fits(call, arguments)))
            .cloned();
        Site { chunk: Some(chunk), call, line }
    }

    /// The nearest Lua code above the Rust function that asks, and its line.
    fn caller(&self, lua: &Lua) -> Option<(Arc<Chunk>, usize)> {
        let (name, line) = running(lua, |name| self.chunk(name).is_some())?;
        Some((self.chunk(&name)?, line))
    }
}

/// Whether the call in the source has the fields of the table that was handed over.
fn fits(call: &CallNode, arguments: &MultiValue) -> bool {
    let (Some(Value::Table(table)), Some(node)) = (arguments.front(), call.arguments.first()) else {
        return false;
    };
    node.fields.iter().all(|field| match &field.key {
        super::spans::Key::Name(name) => table.contains_key(name.as_str()).unwrap_or(false),
        super::spans::Key::Index(index) => table.contains_key(*index).unwrap_or(false),
    })
}

/// The place of a call in a script.
#[derive(Debug, Clone)]
pub(super) struct Site {
    chunk: Option<Arc<Chunk>>,
    call: Option<CallNode>,
    line: usize,
}

impl Site {
    /// The place of argument `index`, from 0.
    pub(super) fn argument(&self, index: usize) -> Place {
        let Some(chunk) = &self.chunk else {
            return Place::default();
        };
        let source = chunk.source.clone();
        let line: Range<usize> = source.line_span(self.line);
        match &self.call {
            Some(call) => Place::new(source, call.span.clone(), call.arguments.get(index).cloned()),
            None => Place::new(source, line, None),
        }
    }
}
