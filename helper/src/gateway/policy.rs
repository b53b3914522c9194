//! What a sandbox may reach: names and ports, never addresses.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Why a name is refused that no rule names.
pub const UNLISTED: &str = "not in the workflow's network.allow";

/// Bytes a name may have.
const LONGEST_NAME: usize = 253;
/// Bytes a part of it may have.
const LONGEST_PART: usize = 63;

/// A name, or every name below one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// `api.example.com`
    Name(String),
    /// `*.example.com`: every name below it, at any depth, and not itself.
    Below(String),
}

impl Pattern {
    /// Reads `api.example.com` or `*.example.com`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("*.") {
            Some(rest) => name(rest).map(Self::Below),
            None => name(text).map(Self::Name),
        }
    }

    /// Whether `name`, as [`name`] gives it, is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Below(own) => {
                name.strip_suffix(own.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
        }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Below(name) => write!(formatter, "*.{name}"),
        }
    }
}

/// Names at a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// Which names.
    pub host: Pattern,
    /// Which port.
    pub port: u16,
}

/// Whether the list is held, or made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only what is allowed.
    #[default]
    Enforce,
    /// Everything public, to find out what a run needs.
    Learn,
}

/// What the gateway is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Its own address on the sandbox's network: the only one it listens on, and the answer for every allowed name.
    pub address: Ipv4Addr,
    /// Whether the list is held.
    pub mode: Mode,
    /// What is allowed.
    pub allow: Vec<Rule>,
    /// Names that may have private addresses.
    pub private: Vec<Pattern>,
    /// Names whose connections end on the host, which puts credentials in.
    pub swap: Vec<Rule>,
    /// Addresses of the host: never reached, unless by a name in `private`.
    pub own: Vec<IpAddr>,
    /// Who resolves names; `/etc/resolv.conf` says it where this does not.
    pub resolver: Option<SocketAddr>,
}

/// What the policy says of a name at a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may be reached.
    Allowed,
    /// It may not.
    Refused(String),
}

impl Policy {
    /// A policy that allows nothing.
    pub fn closed(address: Ipv4Addr) -> Self {
        Self {
            address,
            mode: Mode::Enforce,
            allow: Vec::new(),
            private: Vec::new(),
            swap: Vec::new(),
            own: Vec::new(),
            resolver: None,
        }
    }

    /// Whether `name` may be reached at `port`.
    pub fn judge(&self, name: &str, port: u16) -> Answer {
        let known = || self.allow.iter().chain(&self.swap).filter(|rule| rule.host.matches(name));
        if self.mode == Mode::Learn || known().any(|rule| rule.port == port) {
            Answer::Allowed
        } else if known().next().is_some() {
            Answer::Refused("this port of it is not in the workflow's network.allow".to_owned())
        } else {
            Answer::Refused(UNLISTED.to_owned())
        }
    }

    /// Whether `name` may be reached at any port: whether it has an address.
    pub fn knows(&self, name: &str) -> bool {
        self.mode == Mode::Learn || self.allow.iter().chain(&self.swap).any(|rule| rule.host.matches(name))
    }

    /// Whether the host ends connections to `name`.
    pub fn swaps(&self, name: &str, port: u16) -> bool {
        self.swap.iter().any(|rule| rule.port == port && rule.host.matches(name))
    }

    /// Whether `name` may have a private address.
    pub fn is_private(&self, name: &str) -> bool {
        self.private.iter().any(|pattern| pattern.matches(name))
    }

    /// The ports it listens on.
    pub fn ports(&self) -> Vec<u16> {
        /// What a run that is learned from most likely wants.
        const USUAL: [u16; 4] = [80, 443, 8080, 8443];
        let usual = USUAL.into_iter().filter(|_| self.mode == Mode::Learn);
        let mut ports: Vec<u16> =
            self.allow.iter().chain(&self.swap).map(|rule| rule.port).chain(usual).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// As text, a line each.
    pub fn encode(&self) -> String {
        let mut text = format!("address {}\n", self.address);
        if self.mode == Mode::Learn {
            text.push_str("learn\n");
        }
        let rules = [("allow", &self.allow), ("swap", &self.swap)];
        for (word, rules) in rules {
            for rule in rules {
                let _ = writeln!(text, "{word} {} {}", rule.host, rule.port);
            }
        }
        for pattern in &self.private {
            let _ = writeln!(text, "private {pattern}");
        }
        for address in &self.own {
            let _ = writeln!(text, "own {address}");
        }
        if let Some(resolver) = self.resolver {
            let _ = writeln!(text, "resolver {resolver}");
        }
        text
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut policy = Self::closed(lines.next()?.strip_prefix("address ")?.parse().ok()?);
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            match *words.as_slice() {
                ["learn"] => policy.mode = Mode::Learn,
                ["allow", host, port] => policy.allow.push(rule(host, port)?),
                ["swap", host, port] => policy.swap.push(rule(host, port)?),
                ["private", host] => policy.private.push(Pattern::parse(host)?),
                ["own", address] => policy.own.push(address.parse().ok()?),
                ["resolver", address] => policy.resolver = Some(address.parse().ok()?),
                _ => return None,
            }
        }
        Some(policy)
    }
}

fn rule(host: &str, port: &str) -> Option<Rule> {
    Some(Rule { host: Pattern::parse(host)?, port: port.parse().ok()? })
}

/// A host name in the one form names are compared in: lower case, no dot at the end. Nothing when it is none; an
/// address is none.
pub fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let fits = |part: &str| {
        (1..=LONGEST_PART).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    // A last part of digits (or `0x...`) is how some programs write addresses.
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    (text.len() <= LONGEST_NAME && text.split('.').all(fits) && !numeric).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rules: &[(&str, u16)]) -> Policy {
        let allow =
            rules.iter().filter_map(|(host, port)| Some(Rule { host: Pattern::parse(host)?, port: *port }));
        Policy { allow: allow.collect(), ..Policy::closed(Ipv4Addr::new(10, 213, 0, 2)) }
    }

    #[test]
    fn names_are_matched_whole() {
        let policy = allows(&[("api.example.com", 443), ("*.example.org", 8443)]);
        let allowed = |name: &str, port| policy.judge(name, port) == Answer::Allowed;
        assert!(allowed("api.example.com", 443) && allowed("a.b.example.org", 8443));
        for (name, port) in [
            ("api.example.com", 80),
            ("xapi.example.com", 443),
            ("api.example.com.evil.net", 443),
            ("example.com", 443),
            ("example.org", 8443),
            ("badexample.org", 8443),
            (".example.org", 8443),
        ] {
            assert!(!allowed(name, port), "{name}:{port}");
        }
        assert_eq!(policy.ports(), [443, 8443]);
    }

    #[test]
    fn an_address_is_no_name() {
        for text in [
            "1.2.3.4",
            "1",
            "0x7f000001",
            "127.0.0.0x1",
            "::1",
            "[::1]",
            "",
            ".",
            "a..b",
            "a b",
            "ä.com",
            "*",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
        assert_eq!(name("API.Example.COM."), Some("api.example.com".to_owned()));
        assert_eq!(Pattern::parse("*"), None);
        assert_eq!(Pattern::parse("*.*.com"), None);
        assert_eq!(Pattern::parse("a.*.com"), None);
    }

    #[test]
    fn a_policy_survives_its_text() {
        let mut policy = allows(&[("api.example.com", 443), ("*.example.org", 80)]);
        policy.mode = Mode::Learn;
        policy.private = Pattern::parse("intranet.example").into_iter().collect();
        policy.swap = policy.allow.clone();
        policy.own = ["192.0.2.2", "::1"].iter().filter_map(|text| text.parse().ok()).collect();
        policy.resolver = "10.0.0.1:53".parse().ok();
        assert_eq!(Policy::parse(&policy.encode()), Some(policy));
        assert_eq!(Policy::parse("address 10.0.0.1\nallow *"), None);
    }
}
