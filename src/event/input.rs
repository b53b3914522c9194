//! A file a run works on. Its name is bytes of someone else's choosing.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::id::Digest;
use crate::event::state::InputState;

/// One file of an input, as it was when the run was queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFile {
    /// Path as found, relative to the inbox (drop) or as given (manual), with its bytes kept.
    pub path: RawPath,
    /// Bytes.
    pub size: u64,
    /// Hash of its content.
    pub digest: Digest,
}

/// What tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Bytes.
    pub size: u64,
    /// Last change of the content in nanoseconds since 1970, as the file system says. Compared, never trusted as a time.
    pub mtime_ns: i64,
    /// Number of the file in its file system.
    pub inode: u64,
    /// The file system.
    pub device: u64,
}

/// An input of the drop folder enters a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputChange {
    /// Relative to the inbox.
    pub path: RawPath,
    /// The version of the file this is about.
    pub fingerprint: Fingerprint,
    /// The state.
    pub state: InputState,
    /// Why, as a sentence for people: which rule, which error.
    pub reason: Option<String>,
}

/// What a file is for that goes with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It says that a file is complete (`ready_when`).
    Sentinel,
    /// Its values become params (`params_from`).
    Sidecar,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 2] = [Self::Sentinel, Self::Sidecar];

    /// The word in the store, and the rule by which it is no input of its own.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sentinel => "sentinel",
            Self::Sidecar => "sidecar",
        }
    }

    /// The role of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// The option of a drop that names it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Sentinel => "ready_when",
            Self::Sidecar => "params_from",
        }
    }
}

/// A path as bytes, written as text when it is UTF-8 and as `hex:...` when it is not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawPath(PathBuf);

impl RawPath {
    /// Keeps a path as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The path.
    pub fn as_path(&self) -> &std::path::Path {
        &self.0
    }

    /// The last component; empty when there is none.
    pub fn name(&self) -> &OsStr {
        self.0.file_name().unwrap_or_default()
    }

    /// For people: control characters and broken UTF-8 escaped, never raw terminal bytes.
    pub fn display(&self) -> String {
        printable(self.0.as_os_str())
    }

    /// The storable form, which [`RawPath::decode`] takes back without loss.
    pub fn encode(&self) -> String {
        match self.0.to_str() {
            Some(text) if !text.starts_with(HEX) => text.to_owned(),
            _ => format!("{HEX}{}", hex::encode(self.0.as_os_str().as_bytes())),
        }
    }

    /// Takes back what [`RawPath::encode`] made.
    pub fn decode(text: &str) -> Self {
        let bytes = text.strip_prefix(HEX).and_then(|digits| hex::decode(digits).ok());
        Self(match bytes {
            Some(bytes) => PathBuf::from(std::ffi::OsString::from_vec(bytes)),
            None => PathBuf::from(text),
        })
    }
}

const HEX: &str = "hex:";

impl Serialize for RawPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode())
    }
}

impl<'de> Deserialize<'de> for RawPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::decode(&text))
    }
}

/// A name made safe to print: control characters, format characters that reorder text, and bytes that are not
/// UTF-8 are escaped.
pub fn printable(name: &OsStr) -> String {
    let mut shown = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            let reorders = matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            if character.is_control() || reorders {
                shown.extend(character.escape_default());
            } else {
                shown.push(character);
            }
        }
        for byte in chunk.invalid() {
            shown.push_str("\\x");
            shown.push_str(&hex::encode([*byte]));
        }
    }
    shown
}
