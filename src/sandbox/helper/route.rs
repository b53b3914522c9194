//! Which answer belongs to whom.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tidemill_helper::frame::Frame;
use tidemill_helper::message::{Entry, Exit, Failed, Obstacle, Printed, kind};
use tokio::sync::mpsc;

use crate::sandbox::SandboxError;
use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;

/// Answers that wait for one asker: with more, the stream waits for it.
const WAITING: usize = 64;

/// What a helper says to one asker.
#[derive(Debug)]
pub(super) enum Answer {
    /// Output of a command: where it begins, and the bytes.
    Output(u64, Bytes),
    /// A command's end.
    Exit(Exit),
    /// Bytes of a file.
    Data(Bytes),
    /// One thing in a folder.
    Entry(Entry),
    /// It is done.
    Done,
    /// It cannot be done.
    Failed(Failed),
    /// The stream broke on the way; what was asked must be asked again.
    Broken,
}

/// Who asked.
struct Asker {
    answers: mpsc::Sender<Answer>,
    /// A command as it was asked for, and how far its output has come: it goes on when the stream breaks.
    command: Option<(Vec<u8>, u64)>,
}

/// All who wait for answers.
#[derive(Default)]
pub(super) struct Routes {
    askers: Mutex<HashMap<u32, Asker>>,
}

impl Routes {
    fn askers(&self) -> MutexGuard<'_, HashMap<u32, Asker>> {
        self.askers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody asks for something that is done once.
    pub(super) fn ask(&self, id: u32) -> mpsc::Receiver<Answer> {
        self.add(id, None)
    }

    /// Somebody follows a command; `start` is the payload it was asked for with.
    pub(super) fn follow(&self, id: u32, start: Vec<u8>, offset: u64) -> mpsc::Receiver<Answer> {
        self.add(id, Some((start, offset)))
    }

    fn add(&self, id: u32, command: Option<(Vec<u8>, u64)>) -> mpsc::Receiver<Answer> {
        let (answers, receiver) = mpsc::channel(WAITING);
        self.askers().insert(id, Asker { answers, command });
        receiver
    }

    /// Nobody waits for `id` any more.
    pub(super) fn forget(&self, id: u32) {
        self.askers().remove(&id);
    }

    /// Commands that are followed: how they were asked for, and how far their output has come.
    pub(super) fn commands(&self) -> Vec<(u32, Vec<u8>, u64)> {
        let askers = self.askers();
        let commands = askers.iter().filter_map(|(id, asker)| Some((*id, asker.command.clone()?)));
        commands.map(|(id, (start, offset))| (id, start, offset)).collect()
    }

    /// Hands an answer on. What nobody waits for is dropped.
    pub(super) async fn hand(&self, frame: Frame) {
        let id = frame.id;
        let Some(answer) = answer(frame) else {
            return;
        };
        let Some(sender) = self.askers().get(&id).map(|asker| asker.answers.clone()) else {
            return;
        };
        let end = match &answer {
            Answer::Output(offset, bytes) => Some(offset + bytes.len() as u64),
            _ => None,
        };
        // An asker that has gone away needs no answer.
        let _ = sender.send(answer).await;
        // Only now: what is dropped on the way here is asked for again.
        if let (Some(end), Some(asker)) = (end, self.askers().get_mut(&id))
            && let Some((_, seen)) = &mut asker.command
        {
            *seen = end;
        }
    }

    /// The stream broke: what is done once must be asked again.
    pub(super) async fn broke(&self) {
        let once: Vec<mpsc::Sender<Answer>> = {
            let askers = self.askers();
            let once = askers.values().filter(|asker| asker.command.is_none());
            once.map(|asker| asker.answers.clone()).collect()
        };
        for sender in once {
            // One that has gone away asks nothing again.
            let _ = sender.send(Answer::Broken).await;
        }
    }

    /// There will be no more answers: whoever waits for one has come to the end.
    pub(super) fn end(&self) {
        self.askers().clear();
    }
}

fn answer(frame: Frame) -> Option<Answer> {
    let malformed = || {
        let reason = "was answered in words this version does not know".to_owned();
        Answer::Failed(Failed { obstacle: Obstacle::Refused, reason })
    };
    Some(match frame.kind {
        kind::OUTPUT => Printed::decode(&frame.payload).map_or_else(
            |_| malformed(),
            |printed| Answer::Output(printed.offset, Bytes::copy_from_slice(printed.bytes)),
        ),
        kind::EXIT => Exit::decode(&frame.payload).map_or_else(|_| malformed(), Answer::Exit),
        kind::DATA => Answer::Data(frame.payload.into()),
        kind::ENTRY => Entry::decode(&frame.payload).map_or_else(|_| malformed(), Answer::Entry),
        kind::DONE => Answer::Done,
        kind::FAILED => Failed::decode(&frame.payload).map_or_else(|_| malformed(), Answer::Failed),
        _ => return None,
    })
}

/// What a refusal means to a caller who asked about `path` and would take at most `limit` bytes.
pub(super) fn refusal(path: &WorkspacePath, limit: u64, failed: Failed) -> SandboxError {
    match failed.obstacle {
        Obstacle::Missing => SandboxError::NotFound(path.clone()),
        Obstacle::Refused | Obstacle::Full => SandboxError::Refused(path.clone(), failed.reason),
        Obstacle::TooLarge => {
            let size = failed.reason.parse().map_or(failed.reason, show_size);
            let why = format!("has {size}, and at most {} are taken", show_size(limit));
            SandboxError::Refused(path.clone(), why)
        }
    }
}
