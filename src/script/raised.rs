//! Errors that the host raises into Lua, as typed values: text alone would lose what they are.

use std::error::Error;
use std::fmt;

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A limit of the Lua host; never caught by a script for long.
    Limit,
    /// The script uses something wrongly.
    Misuse,
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
        }
    }

    /// Something is used wrongly.
    pub(super) fn misuse(message: impl Into<String>) -> Self {
        Self {
            kind: Kind::Misuse,
            message: message.into(),
            help: None,
            word: None,
        }
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
