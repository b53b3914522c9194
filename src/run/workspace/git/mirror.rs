//! The mirror of a repository, and which commit a name in it stands for.

use crate::diagnostic::{Diagnostic, Result};
use crate::run::workspace::git::Mirror;
use crate::run::workspace::git::program::{Failure, Git, Settings};

/// Branches and tags alone: what a host keeps besides, such as every proposed change, may be far larger.
const MIRRORED: [&str; 2] = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];

impl Mirror<'_> {
    /// The commit the reference stands for; a full hash that is there already needs no network.
    pub(super) async fn commit(&self) -> Result<String> {
        let reference = self.checkout.reference.as_str();
        let init = Git::new(Settings::Ours).arguments(["init", "--quiet", "--bare", "--template=", "--"]);
        let made = init.argument(self.bare()).run().await;
        made.map_err(|failure| self.failed("prepare the cache of", &failure))?;
        if is_hash(reference)
            && let Some(commit) = self.resolve(reference).await
        {
            return Ok(commit);
        }
        self.progress.begin(&format!("fetching {}", self.shown));
        let mut wanted = MIRRORED.map(str::to_owned).to_vec();
        let mirrored = ["refs/heads/", "refs/tags/"].iter().any(|folder| reference.starts_with(folder));
        if reference.starts_with("refs/") && !mirrored {
            wanted.push(format!("+{reference}:{reference}"));
        }
        self.update(&wanted).await.map_err(|failure| self.failed("fetch", &failure))?;
        if is_hash(reference) && self.resolve(reference).await.is_none() {
            // Some servers give a commit that no branch has; when this one does not, it is said below.
            let _ = self.update(&[reference.to_owned()]).await;
        }
        let commit = self.choose(reference).await?;
        self.progress.end(&format!("commit {}", commit.get(..12).unwrap_or(&commit)));
        Ok(commit)
    }

    /// What a name stands for among what was fetched.
    async fn choose(&self, reference: &str) -> Result<String> {
        let names = if is_hash(reference) || reference.starts_with("refs/") {
            vec![reference.to_owned()]
        } else {
            vec![format!("refs/heads/{reference}"), format!("refs/tags/{reference}")]
        };
        let mut found = Vec::new();
        for name in &names {
            found.extend(self.resolve(name).await);
        }
        found.dedup();
        let (message, help) = match found.as_slice() {
            [commit] => return Ok(commit.clone()),
            [] => (
                format!("`{}` has no branch, tag or commit `{reference}`", self.shown),
                format!(
                    "`git ls-remote {}` lists what there is; a commit is named by its full hash",
                    self.shown
                ),
            ),
            _ => (
                format!("`{reference}` is a branch and a tag of `{}`", self.shown),
                format!("write `refs/heads/{reference}` or `refs/tags/{reference}`"),
            ),
        };
        Err(Diagnostic::new("manifest::no_ref", message).help(help))
    }

    async fn resolve(&self, name: &str) -> Option<String> {
        let git =
            self.git(Settings::Ours).arguments(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
        let commit = git.argument(format!("{name}^{{commit}}")).run().await.ok()?;
        Some(commit.trim().to_owned()).filter(|commit| !commit.is_empty())
    }

    async fn update(&self, wanted: &[String]) -> std::result::Result<(), Failure> {
        let options =
            ["fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-recurse-submodules", "--"];
        let git = self.git(Settings::User).variable("GIT_ALLOW_PROTOCOL", self.protocols).arguments(options);
        let git = git.argument(&self.address).arguments(wanted.iter().map(String::as_str));
        git.run().await.map(drop)
    }
}

fn is_hash(reference: &str) -> bool {
    matches!(reference.len(), 40 | 64) && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}
