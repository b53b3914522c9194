//! One build, with everything that decides what comes out of it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::images::context::Context;
use crate::sandbox::docker::images::{packages, settings};
use crate::workflow::image::{Folder, Packages, Pull};

/// What is built, and how.
#[derive(Debug)]
pub(super) struct Recipe {
    /// The folder or image, as the script says it.
    pub(super) name: String,
    /// The part of the tag before the hash.
    pub(super) repository: String,
    /// Files and Dockerfile.
    pub(super) context: Context,
    /// The folder they were read from.
    pub(super) folder: Option<String>,
    /// The stage to build.
    pub(super) target: Option<String>,
    /// Build arguments: the project's and the image's own, which come first.
    pub(super) args: BTreeMap<String, String>,
    /// Build secrets: id = environment variable.
    pub(super) secrets: BTreeMap<String, String>,
    /// For which platform.
    pub(super) platform: Option<String>,
    /// When a registry is asked for its bases.
    pub(super) pull: Pull,
    /// The certificates steps trust.
    pub(super) ca: Option<Vec<u8>>,
    /// Hash of all this without the bases: what they are is known only on the engine.
    pub(super) content: Digest,
}

impl Docker {
    /// The recipe of a folder.
    pub(super) async fn recipe(&self, folder: &Folder, platform: Option<&str>, pull: Pull) -> Result<Recipe> {
        let (root, path) = (self.root.clone(), folder.path.clone());
        let reading = tokio::task::spawn_blocking(move || Context::read(&root, &path));
        let context =
            reading.await.map_err(|error| Diagnostic::new("image::context", error.to_string()))??;
        let mut args = self.build.args.clone();
        args.extend(folder.args.clone());
        let recipe = Recipe {
            name: folder.path.clone(),
            repository: repository(&folder.path),
            context,
            folder: Some(folder.path.clone()),
            target: folder.target.clone(),
            args,
            secrets: folder.secrets.clone(),
            platform: platform.map(str::to_owned),
            pull,
            ca: self.ca_bundle()?,
            content: Digest::of(""),
        };
        Ok(self.hashed(recipe))
    }

    async fn context(&self, folder: &str) -> Result<Context> {
        let (root, path) = (self.root.clone(), folder.to_owned());
        let reading = tokio::task::spawn_blocking(move || Context::read(&root, &path));
        reading.await.map_err(|error| Diagnostic::new("image::context", error.to_string()))?
    }

    /// That what was sent is what was hashed: the hash would promise the wrong content for ever.
    pub(super) async fn check_unchanged(&self, recipe: &Recipe) -> Result<()> {
        let Some(folder) = &recipe.folder else { return Ok(()) };
        if self.context(folder).await?.digest == recipe.context.digest {
            return Ok(());
        }
        Err(Diagnostic::new("image::changed", format!("files in {folder} changed while it was built"))
            .help("run it again; .dockerignore leaves out what something keeps writing to"))
    }

    /// The recipe of packages on top of `base`.
    pub(super) fn recipe_of_packages(
        &self,
        name: &str,
        base: &str,
        packages: &Packages,
        platform: Option<&str>,
        pull: Pull,
    ) -> Result<Recipe> {
        let recipe = Recipe {
            name: name.to_owned(),
            repository: repository(name.split(['@', ':']).next().unwrap_or(name)) + "-packages",
            context: Context::of(packages::dockerfile(base, packages)),
            folder: None,
            target: None,
            args: self.build.args.clone(),
            secrets: BTreeMap::new(),
            platform: platform.map(str::to_owned),
            pull,
            ca: self.ca_bundle()?,
            content: Digest::of(""),
        };
        Ok(self.hashed(recipe))
    }

    /// Proxies are not in the hash: by which way a file comes does not change it. Secrets are in it by their names.
    fn hashed(&self, mut recipe: Recipe) -> Recipe {
        let mut hasher = Hasher::default();
        hasher.update(recipe.context.digest.as_str().as_bytes());
        for (kind, pairs) in [("arg", &recipe.args), ("secret", &recipe.secrets)] {
            for (name, value) in pairs {
                hasher.update(format!("\0{kind} {name}={value}").as_bytes());
            }
        }
        for (name, address) in settings::mirrors(&self.build) {
            hasher.update(format!("\0mirror {name}={address}").as_bytes());
        }
        for (kind, value) in [("target", &recipe.target), ("platform", &recipe.platform)] {
            hasher.update(format!("\0{kind} {value:?}").as_bytes());
        }
        hasher.update(b"\0ca ");
        hasher.update(recipe.ca.as_deref().unwrap_or_default());
        recipe.content = hasher.finish();
        recipe
    }
}

impl Recipe {
    /// The images it starts from.
    pub(super) fn bases(&self) -> Vec<String> {
        self.context.dockerfile.bases(&self.args, self.target.as_deref())
    }

    /// The tag of what comes out when its bases have these ids.
    pub(super) fn tag<'a>(&self, bases: impl Iterator<Item = &'a str>) -> String {
        let mut hasher = Hasher::default();
        hasher.update(self.content.as_str().as_bytes());
        for id in bases {
            hasher.update(format!("\0base {id}").as_bytes());
        }
        format!("{}:{}", self.repository, hasher.finish().short())
    }
}

fn repository(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let mut parts: Vec<&str> = name.split('-').collect();
    parts.retain(|part| !part.is_empty());
    format!("tidemill/{}", if parts.is_empty() { "image".to_owned() } else { parts.join("-") })
}

#[cfg(test)]
mod tests {
    use super::repository;

    #[test]
    fn every_folder_makes_a_valid_name() {
        assert_eq!(repository("images/python-data"), "tidemill/python-data");
        assert_eq!(repository("images/My Tool_2--x"), "tidemill/my-tool-2-x");
        assert_eq!(repository("images/ż"), "tidemill/image");
    }
}
