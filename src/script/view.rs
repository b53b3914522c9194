//! The run as functions of a script see it: `run`, `run.input`, `artifacts["..."]`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mlua::{
    IntoLua, Lua, LuaSerdeExt as _, MetaMethod, MultiValue, UserData, UserDataFields, UserDataMethods, Value,
};

use super::api::{Class, Field, advice, field};
use super::host::Host;
use super::raised::Raised;
use super::reading;
use super::time::Time;
use crate::diagnostic::nearest;
use crate::event::input::printable;
use crate::workflow::view::{Artifact, RunView, Snapshot};

/// `run`
pub(super) const RUN: Class = Class {
    name: "tidemill.Run",
    word: "run",
    doc: "The run a function is called for.",
    fields: &[
        field("id", "string", "Its id."),
        field("workflow", "string", "The workflow's name."),
        field("trigger", "string", "`drop`, `schedule`, `webhook` or `manual`."),
        field(
            "params",
            "table<string, any>",
            "What the trigger knows besides the files, e.g. parts of a path.",
        ),
        field("attempt", "integer", "0, then one more for each repair."),
        field(
            "input",
            "tidemill.Input?",
            "The first input; nil when the run has none. Of a batch, `run.input[\"meta.json\"]` is the file of that name, nil \
             when there is none.",
        ),
        field("inputs", "tidemill.Input[]", "All inputs, in the order of their paths."),
        field("queued_at", "string", "When it was queued, as 2026-11-30T06:00:00Z."),
        field("scheduled_at", "tidemill.Time?", "The instant it is for; nil when no schedule started it."),
        field(
            "previous_scheduled_at",
            "tidemill.Time?",
            "The instant of the run before it by the same schedule; nil for the first.",
        ),
        field("missed_count", "integer", "Instants between the two that made no run."),
    ],
};

pub(super) const FILE_METHODS: [Field; 4] = [
    field(
        "csv",
        "fun(self): fun(): (table<string, string>|nil)",
        "Iterates over the rows as tables keyed by the header; raises on a broken row.",
    ),
    field("json", "fun(self): any, (string|nil)", "The decoded document; nil and why, when it is none."),
    field("text", "fun(self): (string|nil), (string|nil)", "The whole text; nil and why, when it is none."),
    field("lines", "fun(self): fun(): (string|nil)", "Iterates over the lines without their ends."),
];

/// `run.input`
pub(super) const INPUT: Class = Class {
    name: "tidemill.Input",
    word: "run.input",
    doc: "A file a run works on, as it was when the run was queued.",
    fields: &[
        field("name", "string", "Its name, made printable."),
        field("stem", "string", "Its name without the extension."),
        field("ext", "string", "Its extension in lower case, without the dot; may be empty."),
        field("size", "integer", "Bytes."),
        FILE_METHODS[0],
        FILE_METHODS[1],
        FILE_METHODS[2],
        FILE_METHODS[3],
    ],
};

/// `artifacts["..."]`
pub(super) const ARTIFACT: Class = Class {
    name: "tidemill.Artifact",
    word: "artifact",
    doc: "A declared output, taken out of the sandbox.",
    fields: &[
        field("path", "string", "Its path in /workspace."),
        field("size", "integer", "Bytes."),
        FILE_METHODS[0],
        FILE_METHODS[1],
        FILE_METHODS[2],
        FILE_METHODS[3],
    ],
};

/// Raises for a name that `class` does not have.
pub(super) fn unknown(class: &'static Class, name: &str) -> mlua::Error {
    let known: Vec<&str> = class.fields.iter().map(|field| field.name).collect();
    let near = nearest(name, known.iter().copied());
    Raised::misuse(format!("`{}` has no `{}`", class.word, super::value::shorten(name)))
        .help(advice(near, &known))
        .word(name)
        .into()
}

/// The value of `run`.
#[derive(Debug, Clone)]
pub(super) struct Run(pub(super) Arc<RunView>);

impl UserData for Run {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("id", |_, run| Ok(run.0.id.to_string()));
        fields.add_field_method_get("workflow", |_, run| Ok(run.0.workflow.clone()));
        fields.add_field_method_get("trigger", |_, run| Ok(run.0.trigger.as_str()));
        fields.add_field_method_get("params", |lua, run| lua.to_value(&run.0.params));
        fields.add_field_method_get("attempt", |_, run| Ok(run.0.attempt));
        fields.add_field_method_get("input", |_, run| {
            Ok((!run.0.inputs.is_empty()).then(|| Input { run: Arc::clone(&run.0), index: 0 }))
        });
        fields.add_field_method_get("inputs", |lua, run| {
            lua.create_sequence_from(
                (0..run.0.inputs.len()).map(|index| Input { run: Arc::clone(&run.0), index }),
            )
        });
        fields.add_field_method_get("queued_at", |_, run| Ok(run.0.queued_at.to_string()));
        fields.add_field_method_get("scheduled_at", |_, run| {
            Ok(run.0.fired.as_ref().map(|fired| Time { at: fired.at, timezone: fired.timezone.clone() }))
        });
        fields.add_field_method_get("previous_scheduled_at", |_, run| {
            let fired = run.0.fired.as_ref();
            Ok(fired.and_then(|fired| Some(Time { at: fired.previous?, timezone: fired.timezone.clone() })))
        });
        fields.add_field_method_get("missed_count", |_, run| {
            Ok(run.0.fired.as_ref().map_or(0, |fired| fired.missed))
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Index, |_, _, name: String| -> mlua::Result<()> {
            Err(unknown(&RUN, &name))
        });
    }
}

/// A file that functions of a script may read.
trait Readable {
    /// Where it stands.
    fn file(&self) -> PathBuf;
    /// Its name in messages.
    fn shown(&self) -> String;
}

fn add_reading<T: Readable + UserData + 'static, M: UserDataMethods<T>>(methods: &mut M) {
    methods.add_method("csv", |lua, file, ()| reading::csv(lua, &file.file(), file.shown()));
    methods.add_method("lines", |lua, file, ()| reading::lines(lua, &file.file(), file.shown()));
    methods
        .add_method("json", |lua, file, ()| expected(lua, reading::json(lua, &file.file(), &file.shown())));
    methods.add_method("text", |lua, file, ()| expected(lua, reading::text(&file.file(), &file.shown())));
}

/// Expected failures are `nil, why`.
pub(super) fn expected<T: IntoLua>(lua: &Lua, result: Result<T, String>) -> mlua::Result<MultiValue> {
    match result {
        Ok(value) => lua.pack_multi(value),
        Err(why) => lua.pack_multi((Value::Nil, why)),
    }
}

/// One of a run's input files.
#[derive(Debug, Clone)]
pub(super) struct Input {
    run: Arc<RunView>,
    index: usize,
}

impl Input {
    fn snapshot(&self) -> &Snapshot {
        &self.run.inputs[self.index]
    }

    /// The input of that name, or of that path below the folder that all inputs lie in.
    fn other(&self, name: &str) -> Option<Self> {
        let inputs = &self.run.inputs;
        let below = |index: usize| self.run.below(&inputs[index]);
        let by_path = (0..inputs.len()).find(|index| below(*index) == Path::new(name));
        let by_name = || (0..inputs.len()).find(|index| inputs[*index].path.name() == name);
        by_path.or_else(by_name).map(|index| Self { run: Arc::clone(&self.run), index })
    }
}

impl Readable for Input {
    fn file(&self) -> PathBuf {
        self.snapshot().file.clone()
    }

    fn shown(&self) -> String {
        printable(self.snapshot().path.name())
    }
}

impl UserData for Input {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("name", |_, input| Ok(input.shown()));
        fields.add_field_method_get("stem", |_, input| {
            Ok(input.snapshot().path.as_path().file_stem().map(printable).unwrap_or_default())
        });
        fields.add_field_method_get("ext", |_, input| {
            let ext = input.snapshot().path.as_path().extension().map(printable);
            Ok(ext.unwrap_or_default().to_lowercase())
        });
        fields.add_field_method_get("size", |_, input| Ok(input.snapshot().size));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        add_reading(methods);
        methods.add_meta_method(MetaMethod::Index, |_, input, name: String| match input.other(&name) {
            Some(other) => Ok(Some(other)),
            // A file of a batch may be missing; a field that is not there is a mistake.
            None if name.contains('.') => Ok(None),
            None => Err(unknown(&INPUT, &name)),
        });
    }
}

/// A declared output.
#[derive(Debug, Clone)]
struct Output(Artifact);

impl Readable for Output {
    fn file(&self) -> PathBuf {
        self.0.file.clone()
    }

    fn shown(&self) -> String {
        self.0.path.to_string()
    }
}

impl UserData for Output {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("path", |_, artifact| Ok(artifact.0.path.to_string()));
        fields.add_field_method_get("size", |_, artifact| Ok(artifact.0.size));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        add_reading(methods);
        methods.add_meta_method(MetaMethod::Index, |_, _, name: String| -> mlua::Result<()> {
            Err(unknown(&ARTIFACT, &name))
        });
    }
}

/// The table `artifacts`: what was collected by path. A declared output that is missing is nil; asking for a path
/// that was never declared raises.
pub(super) fn artifacts(lua: &Lua, artifacts: Vec<Artifact>, declared: Vec<String>) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for artifact in artifacts {
        table.raw_set(artifact.path.to_string(), Output(artifact))?;
    }
    let rules = lua.create_table()?;
    rules.raw_set(
        "__index",
        lua.create_function(move |_, (_, key): (Value, Value)| {
            let name = key.to_string()?;
            if declared.contains(&name) {
                return Ok(Value::Nil);
            }
            let known: Vec<&str> = declared.iter().map(String::as_str).collect();
            let near = nearest(&name, known.iter().copied());
            let message = format!("`{}` is not a declared output", super::value::shorten(&name));
            Err(Raised::misuse(message).help(advice(near, &known)).word(name).into())
        })?,
    )?;
    table.set_metatable(Some(rules))?;
    Ok(Value::Table(table))
}

/// Looks at the time between pieces of a large file.
pub(super) fn check_time(lua: &Lua) -> mlua::Result<()> {
    Ok(Host::of(lua)?.budget().check_time()?)
}
