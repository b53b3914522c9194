//! Which line of the file a row begins on.
//!
//! The csv crate says where it stood before a row: before blank lines, and before the second half of a line end in
//! two bytes. People count the lines that their editor shows.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// Counts lines up to a place in a file, going forward only.
#[derive(Debug)]
pub(super) struct Lines {
    reader: BufReader<File>,
    byte: u64,
    line: u64,
}

impl Lines {
    /// At the start of a file that was just opened.
    pub fn new(file: File) -> Self {
        Self { reader: BufReader::new(file), byte: 0, line: 1 }
    }

    /// The line of the first character at or after `byte` that ends no line.
    pub fn at(&mut self, byte: u64) -> io::Result<u64> {
        loop {
            let bytes = self.reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok(self.line);
            }
            let mut read = 0;
            for found in bytes {
                if self.byte >= byte && !matches!(found, b'\r' | b'\n') {
                    self.reader.consume(read);
                    return Ok(self.line);
                }
                self.line += u64::from(*found == b'\n');
                self.byte += 1;
                read += 1;
            }
            self.reader.consume(read);
        }
    }
}
