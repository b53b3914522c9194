//! Secrets that requests are signed with.

use std::fmt;

use aws_lc_rs::{constant_time, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::workflow::webhook::Scheme;

/// A key of HMAC-SHA256. Its value is never shown.
#[derive(Clone)]
pub struct Key(hmac::Key);

impl Key {
    /// What the secrets of Standard Webhooks begin with.
    const PREFIX: &str = "whsec_";

    /// Bytes of a shorter one can be guessed.
    const SHORTEST: usize = 8;

    /// Bytes of a secret of Standard Webhooks.
    const STANDARD: std::ops::RangeInclusive<usize> = 24..=64;

    /// The key in a secret's text, as senders of this scheme hand it out. An error says what is wrong without the text.
    pub fn parse(scheme: &Scheme, text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if *scheme == Scheme::Standard {
            return Self::standard(text);
        }
        if text.len() < Self::SHORTEST {
            return Err("it is shorter than 8 characters");
        }
        Ok(Self::of(text.as_bytes()))
    }

    /// The key in a secret of Standard Webhooks: `whsec_` and base64 of 24 to 64 bytes.
    pub fn standard(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        let encoded = text.strip_prefix(Self::PREFIX).unwrap_or(text);
        match STANDARD.decode(encoded) {
            Ok(bytes) if Self::STANDARD.contains(&bytes.len()) => Ok(Self::of(&bytes)),
            _ => Err("it is not `whsec_` and base64 of 24 to 64 bytes, as Standard Webhooks has them"),
        }
    }

    fn of(bytes: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The signature of these pieces as one text.
    pub fn sign(&self, pieces: &[&[u8]]) -> Vec<u8> {
        let mut context = hmac::Context::with_key(&self.0);
        for piece in pieces {
            context.update(piece);
        }
        context.sign().as_ref().to_vec()
    }

    /// The header `webhook-signature` of Standard Webhooks.
    pub fn sign_standard(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let timestamp = timestamp.to_string();
        let tag = self.sign(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        format!("v1,{}", STANDARD.encode(tag))
    }

    /// Whether one of `signatures` is that of the pieces. How long that takes tells nothing of where they differ.
    pub(super) fn signed(&self, pieces: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
        let tag = self.sign(pieces);
        signatures.iter().any(|given| constant_time::verify_slices_are_equal(&tag, given).is_ok())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn the_vector_of_standard_webhooks_is_signed_as_theirs() {
        let key = Key::standard(SECRET).unwrap();
        let signature =
            key.sign_standard("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{key:?}"), "Key");
    }

    #[test]
    fn a_secret_that_is_none_is_refused_without_its_text() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "correct horse battery staple"] {
            assert!(Key::parse(&Scheme::Standard, text).is_err(), "{text}");
        }
        assert!(Key::parse(&Scheme::Github, "short").is_err());
        assert!(Key::parse(&Scheme::Github, " long enough\n").is_ok());
    }
}
