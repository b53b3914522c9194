//! Which addresses are never reached, whatever name leads to them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::policy::Policy;

/// What to do about an address that is refused and need not be.
const OPENED: &str = "and network.private in tidemill.toml does not name it";

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Somewhere on the internet.
    Public,
    /// In a private network, or shared by a provider's customers.
    Private,
    /// Never a service for others: this machine, this link, metadata, many receivers, reserved.
    Never,
}

/// What `address` is.
pub fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Kind {
    match address.octets() {
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        // Meant for documentation and benchmarks, and used by private networks all the same.
        | [192, 0, 2, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Kind::Private,
        [0 | 127 | 224..=255, ..] | [169, 254, ..] | [192, 0, 0, _] | [192, 88, 99, _] => Kind::Never,
        _ => Kind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> Kind {
    if let Some(inner) = address.to_ipv4_mapped() {
        return kind_v4(inner);
    }
    match address.segments() {
        // Unique local addresses.
        [0xfc00..=0xfdff, ..] => Kind::Private,
        // An IPv4 address stands in those of NAT64 and 6to4, and need not be what it seems.
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0 | 0xdb8, ..] => Kind::Never,
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Never,
    }
}

/// Why `address` must not be reached as `name`; nothing when it may.
pub fn objection(policy: &Policy, name: &str, address: IpAddr) -> Option<String> {
    let own = policy.own.contains(&address) || address == IpAddr::V4(policy.address);
    let by_name = policy.is_private(name);
    match kind(address) {
        Kind::Never => Some(format!("its address {address} is this machine's, this link's or reserved")),
        _ if own && !by_name => Some(format!("its address {address} is the host's, {OPENED}")),
        Kind::Private if !by_name => Some(format!("its address {address} is private, {OPENED}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Kind {
        text.parse().map_or(Kind::Never, kind)
    }

    #[test]
    fn only_the_internet_is_public() {
        for text in ["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.128.0.1", "192.167.0.1", "2606:4700::1"] {
            assert_eq!(of(text), Kind::Public, "{text}");
        }
        for text in ["10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1", "::ffff:10.0.0.1"]
        {
            assert_eq!(of(text), Kind::Private, "{text}");
        }
        for text in [
            "0.0.0.0",
            "127.0.0.1",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fec0::1",
        ] {
            assert_eq!(of(text), Kind::Never, "{text}");
        }
    }

    #[test]
    fn a_private_name_reaches_private_addresses_and_no_others_do() {
        let mut policy = Policy::closed(Ipv4Addr::new(10, 213, 0, 2));
        policy.private = super::super::policy::Pattern::parse("intranet.example").into_iter().collect();
        policy.own = vec![IpAddr::V4(Ipv4Addr::new(8, 8, 8, 8))];
        let objects = |name: &str, text: &str| {
            text.parse().map_or(true, |address| objection(&policy, name, address).is_some())
        };
        assert!(!objects("intranet.example", "10.1.2.3") && !objects("intranet.example", "8.8.8.8"));
        assert!(objects("intranet.example", "127.0.0.1") && objects("intranet.example", "169.254.169.254"));
        assert!(objects("api.example", "10.1.2.3") && objects("api.example", "8.8.8.8"));
        assert!(!objects("api.example", "1.1.1.1"));
    }
}
