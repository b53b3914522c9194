//! Files of the workspace through the helper: with the rights of the commands' user, and never through a link.

use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tidemill_helper::frame::{Frame, LONGEST};
use tidemill_helper::message::{Entry, List, Read, Write, kind};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::diagnostic::Diagnostic;
use crate::sandbox::exact::Exact;
use crate::sandbox::helper::client::{Client, UNANSWERED, unanswered};
use crate::sandbox::helper::route::{Answer, refusal};
use crate::sandbox::{Body, Placement, SandboxError, USUAL_MODE};
use crate::workflow::mode::Mode;
use crate::workflow::path::WorkspacePath;

/// Where the helper finds the workspace.
pub(super) const WORKSPACE: &str = "/workspace";
/// Bytes of a file in one frame.
const PIECE: usize = LONGEST / 4;
/// Files written at once.
const AT_ONCE: usize = 32;
/// Times something is asked for when the stream breaks in between.
const TRIES: usize = 3;

/// An answer that is awaited; when this goes away, the helper need not go on.
pub(super) struct Asked<'a> {
    client: &'a Client,
    id: u32,
    answers: mpsc::Receiver<Answer>,
}

/// What came of an answer.
enum Outcome<T> {
    Done(T),
    /// The stream broke: it must be asked again.
    Again,
}

impl Asked<'_> {
    /// What is answered next, in reasonable time.
    pub(super) async fn next(&mut self) -> Result<Answer, SandboxError> {
        match timeout(UNANSWERED, self.answers.recv()).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.client.shared.lost()),
            Err(_) => Err(unanswered()),
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.client.shared.routes.forget(self.id);
        self.client.shared.mention(Frame::new(kind::CANCEL, self.id, []));
    }
}

impl Client {
    pub(super) async fn ask(&self, kind: u8, payload: Vec<u8>) -> Result<Asked<'_>, SandboxError> {
        let id = self.shared.id();
        let answers = self.shared.routes.ask(id);
        let asked = Asked { client: self, id, answers };
        self.shared.say(Frame::new(kind, id, payload)).await?;
        Ok(asked)
    }

    /// Reads a regular file of at most `limit` bytes, handing its pieces to `take`. When the stream breaks, `take`
    /// is told to start over by [`Piece::Anew`].
    pub async fn read(
        &self,
        path: &WorkspacePath,
        limit: u64,
        mut take: impl FnMut(Piece) -> std::io::Result<()> + Send,
    ) -> Result<(), SandboxError> {
        let payload = Read { path: bare(path), limit }.encode();
        for _ in 0..TRIES {
            take(Piece::Anew).map_err(|error| kept_nowhere(path, &error))?;
            let mut asked = self.ask(kind::READ, payload.clone()).await?;
            let mut read = 0;
            let outcome = loop {
                match asked.next().await? {
                    Answer::Data(bytes) => {
                        read += bytes.len() as u64;
                        if read > limit {
                            return Err(SandboxError::Refused(
                                path.clone(),
                                "grew while it was read".to_owned(),
                            ));
                        }
                        take(Piece::Next(bytes)).map_err(|error| kept_nowhere(path, &error))?;
                    }
                    other => break settled(path, limit, other)?,
                }
            };
            if let Outcome::Done(()) = outcome {
                return Ok(());
            }
        }
        Err(unsteady())
    }

    /// Reads a regular file of at most `limit` bytes into memory.
    pub async fn read_whole(&self, path: &WorkspacePath, limit: u64) -> Result<Bytes, SandboxError> {
        let mut whole = Vec::new();
        self.read(path, limit, |piece| {
            match piece {
                Piece::Anew => whole.clear(),
                Piece::Next(bytes) => whole.extend_from_slice(&bytes),
            }
            Ok(())
        })
        .await?;
        Ok(whole.into())
    }

    /// Writes a file, with the folders above it; a link in its place is replaced. Gives nothing back but success:
    /// until then nobody sees any of it.
    async fn write(&self, file: &Placement) -> Result<(), SandboxError> {
        let path = &file.path;
        let mode = file.mode.map_or(USUAL_MODE, Mode::bits);
        let payload = Write { path: bare(path), mode }.encode();
        for _ in 0..TRIES {
            let mut asked = self.ask(kind::WRITE, payload.clone()).await?;
            match &file.body {
                Body::Bytes(bytes) => {
                    for piece in bytes.chunks(PIECE) {
                        self.shared.say(Frame::new(kind::CHUNK, asked.id, piece)).await?;
                    }
                }
                Body::File(source) => self.send_file(&asked, file, source).await?,
            }
            self.shared.say(Frame::new(kind::COMMIT, asked.id, [])).await?;
            let answer = asked.next().await?;
            if let Outcome::Done(()) = settled(path, u64::MAX, answer)? {
                return Ok(());
            }
        }
        Err(unsteady())
    }

    /// Writes files, some at once: each by itself waits for its answer longer than for anything else.
    pub async fn write_all(&self, files: Vec<Placement>) -> Result<(), SandboxError> {
        let files = stream::iter(files).map(Ok);
        let writing = files.try_for_each_concurrent(AT_ONCE, async |file: Placement| self.write(&file).await);
        writing.await
    }

    async fn send_file(
        &self,
        asked: &Asked<'_>,
        file: &Placement,
        source: &Path,
    ) -> Result<(), SandboxError> {
        let failed = |error: std::io::Error| {
            SandboxError::Refused(
                file.path.clone(),
                format!("cannot be placed: {}: {error}", source.display()),
            )
        };
        let mut open = Exact::new(std::fs::File::open(source).map_err(failed)?, file.digest.as_ref());
        loop {
            let mut piece = vec![0; PIECE];
            let reading = tokio::task::spawn_blocking(move || {
                let length = open.read(&mut piece)?;
                piece.truncate(length);
                Ok::<_, std::io::Error>((open, piece))
            });
            let read =
                reading.await.map_err(|error| failed(std::io::Error::other(error)))?.map_err(failed)?;
            open = read.0;
            if read.1.is_empty() {
                return open.check(source).map(drop).map_err(failed);
            }
            self.shared.say(Frame::new(kind::CHUNK, asked.id, read.1)).await?;
        }
    }

    /// What is in a folder, and below it for `depth` folders; at most `most` entries. The whole workspace without a
    /// path.
    pub async fn list(
        &self,
        path: Option<&WorkspacePath>,
        depth: u32,
        most: u64,
    ) -> Result<Vec<Entry>, SandboxError> {
        let payload = List { path: path.map(bare).unwrap_or_default(), depth, most }.encode();
        for _ in 0..TRIES {
            let mut asked = self.ask(kind::LIST, payload.clone()).await?;
            let mut entries = Vec::new();
            let answer = loop {
                match asked.next().await? {
                    Answer::Entry(entry) => entries.push(entry),
                    other => break other,
                }
            };
            let settled = match (path, answer) {
                (Some(path), answer) => settled(path, u64::MAX, answer)?,
                (None, Answer::Failed(failed)) => return Err(SandboxError::Unfit(failed.reason)),
                (None, Answer::Done) => Outcome::Done(()),
                (None, _) => Outcome::Again,
            };
            if let Outcome::Done(()) = settled {
                return Ok(entries);
            }
        }
        Err(unsteady())
    }
}

/// What a reader of a file is handed.
#[derive(Debug)]
pub enum Piece {
    /// The file begins here; what came before is void.
    Anew,
    /// Its next bytes.
    Next(Bytes),
}

fn settled(path: &WorkspacePath, limit: u64, answer: Answer) -> Result<Outcome<()>, SandboxError> {
    match answer {
        Answer::Done => Ok(Outcome::Done(())),
        Answer::Failed(failed) => Err(refusal(path, limit, failed)),
        Answer::Broken | Answer::Data(_) | Answer::Entry(_) | Answer::Exit(_) | Answer::Output(..) => {
            Ok(Outcome::Again)
        }
    }
}

fn bare(path: &WorkspacePath) -> Vec<u8> {
    path.as_str().trim_end_matches('/').as_bytes().to_vec()
}

pub(super) fn kept_nowhere(path: &WorkspacePath, error: &std::io::Error) -> SandboxError {
    SandboxError::Engine(
        Diagnostic::new("sandbox::disk", format!("`{path}` cannot be kept: {error}"))
            .help("is the disk with the project full?"),
    )
}

fn unsteady() -> SandboxError {
    SandboxError::Engine(
        Diagnostic::new("sandbox::unsteady", "the stream to the sandbox breaks again and again")
            .help("is the engine restarting, or the network to it down? run it again when it is steady"),
    )
}
