//! A folder of the project that names captures: `archive/{case}`. What is captured never leads out of it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use crate::trigger::drop_folder::captures::{Capture, Piece, pieces};

/// The longest name that file systems take, in bytes.
const LONGEST: usize = 255;

/// A folder, ready to be filled in.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a>(&'a str);

impl<'a> Template<'a> {
    /// Reads it; the error says what is wrong with it. `captured` are the names it may use.
    pub fn parse(text: &'a str, captured: &[String]) -> Result<Self, String> {
        if text.starts_with('/') {
            return Err("it is absolute".to_owned());
        }
        for (index, part) in text.trim_end_matches('/').split('/').enumerate() {
            match part {
                "" => return Err("it has an empty part".to_owned()),
                part if part.starts_with('.') => return Err("one of its parts begins with a dot".to_owned()),
                part if index == 0 && part.contains('{') => {
                    return Err("its first part is not fixed, so that it could be any folder of the project"
                        .to_owned());
                }
                _ => {}
            }
        }
        for piece in pieces(text)? {
            match piece {
                Piece::Capture(name) if !captured.iter().any(|known| known == name) => {
                    return Err(match captured {
                        [] => format!("`{{{name}}}` is not captured: the glob captures nothing"),
                        known => {
                            format!("`{{{name}}}` is not captured; the glob captures {}", known.join(", "))
                        }
                    });
                }
                Piece::Plain(plain) if plain.contains(['{', '}', '*', '?', '[', '\\']) => {
                    return Err("it is a folder, and no pattern".to_owned());
                }
                _ => {}
            }
        }
        Ok(Self(text))
    }

    /// Whether it may be `folder` or lie in it, whatever is captured.
    pub fn may_lie_in(self, folder: &Path) -> bool {
        let mut parts = self.0.trim_end_matches('/').split('/');
        folder.iter().all(|name| parts.next().is_some_and(|part| part.contains('{') || name == part))
    }

    /// The folder, relative to the project. A captured dot in front of a name becomes `_`.
    pub fn fill(self, captures: &[Capture]) -> PathBuf {
        let mut folder = PathBuf::new();
        for part in self.0.trim_end_matches('/').split('/') {
            let mut name = Vec::new();
            for piece in pieces(part).unwrap_or_default() {
                match piece {
                    Piece::Plain(plain) => name.extend_from_slice(plain.as_bytes()),
                    Piece::Capture(wanted) => {
                        let found = captures.iter().find(|(known, _)| known == wanted);
                        name.extend(found.map(|(_, bytes)| bytes.as_slice()).unwrap_or_default());
                    }
                }
            }
            let dots = name.iter().take_while(|byte| **byte == b'.').count();
            name[..dots].fill(b'_');
            name.truncate(LONGEST);
            folder.push(OsString::from_vec(name));
        }
        folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_captured_stays_in_its_folder() {
        let names = ["case".to_owned()];
        let template = Template::parse("archive/{case}/of-{case}", &names).expect("a folder");
        for (case, folder) in
            [("42", "archive/42/of-42"), ("..", "archive/__/of-.."), (".git", "archive/_git/of-.git")]
        {
            assert_eq!(template.fill(&[("case".to_owned(), case.into())]), Path::new(folder));
        }
    }

    #[test]
    fn what_is_no_folder_of_the_project_is_refused() {
        let names = ["case".to_owned()];
        for text in
            ["", "/archive", "../archive", ".tidemill/x", "a//b", "{case}/a", "a/{kind}", "a/*", "a/{x,y}"]
        {
            assert!(Template::parse(text, &names).is_err(), "{text}");
        }
        assert!(
            Template::parse("a/{case}", &[]).expect_err("nothing is captured").contains("captures nothing")
        );
    }

    #[test]
    fn the_inbox_is_known_whatever_is_captured() {
        let names = ["case".to_owned()];
        let lies = |text: &str, folder: &str| {
            Template::parse(text, &names).expect("a folder").may_lie_in(Path::new(folder))
        };
        assert!(lies("inbox/done", "inbox") && lies("data/{case}/done", "data/inbox"));
        assert!(!lies("archive/{case}", "inbox") && !lies("data", "data/inbox"));
    }
}
