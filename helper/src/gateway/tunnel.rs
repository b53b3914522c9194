//! Connections that end on the host: their bytes travel as frames, a window's worth at a time, so that one that is
//! slow does not hold up the others.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::tally::Count;
use super::{Gateway, lock, wire};
use crate::frame::Frame;

/// A thread that pumps needs little more than its piece.
const STACK: usize = 128 * 1024;

/// All such connections.
#[derive(Default)]
pub(super) struct Tunnels {
    next: AtomicU32,
    open: Mutex<HashMap<u32, Arc<Line>>>,
}

/// One of them.
struct Line {
    /// Bytes the host still takes; nothing once it takes no more.
    credit: Mutex<Option<usize>>,
    changed: Condvar,
    from_host: Sender<FromHost>,
}

enum FromHost {
    Data(Vec<u8>),
    End,
    Abort,
}

impl Tunnels {
    /// Takes a frame from the host. One for a connection that is over is no news.
    pub(super) fn take(&self, frame: Frame) {
        let Some(line) = lock(&self.open).get(&frame.id).cloned() else { return };
        let said = match frame.kind {
            wire::DATA => FromHost::Data(frame.payload),
            wire::END => FromHost::End,
            wire::ABORT => FromHost::Abort,
            wire::CREDIT => {
                let more = frame.payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
                let mut credit = lock(&line.credit);
                *credit = credit.map(|credit| credit.saturating_add(more as usize));
                line.changed.notify_all();
                return;
            }
            _ => return,
        };
        // The connection may have ended at this moment.
        let _ = line.from_host.send(said);
    }

    /// Carries a connection, `first` having been read of it, to the host and back until both sides have said all.
    pub(super) fn carry(&self, gateway: &Arc<Gateway>, client: &TcpStream, first: &[u8], to: &str) -> Count {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (from_host, said) = mpsc::channel();
        let line = Arc::new(Line {
            // The first bytes are sent before any credit is given.
            credit: Mutex::new(Some(wire::WINDOW.saturating_sub(first.len()))),
            changed: Condvar::new(),
            from_host,
        });
        lock(&self.open).insert(id, line.clone());
        gateway.send(&Frame::new(wire::OPEN, id, to));
        for piece in first.chunks(wire::PIECE) {
            gateway.send(&Frame::new(wire::DATA, id, piece));
        }
        let _ = client.set_read_timeout(None);
        let count = thread::scope(|scope| {
            let up = thread::Builder::new().stack_size(STACK);
            let Ok(up) = up.spawn_scoped(scope, || line.send(gateway, client, id)) else {
                gateway.send(&Frame::new(wire::ABORT, id, ""));
                return Count::default();
            };
            let received = receive(gateway, client, id, &said);
            line.give_up();
            let _ = client.shutdown(Shutdown::Read);
            Count { times: 0, sent: up.join().unwrap_or_default(), received }
        });
        lock(&self.open).remove(&id);
        Count { sent: count.sent + first.len() as u64, ..count }
    }
}

impl Line {
    /// Sends what the client says. Gives how much that was.
    fn send(&self, gateway: &Gateway, mut client: &TcpStream, id: u32) -> u64 {
        let (mut piece, mut sent) = (vec![0; wire::PIECE], 0);
        loop {
            let Some(room) = self.room(piece.len()) else { return sent };
            match client.read(&mut piece[..room]) {
                Ok(0) => {
                    gateway.send(&Frame::new(wire::END, id, ""));
                    return sent;
                }
                Ok(length) => {
                    sent += length as u64;
                    let mut credit = lock(&self.credit);
                    *credit = credit.map(|credit| credit.saturating_sub(length));
                    drop(credit);
                    gateway.send(&Frame::new(wire::DATA, id, &piece[..length]));
                }
                Err(_) => {
                    gateway.send(&Frame::new(wire::ABORT, id, ""));
                    // Whoever waits for the host on this connection need wait no longer.
                    let _ = self.from_host.send(FromHost::Abort);
                    return sent;
                }
            }
        }
    }

    /// Waits until the host takes bytes. Gives how many, at most `most`.
    fn room(&self, most: usize) -> Option<usize> {
        let mut credit = lock(&self.credit);
        while *credit == Some(0) {
            credit = self.changed.wait(credit).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        credit.map(|credit| credit.min(most))
    }

    fn give_up(&self) {
        *lock(&self.credit) = None;
        self.changed.notify_all();
    }
}

/// Passes on what the host says. Gives how much that was.
fn receive(gateway: &Gateway, mut client: &TcpStream, id: u32, said: &Receiver<FromHost>) -> u64 {
    let mut received = 0;
    loop {
        match said.recv() {
            Ok(FromHost::Data(bytes)) => {
                if client.write_all(&bytes).is_err() {
                    gateway.send(&Frame::new(wire::ABORT, id, ""));
                    return received;
                }
                received += bytes.len() as u64;
                let taken = u32::try_from(bytes.len()).unwrap_or_default();
                gateway.send(&Frame::new(wire::CREDIT, id, taken.to_le_bytes()));
            }
            Ok(FromHost::End) => {
                let _ = client.shutdown(Shutdown::Write);
                return received;
            }
            Ok(FromHost::Abort) | Err(_) => {
                let _ = client.shutdown(Shutdown::Both);
                return received;
            }
        }
    }
}
