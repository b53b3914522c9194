//! Answering the sandbox's questions for names: an allowed name has the gateway's own address, and no other exists.
//!
//! Nothing is ever asked of others here, so a question carries no message out.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use super::dns::{self, Reply};
use super::tally::{Count, Decision};
use super::{Gateway, policy};

/// How long a connection may be quiet between questions.
const QUIET: Duration = Duration::from_secs(10);

/// Answers datagrams for ever.
pub(super) fn over_udp(gateway: &Gateway, socket: &UdpSocket) {
    let mut buffer = [0; 1500];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
        if let Some(answer) = answer(gateway, &buffer[..length]) {
            // Who is gone asks again, or does not.
            let _ = socket.send_to(&answer, from);
        }
    }
}

/// Answers connections for ever.
pub(super) fn over_tcp(gateway: &Arc<Gateway>, listener: &TcpListener) {
    gateway.accept(listener, |gateway, stream| {
        // A broken connection is the asker's matter.
        let _ = converse(gateway, stream);
    });
}

fn converse(gateway: &Gateway, mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(QUIET))?;
    stream.set_write_timeout(Some(QUIET))?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message)?;
        let Some(answer) = answer(gateway, &message) else { return Ok(()) };
        let length = u16::try_from(answer.len()).unwrap_or(u16::MAX);
        stream.write_all(&[&length.to_be_bytes(), answer.as_slice()].concat())?;
    }
}

fn answer(gateway: &Gateway, message: &[u8]) -> Option<Vec<u8>> {
    let question = dns::question(message)?;
    let known = policy::name(&question.name).is_some_and(|name| gateway.policy.knows(&name));
    let reply = match question.kind {
        _ if !known => Reply::NoName,
        dns::A => Reply::Address(gateway.policy.address),
        _ => Reply::Nothing,
    };
    if !known {
        let decision = Decision {
            protocol: "dns".into(),
            name: question.name.to_ascii_lowercase(),
            port: 0,
            refused: policy::UNLISTED.into(),
        };
        gateway.tell(&decision, Count { times: 1, ..Count::default() });
    }
    Some(dns::answer(message, &question, reply))
}
