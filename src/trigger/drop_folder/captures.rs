//! Globs that capture: `contracts/{case}/*` matches like `contracts/*/*`, and knows the `case`.
//!
//! Paths are bytes, and so is what is captured. `{a,b}` stays an alternative.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use crate::event::input::printable;
use crate::event::trigger::Params;

/// The param that lists which captures are shown printable because they are not UTF-8.
pub const NOT_UTF8: &str = "not_utf8";

/// A glob, ready to match.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    names: Vec<String>,
    regex: Regex,
}

/// A name and the bytes it stands for.
pub type Capture = (String, Vec<u8>);

impl Glob {
    /// Reads it; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pieces = pieces(text)?;
        // Each capture is a word that stands nowhere else, until the glob has become a regular expression.
        let word = |index: usize| format!("CAPTURE{}x{index}x", text.len());
        let mut glob = String::new();
        let mut names: Vec<String> = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Plain(plain) => glob.push_str(plain),
                Piece::Capture(name) if name == NOT_UTF8 => {
                    return Err(format!("`{NOT_UTF8}` is the name of a param of ours"));
                }
                Piece::Capture(name) if names.iter().any(|known| known == name) => {
                    return Err(format!("it captures `{name}` twice"));
                }
                Piece::Capture(name) => {
                    glob.push_str(&word(names.len()));
                    names.push(name.to_owned());
                }
            }
        }
        let glob = GlobBuilder::new(&glob).literal_separator(true).build();
        let glob = glob.map_err(|error| error.kind().to_string())?;
        let mut regex = glob.regex().to_owned();
        for (index, name) in names.iter().enumerate() {
            regex = regex.replacen(&word(index), &format!("(?P<{name}>[^/]+)"), 1);
        }
        // A newline in a name is a byte like any other.
        let regex = RegexBuilder::new(&regex).dot_matches_new_line(true).build();
        let regex = regex.map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), names, regex })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it captures, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether it fits the whole path.
    pub fn is_match(&self, path: &Path) -> bool {
        self.regex.is_match(path.as_os_str().as_bytes())
    }

    /// What it captures of that path; nothing when it does not fit. Of several captures in one name the first takes as
    /// much as it can.
    pub fn captures(&self, path: &Path) -> Vec<Capture> {
        let found = self.regex.captures(path.as_os_str().as_bytes());
        let capture = |name: &String| Some((name.clone(), found.as_ref()?.name(name)?.as_bytes().to_vec()));
        self.names.iter().filter_map(capture).collect()
    }
}

/// Captures as a run is told them: as text, printable where they are not UTF-8, with a list of those.
pub fn params(captures: &[Capture]) -> Params {
    let mut params = Params::new();
    let mut broken = Vec::new();
    for (name, bytes) in captures {
        let text = String::from_utf8(bytes.clone()).unwrap_or_else(|_| {
            broken.push(Value::from(name.as_str()));
            printable(OsStr::from_bytes(bytes))
        });
        params.insert(name.clone(), text.into());
    }
    if !broken.is_empty() {
        params.insert(NOT_UTF8.to_owned(), Value::Array(broken));
    }
    params
}

/// A piece of a glob or of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Plain(&'a str),
    Capture(&'a str),
}

/// Takes a glob apart.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let bytes = text.as_bytes();
    let (mut pieces, mut plain, mut at) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'[' => at = after_class(bytes, at),
            b'{' => {
                let end = closing(bytes, at).ok_or("a `{` is not closed")?;
                let inside = &text[at + 1..end];
                if is_name(inside) {
                    pieces.push(Piece::Plain(&text[plain..at]));
                    pieces.push(Piece::Capture(inside));
                    plain = end + 1;
                } else if let Some(inner) =
                    inside.split(['{', '}']).skip(1).step_by(2).find(|part| is_name(part))
                {
                    return Err(format!("`{{{inner}}}` stands in an alternative, where it may be missing"));
                }
                at = end + 1;
            }
            _ => at += 1,
        }
    }
    pieces.push(Piece::Plain(&text[plain.min(text.len())..]));
    Ok(pieces)
}

/// Letters, digits and `_`, no digit first.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, open);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Behind the class that begins there; a `]` right after the beginning is one of its members.
fn after_class(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    if matches!(bytes.get(at), Some(b'!' | b'^')) {
        at += 1;
    }
    if bytes.get(at) == Some(&b']') {
        at += 1;
    }
    while bytes.get(at).is_some_and(|byte| *byte != b']') {
        at += 1;
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(glob: &str, path: &[u8]) -> Vec<(String, String)> {
        let glob = Glob::parse(glob).expect("a glob");
        let captures = glob.captures(Path::new(OsStr::from_bytes(path)));
        captures
            .into_iter()
            .map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned()))
            .collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn a_capture_is_one_part_of_a_path_or_a_piece_of_it() {
        assert_eq!(captured("contracts/{case}/*", b"contracts/42/a.txt"), [pair("case", "42")]);
        assert_eq!(captured("contracts/{case}/*", b"contracts/4/2/a.txt"), []);
        assert_eq!(captured("contracts/{case}/*", b"contracts//a.txt"), []);
        let two = [pair("kind", "a-b"), pair("day", "7")];
        assert_eq!(captured("**/{kind}-{day}.{csv,tsv}", b"x/y/a-b-7.tsv"), two);
        assert_eq!(captured("{a}[{}]*", b"xx}y"), [pair("a", "xx")]);
        assert_eq!(captured("\\{case\\}/{b}", b"{case}/1"), [pair("b", "1")]);
        assert_eq!(captured("**/{name}.?sv", b"new\nfolder/a.\nsv"), [pair("name", "a")]);
        assert_eq!(captured("x{CAPTURE}", b"xCAPTURE"), [pair("CAPTURE", "CAPTURE")]);
    }

    #[test]
    fn captures_are_bytes_and_are_told_as_text() {
        let glob = Glob::parse("{case}/{name}").expect("a glob");
        let told = params(&glob.captures(Path::new(OsStr::from_bytes(b"\xff\n/b"))));
        assert_eq!(Value::Object(told).to_string(), r#"{"case":"\\xff\\n","name":"b","not_utf8":["case"]}"#);
    }

    #[test]
    fn what_cannot_capture_is_refused() {
        for (glob, why) in [
            ("{a}/{a}", "it captures `a` twice"),
            ("{a,{b}}", "`{b}` stands in an alternative, where it may be missing"),
            ("{not_utf8}", "`not_utf8` is the name of a param of ours"),
            ("x{a", "a `{` is not closed"),
        ] {
            assert_eq!(Glob::parse(glob).map(drop).expect_err(glob), why, "{glob}");
        }
    }
}
