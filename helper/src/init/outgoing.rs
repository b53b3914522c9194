//! Frames on their way to the host.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::frame::Frame;

/// Bytes that may wait: with more, nothing further is said until the host has read.
const ENOUGH: usize = 512 * 1024;

/// The stream to the host.
pub struct Outgoing {
    stream: File,
    waiting: Vec<u8>,
    written: usize,
}

impl Outgoing {
    /// Over a stream that does not block.
    pub fn new(stream: File) -> Self {
        Self { stream, waiting: Vec::new(), written: 0 }
    }

    /// Says it as soon as possible.
    pub fn say(&mut self, frame: &Frame) {
        frame.encode(&mut self.waiting);
    }

    /// Whether enough waits already.
    pub fn is_full(&self) -> bool {
        self.waiting.len() - self.written >= ENOUGH
    }

    /// Where it can be written, while something waits.
    pub fn pending(&self) -> Option<BorrowedFd<'_>> {
        (self.written < self.waiting.len()).then(|| self.stream.as_fd())
    }

    /// Writes what goes without waiting. An error means that the stream is closed for good.
    pub fn pump(&mut self) -> io::Result<()> {
        while self.written < self.waiting.len() {
            match self.stream.write(&self.waiting[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        self.written = 0;
        Ok(())
    }
}
