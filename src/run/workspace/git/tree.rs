//! The files of a commit.

use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result};
use crate::run::workspace::cache::{NEW, forget, unwritable};
use crate::run::workspace::found::{Part, Parts, Rules, Tree, name_of};
use crate::run::workspace::git::Mirror;
use crate::run::workspace::git::program::{Failure, Git, Settings};
use crate::workflow::manifest::Checkout;

/// What was placed, for whoever works in a repository with its history.
const PLACED: &str = "refs/tidemill/placed";

impl Mirror<'_> {
    /// The folder with the files of a commit, made when it is missing.
    pub(super) async fn tree(&self, commit: &str) -> Result<PathBuf> {
        let Checkout { history, submodules, .. } = *self.checkout;
        let kind = match (history, submodules) {
            (false, false) => "",
            (true, false) => "-history",
            (false, true) => "-submodules",
            (true, true) => "-history-submodules",
        };
        let trees = self.folder.join("trees");
        let tree = trees.join(format!("{commit}{kind}"));
        if tree.is_dir() {
            return Ok(tree);
        }
        std::fs::create_dir_all(&trees).map_err(|error| unwritable(&trees, error))?;
        // Nobody else works on this repository now: these are a dead process's.
        forget(&trees, |_| true);
        let staging = tempfile::Builder::new().prefix(NEW).tempdir_in(&trees);
        let staging = staging.map_err(|error| unwritable(&trees, error))?;
        let files = staging.path().join("files");
        if history || submodules {
            self.clone_into(&files, commit).await
        } else {
            self.export(&files, staging.path(), commit).await
        }
        .map_err(|failure| self.failed("check out", &failure))?;
        std::fs::rename(&files, &tree).map_err(|error| unwritable(&tree, error))?;
        Ok(tree)
    }

    /// The files alone. The settings are ours, so that no filter runs; files of git LFS stay pointers.
    async fn export(&self, files: &Path, beside: &Path, commit: &str) -> std::result::Result<(), Failure> {
        std::fs::create_dir(files).map_err(|error| Failure::Said(error.to_string()))?;
        let git = self.git(Settings::Ours).argument("--work-tree").argument(files);
        let git = git.arguments(["-c", "core.bare=false", "-c", "core.symlinks=true"]);
        let git = git.arguments(["read-tree", "--reset", "-u", "--end-of-options", commit]);
        git.variable("GIT_INDEX_FILE", beside.join("index")).run().await.map(drop)
    }

    /// A repository of its own, that knows nothing of the cache.
    async fn clone_into(&self, files: &Path, commit: &str) -> std::result::Result<(), Failure> {
        let git = Git::new(Settings::Ours).variable("GIT_ALLOW_PROTOCOL", "file");
        let git = git.arguments(["clone", "--quiet", "--no-hardlinks", "--no-checkout", "--template=", "--"]);
        git.argument(self.bare()).argument(files).run().await?;
        let within = |settings| Git::new(settings).argument("-C").argument(files);
        let checkout =
            within(Settings::Ours).arguments(["checkout", "--quiet", "--detach", "--end-of-options"]);
        checkout.argument(commit).run().await?;
        // A ref in a file of its own: without one, and without its empty folders, nothing is taken for a repository.
        let placed = within(Settings::Ours).arguments(["update-ref", "--", PLACED, commit]);
        placed.run().await?;
        if self.checkout.submodules {
            self.progress.begin(&format!("fetching the submodules of {}", self.shown));
            // Addresses in `.gitmodules` may be relative to the repository's own.
            let origin = within(Settings::Ours).arguments(["remote", "set-url", "--", "origin"]);
            origin.argument(&self.address).run().await?;
            let git = within(Settings::User).variable("GIT_ALLOW_PROTOCOL", self.protocols);
            let git = git.arguments([
                "-c",
                "filter.lfs.process=",
                "-c",
                "filter.lfs.smudge=",
                "-c",
                "filter.lfs.required=false",
            ]);
            git.arguments(["submodule", "--quiet", "update", "--init", "--recursive", "--checkout"])
                .run()
                .await?;
        }
        let origin = within(Settings::Ours).arguments(["remote", "set-url", "--", "origin"]);
        origin.argument(self.shown).run().await.map(drop)
    }

    /// The part of the tree that is wanted.
    pub(super) fn part(&self, tree: &Path, commit: &str) -> Result<Parts> {
        let failed = |error| unwritable(tree, error);
        let home = tree.canonicalize().map_err(failed)?;
        let mut ignore = self.checkout.ignore.clone();
        if !self.checkout.history {
            ignore.push(".git".to_owned());
        }
        let whole = |folder, home| Parts::Tree(Tree { folder, home, ignore, rules: Rules::None });
        let Some(path) = &self.checkout.path else {
            return Ok(whole(home.clone(), home));
        };
        let wanted = home.join(path).canonicalize().ok().filter(|wanted| wanted.starts_with(&home));
        let Some(wanted) = wanted else {
            let message = format!("`{}` has no `{path}` at `{}`", self.shown, self.checkout.reference);
            return Err(Diagnostic::new("manifest::no_path", message).help(format!(
                "`git show --name-only {commit}` and `git ls-tree -r {commit}` list what there is"
            )));
        };
        if wanted.is_dir() {
            return Ok(whole(wanted, home));
        }
        let part = Part::file(name_of(Path::new(path))?, wanted).map_err(failed)?;
        Ok(Parts::One(part))
    }
}
