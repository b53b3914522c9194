//! Pulling an image from its registry.

use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::Progress;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::words;
use crate::workflow::reference::Reference;

/// A registry that says nothing for this long is not there. Pulling itself may take as long as it takes.
const SILENCE: Duration = Duration::from_secs(30);

impl Docker {
    /// Pulls `reference`, for `platform` where one is named.
    pub(super) async fn pull(
        &self,
        reference: &str,
        platform: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let parsed = Reference::parse(reference)
            .map_err(|why| Diagnostic::new("image::pull_refused", format!("`{reference}` {why}")))?;
        let found = self.credentials(&parsed.host).await?;
        let origin = found.as_ref().map(|found| found.origin.clone());
        progress.begin(&format!("pulling {reference}"));
        let mut options = CreateImageOptionsBuilder::default().from_image(&parsed.name).tag(parsed.version());
        if let Some(platform) = platform {
            options = options.platform(platform);
        }
        let credentials = found.map(|found| found.credentials);
        let mut pulling = self.client.create_image(Some(options.build()), None, credentials).boxed();
        let refused = |why: &str| {
            progress.end("not pulled");
            refused(reference, &parsed.host, origin.as_deref(), platform, why)
        };
        loop {
            let step = match tokio::time::timeout(SILENCE, pulling.next()).await {
                Err(_) => return Err(refused("the registry does not answer")),
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(refused(&words(&error)).cause(error)),
                Ok(Some(Ok(step))) => step,
            };
            if let Some(status) = step.status {
                progress.at(&format!("{} {status}", step.id.unwrap_or_default()));
            }
        }
        progress.end("pulled");
        Ok(())
    }
}

fn refused(
    reference: &str,
    host: &str,
    origin: Option<&str>,
    platform: Option<&str>,
    why: &str,
) -> Diagnostic {
    let why = why.trim();
    let lower = why.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let wants_name = ["unauthorized", "denied", "no basic auth", "authentication required", "forbidden"];
    let help = if is(&["no space left", "disk quota"]) {
        "the engine's disk is full: `docker system df` shows what takes room; `tidemill images prune` and `docker \
         system prune` free it"
            .to_owned()
    } else if is(&["x509", "certificate"]) {
        format!(
            "the engine does not trust the certificate of {host}: put the one that signed it where the engine looks, \
             /etc/docker/certs.d/{host}/ca.crt; it is the engine that pulls, so `ca_bundle` does not help here. Where \
             it cannot be pulled at all, a script under [bases] makes it"
        )
    } else if is(&wants_name) {
        match origin {
            Some(origin) => format!(
                "{host} was given the credentials of {origin} and refused them, or has no such image: is the name \
                 right, and are they still valid?"
            ),
            None => format!(
                "{host} wants to know who asks, or has no such image: `docker login {host}`, or \
                 [registries.\"{host}\"] with `username` and `password_env` in tidemill.toml; \
                 where it cannot be pulled at all, a script under [bases] makes it"
            ),
        }
    } else if let Some(platform) = platform
        && (lower.contains("no matching manifest") || lower.contains("does not match the specified platform"))
    {
        format!(
            "the registry has it for other platforms than {platform}: `docker manifest inspect {reference}` lists them"
        )
    } else {
        "is its name right, and does this machine reach its registry? Load it by hand (`docker load`), or name a \
         script that makes it under [bases] in tidemill.toml"
            .to_owned()
    };
    Diagnostic::new("image::pull_refused", format!("the image `{reference}` cannot be pulled: {why}"))
        .help(help)
}

#[cfg(test)]
mod tests {
    use super::refused;

    #[test]
    fn a_refusal_says_what_is_missing() {
        let help = |origin, platform, why: &str| {
            refused("r.example/a", "r.example", origin, platform, why).advice().unwrap_or_default().to_owned()
        };
        assert!(help(None, None, "no basic auth credentials").contains("docker login r.example"));
        assert!(help(Some("Docker's config.json"), None, "unauthorized").contains("of Docker's config.json"));
        assert!(
            help(None, Some("linux/s390x"), "no matching manifest for linux/s390x")
                .contains("other platforms")
        );
        assert!(help(None, None, "connection refused").contains("[bases]"));
        assert!(
            help(None, None, "x509: certificate signed by unknown authority").contains("certs.d/r.example")
        );
        assert!(help(None, None, "write /x: no space left on device").contains("images prune"));
    }
}
