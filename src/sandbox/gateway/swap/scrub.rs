//! Keeping a value out of what comes back: a server that repeats a request must not tell the sandbox what it was.

/// What stands in its place, byte for byte, so that lengths stay true.
const MASK: u8 = b'*';
/// Shorter values occur by chance.
const SHORTEST: usize = 8;

/// Masks values in bytes that come in pieces.
#[derive(Debug, Clone)]
pub(super) struct Scrubber {
    needles: Vec<Vec<u8>>,
    /// The end of what came, where a value may have begun.
    kept: Vec<u8>,
}

impl Scrubber {
    /// Masks these.
    pub(super) fn new(needles: Vec<Vec<u8>>) -> Self {
        let needles = needles.into_iter().filter(|needle| needle.len() >= SHORTEST).collect();
        Self { needles, kept: Vec::new() }
    }

    /// Takes a piece and gives what is sure to hold no value, nor the beginning of one.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.kept);
        bytes.extend_from_slice(piece);
        self.mask(&mut bytes);
        let begun = self.needles.iter().map(|needle| begun(&bytes, needle)).max().unwrap_or(0);
        self.kept = bytes.split_off(bytes.len() - begun);
        bytes
    }

    /// What is left at the end.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    /// Bytes that are all there.
    pub(super) fn whole(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        self.mask(&mut bytes);
        bytes
    }

    fn mask(&self, bytes: &mut [u8]) {
        for needle in &self.needles {
            let mut from = 0;
            while let Some(at) = find(&bytes[from..], needle) {
                bytes[from + at..from + at + needle.len()].fill(MASK);
                from += at + needle.len();
            }
        }
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// How many bytes at the end are the beginning of `needle`.
fn begun(bytes: &[u8], needle: &[u8]) -> usize {
    let most = bytes.len().min(needle.len().saturating_sub(1));
    (1..=most).rev().find(|length| bytes.ends_with(&needle[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_masked_however_it_is_cut() {
        let text = b"{\"you sent\": \"Bearer real-value\", \"again\": \"real-valureal-value\"}";
        let wanted = String::from_utf8_lossy(text).replace("real-value", "**********");
        for size in 1..text.len() {
            let mut scrubber = Scrubber::new(vec![b"real-value".to_vec()]);
            let mut seen: Vec<u8> = text.chunks(size).flat_map(|piece| scrubber.feed(piece)).collect();
            seen.extend(scrubber.finish());
            assert_eq!(String::from_utf8_lossy(&seen), wanted, "pieces of {size}");
        }
    }

    #[test]
    fn what_cannot_be_a_value_is_not_held_back() {
        let mut scrubber = Scrubber::new(vec![b"real-value".to_vec()]);
        assert_eq!(scrubber.feed(b"data: x\n\n"), b"data: x\n\n");
        assert_eq!(scrubber.feed(b"rea"), b"");
        assert_eq!(scrubber.feed(b"ding"), b"reading");
    }
}
