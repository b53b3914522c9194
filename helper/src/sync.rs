//! Where a stream begins anew: a host that comes back finds the stream in the middle of a frame.

use crate::message::KEY;

/// Looks for a pattern nobody else can know in bytes that come in pieces.
#[derive(Debug)]
pub struct Sync {
    pattern: [u8; KEY],
    /// The last bytes seen, fewer than the pattern has.
    window: Vec<u8>,
}

impl Sync {
    /// Looks for `pattern`.
    pub fn new(pattern: [u8; KEY]) -> Self {
        Self { pattern, window: Vec::new() }
    }

    /// Takes the next piece. Gives how many of its bytes belong to the pattern or come before it, when it ends in it.
    pub fn find(&mut self, piece: &[u8]) -> Option<usize> {
        let before = self.window.len();
        self.window.extend_from_slice(piece);
        let found = self.window.windows(KEY).rposition(|window| window == self.pattern);
        let end = found.map(|start| start + KEY - before);
        let keep = self.window.len().saturating_sub(KEY - 1);
        self.window.drain(..keep);
        if end.is_some() {
            self.window.clear();
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_found_across_any_cut() {
        let key = *b"0123456789abcdef";
        let mut bytes = b"half a frame 0123456789abcde 0123".to_vec();
        bytes.extend_from_slice(&key);
        bytes.extend_from_slice(b"after");
        for size in 1..bytes.len() {
            let mut sync = Sync::new(key);
            let mut rest = Vec::new();
            let mut found = false;
            for piece in bytes.chunks(size) {
                match sync.find(piece) {
                    Some(end) => {
                        found = true;
                        rest = piece[end..].to_vec();
                    }
                    None if found => rest.extend_from_slice(piece),
                    None => {}
                }
            }
            assert_eq!(rest, b"after", "cut in pieces of {size}");
        }
    }
}
