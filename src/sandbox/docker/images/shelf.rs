//! The images that were made here: listed, and removed when nobody needs them.

use std::collections::{BTreeSet, HashMap};

use bollard::models::ImageSummary;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
};
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, is_missing, status, words};
use crate::sandbox::docker::images::build::is_tagged;
use crate::sandbox::docker::images::made::{IMAGE_LABEL, Made};

/// An image that was made here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The engine's content digest (`sha256:...`).
    pub digest: String,
    /// Its tag; nothing when a later image took it over.
    pub tag: Option<String>,
    /// The folder or image it was declared as; the script of a base that was made.
    pub name: String,
    /// Bytes, those it shares with its base included.
    pub size: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// The digests of its bases.
    pub bases: Vec<String>,
    /// For whom it was made.
    pub of: Whose,
}

/// For whom an image was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// This project.
    Ours,
    /// Another project on this engine.
    Others,
    /// Every project: a base.
    Everyones,
}

/// What became of an image that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Done,
    /// It stays, for this reason.
    Stays(String),
}

impl Docker {
    /// Every image that was made here, the newest first.
    pub async fn kept_images(&self) -> Result<Vec<Kept>> {
        let ours = self.project_hash();
        let mut kept: Vec<Kept> = self
            .made_images()
            .await?
            .into_iter()
            .map(|(image, made)| Kept {
                tag: image.repo_tags.first().filter(|_| is_tagged(&image.repo_tags)).cloned(),
                digest: image.id,
                size: u64::try_from(image.size).unwrap_or(0),
                created_at: Timestamp::from_second(image.created).unwrap_or_default(),
                name: made.of,
                bases: made.bases,
                of: match made.project.as_str() {
                    "" => Whose::Everyones,
                    project if project == ours => Whose::Ours,
                    _ => Whose::Others,
                },
            })
            .collect();
        kept.sort_by(|left, right| {
            right.created_at.cmp(&left.created_at).then_with(|| left.name.cmp(&right.name))
        });
        Ok(kept)
    }

    /// The images with our label, and what it says.
    pub(super) async fn made_images(&self) -> Result<Vec<(ImageSummary, Made)>> {
        let filters: HashMap<String, Vec<String>> =
            [("label".to_owned(), vec![IMAGE_LABEL.to_owned()])].into();
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let images = self.client.list_images(Some(options)).await;
        let images = images.map_err(|error| explain("list images", error))?;
        Ok(images.into_iter().filter_map(|image| Made::of(&image.labels).map(|made| (image, made))).collect())
    }

    /// Bytes of an image, and when it was made, when it is there.
    pub async fn size_and_age(&self, digest: &str) -> Result<Option<(u64, Option<Timestamp>)>> {
        let found = self.inspect(digest).await?;
        Ok(found.map(|image| {
            let size = image.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0);
            (size, image.created.and_then(|time| time.parse().ok()))
        }))
    }

    /// The images that containers are made of, running or not, whoever started them.
    pub async fn images_in_use(&self) -> Result<BTreeSet<String>> {
        let options = ListContainersOptionsBuilder::default().all(true).build();
        let containers = self.client.list_containers(Some(options)).await;
        let containers = containers.map_err(|error| explain("list containers", error))?;
        Ok(containers.into_iter().filter_map(|container| container.image_id).collect())
    }

    /// Takes a tag away that promises what the image is not.
    pub(super) async fn forget(&self, tag: &str) -> Result<()> {
        let options = RemoveImageOptionsBuilder::default().build();
        match self.client.remove_image(tag, Some(options), None).await {
            Ok(_) => Ok(()),
            Err(error) if is_missing(&error) => Ok(()),
            Err(error) => Err(explain("remove the image", error)),
        }
    }

    /// Removes an image, unless something on the engine still needs it.
    pub async fn remove_kept(&self, kept: &Kept) -> Result<Removed> {
        // By its tag where it has one: the engine does not remove a tagged image by its digest without force, and
        // force would also take tags that somebody else gave it.
        let name = kept.tag.as_deref().unwrap_or(&kept.digest);
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        match self.client.remove_image(name, Some(options), None).await {
            Ok(_) => Ok(Removed::Done),
            Err(error) if is_missing(&error) => Ok(Removed::Done),
            Err(error) if status(&error) == Some(409) => Ok(Removed::Stays(words(&error))),
            Err(error) => Err(explain("remove the image", error)),
        }
    }
}
