//! The gateway's image: our helper and nothing else.

use bollard::query_parameters::CreateImageOptionsBuilder;
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::archive::{Member, Whose, stream};
use crate::sandbox::docker::errors::explain;
use crate::sandbox::docker::images::build_lock;
use crate::sandbox::helper::{DIGEST, PROGRAM};
use crate::sandbox::{Body, Silent};

/// Where it is in the image.
pub(super) const PATH: &str = "/helper";
const REPOSITORY: &str = "tidemill/gateway";

impl Docker {
    /// The digest of the gateway's image, which is imported once for each content.
    pub(super) async fn gateway_image(&self) -> Result<String> {
        if PROGRAM.is_empty() {
            return Err(Diagnostic::new(
                "sandbox::no_gateway",
                "this build of Tidemill has no gateway in it",
            )
            .help("a workflow with a `network` runs with a Tidemill that was built on Linux"));
        }
        let version = DIGEST.short().to_owned();
        let tag = format!("{REPOSITORY}:{version}");
        if let Some(digest) = self.image_id(&tag).await? {
            return Ok(digest);
        }
        let _one_at_a_time = build_lock(&Silent).await?;
        if self.image_id(&tag).await?.is_none() {
            let member = Member {
                path: PATH.trim_start_matches('/').to_owned(),
                body: Some(Body::Bytes(Bytes::from_static(PROGRAM))),
                mode: 0o755,
                of: Whose::Root,
            };
            let options =
                CreateImageOptionsBuilder::default().from_src("-").repo(REPOSITORY).tag(&version).build();
            let body = bollard::body_try_stream(stream(vec![member]));
            let mut importing = self.client.create_image(Some(options), Some(body), None).boxed();
            while let Some(step) = importing.next().await {
                step.map_err(|error| explain("import the gateway's image", error))?;
            }
        }
        self.image_id(&tag).await?.ok_or_else(|| {
            Diagnostic::new("image::vanished", format!("the image `{tag}` was made and is not there"))
                .help("did something remove it at the same time? run it again")
        })
    }

    async fn image_id(&self, tag: &str) -> Result<Option<String>> {
        Ok(self.inspect(tag).await?.and_then(|image| image.id))
    }
}
