//! The gateway: the one way out of a sandbox that may reach some names.
//!
//! It stands on the sandbox's network and on one with a way out. Every allowed name resolves to its own address
//! (`names`), so any program in any language comes here (`door`) without a proxy's settings. It reads the name in
//! the client's first bytes ([`sni`], [`http`]), asks the [`policy`], resolves the name itself ([`resolve`]), looks at
//! the [`address`], and passes the bytes on (`forward`) without being able to read them. Where credentials are to be
//! put in, the host does it, at the end of a `tunnel`: they never are in this process. What was decided is told to
//! the host ([`tally`]) over standard output; standard input brings the policy, and its end is the gateway's.

pub mod address;
mod body;
pub mod dns;
mod door;
mod forward;
pub mod http;
mod names;
pub mod policy;
pub mod resolve;
pub mod sni;
pub mod tally;
mod tunnel;
pub mod wire;

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::frame::{Decoder, Frame};
use crate::gateway::policy::Policy;
use crate::gateway::tally::{Count, Decision, Seen, Tallies};
use crate::gateway::tunnel::Tunnels;

/// Connections at once.
const MOST_CONNECTIONS: usize = 256;
/// Bytes of a thread's stack; none of them goes deep.
const STACK: usize = 256 * 1024;
/// How often changed numbers are told.
const TELLING: Duration = Duration::from_secs(1);

/// What all threads share.
struct Gateway {
    policy: Policy,
    resolvers: Vec<SocketAddr>,
    tallies: Tallies,
    tunnels: Tunnels,
    connections: AtomicUsize,
    out: Mutex<io::Stdout>,
}

/// Serves until standard input ends.
pub fn run() -> ExitCode {
    let mut from = Frames { input: io::stdin(), decoder: Decoder::default() };
    let Ok(Some(first)) = from.next() else { return ExitCode::from(2) };
    let gateway = match start(&first) {
        Ok(gateway) => gateway,
        Err(why) => {
            // Who does not listen does not need the reason.
            let _ = Frame::new(wire::FAILED, 0, why).write(&mut io::stdout());
            return ExitCode::FAILURE;
        }
    };
    gateway.send(&Frame::new(wire::READY, 0, ""));
    while let Ok(Some(frame)) = from.next() {
        if frame.kind == wire::FINISH {
            gateway.tell_news();
            gateway.send(&Frame::new(wire::DONE, 0, ""));
            break;
        }
        gateway.tunnels.take(frame);
    }
    ExitCode::SUCCESS
}

fn start(first: &Frame) -> Result<Arc<Gateway>, String> {
    let text = std::str::from_utf8(&first.payload).ok().filter(|_| first.kind == wire::POLICY);
    let policy = text.and_then(Policy::parse).ok_or("the policy cannot be read")?;
    let resolvers = policy.resolver.map_or_else(resolve::configured, |resolver| vec![resolver]);
    let (address, ports) = (policy.address, policy.ports());
    let gateway = Arc::new(Gateway {
        policy,
        resolvers,
        tallies: Tallies::default(),
        tunnels: Tunnels::default(),
        connections: AtomicUsize::new(0),
        out: Mutex::new(io::stdout()),
    });
    let failed = |port: u16| move |error: io::Error| format!("cannot listen on port {port}: {error}");
    let datagrams = UdpSocket::bind((address, 53)).map_err(failed(53))?;
    let questions = TcpListener::bind((address, 53)).map_err(failed(53))?;
    gateway.spawn(move |gateway| names::over_udp(gateway, &datagrams))?;
    gateway.spawn(move |gateway| names::over_tcp(gateway, &questions))?;
    for port in ports.into_iter().filter(|port| *port != 53) {
        let listener = TcpListener::bind((address, port)).map_err(failed(port))?;
        gateway.spawn(move |gateway| {
            gateway.accept(&listener, move |gateway, client| {
                door::serve(gateway, &client, port);
            });
        })?;
    }
    gateway.spawn(|gateway| {
        loop {
            thread::sleep(TELLING);
            gateway.tell_news();
        }
    })?;
    Ok(gateway)
}

impl Gateway {
    fn spawn(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) -> Result<(), String> {
        let gateway = self.clone();
        let spawned = thread::Builder::new().stack_size(STACK).spawn(move || work(&gateway));
        spawned.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
    }

    /// Serves each connection on a thread of its own, up to the most there may be.
    fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
        serve: impl Fn(&Arc<Self>, TcpStream) + Clone + Send + 'static,
    ) {
        loop {
            let Ok((client, _)) = listener.accept() else {
                // Out of descriptors, most likely: connections that end make room.
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            if self.connections.fetch_add(1, Ordering::AcqRel) >= MOST_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::AcqRel);
                continue;
            }
            let serve = serve.clone();
            let spawned = self.spawn(move |gateway| {
                serve(gateway, client);
                gateway.connections.fetch_sub(1, Ordering::AcqRel);
            });
            if spawned.is_err() {
                self.connections.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    /// Adds to a decision's numbers, and tells it at once when it is new.
    fn tell(&self, decision: &Decision, more: Count) {
        let (decision, count, seen) = self.tallies.add(decision, more);
        if seen == Seen::First {
            self.send(&Frame::new(wire::TALLY, 0, tally::encode(&decision, count)));
        }
    }

    fn tell_news(&self) {
        for (decision, count) in self.tallies.news() {
            self.send(&Frame::new(wire::TALLY, 0, tally::encode(&decision, count)));
        }
    }

    /// A host that is gone closes standard input as well, which ends the process.
    fn send(&self, frame: &Frame) {
        let _ = frame.write(&mut *lock(&self.out));
    }
}

/// Frames from a stream.
struct Frames<Input> {
    input: Input,
    decoder: Decoder,
}

impl<Input: Read> Frames<Input> {
    fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut piece = [0; 8 * 1024];
        loop {
            if let Some(frame) = self.decoder.next()? {
                return Ok(Some(frame));
            }
            match self.input.read(&mut piece)? {
                0 => return Ok(None),
                length => self.decoder.feed(&piece[..length]),
            }
        }
    }
}

/// A thread that panicked leaves nothing half-done behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
