//! The one error a user meets: what happened, where, and what to do about it.
//!
//! Every scene returns [`Diagnostic`]. It renders through miette (with the Lua source underlined when there is
//! one) and turns into a [`Report`] that can be stored in an event or printed as JSON.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{LabeledSpan, NamedSource, Severity, SourceCode};
use serde::{Deserialize, Serialize};

/// The result of everything that can fail in front of a user.
pub type Result<T, E = Diagnostic> = std::result::Result<T, E>;

/// A named piece of source text that labels point into.
#[derive(Debug, Clone)]
pub struct Source(Arc<NamedSource<String>>);

impl Source {
    /// Names `text` by its root-relative path, e.g. `workflows/energy.lua`.
    pub fn new(name: impl AsRef<str>, text: impl Into<String>) -> Self {
        Self(Arc::new(NamedSource::new(name, text.into())))
    }

    /// The root-relative name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        self.0.inner()
    }

    /// The byte range of line `line` (from 1) without its indentation and line end.
    ///
    /// A line past the end gives an empty range at the end of the text.
    pub fn line_span(&self, line: usize) -> Range<usize> {
        let mut start = 0;
        for (index, text) in self.text().split_inclusive('\n').enumerate() {
            if index + 1 == line {
                let indent = text.len() - text.trim_start().len();
                let end = start + text.trim_end().len();
                return (start + indent).min(end)..end;
            }
            start += text.len();
        }
        self.text().len()..self.text().len()
    }

    /// The line and column (both from 1, the column in characters) of a byte offset.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let mut end = offset.min(self.text().len());
        while !self.text().is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text()[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }
}

/// What happened, where, and what to do: see the module's page.
///
/// Boxed inside, so that a `Result` stays small.
#[derive(Debug)]
pub struct Diagnostic(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: &'static str,
    message: String,
    help: Option<String>,
    severity: Severity,
    source: Option<Source>,
    labels: Vec<LabeledSpan>,
    related: Vec<Diagnostic>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl Diagnostic {
    /// A diagnostic with a stable code such as `script::unknown_field` and a lower-case message without a full stop.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: message.into(),
            help: None,
            severity: Severity::Error,
            source: None,
            labels: Vec::new(),
            related: Vec::new(),
            cause: None,
        }))
    }

    /// Says what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Makes it a warning: it is shown, and nothing stops.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.0.severity = Severity::Warning;
        self
    }

    /// Underlines `span` (bytes) of `source`. The first label names the place of the whole diagnostic.
    #[must_use]
    pub fn label(mut self, source: &Source, span: Range<usize>, text: impl Into<String>) -> Self {
        self.0.source = Some(source.clone());
        self.0.labels.push(LabeledSpan::new_with_span(Some(text.into()), span));
        self
    }

    /// Keeps the error below this one; its chain is printed under the message.
    #[must_use]
    pub fn cause(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Attaches further diagnostics, so that many mistakes are reported at once.
    #[must_use]
    pub fn related(mut self, related: impl IntoIterator<Item = Diagnostic>) -> Self {
        self.0.related.extend(related);
        self
    }

    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.0.code
    }

    /// Whether it only warns.
    pub fn is_warning(&self) -> bool {
        self.0.severity == Severity::Warning
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The advice alone, when there is one.
    pub fn advice(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The plain, storable form.
    pub fn report(&self) -> Report {
        let place = self.0.source.as_ref().zip(self.0.labels.first()).map(|(source, label)| {
            let (line, column) = source.position(label.offset());
            let text = source.text().lines().nth(line - 1).map(str::to_owned);
            Place { file: source.name().to_owned(), line, column, length: label.len(), text }
        });
        let mut causes = Vec::new();
        let mut next = self.source();
        while let Some(error) = next {
            causes.push(error.to_string());
            next = error.source();
        }
        Report {
            code: self.0.code.to_owned(),
            severity: if self.is_warning() { "warning" } else { "error" }.to_owned(),
            message: self.0.message.clone(),
            help: self.0.help.clone(),
            place,
            causes,
            related: self.0.related.iter().map(Diagnostic::report).collect(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl Error for Diagnostic {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause.as_ref().map(|cause| cause.as_ref() as &(dyn Error + 'static))
    }
}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.0.code))
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.0.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source.as_ref().map(|source| source.0.as_ref() as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.0.labels.is_empty() { None } else { Some(Box::new(self.0.labels.iter().cloned())) }
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if self.0.related.is_empty() {
            return None;
        }
        Some(Box::new(self.0.related.iter().map(|related| related as &dyn miette::Diagnostic)))
    }
}

/// A diagnostic as data: stored in events and receipts, printed by `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The stable code, e.g. `script::unknown_field`.
    pub code: String,
    /// `error` or `warning`.
    pub severity: String,
    /// What happened.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where, when it has a place in a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The errors below it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
    /// Further diagnostics found at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Report>,
}

/// A place in a source text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Root-relative path.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length in bytes.
    pub length: usize,
    /// The line itself, so that it can be shown when the file has changed or gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The nearest of `known` to `word`, for a "did you mean": a small edit distance or a common start.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this Jaro-Winkler likeness a suggestion confuses more than it helps.
    const ALIKE: f64 = 0.8;
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

/// Whether a disk is full, or this user's part of it: what fails by that is told with a help of its own.
pub fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}
