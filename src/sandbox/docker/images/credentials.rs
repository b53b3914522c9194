//! Who we are at a registry: `[registries]` of tidemill.toml first, then what `docker login` left behind.
//!
//! Nothing of it is logged, stored or hashed.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::images::settings::env;
use crate::workflow::reference::Reference;

/// A credential helper that takes longer waits for somebody who is not there.
const HELPER: Duration = Duration::from_secs(20);
/// Docker Hub's name in Docker's own files.
const HUB_KEY: &str = "https://index.docker.io/v1/";

/// Credentials, and where they were found.
pub(super) struct Found {
    /// For the engine.
    pub(super) credentials: DockerCredentials,
    /// For a person: `[registries."host"]`, `config.json`, the helper's name.
    pub(super) origin: String,
}

impl Docker {
    /// What is known for the registry `host`; nothing where it is asked without a name.
    pub(super) async fn credentials(&self, host: &str) -> Result<Option<Found>> {
        if let Some(registry) = self.registries.get(host) {
            let password = env(&registry.password_env).filter(|password| !password.is_empty()).ok_or_else(|| {
                let message = format!("there is no password for the registry {host}: {} is not set", registry.password_env);
                Diagnostic::new("image::no_password", message)
                    .help("set it where tidemill runs, or take the registry out of tidemill.toml to go there without a name")
            })?;
            let origin = format!("[registries.\"{host}\"] of tidemill.toml");
            return Ok(Some(found(host, registry.username.clone(), password, origin)));
        }
        let Some(config) = docker_config() else { return Ok(None) };
        let key = if host == Reference::HUB { HUB_KEY } else { host };
        let helper = config
            .pointer("/credHelpers")
            .and_then(|helpers| helpers.get(key))
            .or_else(|| config.get("credsStore"));
        if let Some(helper) = helper.and_then(Value::as_str).filter(|helper| !helper.is_empty())
            && let Some(found) = from_helper(helper, host, key).await?
        {
            return Ok(Some(found));
        }
        Ok(from_file(&config, host))
    }
}

fn found(host: &str, username: String, password: String, origin: String) -> Found {
    let server = if host == Reference::HUB { HUB_KEY } else { host };
    let mut credentials =
        DockerCredentials { serveraddress: Some(server.to_owned()), ..DockerCredentials::default() };
    // By this name helpers say that what they hold is a token.
    if username == "<token>" {
        credentials.identitytoken = Some(password);
    } else {
        credentials.username = Some(username);
        credentials.password = Some(password);
    }
    Found { credentials, origin }
}

fn docker_config() -> Option<Value> {
    let folder = match std::env::var_os("DOCKER_CONFIG") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".docker"),
    };
    serde_json::from_str(&std::fs::read_to_string(folder.join("config.json")).ok()?).ok()
}

/// `auths`: the name and the password in Base64, as `docker login` writes them without a helper.
fn from_file(config: &Value, host: &str) -> Option<Found> {
    let auths = config.get("auths")?.as_object()?;
    let (_, entry) = auths.iter().find(|(key, _)| host_of(key) == host)?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let origin = "Docker's config.json".to_owned();
    if let Some(token) = text("identitytoken") {
        return Some(found(host, "<token>".to_owned(), token.to_owned(), origin));
    }
    if let (Some(name), Some(password)) = (text("username"), text("password")) {
        return Some(found(host, name.to_owned(), password.to_owned(), origin));
    }
    let plain = String::from_utf8(STANDARD.decode(text("auth")?).ok()?).ok()?;
    let (name, password) = plain.split_once(':')?;
    Some(found(host, name.to_owned(), password.trim_end_matches('\0').to_owned(), origin))
}

/// The host of a key of `auths`, which may be an address.
fn host_of(key: &str) -> &str {
    let rest = key.split_once("://").map_or(key, |(_, rest)| rest);
    match rest.split('/').next().unwrap_or(rest) {
        "index.docker.io" | "registry-1.docker.io" => Reference::HUB,
        host => host,
    }
}

/// `docker-credential-NAME get`, which reads the registry's name and answers in JSON.
async fn from_helper(helper: &str, host: &str, key: &str) -> Result<Option<Found>> {
    let program = format!("docker-credential-{helper}");
    let failed = |why: String| {
        Diagnostic::new(
            "image::credentials",
            format!("{program} does not give the password for {host}: {why}"),
        )
        .help(format!(
            "try `echo {key} | {program} get`; [registries.\"{host}\"] in tidemill.toml does without it"
        ))
    };
    if !helper.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return Err(failed("that is not the name of a helper".to_owned()));
    }
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A helper that does not read says why in its exit code.
        let _ = input.write_all(key.as_bytes()).await;
    }
    let answer = match tokio::time::timeout(HELPER, child.wait_with_output()).await {
        Err(_) => return Err(failed(format!("it takes longer than {} seconds", HELPER.as_secs()))),
        Ok(answer) => answer.map_err(|error| failed(error.to_string()))?,
    };
    if !answer.status.success() {
        let said = String::from_utf8_lossy(&answer.stdout);
        // It knows nothing of this registry; others may.
        if said.contains("credentials not found") {
            return Ok(None);
        }
        return Err(failed(answer.status.to_string()));
    }
    let answer: Value =
        serde_json::from_slice(&answer.stdout).map_err(|_| failed("its answer is not JSON".to_owned()))?;
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    match (text("Username"), text("Secret")) {
        (Some(name), Some(secret)) => Ok(Some(found(host, name, secret, program))),
        _ => Err(failed("its answer has no Username and Secret".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_docker_login_is_understood() {
        let config = serde_json::json!({ "auths": {
            "https://index.docker.io/v1/": { "auth": STANDARD.encode("me:pass:word") },
            "ghcr.io": { "identitytoken": "tok" },
            "https://own.example:5000/v2/": { "username": "a", "password": "b" },
            "broken": { "auth": "?" },
        }});
        let hub = from_file(&config, "docker.io").expect("the hub").credentials;
        assert_eq!((hub.username.as_deref(), hub.password.as_deref()), (Some("me"), Some("pass:word")));
        assert_eq!(hub.serveraddress.as_deref(), Some(HUB_KEY));
        let token = from_file(&config, "ghcr.io").expect("a token").credentials;
        assert_eq!((token.username, token.identitytoken.as_deref()), (None, Some("tok")));
        assert_eq!(
            from_file(&config, "own.example:5000").expect("own").credentials.username.as_deref(),
            Some("a")
        );
        assert!(from_file(&config, "broken").is_none() && from_file(&config, "other").is_none());
    }
}
