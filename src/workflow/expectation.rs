//! What a good artifact is.

use std::collections::BTreeMap;

use crate::workflow::path::WorkspacePath;

/// A declared output: the file that must exist, and what makes it good.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Where the agent must save it.
    pub path: WorkspacePath,
    /// What makes it good.
    pub expect: Expect,
}

/// The kinds of checks on one file.
#[derive(Debug, Clone, PartialEq)]
pub enum Expect {
    /// `expect.csv { ... }`
    Csv(Csv),
    /// `expect.json { ... }`
    Json(Json),
    /// `expect.image { ... }`
    Image(Image),
    /// `expect.text { ... }`
    Text(Text),
    /// `expect.file { ... }`
    File(File),
}

/// A table with a header row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Csv {
    /// Columns that must be there; others may be.
    pub columns: Vec<String>,
    /// What a column's values are; empty cells are left to `not_null`.
    pub types: BTreeMap<String, ColumnType>,
    /// Rows at least, the header not counted.
    pub min_rows: Option<u64>,
    /// Rows at most.
    pub max_rows: Option<u64>,
    /// Columns whose values together occur once.
    pub unique: Vec<String>,
    /// Columns without empty cells.
    pub not_null: Vec<String>,
    /// Numbers of a column between these, both included.
    pub ranges: BTreeMap<String, Range>,
    /// The only values of a column.
    pub enums: BTreeMap<String, Vec<String>>,
    /// Patterns that a column's values match as a whole.
    pub patterns: BTreeMap<String, String>,
}

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Anything.
    String,
    /// A whole number.
    Integer,
    /// A finite number.
    Number,
    /// `true` or `false`, in any case.
    Boolean,
    /// `2026-11-30`.
    Date,
    /// `2026-11-30 06:00`, with `T` or a blank, seconds and zone optional.
    Datetime,
}

impl ColumnType {
    /// The words a script may use.
    pub const WORDS: [(&'static str, Self); 6] = [
        ("string", Self::String),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("boolean", Self::Boolean),
        ("date", Self::Date),
        ("datetime", Self::Datetime),
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        Self::WORDS.into_iter().find(|(_, kind)| *kind == self).map_or("string", |(word, _)| word)
    }
}

/// Bounds of a number, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Range {
    /// Least.
    pub min: Option<f64>,
    /// Most.
    pub max: Option<f64>,
}

/// A JSON document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Json {
    /// JSON Schema (draft 2020-12 unless it names another); a schema file has been read.
    pub schema: Option<serde_json::Value>,
}

/// A picture that really decodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// `png`, `jpeg`, `gif`, `webp` or `bmp`; any of them when absent.
    pub format: Option<String>,
    /// Pixels at least.
    pub min_width: Option<u32>,
    /// Pixels at most.
    pub max_width: Option<u32>,
    /// Pixels at least.
    pub min_height: Option<u32>,
    /// Pixels at most.
    pub max_height: Option<u32>,
}

/// Text in UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text {
    /// Whether only ASCII is allowed.
    pub ascii: bool,
    /// Words at least.
    pub min_words: Option<u64>,
    /// Words at most.
    pub max_words: Option<u64>,
    /// Strings that must occur.
    pub contains: Vec<String>,
    /// A pattern that must occur.
    pub pattern: Option<String>,
}

/// Any file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Bytes at least; 1 when absent.
    pub min_size: Option<u64>,
    /// Bytes at most.
    pub max_size: Option<u64>,
    /// What its first bytes must show, as a MIME type (`application/pdf`) or an extension (`pdf`).
    pub magic: Option<String>,
}
