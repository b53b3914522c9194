//! What `[build]` gives to every build: certificates, proxies, mirrors and arguments.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::build::{Proxies, Proxy};
use crate::config::{Build, certificates};
use crate::diagnostic::Result;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::images::dockerfile::Additions;

/// Where Linux distributions keep the certificates a machine trusts.
const CA_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];
/// The certificates' name in the context.
pub(super) const CA_FILE: &str = ".tidemill-build-ca.crt";
/// Where build steps find them.
const CA_TARGET: &str = "/etc/ssl/certs/tidemill-build-ca.crt";
/// The variables by which programs are told of certificates.
const CA_VARIABLES: [&str; 6] = [
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
];

impl Docker {
    /// The certificates build steps are to trust.
    pub(super) fn ca_bundle(&self) -> Result<Option<Vec<u8>>> {
        let path = match self.build.ca_bundle.as_deref() {
            None => return Ok(None),
            Some("host") => {
                let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
                let found =
                    named.into_iter().chain(CA_BUNDLES.map(PathBuf::from)).find(|path| path.is_file());
                match found {
                    Some(path) => path,
                    None => return Ok(None),
                }
            }
            Some(path) => self.root.join(path),
        };
        certificates("build", &path).map(Some)
    }
}

/// What is put behind every `FROM`.
pub(super) fn additions(
    build: &Build,
    substitutes: BTreeMap<String, String>,
    with_ca: Option<&[u8]>,
) -> Additions {
    let mut arguments = Vec::new();
    if with_ca.is_some() {
        arguments.extend(CA_VARIABLES.map(|name| (name.to_owned(), CA_TARGET.to_owned())));
    }
    arguments.extend(mirrors(build).map(|(name, address)| (name.to_owned(), address.to_owned())));
    Additions { substitutes, copy: with_ca.map(|_| (CA_FILE, CA_TARGET)), arguments }
}

/// Mirrors, by the names under which build steps know them.
pub(super) fn mirrors(build: &Build) -> impl Iterator<Item = (&'static str, &str)> {
    let known = [("APT_MIRROR", &build.apt_mirror), ("PIP_INDEX_URL", &build.pip_index)];
    known.into_iter().filter_map(|(name, address)| Some((name, address.as_deref()?)))
}

/// The proxies by their variables: arguments that builders know without `ARG` and never keep in the image.
pub(super) fn proxies(build: &Build, env: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let proxies = match &build.proxy {
        None => return Vec::new(),
        Some(Proxy::Given(proxies)) => proxies.clone(),
        Some(Proxy::Host) => {
            let either = |name: &str| {
                env(name).or_else(|| env(&name.to_lowercase())).filter(|value| !value.is_empty())
            };
            Proxies { http: either("HTTP_PROXY"), https: either("HTTPS_PROXY"), no: either("NO_PROXY") }
        }
    };
    let named = [("HTTP_PROXY", proxies.http), ("HTTPS_PROXY", proxies.https), ("NO_PROXY", proxies.no)];
    named
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .flat_map(|(name, value)| [(name.to_owned(), value.clone()), (name.to_lowercase(), value)])
        .collect()
}

/// What of the proxies must not be shown: names and passwords in their addresses.
pub(super) fn passwords(proxies: &[(String, String)]) -> Vec<String> {
    let inside = proxies.iter().filter_map(|(_, address)| {
        let rest = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
        rest.rsplit_once('@').map(|(user, _)| user.to_owned())
    });
    inside.collect()
}

/// The process's environment.
pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_come_under_both_spellings_and_their_passwords_are_known() {
        let build = Build { proxy: Some(Proxy::Host), ..Build::default() };
        let env = |name: &str| match name {
            "https_proxy" => Some("http://me:word@proxy:3128".to_owned()),
            "NO_PROXY" => Some(String::new()),
            _ => None,
        };
        let proxies = proxies(&build, &env);
        let names: Vec<&str> = proxies.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["HTTPS_PROXY", "https_proxy"]);
        assert_eq!(passwords(&proxies[..1]), ["me:word"]);
    }
}
