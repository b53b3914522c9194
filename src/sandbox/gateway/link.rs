//! The host's end of the gateway's streams.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tidemill_helper::frame::{Decoder, Frame};
use tidemill_helper::gateway::policy::Policy;
use tidemill_helper::gateway::{tally, wire};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::diagnostic::Diagnostic;
use crate::event::What;
use crate::event::network::{Contact, Use};
use crate::sandbox::gateway::ledger::Ledger;
use crate::sandbox::gateway::swap::Swapper;
use crate::sandbox::gateway::swap::lines::Lines;

/// How long a gateway may take until it listens.
const START: Duration = Duration::from_secs(20);
/// How long it may take to say its last numbers.
const FAREWELL: Duration = Duration::from_secs(3);

/// What the gateway writes.
pub(in crate::sandbox) type Output = Pin<Box<dyn Stream<Item = Result<Vec<u8>, String>> + Send>>;
/// What it reads.
pub(in crate::sandbox) type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// A gateway that listens.
#[derive(Debug)]
pub(in crate::sandbox) struct Link {
    to_gateway: mpsc::Sender<Frame>,
    ledger: Arc<Ledger>,
    reading: JoinHandle<()>,
    writing: JoinHandle<()>,
}

impl Link {
    /// Tells the gateway its policy and waits until it listens. What it decides comes out of `events`, and once it has
    /// ended, all of it in one.
    pub(in crate::sandbox) async fn open(
        policy: &Policy,
        output: Output,
        input: Input,
        events: mpsc::UnboundedSender<What>,
        swapper: Option<Arc<Swapper>>,
    ) -> Result<Self, String> {
        /// Frames that wait to be written.
        const WAITING: usize = 64;
        let (to_gateway, frames) = mpsc::channel(WAITING);
        let (ready, listens) = oneshot::channel();
        let ledger = Arc::new(Ledger::new(events));
        let lines = swapper.map(|swapper| Lines::new(swapper, ledger.clone(), to_gateway.clone()));
        let reader = Reader { ready: Some(ready), ledger: ledger.clone(), lines };
        let reading = tokio::spawn(reader.read(output));
        let writing = tokio::spawn(write(frames, input));
        let link = Self { to_gateway, ledger, reading, writing };
        link.send(Frame::new(wire::POLICY, 0, policy.encode())).await;
        match tokio::time::timeout(START, listens).await {
            Ok(Ok(Ok(()))) => Ok(link),
            Ok(Ok(Err(why))) => Err(why),
            Ok(Err(_)) => Err("it ended at once".to_owned()),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }

    async fn send(&self, frame: Frame) {
        // A gateway that has ended takes no more frames.
        let _ = self.to_gateway.send(frame).await;
    }

    /// Asks for the last numbers and ends the gateway.
    pub(in crate::sandbox) async fn close(mut self) {
        let farewell = async {
            // One that takes no more frames has ended.
            let _ = self.to_gateway.send(Frame::new(wire::FINISH, 0, "")).await;
            let _ = (&mut self.reading).await;
        };
        // One that says nothing has ended already, or is ended by its removal.
        if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
            // What it has told so far is told, and that it may not be all.
            self.ledger.warn(lost());
            self.ledger.finish();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reading.abort();
        self.writing.abort();
    }
}

async fn write(mut frames: mpsc::Receiver<Frame>, mut input: Input) {
    let mut bytes = Vec::new();
    while let Some(frame) = frames.recv().await {
        bytes.clear();
        frame.encode(&mut bytes);
        if input.write_all(&bytes).await.is_err() || input.flush().await.is_err() {
            return;
        }
    }
}

/// How the gateway came to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was told to.
    Asked,
    /// It was killed, or the engine was.
    Unasked,
}

struct Reader {
    ready: Option<oneshot::Sender<Result<(), String>>>,
    ledger: Arc<Ledger>,
    lines: Option<Lines>,
}

impl Reader {
    async fn read(mut self, mut output: Output) {
        let (mut decoder, mut ended) = (Decoder::default(), Ended::Unasked);
        'reading: while let Some(Ok(bytes)) = output.next().await {
            decoder.feed(&bytes);
            loop {
                match decoder.next() {
                    Ok(Some(frame)) if frame.kind == wire::DONE => {
                        ended = Ended::Asked;
                        break 'reading;
                    }
                    Ok(Some(frame)) => self.take(frame),
                    Ok(None) => break,
                    // What speaks so is no gateway of ours; nothing it says is believed.
                    Err(_) => break 'reading,
                }
            }
        }
        // Connections that end here end with it.
        self.lines = None;
        if ended == Ended::Unasked && self.ready.is_none() {
            self.ledger.warn(lost());
        }
        self.ledger.finish();
    }

    fn take(&mut self, frame: Frame) {
        match frame.kind {
            wire::READY => self.tell_ready(Ok(())),
            wire::FAILED => self.tell_ready(Err(String::from_utf8_lossy(&frame.payload).into_owned())),
            wire::TALLY => {
                if let Some((decision, count)) = tally::parse(&String::from_utf8_lossy(&frame.payload)) {
                    self.ledger.set(used(decision, count));
                }
            }
            _ => {
                if let Some(lines) = &mut self.lines {
                    lines.take(frame);
                }
            }
        }
    }

    fn tell_ready(&mut self, outcome: Result<(), String>) {
        if let Some(ready) = self.ready.take() {
            // Who waited has given up.
            let _ = ready.send(outcome);
        }
    }
}

fn lost() -> Diagnostic {
    Diagnostic::new("sandbox::gateway_lost", "the sandbox's gateway ended, and its network with it").help(
        "was its container removed by hand, or out of memory? What the run still tries to reach, it does not",
    )
}

fn used(decision: tally::Decision, count: tally::Count) -> Use {
    let tally::Decision { protocol, name: host, port, refused } = decision;
    let tally::Count { times, sent, received } = count;
    let refused = Some(refused).filter(|why| !why.is_empty());
    Use { contact: Contact { protocol, host, port, refused }, times, sent, received }
}
