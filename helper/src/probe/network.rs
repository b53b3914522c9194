//! The way out.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::attempt::{all_refused, words};
use super::{Asked, Held, Probe};
use crate::sys::probe as sys;

pub(super) const PROBES: &[Probe] = &[
    Probe::new("network/interfaces", "There is no network but the container's own loopback.", interfaces),
    Probe::new("network/internet", "No address of the internet answers.", internet),
    Probe::new(
        "network/metadata",
        "The cloud's metadata address, which hands out keys, does not answer.",
        metadata,
    ),
    Probe::new(
        "network/gateway",
        "The host does not answer at any address a container usually finds it at.",
        gateway,
    ),
    Probe::new(
        "network/host-loopback",
        "A port that the host opened for this test cannot be reached.",
        host_loopback,
    ),
    Probe::new("network/raw-sockets", "Packets cannot be forged or listened to.", raw_sockets),
    Probe::new("network/hypervisor", "The machine below a virtual machine does not answer.", hypervisor),
    Probe::new("network/engine-socket", "No engine can be reached through a socket.", engine_socket),
    Probe::new("network/abstract-sockets", "No nameless socket of the host is to be seen.", abstract_sockets),
];

/// A network that drops is as good as one that refuses, and takes longer.
const PATIENCE: Duration = Duration::from_millis(500);

fn interfaces(_: &Asked) -> Held {
    let text = fs::read_to_string("/proc/net/dev").map_err(|error| words(&error))?;
    let names = text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    // These exist wherever the kernel can do tunnels, carry nothing and cannot be set up without rights.
    let idle =
        ["lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"];
    let others: Vec<&str> = names.filter(|name| !idle.contains(name)).collect();
    if others.is_empty() { Ok("loopback only".to_owned()) } else { Err(others.join(", ")) }
}

/// Nobody answers at any of these; "refused" is an answer.
fn silent(addresses: &[(Ipv4Addr, u16)]) -> Held {
    let mut last = "there is no way out".to_owned();
    for (address, port) in addresses {
        let target = SocketAddr::new(IpAddr::V4(*address), *port);
        match TcpStream::connect_timeout(&target, PATIENCE) {
            Ok(_) => return Err(format!("{target} was reached")),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(format!("{target} answered: {}", words(&error)));
            }
            Err(error) => last = words(&error),
        }
    }
    Ok(last)
}

fn internet(_: &Asked) -> Held {
    silent(&[(Ipv4Addr::new(1, 1, 1, 1), 53), (Ipv4Addr::new(8, 8, 8, 8), 443)])
}

fn metadata(_: &Asked) -> Held {
    // AWS, Azure, GCP and others; AWS's for containers; Alibaba's; Oracle's.
    silent(&[
        (Ipv4Addr::new(169, 254, 169, 254), 80),
        (Ipv4Addr::new(169, 254, 170, 2), 80),
        (Ipv4Addr::new(100, 100, 100, 200), 80),
        (Ipv4Addr::new(192, 0, 0, 192), 80),
    ])
}

fn gateway(_: &Asked) -> Held {
    let mut hosts =
        vec![Ipv4Addr::new(172, 17, 0, 1), Ipv4Addr::new(10, 0, 2, 2), Ipv4Addr::new(192, 168, 65, 254)];
    hosts.extend(default_gateway());
    let ports = [22, 80, 2375, 5432];
    let all: Vec<(Ipv4Addr, u16)> = hosts.iter().flat_map(|host| ports.map(|port| (*host, port))).collect();
    silent(&all)
}

fn default_gateway() -> Option<Ipv4Addr> {
    let text = fs::read_to_string("/proc/net/route").ok()?;
    text.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (to, gateway) = (fields.next()?, fields.next()?);
        let number = u32::from_str_radix(gateway, 16).ok()?;
        (to == "00000000" && number != 0).then(|| Ipv4Addr::from(number.to_le_bytes()))
    })
}

fn host_loopback(asked: &Asked) -> Held {
    let Some(port) = asked.port else {
        return Ok("no port was named".to_owned());
    };
    // Refused by the container's own loopback is what should happen; the others must not even answer.
    let own = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    if TcpStream::connect_timeout(&own, PATIENCE).is_ok() {
        return Err(format!("{own} is the host's"));
    }
    silent(&[(Ipv4Addr::new(172, 17, 0, 1), port), (Ipv4Addr::new(192, 168, 65, 254), port)])
}

fn raw_sockets(_: &Asked) -> Held {
    all_refused([
        ("raw IPv4", sys::socket(2, 3, 1)),
        ("raw IPv6", sys::socket(10, 3, 58)),
        ("packets", sys::socket(17, 3, 0x0300)),
    ])
}

/// Reset is an answer: somebody is there.
fn hypervisor(_: &Asked) -> Held {
    /// Connection reset, connection refused, in progress.
    const ANSWERS: [i32; 3] = [104, 111, 115];
    let mut last = String::new();
    for port in [1, 22, 80, 1024, 5000, 5252, 52] {
        match sys::connect_to_hypervisor(port) {
            Ok(_) => return Err(format!("port {port} was reached")),
            Err(error) if error.raw_os_error().is_some_and(|code| ANSWERS.contains(&code)) => {
                return Err(format!("port {port} answered: {}", words(&error)));
            }
            Err(error) => last = words(&error),
        }
    }
    Ok(last)
}

fn engine_socket(_: &Asked) -> Held {
    let sockets = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/user/1000/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/crio/crio.sock",
        "/run/buildkit/buildkitd.sock",
    ];
    for path in sockets {
        if UnixStream::connect(path).is_ok() {
            return Err(format!("{path} answers"));
        }
        if fs::symlink_metadata(path).is_ok() {
            return Err(format!("{path} is there"));
        }
    }
    Ok(format!("none, of {} places", sockets.len()))
}

fn abstract_sockets(_: &Asked) -> Held {
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let seen: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7))
        .filter(|name| name.starts_with('@'))
        .collect();
    if seen.is_empty() { Ok("none".to_owned()) } else { Err(seen.join(", ")) }
}
