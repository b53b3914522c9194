//! Making an image ready: found, pulled or built, and pinned by its digest.

use std::fs::{File, OpenOptions};
use std::time::Duration;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;
use rustix::fs::{FlockOperation, flock};

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, is_missing, words};
use crate::sandbox::{Progress, ReadyImage};
use crate::workflow::image::Image;

/// A registry that says nothing for this long is not there. Pulling itself may take as long as it takes.
const PULL_SILENCE: Duration = Duration::from_secs(30);

/// A base image on the engine.
pub(super) struct Base {
    /// A tag or id to build from.
    pub(super) reference: String,
    /// What was used instead of the one asked for.
    pub(super) substitute: Option<String>,
    /// Whether this call pulled or made it.
    pub(super) fresh: bool,
}

impl Docker {
    pub(super) async fn ready_image(&self, image: &Image, progress: &dyn Progress) -> Result<ReadyImage> {
        match image {
            Image::Reference(reference) => {
                if let Some(digest) = self.digest(reference).await? {
                    return Ok(ReadyImage {
                        reference: reference.clone(),
                        digest,
                        substituted_base: None,
                        fresh: false,
                    });
                }
                let _one_at_a_time = build_lock(progress).await?;
                let base = self.base(reference, progress).await?;
                let digest = self.present(&base.reference).await?;
                Ok(ReadyImage {
                    reference: reference.clone(),
                    digest,
                    substituted_base: base.substitute,
                    fresh: base.fresh,
                })
            }
            Image::Build(folder) => self.built_image(folder, progress).await,
        }
    }

    /// The digest of an image on the engine, or nothing when it is not there.
    pub(super) async fn digest(&self, reference: &str) -> Result<Option<String>> {
        match self.client.inspect_image(reference).await {
            Ok(image) => Ok(image.id),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(explain("look for the image", error)),
        }
    }

    /// The digest of an image that was just made.
    pub(super) async fn present(&self, reference: &str) -> Result<String> {
        self.digest(reference).await?.ok_or_else(|| {
            Diagnostic::new("image::vanished", format!("the image `{reference}` was made and is not there"))
                .help("did something remove it at the same time? run it again")
        })
    }

    /// A base image: on the engine, from its registry, or made by the project's bootstrap script.
    pub(super) async fn base(&self, reference: &str, progress: &dyn Progress) -> Result<Base> {
        if self.digest(reference).await?.is_some() {
            return Ok(Base { reference: reference.to_owned(), substitute: None, fresh: false });
        }
        // A substitute that already stands here was needed before; asking the registry again would only take time.
        if let Some(script) = self.bases.get(reference)
            && let Some(tag) = self.made_base(script).await?
        {
            return Ok(Base { substitute: Some(tag.clone()), reference: tag, fresh: false });
        }
        let Err(refusal) = self.pull(reference, progress).await else {
            return Ok(Base { reference: reference.to_owned(), substitute: None, fresh: true });
        };
        match self.bases.get(reference) {
            Some(script) => {
                let tag = self.make_base(reference, script, progress).await?;
                Ok(Base { substitute: Some(tag.clone()), reference: tag, fresh: true })
            }
            None => Err(refusal),
        }
    }

    async fn pull(&self, reference: &str, progress: &dyn Progress) -> Result<()> {
        let (name, tag) = split(reference);
        progress.begin(&format!("pulling {reference}"));
        let options = CreateImageOptionsBuilder::default().from_image(name).tag(tag).build();
        let mut pulling = self.client.create_image(Some(options), None, None).boxed();
        loop {
            let step = match tokio::time::timeout(PULL_SILENCE, pulling.next()).await {
                Err(_) => return Err(refused(reference, "the registry does not answer", progress)),
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(refused(reference, &words(&error), progress).cause(error)),
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

fn refused(reference: &str, why: &str, progress: &dyn Progress) -> Diagnostic {
    progress.end("not pulled");
    Diagnostic::new("image::pull_refused", format!("the image `{reference}` cannot be pulled: {}", why.trim())).help(
        "is its name right, and does this machine reach its registry? Load it by hand (`docker load`), or name a \
         script that makes it under [bases] in tidemill.toml",
    )
}

/// `python:3.12-slim` is `python` and `3.12-slim`; a digest stays with its name.
fn split(reference: &str) -> (&str, &str) {
    if reference.contains('@') {
        return (reference, "");
    }
    match reference.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (reference, "latest"),
    }
}

/// Held while an image is made, by one process of this machine at a time: two must not build the same.
pub(super) async fn build_lock(progress: &dyn Progress) -> Result<File> {
    let path =
        std::env::temp_dir().join(format!("tidemill-images-{}.lock", rustix::process::getuid().as_raw()));
    let failed = |error: std::io::Error| {
        Diagnostic::new("image::lock", format!("cannot lock {}", path.display()))
            .cause(error)
            .help("is the folder for temporary files writable, and is there room on its disk?")
    };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
    let locking =
        tokio::task::spawn_blocking(move || flock(&file, FlockOperation::LockExclusive).map(|()| file));
    match locking.await {
        Ok(Ok(file)) => {
            progress.end("done");
            Ok(file)
        }
        Ok(Err(error)) => Err(failed(error.into())),
        Err(error) => Err(Diagnostic::new("image::lock", error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_reference_is_split_where_its_tag_begins() {
        assert_eq!(split("python:3.12-slim"), ("python", "3.12-slim"));
        assert_eq!(split("localhost:5000/tool"), ("localhost:5000/tool", "latest"));
        assert_eq!(split("localhost:5000/tool:1"), ("localhost:5000/tool", "1"));
        assert_eq!(split("tool@sha256:abc"), ("tool@sha256:abc", ""));
    }
}
