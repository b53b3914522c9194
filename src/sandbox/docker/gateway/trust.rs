//! The certificates a sandbox with credentials trusts: those of its image, and the run's own authority.

use std::io::Read as _;

use bollard::models::{Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::Bytes;
use futures_util::TryStreamExt as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::sandbox::Body;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::archive::{Member, Whose, stream};
use crate::sandbox::docker::errors::explain;

/// Where it is mounted: a place of root's, so that no command changes it.
pub(in crate::sandbox::docker) const FOLDER: &str = "/etc/tidemill";
const FILE: &str = "trust.pem";
/// What programs and libraries read to learn whom to trust.
const VARIABLES: [&str; 8] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
];
/// Where distributions keep their own, as regular files.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Bytes of a bundle; Debian's has 220,000.
const LARGEST: u64 = 4 << 20;

/// The variables that point to it.
pub(super) fn variables() -> impl Iterator<Item = (String, String)> {
    VARIABLES.into_iter().map(|name| (name.to_owned(), format!("{FOLDER}/{FILE}")))
}

/// How it is mounted.
pub(super) fn mount(volume: &str) -> Mount {
    Mount {
        target: Some(FOLDER.to_owned()),
        source: Some(volume.to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(false),
        ..Mount::default()
    }
}

impl Docker {
    /// Makes the volume it lies in; the root file system cannot be written.
    pub(super) async fn make_trust(&self, name: &str, run: &RunId) -> Result<()> {
        let options = format!("size={},nr_inodes=8,mode=755,nosuid,nodev,noexec", LARGEST * 2);
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            driver: Some("local".to_owned()),
            driver_opts: Some(
                [("type", "tmpfs"), ("device", "tmpfs"), ("o", options.as_str())]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
            labels: Some(self.labels(run.as_str())),
            ..VolumeCreateRequest::default()
        };
        let made = self.client.create_volume(request).await;
        made.map(drop).map_err(|error| explain("make room for certificates", error))
    }

    /// Writes it into the running container: the image's own certificates, or this machine's, then `certificate`.
    pub(super) async fn write_trust(&self, container: &str, certificate: &str) -> Result<()> {
        let mut bundle = match self.bundle_of(container).await {
            Some(bundle) => bundle,
            None => BUNDLES.iter().find_map(|path| std::fs::read(path).ok()).unwrap_or_default(),
        };
        if !bundle.is_empty() && !bundle.ends_with(b"\n") {
            bundle.push(b'\n');
        }
        bundle.extend_from_slice(certificate.as_bytes());
        let member = Member {
            path: FILE.to_owned(),
            body: Some(Body::Bytes(Bytes::from(bundle))),
            mode: 0o444,
            of: Whose::Root,
        };
        let options = UploadToContainerOptionsBuilder::default().path(FOLDER).build();
        let body = bollard::body_try_stream(stream(vec![member]));
        self.client.upload_to_container(container, Some(options), body).await.map_err(|error| {
            Diagnostic::new("sandbox::credentials", "the run's certificate cannot be placed in the sandbox")
                .cause(error)
                .help("without it no program in there would trust the connections that credentials go over")
        })
    }

    /// The certificates of the container's image, where it has any.
    async fn bundle_of(&self, container: &str) -> Option<Vec<u8>> {
        for path in BUNDLES {
            let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
            let stream = self.client.download_from_container(container, Some(options));
            let Ok(archive) = stream
                .try_fold(Vec::new(), |mut all, piece| async move {
                    all.extend_from_slice(&piece);
                    if all.len() as u64 > 2 * LARGEST {
                        let message = "a bundle without end".to_owned();
                        return Err(bollard::errors::Error::DockerStreamError { error: message });
                    }
                    Ok(all)
                })
                .await
            else {
                continue;
            };
            if let Some(bundle) = regular_file(&archive) {
                return Some(bundle);
            }
        }
        None
    }
}

fn regular_file(archive: &[u8]) -> Option<Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let entry = archive.entries().ok()?.next()?.ok()?;
    if entry.header().entry_type() != tar::EntryType::Regular || entry.size() > LARGEST {
        return None;
    }
    let mut bytes = Vec::new();
    entry.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes).filter(|bytes| !bytes.is_empty())
}
