//! The host's end of connections that travel as frames.

use std::collections::HashMap;
use std::sync::Arc;

use tidemill_helper::frame::Frame;
use tidemill_helper::gateway::wire;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Connection, Swapper, serve};
use crate::sandbox::gateway::ledger::Ledger;

/// Connections at once; the gateway lets through no more, but need not be believed.
const MOST: usize = 256;

/// All of them. Their work ends with this value.
pub(in crate::sandbox::gateway) struct Lines {
    swapper: Arc<Swapper>,
    ledger: Arc<Ledger>,
    to_gateway: mpsc::Sender<Frame>,
    open: HashMap<u32, Line>,
    work: JoinSet<()>,
}

/// One of them.
struct Line {
    /// What the sandbox says; nothing at its end.
    said: mpsc::UnboundedSender<Option<Vec<u8>>>,
    /// Bytes the sandbox may still be sent.
    credit: Arc<Semaphore>,
    /// Bytes that came and are not yet taken.
    waiting: Arc<Semaphore>,
}

impl Drop for Line {
    /// Whoever waits to be heard is not.
    fn drop(&mut self) {
        self.credit.close();
    }
}

impl Lines {
    /// None so far.
    pub(in crate::sandbox::gateway) fn new(
        swapper: Arc<Swapper>,
        ledger: Arc<Ledger>,
        to_gateway: mpsc::Sender<Frame>,
    ) -> Self {
        Self { swapper, ledger, to_gateway, open: HashMap::new(), work: JoinSet::new() }
    }

    /// Takes a frame of the gateway's. It must not wait, as all connections come through here.
    pub(in crate::sandbox::gateway) fn take(&mut self, frame: Frame) {
        while self.work.try_join_next().is_some() {}
        self.open.retain(|_, line| !line.said.is_closed());
        match frame.kind {
            wire::OPEN => self.open(frame.id, &String::from_utf8_lossy(&frame.payload)),
            wire::DATA => {
                // More than was asked for is more than this process holds.
                let room = u32::try_from(frame.payload.len()).ok();
                let fits = self.open.get(&frame.id).is_some_and(|line| {
                    room.is_some_and(|room| {
                        line.waiting.try_acquire_many(room).map(tokio::sync::SemaphorePermit::forget).is_ok()
                    })
                });
                if fits {
                    self.say(frame.id, Some(frame.payload));
                } else {
                    // Also for one that is unknown: it was refused, and the gateway may not have heard it.
                    self.open.remove(&frame.id);
                    self.refuse(frame.id);
                }
            }
            wire::END => self.say(frame.id, None),
            wire::ABORT => {
                self.open.remove(&frame.id);
            }
            wire::CREDIT => {
                let more = frame.payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                if let Some(line) = self.open.get(&frame.id) {
                    let room = wire::WINDOW.saturating_sub(line.credit.available_permits());
                    line.credit.add_permits(room.min(more as usize));
                }
            }
            _ => {}
        }
    }

    fn say(&self, id: u32, said: Option<Vec<u8>>) {
        if let Some(line) = self.open.get(&id) {
            // A connection that has just ended hears nothing.
            let _ = line.said.send(said);
        }
    }

    /// Tells the gateway that a connection is over; one that does not listen at this moment is told
    /// again with the next bytes it sends.
    fn refuse(&self, id: u32) {
        let _ = self.to_gateway.try_send(Frame::new(wire::ABORT, id, ""));
    }

    /// A connection to `name port`.
    fn open(&mut self, id: u32, to: &str) {
        let target = to.split_once(' ').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let Some((host, port)) = target.filter(|_| self.open.len() < MOST) else { return self.refuse(id) };
        let (ours, theirs) = tokio::io::duplex(wire::PIECE);
        let (from_server, to_server) = tokio::io::split(theirs);
        let (said, hears) = mpsc::unbounded_channel();
        let credit = Arc::new(Semaphore::new(wire::WINDOW));
        let waiting = Arc::new(Semaphore::new(wire::WINDOW));
        let (swapper, ledger) = (self.swapper.clone(), self.ledger.clone());
        let connection = Connection { swapper, ledger, host: host.into(), port };
        self.work.spawn(serve::serve(connection, ours));
        let over = CancellationToken::new();
        let (back, ended) = (self.to_gateway.clone(), over.clone());
        let hearing = inwards(id, hears, to_server, waiting.clone(), back);
        self.work.spawn(async move {
            ended.run_until_cancelled_owned(hearing).await;
        });
        let saying = outwards(id, from_server, credit.clone(), self.to_gateway.clone());
        self.work.spawn(async move {
            saying.await;
            // Nobody answers what the sandbox still says.
            over.cancel();
        });
        self.open.insert(id, Line { said, credit, waiting });
    }
}

/// What the sandbox says, to the server.
async fn inwards(
    id: u32,
    mut hears: mpsc::UnboundedReceiver<Option<Vec<u8>>>,
    mut to_server: WriteHalf<DuplexStream>,
    waiting: Arc<Semaphore>,
    to_gateway: mpsc::Sender<Frame>,
) {
    while let Some(Some(bytes)) = hears.recv().await {
        if to_server.write_all(&bytes).await.is_err() {
            return;
        }
        waiting.add_permits(bytes.len());
        let taken = u32::try_from(bytes.len()).unwrap_or_default();
        if to_gateway.send(Frame::new(wire::CREDIT, id, taken.to_le_bytes())).await.is_err() {
            return;
        }
    }
    // The server sees the end; it may have more to say.
    let _ = to_server.shutdown().await;
    // The line stays open until it has said that.
    while hears.recv().await.is_some() {}
}

/// What the server says, to the sandbox.
async fn outwards(
    id: u32,
    mut from_server: ReadHalf<DuplexStream>,
    credit: Arc<Semaphore>,
    to_gateway: mpsc::Sender<Frame>,
) {
    let mut piece = vec![0; wire::PIECE];
    while let Ok(length) = from_server.read(&mut piece).await {
        if length == 0 {
            break;
        }
        let Ok(room) = credit.acquire_many(u32::try_from(length).unwrap_or_default()).await else { return };
        room.forget();
        if to_gateway.send(Frame::new(wire::DATA, id, &piece[..length])).await.is_err() {
            return;
        }
    }
    // A gateway that has ended needs no end.
    let _ = to_gateway.send(Frame::new(wire::END, id, "")).await;
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tidemill_helper::gateway::policy::Policy;

    use super::*;
    use crate::sandbox::gateway::{Outside, Secret};
    use crate::workflow::network::{Credential, Reach};

    fn lines() -> (Lines, mpsc::Receiver<Frame>) {
        let credential = Credential {
            variable: "TOKEN".into(),
            secret: "TOKEN".into(),
            host: "api.example".into(),
            port: 443,
            methods: Vec::new(),
            path: "/*".into(),
        };
        let reach = Reach { credentials: vec![credential], ..Reach::default() };
        let secrets = [("TOKEN".to_owned(), Secret::new("real-value".into()))].into();
        let outside = Outside { secrets, ..Outside::default() };
        let policy = Policy::closed(Ipv4Addr::new(10, 213, 0, 2));
        let swapper = Swapper::new(&reach, &outside, &policy).unwrap().unwrap();
        let (to_gateway, frames) = mpsc::channel(8);
        let (events, _) = mpsc::unbounded_channel();
        (Lines::new(swapper, Arc::new(Ledger::new(events)), to_gateway), frames)
    }

    #[tokio::test]
    async fn a_gateway_that_sends_more_than_was_asked_for_is_cut_off() {
        let (mut lines, _frames) = lines();
        lines.take(Frame::new(wire::OPEN, 1, "api.example 443"));
        // Nothing has been taken yet: no task runs before this one waits.
        for _ in 0..wire::WINDOW / wire::PIECE {
            lines.take(Frame::new(wire::DATA, 1, vec![0; wire::PIECE]));
            assert_eq!(lines.open.len(), 1);
        }
        lines.take(Frame::new(wire::DATA, 1, "x"));
        assert!(lines.open.is_empty());
    }

    #[tokio::test]
    async fn no_more_connections_are_held_than_there_may_be() {
        let (mut lines, _frames) = lines();
        for id in 0..2 * MOST {
            lines.take(Frame::new(wire::OPEN, u32::try_from(id).unwrap(), "api.example 443"));
        }
        assert_eq!(lines.open.len(), MOST);
        lines.take(Frame::new(wire::OPEN, 9999, "no port"));
        lines.take(Frame::new(wire::CREDIT, 1, u32::MAX.to_le_bytes()));
        lines.take(Frame::new(wire::DATA, 8888, "nobody's"));
        lines.take(Frame::new(wire::ABORT, 1, ""));
        assert_eq!(lines.open.len(), MOST - 1);
    }
}
