//! Where the calls and table fields of a script stand in its source.
//!
//! Lua keeps lines only. The source is parsed a second time (full_moon), and a call is found again by its line and
//! its function's name, so that a mistake in a field is underlined where the field stands.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use full_moon::ast::{
    Call, Expression, Field, FunctionArgs, FunctionBody, FunctionCall, GenericFor, Index, LocalAssignment,
    LocalFunction, NumericFor, Parameter, Prefix, Suffix, TableConstructor, Var, VarExpression,
};
use full_moon::node::Node as _;
use full_moon::tokenizer::{TokenReference, TokenType};
use full_moon::visitors::Visitor;

/// An expression's place, and the places of its fields when it is a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    /// Bytes of the expression.
    pub(super) span: Range<usize>,
    /// Its fields, in order.
    pub(super) fields: Vec<FieldNode>,
}

/// One field of a table.
#[derive(Debug, Clone)]
pub(super) struct FieldNode {
    /// What it is called.
    pub(super) key: Key,
    /// Bytes of the name; of the value where there is no name.
    pub(super) key_span: Range<usize>,
    /// The value.
    pub(super) value: Arc<Node>,
}

/// What a field is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// `name = ...` or `["name"] = ...`
    Name(String),
    /// A place in a list, from 1.
    Index(usize),
}

/// A call of a function.
#[derive(Debug, Clone)]
pub(super) struct CallNode {
    /// The last word before the arguments: `csv` in `expect.csv { ... }`.
    pub(super) name: String,
    /// Lines on which Lua may say the call happens.
    pub(super) lines: RangeInclusive<usize>,
    /// Bytes of the function's name.
    pub(super) span: Range<usize>,
    /// The arguments.
    pub(super) arguments: Vec<Arc<Node>>,
}

/// A name taken from a module: `expect.fail` where `local expect = require "tidemill.expect"`.
#[derive(Debug, Clone)]
pub(super) struct Use {
    /// The module that is required.
    pub(super) module: String,
    /// The name that is taken.
    pub(super) name: String,
    /// Bytes of the name.
    pub(super) span: Range<usize>,
}

/// The calls of one source.
#[derive(Debug, Default)]
pub(super) struct Spans {
    calls: Vec<CallNode>,
    uses: Vec<Use>,
}

impl Spans {
    /// A tree of this many bytes of operators fits on the stack of Lua's thread; larger sources have lines only.
    const LARGEST: usize = 64 << 10;

    /// Parses a source that Lua takes.
    pub(super) fn parse(text: &str) -> Self {
        if text.len() > Self::LARGEST {
            return Self::default();
        }
        let Ok(ast) = full_moon::parse(text) else {
            return Self::default();
        };
        let mut walk = Walk::default();
        walk.visit_ast(&ast);
        Self {
            calls: walk.calls,
            uses: walk.uses,
        }
    }

    /// The names taken from modules, in the order of the source.
    pub(super) fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// All calls that Lua may mean by `line`.
    pub(super) fn calls_on(&self, line: usize) -> impl Iterator<Item = &CallNode> {
        self.calls.iter().filter(move |call| call.lines.contains(&line))
    }

    /// The calls of `name` that Lua may mean by `line`.
    pub(super) fn calls<'a>(&'a self, name: &'a str, line: usize) -> impl Iterator<Item = &'a CallNode> {
        self.calls
            .iter()
            .filter(move |call| call.name == name && call.lines.contains(&line))
    }
}

impl Node {
    /// The field called `key`.
    pub(super) fn field(&self, key: &Key) -> Option<&FieldNode> {
        self.fields.iter().find(|field| field.key == *key)
    }
}

#[derive(Default)]
struct Walk {
    calls: Vec<CallNode>,
    uses: Vec<Use>,
    /// Local = the module it holds.
    modules: HashMap<String, String>,
    /// The modules as they were outside of each function that is open: parameters hide them.
    outside: Vec<HashMap<String, String>>,
    locals: HashMap<String, Arc<Node>>,
}

impl Visitor for Walk {
    fn visit_local_assignment(&mut self, assignment: &LocalAssignment) {
        for (name, value) in assignment.names().iter().zip(assignment.expressions()) {
            match required(value) {
                Some(module) => self.modules.insert(name.token().to_string(), module),
                None => self.modules.remove(name.token().to_string().as_str()),
            };
            let node = self.node(value);
            self.locals.insert(name.token().to_string(), node);
        }
    }

    fn visit_function_body(&mut self, body: &FunctionBody) {
        self.outside.push(self.modules.clone());
        for parameter in body.parameters() {
            if let Parameter::Name(name) = parameter {
                self.hide(name);
            }
        }
    }

    fn visit_function_body_end(&mut self, _: &FunctionBody) {
        self.modules = self.outside.pop().unwrap_or_default();
    }

    fn visit_local_function(&mut self, function: &LocalFunction) {
        self.hide(function.name());
    }

    fn visit_generic_for(&mut self, lap: &GenericFor) {
        for name in lap.names() {
            self.hide(name);
        }
    }

    fn visit_numeric_for(&mut self, lap: &NumericFor) {
        self.hide(lap.index_variable());
    }

    fn visit_var_expression(&mut self, expression: &VarExpression) {
        self.taken(expression.prefix(), expression.suffixes().next());
    }

    fn visit_function_call(&mut self, call: &FunctionCall) {
        self.taken(call.prefix(), call.suffixes().next());
        let mut callee = match call.prefix() {
            Prefix::Name(name) => Some(name),
            _ => None,
        };
        for suffix in call.suffixes() {
            match suffix {
                Suffix::Index(Index::Dot { name, .. }) => callee = Some(name),
                Suffix::Call(Call::AnonymousCall(arguments)) => self.call(callee, arguments),
                Suffix::Call(Call::MethodCall(method)) => self.call(Some(method.name()), method.args()),
                _ => callee = None,
            }
        }
    }
}

impl Walk {
    /// Another local of that name begins.
    fn hide(&mut self, name: &TokenReference) {
        self.modules.remove(name.token().to_string().as_str());
    }

    fn taken(&mut self, from: &Prefix, first: Option<&Suffix>) {
        if let (Prefix::Name(local), Some(Suffix::Index(Index::Dot { name, .. }))) = (from, first)
            && let Some(module) = self.modules.get(local.token().to_string().as_str())
        {
            self.uses.push(Use {
                module: module.clone(),
                name: name.token().to_string(),
                span: span(name),
            });
        }
    }

    fn call(&mut self, callee: Option<&TokenReference>, arguments: &FunctionArgs) {
        let Some((callee, name)) = callee.and_then(|callee| callee.range().zip(word(callee))) else {
            return;
        };
        let first = callee.0.line();
        let last = arguments.start_position().map_or(first, |start| start.line());
        let nodes = match arguments {
            FunctionArgs::Parentheses { arguments, .. } => {
                arguments.iter().map(|argument| self.node(argument)).collect()
            }
            FunctionArgs::String(text) => vec![Arc::new(Node {
                span: span(text),
                fields: Vec::new(),
            })],
            FunctionArgs::TableConstructor(table) => vec![Arc::new(self.table(table))],
            _ => Vec::new(),
        };
        self.calls.push(CallNode {
            name,
            lines: first..=last,
            span: callee.0.bytes()..callee.1.bytes(),
            arguments: nodes,
        });
    }

    fn node(&self, expression: &Expression) -> Arc<Node> {
        match expression {
            Expression::TableConstructor(table) => Arc::new(self.table(table)),
            Expression::Var(Var::Name(name)) => {
                let known = self.locals.get(name.token().to_string().as_str());
                Arc::new(Node {
                    span: span(name),
                    fields: known.map(|node| node.fields.clone()).unwrap_or_default(),
                })
            }
            other => Arc::new(Node {
                span: span(other),
                fields: Vec::new(),
            }),
        }
    }

    fn table(&self, table: &TableConstructor) -> Node {
        let mut position = 0;
        let mut fields = Vec::new();
        for field in table.fields() {
            let (key, key_span, value) = match field {
                Field::NameKey { key, value, .. } => (word(key).map(Key::Name), span(key), value.as_ref()),
                Field::ExpressionKey { key, value, .. } => {
                    let name = match key.as_ref() {
                        Expression::String(text) => word(text).map(Key::Name),
                        _ => None,
                    };
                    (name, span(key.as_ref()), value.as_ref())
                }
                Field::NoKey(value) => {
                    position += 1;
                    (Some(Key::Index(position)), span(value), value)
                }
                _ => continue,
            };
            if let Some(key) = key {
                fields.push(FieldNode {
                    key,
                    key_span,
                    value: self.node(value),
                });
            }
        }
        Node {
            span: span(table),
            fields,
        }
    }
}

/// The module in `require "module"`.
fn required(expression: &Expression) -> Option<String> {
    let Expression::FunctionCall(call) = expression else {
        return None;
    };
    let (Prefix::Name(name), Some(Suffix::Call(Call::AnonymousCall(arguments)))) =
        (call.prefix(), call.suffixes().next())
    else {
        return None;
    };
    if name.token().to_string() != "require" || call.suffixes().count() != 1 {
        return None;
    }
    match arguments.as_ref() {
        FunctionArgs::String(text) => word(text),
        FunctionArgs::Parentheses { arguments, .. } => match arguments.iter().next()? {
            Expression::String(text) => word(text),
            _ => None,
        },
        _ => None,
    }
}

/// The text of an identifier or a string without its quotes.
fn word(token: &TokenReference) -> Option<String> {
    match token.token_type() {
        TokenType::Identifier { identifier } => Some(identifier.to_string()),
        TokenType::StringLiteral { literal, .. } => Some(literal.to_string()),
        _ => None,
    }
}

fn span(node: &impl full_moon::node::Node) -> Range<usize> {
    node.range()
        .map_or(0..0, |(start, end)| start.bytes()..end.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_taken_from_modules_are_found_unless_they_are_hidden() {
        let text = "local test = require 'tidemill.test'\nlocal function f(test) return test.hidden end\nreturn test.seen(test.again)";
        let spans = Spans::parse(text);
        let names: Vec<&str> = spans.uses().iter().map(|taken| taken.name.as_str()).collect();
        assert_eq!(names, ["seen", "again"]);
    }

    #[test]
    fn a_field_is_found_through_calls_lists_and_locals() {
        let text = "local agent = {\n  model = 'm',\n}\nreturn mill.workflow {\n  agent = agent,\n  list = { f { 'x', yy = 1 } },\n}\n";
        let spans = Spans::parse(text);
        let workflow = spans.calls("workflow", 4).next().expect("the call");
        assert_eq!(&text[workflow.span.clone()], "workflow");
        let agent = workflow.arguments[0]
            .field(&Key::Name("agent".into()))
            .expect("agent");
        let model = agent.value.field(&Key::Name("model".into())).expect("model");
        assert_eq!(&text[model.key_span.clone()], "model");
        assert_eq!(&text[model.value.span.clone()], "'m'");
        let inner = spans.calls("f", 6).next().expect("the inner call");
        assert_eq!(&text[inner.arguments[0].fields[0].value.span.clone()], "'x'");
    }
}
