//! Repositories: a bare mirror in the cache, and beside it the files of each commit that was asked for.

mod mirror;
mod program;
mod tree;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::diagnostic::{Diagnostic, Result};
use crate::run::workspace::cache::{Cache, unwritable};
use crate::run::workspace::found::Found;
use crate::run::workspace::git::program::{Failure, Git, Settings};
use crate::sandbox::Progress;
use crate::workflow::manifest::{Checkout, Repository};

/// What git may speak. A repository brings addresses of its own in `.gitmodules`.
const PROTOCOLS: &str = "https:ssh";
/// The same where the repository itself is on this machine.
const LOCAL_PROTOCOLS: &str = "https:ssh:file";
/// How often it is looked whether another process is done.
const LOOK: Duration = Duration::from_millis(100);

/// A repository in the cache.
struct Mirror<'a> {
    checkout: &'a Checkout,
    /// As declared, for people.
    shown: &'a str,
    /// What git is told.
    address: String,
    folder: PathBuf,
    protocols: &'static str,
    progress: &'a dyn Progress,
}

/// Address and reference = commit: a branch that moves while a run starts is one commit in all of its entries.
pub(super) type Commits = BTreeMap<(String, String), String>;

/// The files of a checkout.
pub(super) async fn fetch(
    checkout: &Checkout,
    root: &Path,
    cache: &Cache,
    commits: &mut Commits,
    progress: &dyn Progress,
) -> Result<Found> {
    let (shown, address, protocols) = match &checkout.repository {
        Repository::Url(url) => match url.strip_prefix("file://") {
            // As a path: git would take a `%` in an address apart.
            Some(path) => (url, path.to_owned(), LOCAL_PROTOCOLS),
            None => (url, url.clone(), PROTOCOLS),
        },
        Repository::Folder(path) => (path, local(path, root)?, LOCAL_PROTOCOLS),
    };
    let folder = cache.repository(&address)?;
    let _lock = lock(&folder.join("lock")).await?;
    let mirror = Mirror { checkout, shown, address, folder, protocols, progress };
    let key = (mirror.address.clone(), checkout.reference.clone());
    let commit = match commits.get(&key) {
        Some(commit) => commit.clone(),
        None => mirror.commit().await?,
    };
    commits.insert(key, commit.clone());
    let tree = mirror.tree(&commit).await?;
    Ok(Found {
        from: Some(shown.clone()),
        reference: Some(checkout.reference.clone()),
        content: mirror.part(&tree, &commit)?,
        commit: Some(commit),
        run: None,
    })
}

/// The absolute path of a repository in the project, links resolved.
fn local(path: &str, root: &Path) -> Result<String> {
    let failed = |why: String| {
        Diagnostic::new("manifest::git", format!("the repository `{path}` {why}"))
            .help("name a folder of the project that is a git repository")
    };
    let home = root.canonicalize().map_err(|error| failed(format!("cannot be read: {error}")))?;
    let found = root.join(path).canonicalize().map_err(|error| failed(format!("cannot be read: {error}")))?;
    if !found.starts_with(&home) {
        return Err(failed("is a link that leads out of the project".to_owned()));
    }
    found.to_str().map(str::to_owned).ok_or_else(|| failed("has a path that is not UTF-8".to_owned()))
}

/// One process at a time works on a mirror; the system lets go of the lock however a process ends. Looked at again and
/// again, so that a run that is cancelled does not leave a thread that waits.
async fn lock(path: &Path) -> Result<File> {
    let failed = |error| unwritable(path, error);
    let file = File::create(path).map_err(failed)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
}

impl Mirror<'_> {
    fn bare(&self) -> PathBuf {
        self.folder.join("mirror.git")
    }

    fn git(&self, settings: Settings) -> Git {
        Git::new(settings).directory(&self.bare())
    }

    fn failed(&self, what: &str, failure: &Failure) -> Diagnostic {
        let help = match failure {
            Failure::Missing(_) => {
                "install git on this machine: repositories are cloned here, not in the sandbox".to_owned()
            }
            Failure::TimedOut => "name a smaller repository, or keep a copy in the project".to_owned(),
            Failure::Said(said) if said.contains("dubious ownership") => {
                "the repository belongs to another user; `git config --global --add safe.directory PATH` trusts it"
                    .to_owned()
            }
            Failure::Said(_) => format!(
                "this machine's git must be able to read it without asking: try `git ls-remote {}`",
                self.shown
            ),
        };
        Diagnostic::new("manifest::git", format!("cannot {what} `{}`: {failure}", self.shown)).help(help)
    }
}
