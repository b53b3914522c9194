//! Frames: how host and helper talk over one stream of bytes.
//!
//! A frame is `length: u32 LE` (of what follows), `kind: u8`, `id: u32 LE`, `payload`. What a kind means, and what its
//! payload holds, is the matter of those who use it.

use std::io::{self, Read, Write};

/// Bytes a payload may have: a peer that says more is not one of ours.
pub const LONGEST: usize = 1 << 20;
/// Bytes before the payload, the length excluded.
const HEAD: usize = 5;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: u8,
    /// What it belongs to: a command, a request, a connection.
    pub id: u32,
    /// Its content.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame; `payload` is at most [`LONGEST`] bytes.
    pub fn new(kind: u8, id: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, id, payload: payload.into() }
    }

    /// Appends its bytes to `to`.
    pub fn encode(&self, to: &mut Vec<u8>) {
        let length = u32::try_from(HEAD + self.payload.len()).unwrap_or(u32::MAX);
        to.extend_from_slice(&length.to_le_bytes());
        to.push(self.kind);
        to.extend_from_slice(&self.id.to_le_bytes());
        to.extend_from_slice(&self.payload);
    }

    /// Writes it whole.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(4 + HEAD + self.payload.len());
        self.encode(&mut bytes);
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Reads the next one; nothing at a clean end.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut decoder = Decoder::default();
        let mut piece = [0; 1];
        loop {
            if let Some(frame) = decoder.next()? {
                return Ok(Some(frame));
            }
            match from.read(&mut piece)? {
                0 if decoder.is_empty() => return Ok(None),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => decoder.feed(&piece),
            }
        }
    }
}

/// Makes frames of bytes that come in pieces.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes at the front that have been taken.
    taken: usize,
}

impl Decoder {
    /// Takes bytes as they come.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 && self.taken * 2 >= self.bytes.len() {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether nothing is left over.
    pub fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// The next whole frame. A length no frame can have is an error: the stream is not one of ours.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot say that more bytes are needed")]
    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        let rest = &self.bytes[self.taken..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(HEAD..=HEAD + LONGEST).contains(&length) {
            let message = format!("a frame of {length} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let (kind, id) = (body[0], u32::from_le_bytes([body[1], body[2], body[3], body[4]]));
        let frame = Frame { kind, id, payload: body[HEAD..].to_vec() };
        self.taken += 4 + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_cut() {
        let frames =
            [Frame::new(1, 7, "hello"), Frame::new(2, u32::MAX, ""), Frame::new(3, 0, vec![0; 70_000])];
        let mut bytes = Vec::new();
        for frame in &frames {
            frame.encode(&mut bytes);
        }
        for size in [1, 2, 3, 9, 1000, bytes.len()] {
            let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
            for piece in bytes.chunks(size) {
                decoder.feed(piece);
                while let Ok(Some(frame)) = decoder.next() {
                    seen.push(frame);
                }
            }
            assert!(seen == frames && decoder.is_empty(), "cut in pieces of {size}");
        }
    }

    #[test]
    fn a_foreign_stream_is_an_error() {
        let mut decoder = Decoder::default();
        decoder.feed(b"HTTP/1.1 200 OK\r\n");
        assert!(decoder.next().is_err());
        assert!(Frame::read(&mut [5, 0, 0, 0, 1].as_slice()).is_err(), "cut short");
        assert_eq!(Frame::read(&mut [].as_slice()).ok(), Some(None));
    }
}
