//! An answer as it comes in: message by message, watched for stalls and for errors inside.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::ModelError;
use super::failure::{self, Words};
use super::frames::{Frame, Frames};
use super::server::Server;

/// A running answer.
pub(super) struct Feed<'a> {
    server: &'a Server,
    response: Response,
    stall: Duration,
    frames: Frames,
    ready: VecDeque<Frame>,
    state: State,
    any: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The connection ended.
    Ended,
    /// The server said that nothing follows.
    Done,
}

/// Once the answer is complete, the connection gets this long to end properly, so that it can be used again.
const DRAIN: Duration = Duration::from_millis(100);
/// Once the answer is complete but for its usage, a server gets this long to tell it.
const USAGE: Duration = Duration::from_secs(10);

impl<'a> Feed<'a> {
    pub fn new(server: &'a Server, response: Response, stall: Duration) -> Self {
        Self {
            server,
            response,
            stall,
            frames: Frames::default(),
            ready: VecDeque::new(),
            state: State::Open,
            any: false,
        }
    }

    /// The next message; `None` when the server has said that it is done, or has ended the connection properly.
    ///
    /// An error inside a message is an error here. Whether the answer is complete, its protocol knows.
    pub async fn next(&mut self) -> Result<Option<Value>, ModelError> {
        loop {
            match self.ready.pop_front() {
                Some(Frame::Json(value)) => {
                    if let Some(words) = Words::find(&value) {
                        return Err(failure::of_message(self.server, &words));
                    }
                    self.any = true;
                    return Ok(Some(value));
                }
                Some(Frame::Done) => {
                    self.state = State::Done;
                    self.ready.clear();
                    return Ok(None);
                }
                Some(Frame::Nonsense(text)) if self.any => return Err(self.server.cut(&text)),
                Some(Frame::Nonsense(text)) if text.starts_with(['{', '[']) => {
                    return Err(self.server.cut(&text));
                }
                Some(Frame::Nonsense(text)) => return Err(self.server.bad_answer(&text)),
                None if self.state != State::Open => return Ok(None),
                None => self.read().await?,
            }
        }
    }

    /// Whether the server said `[DONE]`.
    pub fn said_done(&self) -> bool {
        self.state == State::Done
    }

    /// The answer is complete but for what may follow it: waits for that, and not for long.
    pub fn hurry(&mut self) {
        self.stall = self.stall.min(USAGE);
    }

    /// Lets the connection come to its end.
    pub async fn close(mut self) {
        if self.state == State::Ended {
            return;
        }
        // Whatever happens now, the answer is complete; only the connection is lost.
        let rest = async { while let Ok(Some(_)) = self.response.chunk().await {} };
        let _ = tokio::time::timeout(DRAIN, rest).await;
    }

    async fn read(&mut self) -> Result<(), ModelError> {
        match tokio::time::timeout(self.stall, self.response.chunk()).await {
            Err(_) => Err(self.server.stalled()),
            Ok(Err(error)) => Err(self.server.cut(&error.without_url().to_string())),
            Ok(Ok(Some(bytes))) => {
                self.ready.extend(self.frames.push(&bytes));
                Ok(())
            }
            Ok(Ok(None)) => {
                self.state = State::Ended;
                self.ready.extend(self.frames.finish());
                Ok(())
            }
        }
    }
}
