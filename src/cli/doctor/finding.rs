//! One line of `tidemill doctor`.

use std::ffi::OsStr;
use std::fmt;

use serde::Serialize;

use crate::diagnostic::Diagnostic;
use crate::event::input::printable;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// It works.
    Ok,
    /// Something will not work as it might.
    Warn,
    /// Runs will fail.
    Fail,
}

/// What was looked at, what was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    what: String,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(what: impl Into<String>, found: impl fmt::Display) -> Self {
        Self { level: Level::Ok, what: what.into(), found: found.to_string(), advice: None }
    }

    pub(super) fn warn(what: impl Into<String>, found: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { level: Level::Warn, what: what.into(), found: found.to_string(), advice: Some(advice.into()) }
    }

    pub(super) fn fail(what: impl Into<String>, found: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self { level: Level::Fail, what: what.into(), found: found.to_string(), advice: Some(advice.into()) }
    }

    /// An error that a run would have ended with.
    pub(super) fn of(what: impl Into<String>, diagnostic: &Diagnostic) -> Self {
        Self {
            level: Level::Fail,
            what: what.into(),
            found: diagnostic.message().to_owned(),
            advice: diagnostic.advice().map(str::to_owned),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        };
        let safe = |text: &str| printable(OsStr::new(text));
        write!(formatter, "{level:<5} {}: {}", safe(&self.what), safe(&self.found))?;
        for line in self.advice.iter().flat_map(|advice| advice.lines()) {
            write!(formatter, "\n      {}", safe(line))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_to_do_and_shows_no_raw_bytes() {
        let finding = Finding::warn("folder \u{1b}[31m", "missing", "make it\nor name another");
        assert_eq!(
            finding.to_string(),
            "warn  folder \\u{1b}[31m: missing\n      make it\n      or name another"
        );
    }
}
