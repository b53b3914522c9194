//! The addresses of this machine: a sandbox must not reach its services, under whatever name.

use std::net::{IpAddr, Ipv4Addr};

/// Where the kernel lists them.
const TABLE: &str = "/proc/net/fib_trie";

/// This machine's IPv4 addresses, the gateway speaking no other. None on systems that do not list them, where the
/// engine runs in a virtual machine of its own.
pub(in crate::sandbox) fn addresses() -> Vec<IpAddr> {
    std::fs::read_to_string(TABLE).map(|text| local(&text)).unwrap_or_default()
}

/// An address stands on a line of its own, and what it is on the next.
fn local(text: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut address: Option<Ipv4Addr> = None;
    for line in text.lines() {
        let words = line.trim().trim_start_matches(['|', '+', '-', ' ']);
        if let Ok(parsed) = words.parse() {
            address = Some(parsed);
        } else if words.contains("host LOCAL")
            && let Some(address) = address
            && !address.is_loopback()
        {
            found.push(IpAddr::V4(address));
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_addresses_are_found_and_others_are_not() {
        let text = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     +-- 198.51.100.0/24 2 0 2\n        |-- 198.51.100.2\n           /32 host LOCAL\n        |-- 198.51.100.255\n           /32 link BROADCAST\n     +-- 127.0.0.0/8 2 0 2\n           |-- 127.0.0.1\n              /32 host LOCAL\n";
        let found: Vec<String> = local(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["198.51.100.2"]);
    }
}
