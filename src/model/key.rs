//! A model's key: used in one header, shown nowhere.

use std::fmt;

/// What stands where a key stood.
const REDACTED: &str = "[key]";
/// Shorter "keys" are words such as `ollama`, which are no secrets and may stand in any text.
const SECRET_FROM: usize = 8;

/// A key. Its `Debug` never shows it, and it has no `Display`.
#[derive(Clone, Default)]
pub struct Key(String);

impl Key {
    /// Keeps a key. White space around it (a line end in an environment file) is not part of it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Whether there is none: servers on one's own machine often need none.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// `text` without the key, wherever it stood: some servers echo it.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < SECRET_FROM {
            return text.to_owned();
        }
        text.replace(&self.0, REDACTED)
    }

    /// Whether it can stand in a header.
    pub(super) fn fits_a_header(&self) -> bool {
        self.0.bytes().all(|byte| (0x21..0x7f).contains(&byte))
    }

    /// The key itself, for the header alone.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_none() { "Key(none)" } else { "Key(..)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let key = Key::new("sk-very-secret-1234\n");
        assert_eq!(format!("{key:?}"), "Key(..)");
        assert_eq!(key.redact("wrong key sk-very-secret-1234!"), "wrong key [key]!");
    }

    #[test]
    fn a_word_is_no_secret() {
        assert_eq!(Key::new("ollama").redact("ollama says"), "ollama says");
        assert_eq!(Key::default().redact("text"), "text");
    }
}
