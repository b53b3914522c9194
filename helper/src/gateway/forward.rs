//! Passing bytes on, in both directions, until both sides have said all.

use std::io::{self, BufRead, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::body;
use super::http::Body;
use super::tally::Count;

/// A connection on which nothing moves in either direction for twice as long is given up.
const IDLE: Duration = Duration::from_mins(5);
/// How long a client that is sent away may take to read why.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes it may still send meanwhile.
const LAST_WORDS: u64 = 1 << 20;
/// Bytes passed on at once.
const PIECE: usize = 32 * 1024;
/// A thread that pumps needs little more than its piece.
const STACK: usize = 128 * 1024;

/// Sends `first`, then passes on whatever comes, each direction until its end.
pub(super) fn both_ways(client: &TcpStream, server: &TcpStream, first: &[u8]) -> Count {
    let mut to_server = server;
    if prepare(client, server).is_err() || to_server.write_all(first).is_err() {
        close(client, server);
        return Count::default();
    }
    let moved = AtomicU64::new(0);
    let count = thread::scope(|scope| {
        let up = thread::Builder::new().stack_size(STACK);
        let Ok(up) = up.spawn_scoped(scope, || pump(client, server, &moved)) else {
            close(client, server);
            return Count::default();
        };
        let received = pump(server, client, &moved);
        Count { times: 0, sent: up.join().unwrap_or_default(), received }
    });
    Count { sent: count.sent + first.len() as u64, ..count }
}

/// Passes on the body of one request, and the answer to it until the server ends the connection. What the client
/// sends behind its request goes nowhere.
pub(super) fn one_request(
    client: &TcpStream,
    server: &TcpStream,
    rest: &mut (impl BufRead + Send),
    body: Body,
) -> Count {
    if prepare(client, server).is_err() {
        close(client, server);
        return Count::default();
    }
    let moved = AtomicU64::new(0);
    let count = thread::scope(|scope| {
        let up = thread::Builder::new().stack_size(STACK);
        let up = up.spawn_scoped(scope, || {
            let mut to = Noted { to: server, moved: &moved };
            let sent = body::pass(rest, &mut to, body);
            if sent.is_err() {
                close(client, server);
            }
            sent.unwrap_or_default()
        });
        let Ok(up) = up else {
            close(client, server);
            return Count::default();
        };
        let received = pump(server, client, &moved);
        // A server may answer before it has read the whole request; nobody reads the rest.
        let _ = server.shutdown(Shutdown::Both);
        if !up.is_finished() {
            farewell(client, &[]);
        }
        let _ = client.shutdown(Shutdown::Read);
        Count { times: 0, sent: up.join().unwrap_or_default(), received }
    });
    farewell(client, &[]);
    count
}

/// Says a last thing to the client and waits until it has read it: a connection that is closed with unread bytes is
/// reset, and what was said is lost.
pub(super) fn farewell(mut client: &TcpStream, last: &[u8]) {
    let mut saying = || -> io::Result<()> {
        client.set_write_timeout(Some(FAREWELL))?;
        client.set_read_timeout(Some(FAREWELL))?;
        client.write_all(last)?;
        client.shutdown(Shutdown::Write)?;
        io::copy(&mut client.take(LAST_WORDS), &mut io::sink()).map(drop)
    };
    // A client that does not listen has missed it.
    let _ = saying();
}

fn prepare(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    for stream in [client, server] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IDLE))?;
        stream.set_write_timeout(Some(IDLE))?;
    }
    Ok(())
}

/// Passes bytes on in one direction until its end. Gives how many.
fn pump(mut from: &TcpStream, mut to: &TcpStream, moved: &AtomicU64) -> u64 {
    let (mut piece, mut passed, mut seen) = (vec![0; PIECE], 0, moved.load(Ordering::Relaxed));
    loop {
        match from.read(&mut piece) {
            Ok(0) => {
                // The other direction goes on.
                let _ = to.shutdown(Shutdown::Write);
                return passed;
            }
            Ok(length) if to.write_all(&piece[..length]).is_ok() => {
                passed += length as u64;
                moved.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(error) if is_idle(&error) && moved.load(Ordering::Relaxed) != seen => {
                seen = moved.load(Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => {
                close(from, to);
                return passed;
            }
        }
    }
}

fn is_idle(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Both are over; the threads that wait for them find out.
fn close(left: &TcpStream, right: &TcpStream) {
    for stream in [left, right] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// A server that is written to, noting that something moved.
struct Noted<'a> {
    to: &'a TcpStream,
    moved: &'a AtomicU64,
}

impl Write for Noted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.to.write(bytes)?;
        self.moved.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
