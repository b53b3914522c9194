//! Errors that the host raises into Lua, as typed values: text alone would lose what they are.

use std::error::Error;
use std::fmt;

use mlua::Lua;

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A limit of the Lua host; never caught by a script for long.
    Limit,
    /// The script uses something wrongly.
    Misuse,
    /// The script asks a module or an object for a name it does not have.
    Unknown,
}

/// An error raised into Lua.
#[derive(Debug, Clone)]
pub(super) struct Raised {
    /// What kind.
    pub(super) kind: Kind,
    /// What happened, as a diagnostic's message.
    pub(super) message: String,
    /// What to do about it.
    pub(super) help: Option<String>,
    /// The word to underline in the line, where there is one.
    pub(super) word: Option<String>,
    /// Name and line of the Lua code, for errors that Lua gives no traceback to.
    pub(super) at: Option<(String, usize)>,
}

impl Raised {
    /// A limit was reached.
    pub(super) fn limit(message: &str) -> Self {
        Self {
            kind: Kind::Limit,
            message: message.to_owned(),
            help: Some(
                "look for a loop that does not end, or do less: heavy work belongs in the sandbox".into(),
            ),
            word: None,
            at: None,
        }
    }

    /// Something is used wrongly.
    pub(super) fn misuse(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Misuse,
            message: message.into(),
            help: None,
            word: None,
            at: None,
        }
    }

    /// A name is not there.
    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Unknown,
            ..Self::misuse(message)
        }
    }

    /// Keeps where the running Lua code stands: an error that a hook raises has no traceback.
    pub(super) fn here(mut self, lua: &Lua) -> Self {
        self.at = running(lua, |_| true);
        self
    }

    /// Says what to do.
    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Names the word to underline.
    pub(super) fn word(mut self, word: impl Into<String>) -> Self {
        self.word = Some(word.into());
        self
    }
}

/// Name and line of the innermost Lua code whose name `known` accepts.
pub(super) fn running(lua: &Lua, known: impl Fn(&str) -> bool) -> Option<(String, usize)> {
    /// Deeper than any declaration is nested.
    const DEEPEST: usize = 50;
    (0..DEEPEST).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let source = frame.source().source?;
            let name = source.strip_prefix('@').filter(|name| known(name))?.to_owned();
            Some((name, frame.current_line()?))
        })?
    })
}

impl fmt::Display for Raised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for Raised {}

impl From<Raised> for mlua::Error {
    fn from(raised: Raised) -> Self {
        Self::external(raised)
    }
}
