//! What is too big or too odd to hand to the parser.

use std::sync::LazyLock;

use regex::Regex;

/// Stack of the parsing thread. The parser recurses; a level takes up to 64 KB of it in a debug build, so that
/// [`OPENERS`] levels fit. Only what is used takes memory.
pub(super) const STACK: usize = 256 << 20;
/// Longer scripts belong in a file.
const LONGEST: usize = 256 * 1024;
/// Brackets and keywords that can open a level. Counted without looking at quotes, so that no trick hides one.
const OPENERS: usize = 3_000;

/// Numbers that the parser takes as file descriptors, ranges or positions and that fit no machine word.
static HUGE_NUMBER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:~[+-]?|\.\.[+-]?|\{[+-]?|\$)[0-9]{10,}|[0-9]{10,}[<>]").ok());

/// Why `text` is not even parsed; `None` when it can be.
pub(super) fn beyond(text: &str) -> Option<String> {
    if text.len() > LONGEST {
        return Some(format!(
            "the command has {} bytes, more than {LONGEST}; save it as a file and run that",
            text.len()
        ));
    }
    let brackets = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'[' | b'`')).count();
    let keywords = text
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| matches!(*word, "if" | "while" | "until" | "for" | "case" | "select" | "coproc"))
        .count();
    if brackets + keywords > OPENERS {
        return Some(format!(
            "the command has more than {OPENERS} brackets and keywords; save it as a file and run that"
        ));
    }
    if text.contains('\0') {
        return Some("the command holds a zero byte".to_owned());
    }
    match HUGE_NUMBER.as_ref() {
        Some(pattern) if !pattern.is_match(text) => None,
        _ => Some("the command holds a number that no shell can use".to_owned()),
    }
}
