//! What host and helper say to each other: kinds of frames and their payloads.
//!
//! Numbers are little-endian; text and lists carry their length. A command's id is the host's choice and is used once.

use crate::fields::{Fields, Malformed, Reader};

/// Version of all this, told in [`Hello`](kind::HELLO) and [`Ready`](kind::READY).
pub const VERSION: u32 = 2;
/// Bytes of the key and of a nonce: too many to be met by chance.
pub const KEY: usize = 16;
/// The environment variable with the key, in hexadecimal; the helper's own, never a command's.
pub const KEY_VARIABLE: &str = "TIDEMILL_HELPER_KEY";

/// What a frame is.
pub mod kind {
    /// Host: here I am (again). Payload: version, nonce. The stream is read from scratch after the key and this.
    pub const HELLO: u8 = 1;
    /// Host: start a command ([`super::Start`]).
    pub const START: u8 = 2;
    /// Host: bytes for a command's standard input.
    pub const INPUT: u8 = 3;
    /// Host: no more input.
    pub const CLOSE_INPUT: u8 = 4;
    /// Host: the terminal has another size: rows u16, columns u16.
    pub const RESIZE: u8 = 5;
    /// Host: a signal (u8) for every process of a command.
    pub const SIGNAL: u8 = 6;
    /// Host: output up to this offset (u64) has arrived for good.
    pub const TAKEN: u8 = 7;
    /// Host: say again what a command has printed from this offset (u64) on, and how it ended.
    pub const ATTACH: u8 = 8;
    /// Host: forget a command; one that still runs is killed.
    pub const FORGET: u8 = 9;
    /// Host: read a file ([`super::Read`]); answered by [`DATA`]... and [`DONE`], or [`FAILED`].
    pub const READ: u8 = 10;
    /// Host: write a file ([`super::Write`]), whose content follows in [`CHUNK`]s up to [`COMMIT`].
    pub const WRITE: u8 = 11;
    /// Host: the next bytes of the file being written.
    pub const CHUNK: u8 = 12;
    /// Host: the file is whole; answered by [`DONE`] or [`FAILED`].
    pub const COMMIT: u8 = 13;
    /// Host: list a folder ([`super::List`]); answered by [`ENTRY`]... and [`DONE`], or [`FAILED`].
    pub const LIST: u8 = 14;
    /// Host: I am still here; answered by [`PONG`].
    pub const PING: u8 = 15;
    /// Host: stop what this id asked for: a read, a write, a list.
    pub const CANCEL: u8 = 16;
    /// Host: is all here as it was at the start? Answered by [`DONE`], or by [`FAILED`] with what is not.
    pub const UNTOUCHED: u8 = 17;

    /// Helper: the answer to [`HELLO`]. Payload: nonce, version.
    pub const READY: u8 = 64;
    /// Helper: output ([`super::Printed`]).
    pub const OUTPUT: u8 = 65;
    /// Helper: a command has ended ([`super::Exit`]); nothing of it is left.
    pub const EXIT: u8 = 66;
    /// Helper: the next bytes of a file.
    pub const DATA: u8 = 67;
    /// Helper: what was asked is done. Payload: u64, bytes or entries.
    pub const DONE: u8 = 68;
    /// Helper: it cannot be done ([`super::Failed`]).
    pub const FAILED: u8 = 69;
    /// Helper: one thing in a folder ([`super::Entry`]).
    pub const ENTRY: u8 = 70;
    /// Helper: so am I.
    pub const PONG: u8 = 71;
}

/// Where a command's output and input go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Pipes; input ends at once.
    Pipes,
    /// Pipes; input is open.
    OpenPipes,
    /// A terminal of this size.
    Terminal {
        /// Lines.
        rows: u16,
        /// Characters of a line.
        columns: u16,
    },
}

/// A command to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// Program and arguments, as bytes.
    pub argv: Vec<Vec<u8>>,
    /// Environment variables besides the container's own.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Its working folder, absolute.
    pub folder: Vec<u8>,
    /// Its input and output.
    pub stdio: Stdio,
    /// Killed after so many milliseconds; never when 0.
    pub timeout: u64,
}

impl Start {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.list(&self.argv).u32(count(self.environment.len()));
        for (name, value) in &self.environment {
            fields.bytes(name).bytes(value);
        }
        fields.bytes(&self.folder).u64(self.timeout);
        match self.stdio {
            Stdio::Pipes => fields.u8(0),
            Stdio::OpenPipes => fields.u8(1),
            Stdio::Terminal { rows, columns } => fields.u8(2).u16(rows).u16(columns),
        };
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let argv = reader.list()?;
        let mut environment = Vec::new();
        for _ in 0..reader.u32()? {
            environment.push((reader.bytes()?.to_vec(), reader.bytes()?.to_vec()));
        }
        let (folder, timeout) = (reader.bytes()?.to_vec(), reader.u64()?);
        let stdio = match reader.u8()? {
            0 => Stdio::Pipes,
            1 => Stdio::OpenPipes,
            2 => Stdio::Terminal { rows: reader.u16()?, columns: reader.u16()? },
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(Self { argv, environment, folder, stdio, timeout })
    }
}

/// A piece of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Printed<'a> {
    /// How many bytes the command had printed before it, both streams together.
    pub offset: u64,
    /// Whether it went to standard error.
    pub stream: Stream,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, and all of a terminal.
    Output,
    /// Standard error.
    Error,
}

impl<'a> Printed<'a> {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.u64(self.offset).u8(u8::from(self.stream == Stream::Error)).rest(self.bytes);
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let offset = reader.u64()?;
        let stream = if reader.u8()? == 0 { Stream::Output } else { Stream::Error };
        Ok(Self { offset, stream, bytes: reader.rest() })
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Killed by its timeout.
    TimedOut,
    /// It never started: this `errno`.
    NotStarted(i32),
}

/// A command's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// How.
    pub how: How,
    /// Bytes printed in all.
    pub total: u64,
    /// Bytes that were let go since nobody took them.
    pub lost: u64,
    /// Processes the kernel killed for memory while it ran.
    pub out_of_memory: u32,
    /// Why it never started.
    pub reason: String,
}

impl Exit {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let (tag, code) = match self.how {
            How::Exited(code) => (0, code),
            How::Signalled(signal) => (1, signal),
            How::TimedOut => (2, 0),
            How::NotStarted(errno) => (3, errno),
        };
        let mut fields = Fields::default();
        fields.u8(tag).i32(code).u64(self.total).u64(self.lost).u32(self.out_of_memory);
        fields.rest(self.reason.as_bytes());
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let (tag, code) = (reader.u8()?, reader.i32()?);
        let how = match tag {
            0 => How::Exited(code),
            1 => How::Signalled(code),
            2 => How::TimedOut,
            3 => How::NotStarted(code),
            _ => return Err(Malformed),
        };
        let (total, lost, out_of_memory) = (reader.u64()?, reader.u64()?, reader.u32()?);
        Ok(Self {
            how,
            total,
            lost,
            out_of_memory,
            reason: String::from_utf8_lossy(reader.rest()).into_owned(),
        })
    }
}

/// A file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Relative to the workspace.
    pub path: Vec<u8>,
    /// Bytes it may have.
    pub limit: u64,
}

impl Read {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.u64(self.limit).rest(&self.path);
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        Ok(Self { limit: reader.u64()?, path: reader.rest().to_vec() })
    }
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Relative to the workspace; folders above it are made.
    pub path: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

impl Write {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.u32(self.mode).rest(&self.path);
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        Ok(Self { mode: reader.u32()?, path: reader.rest().to_vec() })
    }
}

/// A folder to be listed, with all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Relative to the workspace; empty for the workspace itself.
    pub path: Vec<u8>,
    /// Folders below each other that are opened; 1 for the folder alone.
    pub depth: u32,
    /// Entries told; [`kind::FAILED`] when there are more.
    pub most: u64,
}

impl List {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.u32(self.depth).u64(self.most).rest(&self.path);
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        Ok(Self { depth: reader.u32()?, most: reader.u64()?, path: reader.rest().to_vec() })
    }
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// When it was changed, in nanoseconds since 1970.
    pub changed: u64,
    /// Relative to the listed folder.
    pub path: Vec<u8>,
}

impl Entry {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let kind = match self.kind {
            Kind::File => 0,
            Kind::Folder => 1,
            Kind::Link => 2,
            Kind::Other => 3,
        };
        let mut fields = Fields::default();
        fields.u8(kind).u64(self.size).u32(self.mode).u64(self.changed).rest(&self.path);
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let kind = match reader.u8()? {
            0 => Kind::File,
            1 => Kind::Folder,
            2 => Kind::Link,
            3 => Kind::Other,
            _ => return Err(Malformed),
        };
        let (size, mode, changed) = (reader.u64()?, reader.u32()?, reader.u64()?);
        Ok(Self { kind, size, mode, changed, path: reader.rest().to_vec() })
    }
}

/// Why something cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// What kind of obstacle it is.
    pub obstacle: Obstacle,
    /// In words that follow the path: `is a folder`.
    pub reason: String,
}

/// Kinds of obstacles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// There is nothing at the path.
    Missing,
    /// What is there is not to be read or written.
    Refused,
    /// The file system has no room.
    Full,
    /// The file is larger than the limit; the reason is its size in bytes.
    TooLarge,
}

impl Failed {
    /// As a payload.
    pub fn encode(&self) -> Vec<u8> {
        let obstacle = match self.obstacle {
            Obstacle::Missing => 0,
            Obstacle::Refused => 1,
            Obstacle::Full => 2,
            Obstacle::TooLarge => 3,
        };
        let mut fields = Fields::default();
        fields.u8(obstacle).rest(self.reason.as_bytes());
        fields.done()
    }

    /// Of a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let obstacle = match reader.u8()? {
            0 => Obstacle::Missing,
            1 => Obstacle::Refused,
            2 => Obstacle::Full,
            3 => Obstacle::TooLarge,
            _ => return Err(Malformed),
        };
        Ok(Self { obstacle, reason: String::from_utf8_lossy(reader.rest()).into_owned() })
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_way() {
        let start = Start {
            argv: vec![b"sh".to_vec(), b"-c".to_vec(), vec![0xff, b' ']],
            environment: vec![(b"A".to_vec(), b"1".to_vec())],
            folder: b"/workspace".to_vec(),
            stdio: Stdio::Terminal { rows: 24, columns: 80 },
            timeout: 1500,
        };
        assert_eq!(Start::decode(&start.encode()), Ok(start.clone()));
        let exit = Exit { how: How::Signalled(9), total: 7, lost: 1, out_of_memory: 2, reason: "x".into() };
        assert_eq!(Exit::decode(&exit.encode()), Ok(exit));
        let printed = Printed { offset: 9, stream: Stream::Error, bytes: b"oh" };
        assert_eq!(Printed::decode(&printed.encode()), Ok(printed));
        let list = List { path: b"output".to_vec(), depth: 3, most: 10 };
        assert_eq!(List::decode(&list.encode()), Ok(list));
        let entry = Entry { kind: Kind::Link, size: 1, mode: 0o777, changed: 5, path: b"a/b".to_vec() };
        assert_eq!(Entry::decode(&entry.encode()), Ok(entry));
        let failed = Failed { obstacle: Obstacle::Full, reason: "no room".into() };
        assert_eq!(Failed::decode(&failed.encode()), Ok(failed));
        let read = Read { path: b"x".to_vec(), limit: 3 };
        assert_eq!(Read::decode(&read.encode()), Ok(read));
        let write = Write { path: b"x".to_vec(), mode: 0o644 };
        assert_eq!(Write::decode(&write.encode()), Ok(write));
        // Every shorter payload is malformed or another message, and never a panic.
        let bytes = start.encode();
        (0..bytes.len()).for_each(|length| assert_eq!(Start::decode(&bytes[..length]), Err(Malformed)));
    }
}
