//! What a command has printed and nobody has taken yet.

use std::collections::VecDeque;

use crate::message::{Printed, Stream};

/// Bytes kept of one command; a host that is there takes them long before.
pub const MOST: usize = 4 << 20;

struct Piece {
    offset: u64,
    stream: Stream,
    bytes: Vec<u8>,
}

impl Piece {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// Output in the order it came.
#[derive(Default)]
pub struct Kept {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// Bytes printed in all.
    total: u64,
    /// Up to here the host has been told.
    sent: u64,
    /// Bytes let go untaken.
    lost: u64,
}

impl Kept {
    /// Keeps the next bytes.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.pieces.push_back(Piece { offset: self.total, stream, bytes: bytes.to_vec() });
        self.bytes += bytes.len();
        self.total += bytes.len() as u64;
    }

    /// Whether there is no room for more.
    pub fn is_full(&self) -> bool {
        self.bytes >= MOST
    }

    /// Lets the oldest bytes go until there is room: nobody is there to take them, and the command goes on.
    pub fn make_room(&mut self) {
        while self.bytes >= MOST {
            let Some(piece) = self.pieces.pop_front() else {
                return;
            };
            self.bytes -= piece.bytes.len();
            self.lost += piece.bytes.len() as u64;
        }
    }

    /// Lets all go.
    pub fn let_go(&mut self) {
        self.taken(self.total);
    }

    /// The next piece the host has not been told; it counts as told.
    pub fn next(&mut self) -> Option<Printed<'_>> {
        let at = self.pieces.partition_point(|piece| piece.end() <= self.sent);
        let piece = self.pieces.get(at)?;
        let skip = usize::try_from(self.sent.saturating_sub(piece.offset)).unwrap_or(0);
        let offset = piece.offset + skip as u64;
        self.sent = piece.end();
        Some(Printed { offset, stream: piece.stream, bytes: &piece.bytes[skip..] })
    }

    /// Whether the host has been told all there is.
    pub fn is_told(&self) -> bool {
        self.pieces.back().is_none_or(|piece| piece.end() <= self.sent)
    }

    /// The host has everything up to `offset` for good.
    pub fn taken(&mut self, offset: u64) {
        while self.pieces.front().is_some_and(|piece| piece.end() <= offset) {
            if let Some(piece) = self.pieces.pop_front() {
                self.bytes -= piece.bytes.len();
            }
        }
    }

    /// The host wants to be told again from `offset` on.
    pub fn tell_from(&mut self, offset: u64) {
        self.sent = offset;
    }

    /// Bytes printed in all, and bytes let go untaken.
    pub fn counts(&self) -> (u64, u64) {
        (self.total, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(kept: &mut Kept) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(printed) = kept.next() {
            all.push((printed.offset, printed.bytes.to_vec()));
        }
        all
    }

    #[test]
    fn what_was_not_taken_is_told_again() {
        let mut kept = Kept::default();
        kept.push(Stream::Output, b"one ");
        kept.push(Stream::Error, b"two ");
        assert_eq!(told(&mut kept), [(0, b"one ".to_vec()), (4, b"two ".to_vec())]);
        kept.push(Stream::Output, b"three");
        assert!(!kept.is_told());
        kept.taken(4);
        kept.tell_from(6);
        assert_eq!(told(&mut kept), [(6, b"o ".to_vec()), (8, b"three".to_vec())]);
        assert!(kept.is_told());
        assert_eq!(kept.counts(), (13, 0));
    }

    #[test]
    fn without_a_host_the_oldest_goes() {
        let mut kept = Kept::default();
        (0..5).for_each(|_| kept.push(Stream::Output, &vec![b'x'; MOST / 4]));
        assert!(kept.is_full());
        kept.make_room();
        assert!(!kept.is_full());
        let (total, lost) = kept.counts();
        assert_eq!((total, lost), (MOST as u64 / 4 * 5, MOST as u64 / 2));
        kept.tell_from(0);
        assert_eq!(told(&mut kept).first().map(|(offset, _)| *offset), Some(lost), "the first that is left");
    }
}
