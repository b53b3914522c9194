//! Which addresses a message may go to: public ones, and those that `[notify]` opens.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tidemill_helper::gateway::address::{Kind, kind};

use crate::config::NotifySettings;

/// The addresses of a server, all looked at. A connection goes to these, whatever its name resolves to by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reached(Vec<SocketAddr>);

impl Resolve for Reached {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Finds the server of `url` and looks at every address it has. An error says why it is not asked.
pub(super) async fn reach(url: &Url, settings: &NotifySettings) -> Result<Reached, String> {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err("the address has no host".to_owned());
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((host.as_str(), port))
            .await
            .map_err(|error| format!("its name cannot be resolved: {error}"))?
            .collect(),
    };
    allow(url.scheme(), &host, &addresses, settings)?;
    Ok(Reached(addresses))
}

fn allow(
    scheme: &str,
    host: &str,
    addresses: &[SocketAddr],
    settings: &NotifySettings,
) -> Result<(), String> {
    if addresses.is_empty() {
        return Err("its name has no address".to_owned());
    }
    for address in addresses.iter().map(SocketAddr::ip) {
        if settings.allow.iter().any(|allowed| allowed.holds(host, address)) {
            continue;
        }
        let opened = "and `allow` under [notify] in tidemill.toml does not name it";
        if kind(address) != Kind::Public {
            return Err(format!("its address {address} is not public, {opened}"));
        }
        if scheme != "https" {
            return Err(format!("it speaks plain HTTP, {opened}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Surrounding;

    fn settings(allow: &[&str]) -> NotifySettings {
        NotifySettings { allow: allow.iter().filter_map(|text| Surrounding::parse(text)).collect() }
    }

    fn allowed(scheme: &str, host: &str, addresses: &[&str], allow_: &[&str]) -> Result<(), String> {
        let addresses: Vec<SocketAddr> =
            addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 443)).collect();
        allow(scheme, host, &addresses, &settings(allow_))
    }

    #[test]
    fn every_address_must_be_public() {
        assert_eq!(allowed("https", "hooks.example", &["1.1.1.1", "2606:4700::1"], &[]), Ok(()));
        for private in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "::1",
            "::ffff:127.0.0.1",
            "fd00::1",
            "0.0.0.0",
            "100.64.0.1",
        ] {
            let why = allowed("https", "hooks.example", &["1.1.1.1", private], &[]).unwrap_err();
            assert!(why.contains("is not public") && why.contains("[notify]"), "{why}");
        }
        assert!(allowed("https", "hooks.example", &[], &[]).is_err());
    }

    #[test]
    fn what_the_project_opens_is_reached_and_nothing_beside_it() {
        for (host, address, allow) in [
            ("hooks.intranet.example", "10.1.2.3", "*.intranet.example"),
            ("hooks.example", "10.1.2.3", "10.0.0.0/8"),
            ("hooks.example", "::ffff:10.1.2.3", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
            ("localhost", "::1", "localhost"),
            ("hooks.example", "fd00::7", "fd00::/8"),
        ] {
            assert_eq!(allowed("http", host, &[address], &[allow]), Ok(()), "{host} {address}");
            assert!(allowed("http", "other.example", &["192.168.0.1"], &[allow]).is_err(), "{allow}");
        }
    }

    #[test]
    fn plain_http_is_for_what_the_project_opens() {
        assert!(allowed("http", "hooks.example", &["1.1.1.1"], &[]).unwrap_err().contains("plain HTTP"));
        assert_eq!(allowed("http", "hooks.example", &["1.1.1.1"], &["hooks.example"]), Ok(()));
    }

    #[tokio::test]
    async fn an_address_in_whatever_spelling_is_looked_at() {
        for url in [
            "https://127.1/",
            "https://0x7f.0.0.1/",
            "https://2130706433/",
            "https://[::1]/",
            "https://[::ffff:7f00:1]/",
            "https://localhost./",
            "https://LOCALHOST/",
        ] {
            let why = reach(&Url::parse(url).unwrap(), &settings(&[])).await.unwrap_err();
            assert!(why.contains("is not public"), "{url}: {why}");
        }
        let reached =
            reach(&Url::parse("http://127.0.0.1:8080/x").unwrap(), &settings(&["127.0.0.0/8"])).await;
        assert_eq!(reached, Ok(Reached(vec!["127.0.0.1:8080".parse().unwrap()])));
    }
}
