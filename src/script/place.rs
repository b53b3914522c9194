//! A place in a script, as exact as it is known.

use std::ops::Range;
use std::sync::Arc;

use super::spans::{Key, Node};
use crate::diagnostic::{Diagnostic, Source};

/// Where a value of a script was written.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    source: Option<Source>,
    /// The name of the value: of its field, or of the function it was handed to.
    head: Range<usize>,
    node: Option<Arc<Node>>,
}

impl Place {
    /// A value called by what stands at `head`.
    pub(super) fn new(source: Source, head: Range<usize>, node: Option<Arc<Node>>) -> Self {
        Self { source: Some(source), head, node }
    }

    /// The place of the field `key` of this table; this place where the field is not to be found in the source.
    pub(super) fn field(&self, key: &Key) -> Self {
        let Some(field) = self.node.as_ref().and_then(|node| node.field(key)) else {
            return Self { node: None, ..self.clone() };
        };
        Self {
            source: self.source.clone(),
            head: field.key_span.clone(),
            node: Some(Arc::clone(&field.value)),
        }
    }

    /// The place of the field `name`.
    pub(super) fn name(&self, name: &str) -> Self {
        self.field(&Key::Name(name.to_owned()))
    }

    /// The place of the list's item `index`, from 1.
    pub(super) fn item(&self, index: usize) -> Self {
        self.field(&Key::Index(index))
    }

    /// Underlines the value's name.
    pub(super) fn mark_name(&self, diagnostic: Diagnostic, text: &str) -> Diagnostic {
        self.mark(diagnostic, self.head.clone(), text)
    }

    /// Underlines the value; its name where the value takes more than a line.
    pub(super) fn mark_value(&self, diagnostic: Diagnostic, text: &str) -> Diagnostic {
        let span = self.node.as_ref().map(|node| node.span.clone());
        let span = span.filter(|span| !span.is_empty() && !self.is_long(span));
        self.mark(diagnostic, span.unwrap_or_else(|| self.head.clone()), text)
    }

    fn is_long(&self, span: &Range<usize>) -> bool {
        let text = self.source.as_ref().and_then(|source| source.text().get(span.clone()));
        text.is_none_or(|text| text.contains('\n'))
    }

    fn mark(&self, diagnostic: Diagnostic, mut span: Range<usize>, text: &str) -> Diagnostic {
        let Some(source) = &self.source else {
            return diagnostic;
        };
        if let Some(end) = source.text().get(span.clone()).and_then(|text| text.find('\n')) {
            span.end = span.start + end;
        }
        diagnostic.label(source, span, text)
    }
}
