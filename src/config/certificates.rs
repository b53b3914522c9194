//! Files of certificates that `tidemill.toml` names.

use std::path::Path;

use crate::diagnostic::{Diagnostic, Result};

/// How a certificate begins in a PEM file.
const BEGINS: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// Reads the PEM file that `ca_bundle` of `table` names; one that holds no certificate is a mistake, since nothing
/// would be trusted by it.
pub fn certificates(table: &str, path: &Path) -> Result<Vec<u8>> {
    let wrong = |what: &str| {
        Diagnostic::new("config::ca_bundle", format!("{what} {}", path.display())).help(format!(
            "`ca_bundle` under [{table}] in tidemill.toml names it: a file of certificates in PEM"
        ))
    };
    let bundle = std::fs::read(path).map_err(|error| wrong("cannot read the certificates").cause(error))?;
    if bundle.windows(BEGINS.len()).any(|window| window == BEGINS) {
        Ok(bundle)
    } else {
        Err(wrong("there is no certificate in"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_certificate_is_a_mistake() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        let said = |path: &Path| {
            certificates("network", path).map_or_else(|wrong| wrong.message().to_owned(), |_| String::new())
        };
        assert!(said(&path).starts_with("cannot read the certificates"));
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----").expect("written");
        assert!(said(&path).starts_with("there is no certificate in"));
        std::fs::write(&path, "ours\n-----BEGIN CERTIFICATE-----\n").expect("written");
        assert_eq!(said(&path), "");
    }
}
