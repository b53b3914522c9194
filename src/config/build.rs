//! `[build]` and `[registries."HOST"]`: what reaches image builds, and who we are at a registry.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// What reaches image builds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Build {
    /// Network mode of build steps, e.g. `host`; the engine's default when absent.
    pub network: Option<String>,
    /// Certificates build steps trust: a path, or `host` for the machine's own bundle where it has one.
    pub ca_bundle: Option<String>,
    /// Build arguments for every build.
    pub args: BTreeMap<String, String>,
    /// The proxy of build steps.
    #[serde(deserialize_with = "proxy")]
    pub proxy: Option<Proxy>,
    /// Where Debian's packages come from in place of Debian's own servers.
    #[serde(deserialize_with = "address")]
    pub apt_mirror: Option<String>,
    /// Where Python's packages come from in place of PyPI.
    #[serde(deserialize_with = "address")]
    pub pip_index: Option<String>,
}

/// The proxy of build steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxy {
    /// What this process's environment says.
    Host,
    /// As given.
    Given(Proxies),
}

/// Addresses of proxies.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Proxies {
    /// For `http://`.
    pub http: Option<String>,
    /// For `https://`.
    pub https: Option<String>,
    /// Hosts that are reached without one.
    pub no: Option<String>,
}

impl std::fmt::Debug for Proxies {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // An address may hold a password.
        formatter.write_str("Proxies")
    }
}

/// Who we are at a registry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// The user's name there.
    pub username: String,
    /// The environment variable with the password or token.
    pub password_env: String,
}

impl Registry {
    /// What is wrong with the registry `host`.
    pub(super) fn mistake(&self, host: &str) -> Option<String> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
        if host.is_empty() || host.contains(odd) {
            return Some(format!("`{host}` is not the name of a registry"));
        }
        if self.username.is_empty() {
            return Some(format!("the registry `{host}` has an empty `username`"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.password_env.is_empty() || !self.password_env.chars().all(plain) {
            return Some(format!("`password_env` of the registry `{host}` is not the name of a variable"));
        }
        None
    }
}

fn proxy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Proxy>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::String(word) if word == "host" => Ok(Some(Proxy::Host)),
        toml::Value::Table(table) => {
            let proxies = table.try_into::<Proxies>().map_err(|error| D::Error::custom(error.message()))?;
            Ok(Some(Proxy::Given(proxies)))
        }
        _ => {
            Err(D::Error::custom("`proxy` is \"host\", or { http = \"...\", https = \"...\", no = \"...\" }"))
        }
    }
}

/// An address without a password: it is kept in the image's history.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let odd = |c: char| c.is_whitespace() || c.is_control() || "'\"`$\\;".contains(c);
    match rest {
        None => Err(D::Error::custom("this is an address that begins with https:// or http://")),
        Some(rest) if rest.contains('@') => Err(D::Error::custom(
            "this address is kept in the image's history, so it must not hold a password; use a build secret",
        )),
        Some(rest) if rest.is_empty() || rest.contains(odd) => {
            Err(D::Error::custom("this is not an address"))
        }
        Some(_) => Ok(Some(text.trim_end_matches('/').to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::build::{Proxies, Proxy};

    #[test]
    fn a_registry_has_a_name_and_a_user_and_a_variable() {
        let mistake = |host: &str, user: &str, variable: &str| {
            let text =
                format!("[registries.\"{host}\"]\nusername = \"{user}\"\npassword_env = \"{variable}\"\n");
            Config::parse(&text).map_or_else(|error| error.message().to_owned(), |_| String::new())
        };
        assert_eq!(mistake("registry.example.com:5000", "me", "PASSWORD"), "");
        assert!(mistake("", "me", "PASSWORD").contains("not the name of a registry"));
        assert!(mistake("https://a/b", "me", "PASSWORD").contains("not the name of a registry"));
        assert!(mistake("a", "", "PASSWORD").contains("empty `username`"));
        assert!(mistake("a", "me", "hunter2!").contains("not the name of a variable"));
    }

    #[test]
    fn a_proxy_is_the_hosts_or_given() {
        let build = |text: &str| Config::parse(&format!("[build]\n{text}\n")).map(|config| config.build);
        assert_eq!(build("proxy = 'host'").expect("valid").proxy, Some(Proxy::Host));
        let given =
            Proxies { http: Some("http://p:3128".into()), no: Some("a".into()), ..Proxies::default() };
        let text = "proxy = { http = 'http://p:3128', no = 'a' }";
        assert_eq!(build(text).expect("valid").proxy, Some(Proxy::Given(given)));
        assert!(build("proxy = 'none'").is_err() && build("proxy = { htp = 'x' }").is_err());
        assert!(build("pip_index = 'https://user:word@host/simple'").is_err());
        assert!(build("apt_mirror = 'mirror'").is_err());
        assert_eq!(
            build("apt_mirror = 'http://m/debian/'").expect("valid").apt_mirror.as_deref(),
            Some("http://m/debian")
        );
    }
}
