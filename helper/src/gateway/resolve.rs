//! Finding the address of an allowed name, when a connection is made and not before.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use super::dns::{self, Found};

/// How long a resolver may take before it is asked again.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often each is asked.
const TRIES: usize = 2;
/// Resolvers that are asked.
const MOST: usize = 3;
/// Where the engine writes who resolves names.
const CONFIG: &str = "/etc/resolv.conf";

/// Who resolves names when the policy does not say.
pub fn configured() -> Vec<SocketAddr> {
    std::fs::read_to_string(CONFIG).map(|text| nameservers(&text)).unwrap_or_default()
}

fn nameservers(text: &str) -> Vec<SocketAddr> {
    let words = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let addresses = words.filter_map(|word| word.trim().parse::<IpAddr>().ok());
    addresses.map(|address| SocketAddr::new(address, 53)).take(MOST).collect()
}

/// The addresses of `name`.
pub fn addresses(resolvers: &[SocketAddr], name: &str) -> Result<Vec<Ipv4Addr>, String> {
    let mut last = "nobody resolves names here".to_owned();
    for _ in 0..TRIES {
        for resolver in resolvers {
            match ask(*resolver, name) {
                Ok(Found::Addresses(found)) if found.is_empty() => {
                    return Err("it has no IPv4 address".into());
                }
                Ok(Found::Addresses(found)) => return Ok(found),
                Ok(Found::No(3)) => return Err("its name does not exist".into()),
                Ok(Found::No(_) | Found::Cut) => last = "its name cannot be resolved".into(),
                Err(error) => last = format!("its name cannot be resolved: {}", error.kind()),
            }
        }
    }
    Err(last)
}

fn ask(resolver: SocketAddr, name: &str) -> io::Result<Found> {
    let mut random = [0; 2];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let id = u16::from_ne_bytes(random);
    let query = dns::query(id, name);
    match over_udp(resolver, name, id, &query)? {
        Found::Cut => over_tcp(resolver, name, id, &query),
        found => Ok(found),
    }
}

/// The socket is connected, so only the resolver's datagrams arrive; the port is the system's choice, by chance.
fn over_udp(resolver: SocketAddr, name: &str, id: u16, query: &[u8]) -> io::Result<Found> {
    /// Answers that are none of ours are passed over; a flood of them is a failure.
    const STRAYS: usize = 16;
    let any = if resolver.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(resolver)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send(query)?;
    let mut buffer = [0; 4096];
    for _ in 0..STRAYS {
        let length = socket.recv(&mut buffer)?;
        if let Some(found) = dns::found(&buffer[..length], id, name) {
            return Ok(found);
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

fn over_tcp(resolver: SocketAddr, name: &str, id: u16, query: &[u8]) -> io::Result<Found> {
    let mut stream = TcpStream::connect_timeout(&resolver, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = u16::try_from(query.len()).unwrap_or(u16::MAX);
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    dns::found(&message, id, name).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::nameservers;

    #[test]
    fn nameservers_are_read() {
        let text = "# x\nsearch a.example\nnameserver 127.0.0.11\n  nameserver ::1 \noptions ndots:0\nnameserver x\n";
        let found: Vec<String> = nameservers(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["127.0.0.11:53", "[::1]:53"]);
    }
}
