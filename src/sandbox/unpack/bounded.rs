//! A stream that ends with an error when it goes on too long.

use std::io::{self, Read};

use crate::workflow::units::show_size;

/// Reads at most `limit` bytes; whoever reads on learns why there is no more.
#[derive(Debug)]
pub(super) struct Bounded<R> {
    from: R,
    left: u64,
    limit: u64,
}

impl<R: Read> Bounded<R> {
    pub(super) fn new(from: R, limit: u64) -> Self {
        Self { from, left: limit, limit }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            let message = format!("it goes on after {}", show_size(self.limit));
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.from.read(&mut buffer[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}
