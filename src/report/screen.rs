//! The terminal: results on standard output, talk on standard error.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::diagnostic::Diagnostic;

/// Where a command writes to. A closed pipe is no error: whoever read has read enough.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Whether standard error is a terminal that shows colour and redraws lines.
    pub live: bool,
}

impl Screen {
    /// The process's own terminal.
    pub fn new() -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some() || std::env::var_os("CI").is_some();
        Self { live: std::io::stderr().is_terminal() && !plain }
    }

    /// A line of the result, to standard output.
    pub fn line(&self, text: impl Display) {
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }

    /// A line of talk, to standard error.
    pub fn talk(&self, text: impl Display) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// A diagnostic, to standard error.
    pub fn diagnostic(&self, diagnostic: &Diagnostic) {
        self.talk(format!("{}\n", render(diagnostic, self.live).trim_end()));
    }
}

impl Default for Screen {
    fn default() -> Self {
        Self::new()
    }
}

/// A diagnostic as text; without colour it is the same on every machine.
pub fn render(diagnostic: &Diagnostic, colour: bool) -> String {
    let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false);
    let mut text = String::new();
    if handler.render_report(&mut text, diagnostic).is_err() {
        text = diagnostic.to_string();
    }
    text
}
