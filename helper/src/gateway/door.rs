//! One connection of the sandbox: for whom it is, whether it may go there, and on it goes.

use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::http::{self, Head, Request};
use super::policy::Answer;
use super::sni::{self, Hello};
use super::tally::{Count, Decision};
use super::{Gateway, address, forward, policy, resolve};

/// How long a client may take to say for whom its connection is.
const HELLO: Duration = Duration::from_secs(10);
/// How long a server may take to accept.
const CONNECT: Duration = Duration::from_secs(10);
/// A fatal alert of TLS: access denied.
const DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// Why a connection goes nowhere.
struct Refusal {
    protocol: &'static str,
    name: String,
    why: String,
    /// What the client is told.
    answer: Vec<u8>,
}

/// Serves one connection that came to `port`.
pub(super) fn serve(gateway: &Arc<Gateway>, client: &TcpStream, port: u16) {
    let mut first = Vec::new();
    if let Err(refusal) = pass(gateway, client, port, &mut first) {
        let decision = Decision {
            protocol: refusal.protocol.to_owned(),
            name: refusal.name,
            port,
            refused: refusal.why,
        };
        gateway.tell(&decision, Count { times: 1, ..Count::default() });
        forward::farewell(client, &refusal.answer);
    }
}

fn pass(gateway: &Arc<Gateway>, client: &TcpStream, port: u16, first: &mut Vec<u8>) -> Result<(), Refusal> {
    let deadline = Instant::now() + HELLO;
    let unknown =
        |why: &str| Refusal { protocol: "tcp", name: String::new(), why: why.to_owned(), answer: Vec::new() };
    loop {
        match first.first() {
            None => {}
            Some(22) => match sni::read(first) {
                Hello::More => {}
                Hello::Name(name) => return tls(gateway, client, port, first, &name),
                Hello::Refused(why) => return Err(tls_refusal("", why)),
            },
            Some(byte) if byte.is_ascii_uppercase() => match http::read(first) {
                Head::More => {}
                Head::Request(request) => return plain(gateway, client, port, first, &request),
                Head::Refused(why) => return Err(http_refusal("", why)),
            },
            Some(_) => return Err(unknown("it is neither TLS nor HTTP")),
        }
        match more(client, first, deadline) {
            // Who says nothing wants nothing: a check whether the port is open, most likely.
            Ok(0) if first.is_empty() => return Ok(()),
            Ok(0) | Err(_) => return Err(unknown("it did not say for whom it is")),
            Ok(_) => {}
        }
    }
}

fn more(mut client: &TcpStream, first: &mut Vec<u8>, deadline: Instant) -> io::Result<usize> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    client.set_read_timeout(Some(left))?;
    let mut piece = [0; 8 * 1024];
    let length = client.read(&mut piece)?;
    first.extend_from_slice(&piece[..length]);
    Ok(length)
}

fn tls(
    gateway: &Arc<Gateway>,
    client: &TcpStream,
    port: u16,
    first: &[u8],
    asked: &str,
) -> Result<(), Refusal> {
    let Some(name) = policy::name(asked) else {
        return Err(tls_refusal(asked, "it names its host by an address, or not at all"));
    };
    if let Answer::Refused(why) = gateway.policy.judge(&name, port) {
        return Err(tls_refusal(&name, &why));
    }
    if gateway.policy.swaps(&name, port) {
        let decision = allowed("swap", &name, port);
        gateway.tell(&decision, Count { times: 1, ..Count::default() });
        let count = gateway.tunnels.carry(gateway, client, first, &format!("{name} {port}"));
        gateway.tell(&decision, count);
        return Ok(());
    }
    let server = connect(gateway, &name, port).map_err(|why| tls_refusal(&name, &why))?;
    let decision = allowed("tls", &name, port);
    gateway.tell(&decision, Count { times: 1, ..Count::default() });
    gateway.tell(&decision, forward::both_ways(client, &server, first));
    Ok(())
}

fn plain(
    gateway: &Arc<Gateway>,
    client: &TcpStream,
    port: u16,
    first: &[u8],
    request: &Request,
) -> Result<(), Refusal> {
    let name = &request.host;
    if request.port.is_some_and(|named| named != port) {
        return Err(http_refusal(name, "its Host names another port"));
    }
    if let Answer::Refused(why) = gateway.policy.judge(name, port) {
        return Err(http_refusal(name, &why));
    }
    if gateway.policy.swaps(name, port) {
        return Err(http_refusal(name, "a credential goes over TLS only"));
    }
    let server = connect(gateway, name, port).map_err(|why| http_refusal(name, &why))?;
    let decision = allowed("http", name, port);
    gateway.tell(&decision, Count { times: 1, ..Count::default() });
    let broken = |_| http_refusal(name, "the server ended the connection");
    (&server).write_all(&request.head).map_err(broken)?;
    let mut rest = BufReader::new(first.get(request.length..).unwrap_or_default().chain(client));
    let count = forward::one_request(client, &server, &mut rest, request.body);
    let sent = count.sent + request.head.len() as u64;
    gateway.tell(&decision, Count { sent, ..count });
    Ok(())
}

/// A connection to an address that was looked at: the name is resolved once, here, so what is checked is what is used.
fn connect(gateway: &Gateway, name: &str, port: u16) -> Result<TcpStream, String> {
    let mut last = "it has no address".to_owned();
    for address in resolve::addresses(&gateway.resolvers, name)? {
        let address = IpAddr::V4(address);
        if let Some(objection) = address::objection(&gateway.policy, name, address) {
            last = objection;
            continue;
        }
        match TcpStream::connect_timeout(&SocketAddr::new(address, port), CONNECT) {
            Ok(server) => return Ok(server),
            Err(error) => last = format!("it cannot be reached: {}", error.kind()),
        }
    }
    Err(last)
}

fn allowed(protocol: &str, name: &str, port: u16) -> Decision {
    Decision { protocol: protocol.to_owned(), name: name.to_owned(), port, refused: String::new() }
}

fn tls_refusal(name: &str, why: &str) -> Refusal {
    Refusal { protocol: "tls", name: name.to_owned(), why: why.to_owned(), answer: DENIED.to_vec() }
}

fn http_refusal(name: &str, why: &str) -> Refusal {
    Refusal { protocol: "http", name: name.to_owned(), why: why.to_owned(), answer: http::refusal(why) }
}
