//! What the modules' functions give back: typed values that a script hands on and cannot take apart.

use mlua::{Lua, MetaMethod, MultiValue, UserData, UserDataMethods, Value};

use super::notify::Declared;
use super::{Class, Field};
use crate::diagnostic::nearest;
use crate::event::finding::Finding;
use crate::event::verdict::Verdict;
use crate::model::scripted::Step;
use crate::script::host::Host;
use crate::script::raised::Raised;
use crate::workflow::Workflow;
use crate::workflow::expectation::Expect;
use crate::workflow::guardrail::Guardrail;
use crate::workflow::image::Image;
use crate::workflow::manifest::{Access, Content};
use crate::workflow::mode::Mode;
use crate::workflow::network::Credential;
use crate::workflow::schedule::Schedule;
use crate::workflow::trigger::{Afterwards, Drop};
use crate::workflow::webhook::Webhook;

/// A value made by one of the modules.
#[derive(Debug, Clone)]
pub(in crate::script) enum Thing {
    /// `mill.workflow { ... }`
    Workflow(Box<Workflow>),
    /// `mill.drop { ... }`
    Drop(Box<Drop>),
    /// `mill.move "..."`, `mill.keep()`, `mill.delete()`
    Afterwards(Afterwards),
    /// `mill.schedule { ... }`
    Schedule(Box<Schedule>),
    /// `mill.webhook { ... }`
    Webhook(Box<Webhook>),
    /// `mill.notify { ... }`
    Notify(Declared),
    /// `mill.image ...`
    Image(Image),
    /// `mill.input()`, `mill.file "..."` and the others that fill a manifest.
    Content(Content, Rights),
    /// `mill.secret "..."`: the name alone; the value never is in Lua.
    Secret(String),
    /// `mill.secret("...", { host = ... })`: what it is bound to; its variable is not known yet.
    Credential(Credential),
    /// `guard.input_size { ... }`, `guard.commands { ... }`
    Guardrail(Guardrail),
    /// `guard.deny(...)` and its like.
    Verdict(Verdict),
    /// `expect.csv { ... }` and its like.
    Expect(Expect),
    /// `expect.fail(...)`
    Finding(Finding),
    /// `test.shell(...)` and its like.
    Step(Step),
    /// `test.script { ... }`
    Part(Vec<Step>),
}

/// What the agent may do with content, as its options say it.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::script) struct Rights {
    /// Read, or change.
    pub(in crate::script) access: Access,
    /// Permission bits, where they are said.
    pub(in crate::script) mode: Option<Mode>,
}

/// The object's side of `mill.file`, for the docs.
pub(super) const CONTENT: Class = Class {
    name: "tidemill.Content",
    word: "mill.file",
    doc: "What `mill.input`, `mill.file`, `mill.dir`, `mill.text`, `mill.bytes`, `mill.url`, `mill.git` and \
          `mill.artifacts` give: content for the manifest. A `mill.file` also serves as `prompt` or `instructions`.",
    fields: &[Field {
        name: "text",
        kind: "fun(self): string",
        doc: "The text of a `mill.file` or `mill.text`, for a prompt function.",
    }],
};

impl Thing {
    /// What it is, for messages.
    pub(in crate::script) fn describe(&self) -> &'static str {
        match self {
            Self::Workflow(_) => "a workflow",
            Self::Drop(_) | Self::Schedule(_) | Self::Webhook(_) => "a trigger",
            Self::Notify(_) => "a mill.notify",
            Self::Afterwards(Afterwards::Move(_)) => "a mill.move",
            Self::Afterwards(Afterwards::Keep) => "a mill.keep",
            Self::Afterwards(Afterwards::Delete) => "a mill.delete",
            Self::Image(_) => "an image",
            Self::Content(Content::Input, _) => "a mill.input",
            Self::Content(Content::File(_), _) => "a mill.file",
            Self::Content(Content::Dir(_), _) => "a mill.dir",
            Self::Content(Content::Text(_), _) => "a mill.text",
            Self::Content(Content::Bytes(_), _) => "a mill.bytes",
            Self::Content(Content::Url(_), _) => "a mill.url",
            Self::Content(Content::Git(_), _) => "a mill.git",
            Self::Content(Content::Artifacts(_), _) => "a mill.artifacts",
            Self::Secret(_) => "a secret",
            Self::Credential(_) => "a secret bound to a host",
            Self::Guardrail(_) => "a guardrail",
            Self::Verdict(_) => "a verdict",
            Self::Expect(_) => "an expectation",
            Self::Finding(_) => "a finding",
            Self::Step(_) => "a step of a scripted model",
            Self::Part(_) => "a scripted model",
        }
    }

    /// The thing in a Lua value, when it is one.
    pub(in crate::script) fn of(value: &Value) -> Option<Self> {
        let Value::UserData(thing) = value else {
            return None;
        };
        thing.borrow::<Self>().ok().map(|thing| thing.clone())
    }

    fn opaque(&self) -> mlua::Error {
        let raised = match self {
            Self::Secret(name) | Self::Credential(Credential { secret: name, .. }) => {
                Raised::misuse(format!("the secret `{name}` cannot be read by a script"))
                    .help("secrets never reach a prompt, a log or the sandbox; hand the handle on as it is")
            }
            Self::Content(Content::File(_) | Content::Text(_), _) => {
                Raised::misuse(format!("{} is not text", self.describe()))
                    .help("write `:text()` behind it to get its text")
            }
            other => Raised::misuse(format!("{} is not text", other.describe())),
        };
        raised.into()
    }

    /// The text of a file or a text.
    fn text(&self, lua: &Lua) -> mlua::Result<String> {
        match self {
            Self::Content(Content::Text(text), _) => Ok(text.clone()),
            Self::Content(Content::File(path), _) => {
                let host = Host::of(lua)?;
                // A run is pinned to what its script read when it loaded.
                let text = if host.is_running() {
                    host.files().known(path).ok_or_else(|| "was not read when the script loaded".to_owned())
                } else {
                    host.files().text(path)
                };
                text.map_err(|why| {
                    Raised::misuse(format!("{path} {why}"))
                        .help("name it with `mill.file` at the top of the script; it must be UTF-8 text")
                        .into()
                })
            }
            other => Err(Raised::misuse(format!("{} has no text", other.describe())).into()),
        }
    }
}

impl UserData for Thing {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("text", |lua, thing, ()| thing.text(lua));
        methods.add_meta_method(MetaMethod::ToString, |_, thing, ()| -> mlua::Result<String> {
            match thing {
                Self::Secret(_) | Self::Credential(_) => Err(thing.opaque()),
                other => Ok(other.describe().to_owned()),
            }
        });
        methods.add_meta_function(MetaMethod::Concat, |_, sides: MultiValue| -> mlua::Result<String> {
            let thing = sides.iter().find_map(Self::of);
            Err(thing.map_or_else(|| mlua::Error::runtime("not text"), |thing| thing.opaque()))
        });
        methods.add_meta_method(MetaMethod::Index, |_, thing, name: String| -> mlua::Result<()> {
            let raised = Raised::unknown(format!("{} has no `{name}`", thing.describe())).word(&name);
            let near = nearest(&name, ["text"]);
            Err(match near {
                Some(near) => raised.help(format!("did you mean `{near}`?")),
                None => raised,
            }
            .into())
        });
    }
}
