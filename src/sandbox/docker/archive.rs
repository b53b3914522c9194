//! A tar archive written as a stream, so that a large file is never held in memory.

use std::fs::File;
use std::io::{self, Read as _, Write};

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::mpsc;

use crate::event::id::Digest;
use crate::sandbox::Body;
use crate::sandbox::docker::container::AGENT_ID;
use crate::sandbox::exact::Exact;

/// One member of an archive.
#[derive(Debug)]
pub(super) struct Member {
    /// Path relative to where it is unpacked.
    pub(super) path: String,
    /// A file's content; nothing for a folder.
    pub(super) body: Option<Body>,
    /// Permission bits.
    pub(super) mode: u32,
    /// Whose it is.
    pub(super) of: Whose,
}

/// A member, and the hash that its content must have, where that is known.
pub(super) type Known = (Member, Option<Digest>);

/// Whose a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// The container's root: commands cannot change it.
    Root,
    /// The user commands run as.
    Agent,
}

/// Bytes of a piece of the stream.
const PIECE: usize = 256 * 1024;
/// Pieces that wait for the engine to take them.
const WAITING: usize = 4;

/// The archive of `members` as a stream; it is written on a thread of its own, as fast as the engine reads.
pub(super) fn stream(members: Vec<Member>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    piped(move |pipe| write(&members, pipe))
}

/// What `write` writes as a stream.
pub(super) fn piped(
    write: impl FnOnce(Pipe) -> io::Result<()> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::task::spawn_blocking(move || {
        let pipe = Pipe { sender: sender.clone(), pending: Vec::with_capacity(PIECE) };
        if let Err(error) = write(pipe) {
            // When nobody listens any more, nobody needs the error either.
            let _ = sender.blocking_send(Err(error));
        }
    });
    futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|piece| (piece, receiver))
    })
}

fn write(members: &[Member], pipe: Pipe) -> io::Result<()> {
    write_checked(members.iter().map(|member| (member, None)), pipe)
}

/// Like [`stream`]; ends with an error when the content of a file is not the one that is known of it.
pub(super) fn stream_checked(members: Vec<Known>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    piped(move |pipe| write_checked(members.iter().map(|(member, known)| (member, known.as_ref())), pipe))
}

fn write_checked<'a>(
    members: impl Iterator<Item = (&'a Member, Option<&'a Digest>)>,
    pipe: Pipe,
) -> io::Result<()> {
    let mut archive = tar::Builder::new(pipe);
    for (member, known) in members {
        let mut header = tar::Header::new_gnu();
        let id = if member.of == Whose::Agent { AGENT_ID } else { 0 };
        header.set_uid(id);
        header.set_gid(id);
        header.set_mode(member.mode);
        match &member.body {
            None => {
                header.set_entry_type(tar::EntryType::Directory);
                header.set_size(0);
                archive.append_data(&mut header, &member.path, io::empty())?;
            }
            Some(Body::Bytes(bytes)) => {
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, &member.path, bytes.as_ref())?;
            }
            Some(Body::File(path)) => {
                let named =
                    |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                let file = File::open(path).map_err(named)?;
                let size = file.metadata().map_err(named)?.len();
                header.set_size(size);
                let mut exact = Exact::new(file.take(size), known);
                archive.append_data(&mut header, &member.path, &mut exact)?;
                if exact.check(path)?.limit() > 0 {
                    return Err(io::Error::other(format!(
                        "{} became shorter while it was read",
                        path.display()
                    )));
                }
            }
        }
    }
    archive.into_inner()?.flush()
}

/// Where a stream is written into.
pub(super) struct Pipe {
    sender: mpsc::Sender<io::Result<Bytes>>,
    pending: Vec<u8>,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::replace(&mut self.pending, Vec::with_capacity(PIECE)));
        self.sender.blocking_send(Ok(piece)).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}
