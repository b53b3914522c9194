//! Making an image ready: found, pulled or built, and pinned by its digest.

mod bases;
mod build;
mod buildkit;
mod context;
mod credentials;
mod dockerfile;
mod hidden;
mod ignore;
mod log;
mod made;
mod packages;
mod pull;
mod recipe;
mod send;
mod settings;
mod shelf;

use std::fs::{File, OpenOptions};

use bollard::models::ImageInspect;
use rustix::fs::{FlockOperation, flock};

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, is_missing};
use crate::sandbox::{Progress, ReadyImage};
use crate::workflow::image::{Image, Origin, Pull};

use build::Built;
use recipe::Recipe;

pub use made::IMAGE_LABEL;
pub use shelf::{Kept, Removed, Whose};

/// A base image on the engine.
#[derive(Debug, Clone)]
pub(super) struct Base {
    /// Its id.
    digest: String,
    /// The tag of what was used instead of the one asked for.
    substitute: Option<String>,
    /// Whether this call pulled or made it.
    fresh: bool,
}

impl Docker {
    pub(super) async fn ready_image(&self, image: &Image, progress: &dyn Progress) -> Result<ReadyImage> {
        let platform = image.platform.as_deref();
        let ready = match &image.origin {
            Origin::Reference(reference) if image.packages.is_empty() => {
                self.ready_reference(reference, image, progress).await?
            }
            Origin::Reference(reference) => {
                let recipe =
                    self.recipe_of_packages(reference, reference, &image.packages, platform, image.pull)?;
                ready(image, self.built(recipe, progress).await?)
            }
            Origin::Folder(folder) => {
                let built = self.built(self.recipe(folder, platform, image.pull).await?, progress).await?;
                if image.packages.is_empty() {
                    ready(image, built)
                } else {
                    let recipe = self.recipe_on(&built, image)?;
                    ready(image, on_top(&built, self.built(recipe, progress).await?))
                }
            }
        };
        self.check_platform(image, &ready).await?;
        Ok(ready)
    }

    /// The image as it stands on the engine; nothing is pulled or built.
    pub async fn find_image(&self, image: &Image) -> Result<Option<ReadyImage>> {
        let platform = image.platform.as_deref();
        let built = match &image.origin {
            Origin::Reference(reference) if image.packages.is_empty() => {
                let standing = self.standing(reference, platform).await?;
                return Ok(standing.map(|base| of_base(image, base)));
            }
            Origin::Reference(reference) => {
                let recipe =
                    self.recipe_of_packages(reference, reference, &image.packages, platform, image.pull)?;
                self.built_before(&recipe).await?
            }
            Origin::Folder(folder) => {
                let recipe = self.recipe(folder, platform, image.pull).await?;
                match self.built_before(&recipe).await? {
                    Some(built) if !image.packages.is_empty() => {
                        let upper = self.built_before(&self.recipe_on(&built, image)?).await?;
                        upper.map(|upper| on_top(&built, upper))
                    }
                    built => built,
                }
            }
        };
        Ok(built.map(|built| ready(image, built)))
    }

    /// The recipe of an image's packages on top of its folder's image, which no registry has.
    fn recipe_on(&self, built: &Built, image: &Image) -> Result<Recipe> {
        let platform = image.platform.as_deref();
        self.recipe_of_packages(image.reference(), &built.tag, &image.packages, platform, Pull::Never)
    }

    async fn ready_reference(
        &self,
        reference: &str,
        image: &Image,
        progress: &dyn Progress,
    ) -> Result<ReadyImage> {
        let platform = image.platform.as_deref();
        if image.pull != Pull::Always
            && let Some(base) = self.standing(reference, platform).await?
        {
            return Ok(of_base(image, base));
        }
        let _one_at_a_time = build_lock(progress).await?;
        Ok(of_base(image, self.base(reference, image.pull, platform, progress).await?))
    }

    /// What the engine knows of an image, or nothing when it is not there.
    pub(in crate::sandbox::docker) async fn inspect(&self, reference: &str) -> Result<Option<ImageInspect>> {
        match self.client.inspect_image(reference).await {
            Ok(image) => Ok(Some(image)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(explain("look for the image", error)),
        }
    }

    /// The base as it stands on the engine: itself, or what was made in its place because it was needed before. Asking
    /// the registry again would only take time.
    async fn standing(&self, reference: &str, platform: Option<&str>) -> Result<Option<Base>> {
        let found = self.inspect(reference).await?;
        if let Some(image) = found.filter(|image| platform.is_none_or(|platform| is_for(image, platform)))
            && let Some(digest) = image.id
        {
            return Ok(Some(Base { digest, substitute: None, fresh: false }));
        }
        match self.bases.get(reference) {
            Some(script) => self.made_base(script).await,
            None => Ok(None),
        }
    }

    /// A base image: on the engine, from its registry, or made by the project's bootstrap script.
    async fn base(
        &self,
        reference: &str,
        pull: Pull,
        platform: Option<&str>,
        progress: &dyn Progress,
    ) -> Result<Base> {
        // What a digest names never changes.
        let asks_always = pull == Pull::Always && !reference.contains('@');
        if !asks_always && let Some(base) = self.standing(reference, platform).await? {
            return Ok(base);
        }
        if pull == Pull::Never {
            return Err(Diagnostic::new(
                "image::not_here",
                format!(
                    "the image `{reference}` is not on the engine, and its workflow says `pull = \"never\"`"
                ),
            )
            .help(format!(
                "`docker pull {reference}` or `docker load` brings it; `pull = \"missing\"` does so by itself"
            )));
        }
        let before = self.inspect(reference).await?.and_then(|image| image.id);
        let Err(refusal) = self.pull(reference, platform, progress).await else {
            let after = self.inspect(reference).await?.and_then(|image| image.id);
            let fresh = after != before;
            return after.map(|digest| Base { digest, substitute: None, fresh }).ok_or_else(|| {
                Diagnostic::new(
                    "image::vanished",
                    format!("the image `{reference}` was pulled and is not there"),
                )
                .help("did something remove it at the same time? run it again")
            });
        };
        match self.bases.get(reference) {
            Some(script) => match self.made_base(script).await? {
                Some(base) => Ok(base),
                None => self.make_base(reference, script, progress).await,
            },
            None => Err(refusal),
        }
    }

    /// An image for another platform than was asked for would fail at its first command, and not say why.
    async fn check_platform(&self, image: &Image, ready: &ReadyImage) -> Result<()> {
        let Some(platform) = image.platform.as_deref() else { return Ok(()) };
        let Some(found) = self.inspect(&ready.digest).await? else { return Ok(()) };
        if is_for(&found, platform) {
            return Ok(());
        }
        let is = format!("{}/{}", found.os.unwrap_or_default(), found.architecture.unwrap_or_default());
        let message = format!("the image `{}` is for {is}, and {platform} was asked for", image.reference());
        let help = match &ready.substituted_base {
            Some(base) => format!("its base was made on this machine ({base}), so it is for this machine"),
            None => "name an image that exists for this platform, or take `platform` out".to_owned(),
        };
        Err(Diagnostic::new("image::wrong_platform", message).help(help))
    }
}

fn ready(image: &Image, built: Built) -> ReadyImage {
    ReadyImage {
        reference: image.reference().to_owned(),
        digest: built.digest,
        substituted_base: built.substitute,
        fresh: built.fresh,
    }
}

fn of_base(image: &Image, base: Base) -> ReadyImage {
    ReadyImage {
        reference: image.reference().to_owned(),
        digest: base.digest,
        substituted_base: base.substitute,
        fresh: base.fresh,
    }
}

/// The upper of two images; which base was replaced is known of the lower one.
fn on_top(lower: &Built, upper: Built) -> Built {
    Built { substitute: lower.substitute.clone(), fresh: lower.fresh || upper.fresh, ..upper }
}

/// Whether the image is for `linux/arm64`, `linux/arm/v7`; a variant that one of the two leaves open fits.
fn is_for(image: &ImageInspect, platform: &str) -> bool {
    let mut parts = platform.split('/');
    let is = |part: Option<&str>, found: Option<&String>| {
        part.is_some_and(|part| found.is_some_and(|found| found == part))
    };
    is(parts.next(), image.os.as_ref())
        && is(parts.next(), image.architecture.as_ref())
        && parts
            .next()
            .is_none_or(|part| image.variant.as_ref().is_none_or(|found| found.is_empty() || found == part))
}

/// Held while an image is made, by one process of this machine at a time: two must not build the same.
pub(in crate::sandbox::docker) async fn build_lock(progress: &dyn Progress) -> Result<File> {
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
