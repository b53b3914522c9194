//! What a sandbox may reach.

use std::fmt;

pub use tidemill_helper::gateway::policy::{Mode, Pattern, Rule};

/// The network of a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing at all.
    #[default]
    None,
    /// Some names, through a gateway of ours.
    Gateway(Reach),
}

/// What goes through the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Whether the list is held, or made.
    pub mode: Mode,
    /// Names and ports, in the order they were declared.
    pub allow: Vec<Rule>,
    /// Credentials the gateway puts in.
    pub credentials: Vec<Credential>,
}

/// A credential that the sandbox uses and never has: it holds a placeholder, which becomes the value on its way to one
/// host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The environment variable of the sandbox that holds the placeholder.
    pub variable: String,
    /// The environment variable of Tidemill's that holds the value.
    pub secret: String,
    /// The one host it goes to.
    pub host: String,
    /// At this port.
    pub port: u16,
    /// With one of these methods; any when there are none.
    pub methods: Vec<String>,
    /// To paths that match; `*` at the end stands for the rest.
    pub path: String,
}

impl Credential {
    /// Whether a request of `method` to `path` may carry it.
    pub fn covers(&self, method: &str, path: &str) -> bool {
        let method_fits = self.methods.is_empty() || self.methods.iter().any(|known| known == method);
        let path_fits = match self.path.strip_suffix('*') {
            Some(start) => path.starts_with(start) && is_plain(path),
            None => path == self.path,
        };
        method_fits && path_fits
    }
}

/// Whether a path means what it seems to: `/v1/../admin` starts with `/v1/` and is not below it.
fn is_plain(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let hidden = ["%2e", "%2f", "%5c", "\\"].iter().any(|piece| lower.contains(piece));
    !hidden && !path.split('/').any(|part| part == ".." || part == ".") && !path.contains("//")
}

impl fmt::Display for Network {
    /// In a line, as receipts show it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Gateway(reach) = self else { return formatter.write_str("none") };
        if reach.mode == Mode::Learn {
            return formatter.write_str("learn: everything public");
        }
        let swapped = reach.credentials.iter().map(|credential| (credential.host.clone(), credential.port));
        let mut names: Vec<(String, u16)> =
            reach.allow.iter().map(|rule| (rule.host.to_string(), rule.port)).chain(swapped).collect();
        names.sort();
        names.dedup();
        let names: Vec<String> = names.into_iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(formatter, "allow: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_goes_where_it_was_bound_to() {
        let credential = Credential {
            variable: "TOKEN".into(),
            secret: "TOKEN".into(),
            host: "api.example.com".into(),
            port: 443,
            methods: vec!["GET".into()],
            path: "/v1/*".into(),
        };
        assert!(credential.covers("GET", "/v1/") && credential.covers("GET", "/v1/a/b"));
        for (method, path) in [
            ("POST", "/v1/a"),
            ("get", "/v1/a"),
            ("GET", "/v1"),
            ("GET", "/v2/a"),
            ("GET", "/v1/../v2/a"),
            ("GET", "/v1/%2e%2E/v2"),
            ("GET", "/v1/a%2f..%2f..%2fv2"),
            ("GET", "/v1/.\\..\\v2"),
            ("GET", "/v1//a"),
        ] {
            assert!(!credential.covers(method, path), "{method} {path}");
        }
    }
}
