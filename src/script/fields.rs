//! Reading the tables a script declares: every mistake is noted with its place, and reading goes on.

use mlua::{Function, Table, Value};

use super::api::{Class, advice};
use super::host::Host;
use super::place::Place;
use super::value;
use crate::diagnostic::{Diagnostic, nearest};

/// A table being read.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    host: &'a Host,
    word: &'static str,
    table: Table,
    place: Place,
}

impl<'a> Fields<'a> {
    /// Reads `value` as a table of `class`. Unknown and missing fields are noted at once; `None` when it is no table.
    pub(super) fn read(host: &'a Host, value: Value, place: Place, class: &'static Class) -> Option<Self> {
        let Value::Table(table) = value else {
            let wanted = format!("a table of {}", class.word);
            value::wrong::<()>(host, &place, class.word, &wanted, &value);
            return None;
        };
        let fields = Self { host, word: class.word, table, place };
        fields.check_names(class);
        Some(fields)
    }

    fn check_names(&self, class: &'static Class) {
        let known: Vec<&str> = class.fields.iter().map(|field| field.name).collect();
        let mut unknown = Vec::new();
        for pair in self.table.pairs::<Value, Value>() {
            match pair {
                Ok((Value::String(name), _)) => {
                    let name = name.to_string_lossy();
                    if !known.contains(&name.as_str()) {
                        unknown.push((self.place.name(&name), name));
                    }
                }
                Ok((Value::Integer(index), found)) => {
                    let place =
                        usize::try_from(index).map_or(self.place.clone(), |index| self.place.item(index));
                    let message = format!("`{}` holds {} without a name", self.word, value::describe(&found));
                    let mistake = Diagnostic::new("script::unknown_field", message);
                    let help = format!("name it: {}", known.join(", "));
                    self.host.mistake(place.mark_value(mistake, "which field is this?").help(help));
                }
                _ => self.note("script::unknown_field", format!("`{}` has a key that is no name", self.word)),
            }
        }
        // In Lua's own order of keys the report would differ from run to run.
        unknown.sort_by(|left, right| left.1.cmp(&right.1));
        let mut meant = Vec::new();
        for (place, name) in unknown {
            let shown = value::shorten(&name);
            let mistake =
                Diagnostic::new("script::unknown_field", format!("`{}` has no field `{shown}`", self.word));
            let near = nearest(&name, known.iter().copied());
            meant.extend(near);
            let mistake = place.mark_name(mistake, "unknown field");
            self.host.mistake(mistake.help(advice(near, &known)));
        }
        for field in class.fields {
            let required = !field.kind.ends_with('?');
            // A misspelled field is one mistake, not two.
            if required && self.value(field.name) == Value::Nil && !meant.contains(&field.name) {
                self.lacks(field.name, field.doc);
            }
        }
    }

    /// Whether every field is one of `class`: where one is not, it may be a missing one misspelled.
    pub(super) fn are_of(&self, class: &'static Class) -> bool {
        let is_known = |name: String| class.fields.iter().any(|field| field.name == name);
        self.table.pairs::<String, Value>().flatten().all(|(name, _)| is_known(name))
    }

    /// Notes that a field is missing; `doc` says what it is.
    pub(super) fn lacks(&self, name: &str, doc: &str) {
        let message = format!("`{}` needs the field `{name}`", self.word);
        let mistake = Diagnostic::new("script::missing_field", message);
        let mistake = self.place.mark_name(mistake, "it is missing here");
        self.host.mistake(mistake.help(format!("`{name}`: {doc}")));
    }

    /// Notes a mistake about the table as a whole.
    pub(super) fn note(&self, code: &'static str, message: String) {
        self.host.mistake(self.place.mark_name(Diagnostic::new(code, message), "here"));
    }

    /// Where the field stands.
    pub(super) fn at(&self, name: &str) -> Place {
        self.place.name(name)
    }

    /// The field's value; reading it raises nothing that is worth more than `nil`.
    pub(super) fn value(&self, name: &str) -> Value {
        self.table.get(name).unwrap_or(Value::Nil)
    }

    /// How messages speak of the field.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.word)
    }

    /// The field read by `read`, when it is there.
    pub(super) fn with<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Host, &Place, &str, &Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name);
        if value == Value::Nil {
            return None;
        }
        read(self.host, &self.at(name), &self.path(name), &value)
    }

    /// Text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.with(name, value::text)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.with(name, value::flag)
    }

    /// A whole number from zero.
    pub(super) fn count(&self, name: &str) -> Option<u64> {
        self.with(name, value::count)
    }

    /// A list of texts.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.with(name, value::texts).unwrap_or_default()
    }

    /// A function.
    pub(super) fn function(&self, name: &str) -> Option<Function> {
        self.with(name, |host, place, path, value| match value {
            Value::Function(function) => Some(function.clone()),
            other => value::wrong(host, place, path, "a function", other),
        })
    }

    /// The entries of a field that is a table keyed by names, in the order of the names.
    pub(super) fn map(&self, name: &str) -> Vec<(String, Place, Value)> {
        self.with(name, value::map).unwrap_or_default()
    }

    /// The items of a field that is a list.
    pub(super) fn list(&self, name: &str) -> Vec<(Place, Value)> {
        self.with(name, value::list).unwrap_or_default()
    }
}
