//! A credential with its value, and the headers it goes into.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::gateway::Secret;
use crate::workflow::network::Credential;

/// One credential of the run.
#[derive(Debug)]
pub(super) struct Held {
    /// What it is bound to.
    pub(super) credential: Credential,
    value: Secret,
    /// What the sandbox has in its place.
    pub(super) placeholder: String,
}

/// A header's value after the credentials were looked for.
#[derive(Debug, Default)]
pub(super) struct Swapped {
    /// The value, when it is another now.
    pub(super) value: Option<HeaderValue>,
    /// What must not come back.
    pub(super) needles: Vec<Vec<u8>>,
    /// The secrets whose placeholder stands where it may not be replaced.
    pub(super) misused: Vec<String>,
}

impl Held {
    /// The credential with its value.
    pub(super) fn new(credential: &Credential, secrets: &BTreeMap<String, Secret>) -> Result<Self> {
        let name = &credential.secret;
        let value = secrets.get(name).cloned().ok_or_else(|| {
            Diagnostic::new("sandbox::credentials", format!("the secret `{name}` has no value"))
                .help(format!("set {name} in the environment of tidemill"))
        })?;
        if HeaderValue::from_str(value.reveal()).is_err() {
            let message = format!("the value of `{name}` cannot stand in a header of HTTP");
            return Err(Diagnostic::new("sandbox::credentials", message)
                .help("it has a line break or another control character: was a file pasted into it?"));
        }
        let placeholder = format!("tidemill_{:032x}", fastrand::u128(..));
        Ok(Self { credential: credential.clone(), value, placeholder })
    }

    fn is_bound(&self, host: &str, port: u16, method: &str, path: &str) -> bool {
        let Credential { host: own, port: at, .. } = &self.credential;
        own == host && *at == port && self.credential.covers(method, path)
    }
}

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    /// The host's name.
    pub(super) host: &'a str,
    /// Its port.
    pub(super) port: u16,
    /// The method.
    pub(super) method: &'a str,
    /// The path, without its query.
    pub(super) path: &'a str,
}

/// Puts the values in, where they may be.
pub(super) fn swap(held: &[Held], target: Target<'_>, value: &HeaderValue) -> Swapped {
    let Ok(text) = value.to_str() else { return Swapped::default() };
    // `user:password` of the Basic scheme hides what is in it.
    let basic = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"));
    let inner = basic.and_then(|(_, coded)| String::from_utf8(STANDARD.decode(coded.trim()).ok()?).ok());
    let before = inner.as_deref().unwrap_or(text);
    let (mut after, mut swapped) = (before.to_owned(), Swapped::default());
    for one in held.iter().filter(|one| before.contains(&one.placeholder)) {
        if one.is_bound(target.host, target.port, target.method, target.path) {
            after = after.replace(&one.placeholder, one.value.reveal());
            swapped.needles.push(one.value.reveal().as_bytes().to_vec());
        } else {
            swapped.misused.push(one.credential.secret.clone());
        }
    }
    if swapped.needles.is_empty() {
        return swapped;
    }
    if let Some((scheme, _)) = basic.filter(|_| inner.is_some()) {
        let coded = STANDARD.encode(&after);
        swapped.needles.push(coded.as_bytes().to_vec());
        after = format!("{scheme} {coded}");
    }
    swapped.value = HeaderValue::from_str(&after).ok().map(|mut value| {
        value.set_sensitive(true);
        value
    });
    swapped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> Held {
        let credential = Credential {
            variable: "TOKEN".into(),
            secret: "SHOP_TOKEN".into(),
            host: "api.example".into(),
            port: 443,
            methods: vec!["GET".into()],
            path: "/v1/*".into(),
        };
        let secrets = [("SHOP_TOKEN".to_owned(), Secret::new("real-value".into()))].into();
        Held::new(&credential, &secrets).unwrap()
    }

    const BOUND: Target<'_> = Target { host: "api.example", port: 443, method: "GET", path: "/v1/a" };

    fn value(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).unwrap()
    }

    #[test]
    fn a_placeholder_becomes_the_value_where_it_is_bound_to() {
        let held = [held()];
        let given = value(&format!("Bearer {}", held[0].placeholder));
        assert_eq!(swap(&held, BOUND, &given).value, Some(value("Bearer real-value")));
        for target in [
            Target { host: "other.example", ..BOUND },
            Target { port: 8443, ..BOUND },
            Target { method: "POST", ..BOUND },
            Target { path: "/v2/a", ..BOUND },
        ] {
            let swapped = swap(&held, target, &given);
            assert_eq!((swapped.value, swapped.misused), (None, vec!["SHOP_TOKEN".to_owned()]), "{target:?}");
        }
        let other = swap(&held, BOUND, &value("Bearer tidemill_"));
        assert!(other.value.is_none() && other.misused.is_empty());
    }

    #[test]
    fn basic_credentials_are_looked_into() {
        let held = [held()];
        let given = format!("Basic {}", STANDARD.encode(format!("user:{}", held[0].placeholder)));
        let swapped = swap(&held, BOUND, &value(&given));
        let coded = STANDARD.encode("user:real-value");
        assert_eq!(swapped.value, Some(value(&format!("Basic {coded}"))));
        assert_eq!(swapped.needles, [b"real-value".to_vec(), coded.into_bytes()]);
    }

    #[test]
    fn a_value_is_never_shown() {
        assert!(!format!("{:?}", held()).contains("real-value"));
        let secrets = [("SHOP_TOKEN".to_owned(), Secret::new("two\nlines".into()))].into();
        let refused = Held::new(&held().credential, &secrets).unwrap_err();
        assert!(!format!("{:?}", refused.report()).contains("two"));
    }
}
