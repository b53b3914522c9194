//! Names that are safe in paths, labels and logs: run ids and content hashes.

use std::fmt;
use std::io::{self, Read, Write};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A run's id: its start in UTC and four random characters, e.g. `20261130-231805-k3xq`.
///
/// It sorts by time, is short enough to type, and holds only `[0-9a-z-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// A new id for a run queued at `now`.
    pub fn new(now: Timestamp) -> Self {
        /// Without vowels and look-alikes.
        const ALPHABET: &[u8] = b"23456789bcdfghjkmnpqrstvwxz";
        let tail: String = (0..4).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])).collect();
        Self(format!("{}-{tail}", now.strftime("%Y%m%d-%H%M%S")))
    }

    /// Takes an id that a person or the store wrote; `None` when it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty()
            && text.len() <= 40
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        fits.then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A SHA-256 of content, as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Hashes bytes at hand.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes.as_ref());
        hasher.finish()
    }

    /// Takes digits that the store or a person wrote; `None` when they are no hash.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        fits.then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 digits: enough for a tag or a table.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Hashes content that comes in pieces.
#[derive(Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all pieces.
    pub fn finish(self) -> Digest {
        Digest(hex::encode(self.0.finalize()))
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies all of `from` to `to` and hashes it on the way: the hash is of what was written, not of what is read later.
pub fn copy_hashed(from: &mut dyn Read, to: &mut dyn Write) -> io::Result<(Digest, u64)> {
    let mut hasher = Hasher::default();
    let mut size = 0;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok((hasher.finish(), size));
        }
        hasher.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
        size += count as u64;
    }
}
