//! One word of a shell command: what it certainly is, or that only the running shell will know.

use brush_parser::ParserOptions;
use brush_parser::word::{
    BraceExpressionOrText, WordPiece, WordPieceWithSource, parse_brace_expansions, parse_heredoc,
};

/// A word as written, and its value where that is certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// As written, for people.
    pub text: String,
    /// What it becomes; `None` when it depends on variables, commands or files.
    pub value: Option<String>,
    /// Whether the shell may put file names in its place.
    pub globs: bool,
}

impl Word {
    /// A word that only the running shell will know.
    pub fn unknown(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            value: None,
            globs: false,
        }
    }

    /// The word where `placeholder` is replaced with what nobody knows yet.
    pub fn filled(&self, placeholder: &str) -> Self {
        if self.text.contains(placeholder) {
            Self::unknown(&self.text)
        } else {
            self.clone()
        }
    }

    /// Whether it certainly is `text`.
    pub fn is(&self, text: &str) -> bool {
        self.value.as_deref() == Some(text)
    }
}

/// A word that was read, and the shell code that stands in it (`$(...)`, backticks).
#[derive(Debug)]
pub(super) struct Read {
    pub word: Word,
    pub code: Vec<String>,
}

/// Reads a word as written in a command.
pub(super) fn read(text: &str) -> Result<Read, String> {
    let mut reader = Reader::default();
    reader.pieces(text, &parse(text)?)?;
    let braces = text.contains('{') && has_braces(text)?;
    Ok(Read {
        word: Word {
            text: text.to_owned(),
            value: (reader.certain && !braces).then_some(reader.value),
            globs: reader.globs,
        },
        code: reader.code,
    })
}

/// The shell code in the body of a here-document that expands.
pub(super) fn code_in_document(text: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::default();
    let pieces = parse_heredoc(text, &ParserOptions::default()).map_err(|error| error.to_string())?;
    reader.pieces(text, &pieces)?;
    Ok(reader.code)
}

/// The shell code in an arithmetic expression; an error when it may be something else.
pub(super) fn code_in_arithmetic(text: &str) -> Result<Vec<String>, String> {
    let mut reader = Reader::default();
    reader.arithmetic(text)?;
    Ok(reader.code)
}

fn parse(text: &str) -> Result<Vec<WordPieceWithSource>, String> {
    brush_parser::word::parse(text, &ParserOptions::default()).map_err(|error| error.to_string())
}

/// Whether `{a,b}` or `{1..3}` makes several words of it.
fn has_braces(text: &str) -> Result<bool, String> {
    let parts = parse_brace_expansions(text, &ParserOptions::default()).map_err(|error| error.to_string())?;
    Ok(parts
        .iter()
        .flatten()
        .any(|part| matches!(part, BraceExpressionOrText::Expr(_))))
}

/// Expansions in expansions: nobody writes more, and each level is parsed anew.
const DEEPEST: usize = 16;

/// Whether an unquoted text is a pattern that the shell replaces with file names. `[` alone is a command.
fn globs(text: &str) -> bool {
    text.contains(['*', '?', '(']) || (text.contains('[') && text.contains(']'))
}

#[derive(Debug)]
struct Reader {
    value: String,
    certain: bool,
    globs: bool,
    code: Vec<String>,
    depth: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            value: String::new(),
            certain: true,
            globs: false,
            code: Vec::new(),
            depth: 0,
        }
    }
}

impl Reader {
    fn pieces(&mut self, source: &str, pieces: &[WordPieceWithSource]) -> Result<(), String> {
        pieces.iter().try_for_each(|piece| self.piece(source, piece))
    }

    fn piece(&mut self, source: &str, piece: &WordPieceWithSource) -> Result<(), String> {
        match &piece.piece {
            WordPiece::Text(text) => {
                self.globs |= globs(text);
                self.value.push_str(text);
            }
            WordPiece::SingleQuotedText(text) => self.value.push_str(text),
            WordPiece::AnsiCQuotedText(text) => {
                self.certain &= !text.contains('\\');
                self.value.push_str(text);
            }
            WordPiece::DoubleQuotedSequence(pieces) | WordPiece::GettextDoubleQuotedSequence(pieces) => {
                self.quoted(source, pieces)?;
            }
            WordPiece::EscapeSequence(text) => match text.strip_prefix('\\') {
                Some("\n") => {}
                Some(character) => self.value.push_str(character),
                None => self.certain = false,
            },
            WordPiece::TildeExpansion(_) => self.value.push('~'),
            WordPiece::CommandSubstitution(code) => {
                self.certain = false;
                self.code.push(code.clone());
            }
            WordPiece::BackquotedCommandSubstitution(code) => {
                self.certain = false;
                self.code.push(unescape_backquoted(code));
            }
            WordPiece::ArithmeticExpression(expression) => {
                self.certain = false;
                self.arithmetic(&expression.value)?;
            }
            WordPiece::ParameterExpansion(_) => {
                self.certain = false;
                // Defaults, patterns and indexes are words of their own, in which commands may stand.
                let braced = source
                    .get(piece.start_index..piece.end_index)
                    .and_then(|text| text.strip_prefix("${"))
                    .and_then(|text| text.strip_suffix('}'));
                if let Some(text) = braced {
                    self.inner(text)?;
                }
            }
        }
        Ok(())
    }

    /// Inside double quotes nothing is a pattern.
    fn quoted(&mut self, source: &str, pieces: &[WordPieceWithSource]) -> Result<(), String> {
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(text) => self.value.push_str(text),
                _ => self.piece(source, piece)?,
            }
        }
        Ok(())
    }

    /// The code in a text that is read like a word, whatever its value.
    fn inner(&mut self, text: &str) -> Result<(), String> {
        if text.contains(['$', '`']) {
            let mut reader = self.below()?;
            reader.pieces(text, &parse(text)?)?;
            self.code.append(&mut reader.code);
        }
        Ok(())
    }

    /// The code in an arithmetic expression. `((` may as well open two subshells, and shells differ in how they tell:
    /// what is not certainly arithmetic is refused.
    fn arithmetic(&mut self, text: &str) -> Result<(), String> {
        let mut reader = self.below()?;
        let mut plain = String::new();
        for piece in &parse(text)? {
            match &piece.piece {
                WordPiece::Text(text) => plain.push_str(text),
                WordPiece::CommandSubstitution(code) if !code.contains("<<") => reader.piece(text, piece)?,
                WordPiece::ParameterExpansion(_) | WordPiece::ArithmeticExpression(_) => {
                    reader.piece(text, piece)?;
                }
                _ => return Err("it is not certainly arithmetic".to_owned()),
            }
        }
        if !is_arithmetic(&plain) {
            return Err("it is not certainly arithmetic".to_owned());
        }
        self.code.append(&mut reader.code);
        Ok(())
    }

    fn below(&self) -> Result<Self, String> {
        if self.depth == DEEPEST {
            return Err(format!("expansions are nested deeper than {DEEPEST} levels"));
        }
        Ok(Self {
            depth: self.depth + 1,
            ..Self::default()
        })
    }
}

/// Whether a text without expansions holds only what an expression holds, and brackets that pair up.
fn is_arithmetic(text: &str) -> bool {
    let mut open = 0_usize;
    for character in text.chars() {
        match character {
            '(' => open += 1,
            ')' if open == 0 => return false,
            ')' => open -= 1,
            ' ' | '\t' | '_' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '&' | '|' | '^'
            | '~' | '?' | ':' | ',' | '[' | ']' | '#' => {}
            character if character.is_ascii_alphanumeric() => {}
            _ => return false,
        }
    }
    open == 0
}

/// In backticks a backslash protects a backtick, a backslash and a dollar sign, and stands for itself otherwise.
fn unescape_backquoted(code: &str) -> String {
    let mut text = String::new();
    let mut characters = code.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\\' && matches!(characters.peek(), Some('`' | '\\' | '$')) {
            text.extend(characters.next());
        } else {
            text.push(character);
        }
    }
    text
}
