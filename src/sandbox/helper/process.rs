//! A command as the host follows it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use tidemill_helper::frame::{Frame, LONGEST};
use tidemill_helper::message::{Exit, How, Start, Stdio, kind};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::diagnostic::Diagnostic;
use crate::sandbox::helper::client::{Client, UNANSWERED};
use crate::sandbox::helper::route::Answer;
use crate::sandbox::output::Gathering;
use crate::sandbox::{Command, Executed, SandboxError};
use crate::workflow::units::show_duration;

/// Output that is not yet said to have arrived: the helper keeps it until then.
const UNTOLD: u64 = 512 * 1024;
/// Bytes of input in one frame.
const INPUT: usize = LONGEST / 4;
/// A shell's exit codes for a program that is not there, and for one that cannot be run.
const NOT_FOUND: i64 = 127;
const NOT_RUN: i64 = 126;
/// Added to a signal's number, as shells do.
const SIGNAL: i64 = 128;
/// No such file.
const ENOENT: i32 = 2;

/// What a command does next.
#[derive(Debug)]
pub enum Next {
    /// It printed this.
    Output(Bytes),
    /// So many bytes of its output were let go while nobody was there to take them.
    Lost(u64),
    /// It has ended, and nothing of it is left.
    Ended(Exit),
}

/// A command that is followed. When this goes away, the command is killed, unless it was [left](Process::leave).
pub struct Process {
    client: Client,
    id: u32,
    answers: mpsc::Receiver<Answer>,
    /// Output that follows a gap which was told first.
    held: Option<(u64, Bytes)>,
    /// Output seen, and output the helper was told is seen.
    seen: u64,
    told: u64,
    left: bool,
    /// By then its end must have been told, where it has a timeout: the helper's clock may stand still.
    until: Option<Instant>,
}

impl Client {
    /// Starts a command with open input or a terminal, or with neither.
    pub async fn start(&self, command: &Command, stdio: Stdio) -> Result<Process, SandboxError> {
        self.start_as(self.shared.id(), command, stdio).await
    }

    /// As [`Client::start`], with an id of the caller's. A helper that has a command of that id starts no second one.
    async fn start_as(&self, id: u32, command: &Command, stdio: Stdio) -> Result<Process, SandboxError> {
        let start = Start {
            argv: command.argv.iter().map(|word| word.clone().into_bytes()).collect(),
            environment: self.environment.to_vec(),
            folder: super::files::WORKSPACE.as_bytes().to_vec(),
            stdio,
            timeout: u64::try_from(command.timeout.as_millis()).unwrap_or(u64::MAX).max(1),
        };
        let payload = start.encode();
        if payload.len() > LONGEST {
            let why = format!("the command has {} bytes, and at most {LONGEST} are taken", payload.len());
            return Err(SandboxError::Unfit(why));
        }
        let answers = self.shared.routes.follow(id, payload.clone(), 0);
        let mut process = self.process(id, answers, 0);
        process.until = Instant::now().checked_add(command.timeout.saturating_add(UNANSWERED));
        self.shared.say(Frame::new(kind::START, id, payload)).await?;
        Ok(process)
    }

    /// Follows a command again that an earlier host started; what nobody has taken yet is told from `seen` on.
    pub async fn follow(&self, id: u32, seen: u64) -> Result<Process, SandboxError> {
        let answers = self.shared.routes.follow(id, Vec::new(), seen);
        let process = self.process(id, answers, seen);
        self.shared.say(Frame::new(kind::ATTACH, id, seen.to_le_bytes())).await?;
        Ok(process)
    }

    fn process(&self, id: u32, answers: mpsc::Receiver<Answer>, seen: u64) -> Process {
        Process { client: self.clone(), id, answers, held: None, seen, told: seen, left: false, until: None }
    }

    /// Runs a command to its end.
    pub async fn exec(&self, command: &Command) -> Result<Executed, SandboxError> {
        self.start(command, Stdio::Pipes).await?.finish().await
    }

    /// Runs a command to its end, or follows it there when an earlier host has started it.
    pub async fn exec_as(&self, id: u32, command: &Command) -> Result<Executed, SandboxError> {
        let process = self.start_as(id, command, Stdio::Pipes).await?;
        // One that was started just now tells nothing twice.
        self.shared.say(Frame::new(kind::ATTACH, id, 0_u64.to_le_bytes())).await?;
        process.finish().await
    }
}

impl Process {
    /// What another host can [follow](Client::follow) it by.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Gives it input.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), SandboxError> {
        for piece in bytes.chunks(INPUT) {
            self.client.shared.say(Frame::new(kind::INPUT, self.id, piece)).await?;
        }
        Ok(())
    }

    /// Its input ends here.
    pub async fn close_input(&self) -> Result<(), SandboxError> {
        self.client.shared.say(Frame::new(kind::CLOSE_INPUT, self.id, [])).await
    }

    /// Its terminal has another size.
    pub async fn resize(&self, rows: u16, columns: u16) -> Result<(), SandboxError> {
        let size = [rows.to_le_bytes(), columns.to_le_bytes()].concat();
        self.client.shared.say(Frame::new(kind::RESIZE, self.id, size)).await
    }

    /// Sends a signal to all its processes, those it left behind included.
    pub async fn signal(&self, number: u8) -> Result<(), SandboxError> {
        self.client.shared.say(Frame::new(kind::SIGNAL, self.id, [number])).await
    }

    /// What it does next. After [`Next::Ended`] there is nothing more.
    pub async fn next(&mut self) -> Result<Next, SandboxError> {
        loop {
            let answer = match self.held.take() {
                Some((offset, bytes)) => Some(Answer::Output(offset, bytes)),
                None => self.answer().await?,
            };
            match answer {
                Some(Answer::Output(offset, bytes)) => {
                    if offset > self.seen {
                        let lost = offset - self.seen;
                        self.seen = offset;
                        self.held = Some((offset, bytes));
                        return Ok(Next::Lost(lost));
                    }
                    let end = offset + bytes.len() as u64;
                    // After a stream broke, some of it may come again.
                    let again = usize::try_from(self.seen - offset).unwrap_or(usize::MAX).min(bytes.len());
                    if again == bytes.len() {
                        continue;
                    }
                    self.seen = end;
                    if self.seen - self.told >= UNTOLD {
                        self.told = self.seen;
                        self.client.shared.mention(Frame::new(kind::TAKEN, self.id, self.seen.to_le_bytes()));
                    }
                    return Ok(Next::Output(bytes.slice(again..)));
                }
                Some(Answer::Exit(exit)) => return Ok(Next::Ended(exit)),
                Some(Answer::Failed(failed)) => return Err(SandboxError::Unfit(failed.reason)),
                // The conversation attaches a command again by itself; the rest is not said of commands.
                Some(Answer::Broken | Answer::Data(_) | Answer::Entry(_) | Answer::Done) => {}
                None => return Err(self.client.shared.lost()),
            }
        }
    }

    async fn answer(&mut self) -> Result<Option<Answer>, SandboxError> {
        let Some(until) = self.until else {
            return Ok(self.answers.recv().await);
        };
        let answer = timeout_at(until, self.answers.recv()).await;
        answer.map_err(|_| {
            let over = show_duration(UNANSWERED);
            let message = format!("a command's end was not told within {over} of its timeout");
            let help = "was the container paused, or is the machine overloaded? run it again";
            SandboxError::Engine(Diagnostic::new("sandbox::no_answer", message).help(help))
        })
    }

    /// Follows it to its end. The helper keeps that end until what is [held](Executed::held) goes away.
    pub async fn finish(mut self) -> Result<Executed, SandboxError> {
        let start = Instant::now();
        let mut gathering = Gathering::default();
        let exit = loop {
            match self.next().await? {
                Next::Output(bytes) => gathering.take(&bytes),
                Next::Lost(bytes) => {
                    gathering.take(format!("\n[... {bytes} bytes were let go ...]\n").as_bytes());
                }
                Next::Ended(exit) => break exit,
            }
        };
        let held = Held { client: self.client.clone(), id: self.id };
        self.left = true;
        Ok(Executed { held: Some(held), ..executed(&exit, gathering, start.elapsed()) })
    }

    /// Goes away and lets it run on, for another host to follow.
    pub fn leave(mut self) -> u32 {
        self.left = true;
        self.id
    }
}

fn executed(exit: &Exit, mut gathering: Gathering, took: Duration) -> Executed {
    if !exit.reason.is_empty() {
        gathering.take(exit.reason.as_bytes());
    }
    let code = match exit.how {
        How::Exited(code) => Some(i64::from(code)),
        How::Signalled(signal) => Some(SIGNAL + i64::from(signal)),
        How::TimedOut => None,
        How::NotStarted(ENOENT) => Some(NOT_FOUND),
        How::NotStarted(_) => Some(NOT_RUN),
    };
    Executed {
        exit: code,
        timed_out: exit.how == How::TimedOut,
        out_of_memory: exit.out_of_memory,
        output: gathering.finish(),
        took,
        held: None,
    }
}

/// A command that has ended, and whose output and end the helper still knows. They are forgotten when this goes away.
pub struct Held {
    client: Client,
    id: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.client.shared.mention(Frame::new(kind::FORGET, self.id, []));
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Held {}", self.id)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.client.shared.routes.forget(self.id);
        if !self.left {
            self.client.shared.mention(Frame::new(kind::FORGET, self.id, []));
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Process {}", self.id)
    }
}
