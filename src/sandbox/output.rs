//! Head and tail of what a command prints, and the whole in a file.

use std::collections::VecDeque;
use std::io::Write as _;

use tempfile::NamedTempFile;

use crate::sandbox::{Output, scratch};

/// Takes output piece by piece in constant memory.
#[derive(Debug, Default)]
pub(in crate::sandbox) struct Gathering {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    lines: u64,
    open_line: bool,
    whole: Option<NamedTempFile>,
    kept: u64,
}

impl Gathering {
    /// Takes the next piece.
    pub(in crate::sandbox) fn take(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        self.lines += piece.split(|byte| *byte == b'\n').count().saturating_sub(1) as u64;
        self.open_line = piece.last().map_or(self.open_line, |byte| *byte != b'\n');
        let (first, rest) = piece.split_at((Output::PART - self.head.len()).min(piece.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        if self.whole.is_some() {
            self.keep(piece);
        } else if self.tail.len() > Output::PART {
            // Only now is there more than head and tail can show.
            self.whole = scratch::file().ok();
            let so_far: Vec<u8> = self.head.iter().chain(&self.tail).copied().collect();
            self.keep(&so_far);
        }
        let surplus = self.tail.len().saturating_sub(Output::PART);
        self.tail.drain(..surplus);
    }

    /// All of it.
    pub(in crate::sandbox) fn finish(self) -> Output {
        Output {
            head: self.head,
            tail: self.tail.into(),
            total: self.total,
            lines: self.lines + u64::from(self.open_line),
            whole: self.whole,
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = usize::try_from(Output::KEPT.saturating_sub(self.kept)).unwrap_or(usize::MAX);
        let piece = &piece[..piece.len().min(room)];
        if let Some(file) = &mut self.whole
            && file.write_all(piece).is_ok()
        {
            self.kept += piece.len() as u64;
        } else {
            // A full disk: head and tail are still told, and the counts are right.
            self.whole = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_all_there() {
        let mut gathering = Gathering::default();
        gathering.take(b"one\ntwo");
        let output = gathering.finish();
        assert_eq!((output.head.as_slice(), output.tail.len(), output.lines), (b"one\ntwo".as_slice(), 0, 2));
        assert!(output.whole.is_none() && output.hidden() == 0);
    }

    #[test]
    fn long_output_keeps_both_ends_and_the_whole() {
        let mut gathering = Gathering::default();
        let text: Vec<u8> = (0..20_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        text.chunks(777).for_each(|piece| gathering.take(piece));
        let output = gathering.finish();
        assert!(output.head.starts_with(b"0\n1\n") && output.tail.ends_with(b"19999\n"));
        assert_eq!((output.total, output.lines), (text.len() as u64, 20_000));
        assert_eq!(output.hidden(), text.len() as u64 - 2 * Output::PART as u64);
        assert_eq!(std::fs::read(output.whole.unwrap()).unwrap(), text);
    }
}
