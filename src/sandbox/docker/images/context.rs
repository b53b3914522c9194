//! A build context: the folder's files as they are sent, hashed without being held.

use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher};
use crate::sandbox::docker::images::dockerfile::Dockerfile;
use crate::sandbox::docker::images::ignore::Ignore;

/// Files of a build context; more is a mistake such as a home folder.
const MOST_FILES: usize = 50_000;
/// The file that is built.
pub(super) const DOCKERFILE: &str = "Dockerfile";
const IGNORE: &str = ".dockerignore";
/// Docker prefers it where it exists.
const OWN_IGNORE: &str = "Dockerfile.dockerignore";

/// What is built from.
#[derive(Debug)]
pub(super) struct Context {
    /// The instructions.
    pub(super) dockerfile: Dockerfile,
    /// All else, in the order of the paths.
    pub(super) items: Vec<Item>,
    /// Hash of both.
    pub(super) digest: Digest,
}

/// A member of a context.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    /// Relative to the folder.
    pub(super) name: String,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A folder with its permissions.
    Folder(u32),
    /// A regular file on the host with its permissions.
    File(PathBuf, u32),
    /// A link, sent as one: what it leads to is not read.
    Link(PathBuf),
}

impl Context {
    /// One that consists of a Dockerfile alone.
    pub(super) fn of(dockerfile: String) -> Self {
        let digest = Digest::of(&dockerfile);
        Self { dockerfile: Dockerfile(dockerfile), items: Vec::new(), digest }
    }

    /// Reads the folder `folder` of the project `root`.
    pub(super) fn read(root: &Path, folder: &str) -> Result<Self> {
        let path = root.join(folder);
        let unreadable = |error: std::io::Error, path: &Path| {
            Diagnostic::new("image::context", format!("cannot read {}", path.display())).cause(error).help(
                format!("`mill.image {{ build = \"{folder}\" }}` needs that folder, with a Dockerfile in it"),
            )
        };
        let named = path.join(DOCKERFILE);
        let dockerfile = fs::read_to_string(&named).map_err(|error| unreadable(error, &named))?;
        let mut ignore = Ignore::default();
        for name in [OWN_IGNORE, IGNORE] {
            if let Ok(text) = fs::read_to_string(path.join(name)) {
                ignore = Ignore::parse(&format!("{folder}/{name}"), &text)?;
                break;
            }
        }
        let items = walk(&path, &ignore, &unreadable)?;
        let mut hasher = Hasher::default();
        hasher.update(dockerfile.as_bytes());
        for item in &items {
            hash(item, &mut hasher).map_err(|error| unreadable(error, &path.join(&item.name)))?;
        }
        Ok(Self { dockerfile: Dockerfile(dockerfile), items, digest: hasher.finish() })
    }
}

fn walk(
    root: &Path,
    ignore: &Ignore,
    unreadable: &dyn Fn(std::io::Error, &Path) -> Diagnostic,
) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut pending = vec![(root.to_owned(), String::new())];
    while let Some((folder, prefix)) = pending.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| unreadable(error, &folder))? {
            let entry = entry.map_err(|error| unreadable(error, &folder))?;
            let data = entry.metadata().map_err(|error| unreadable(error, &entry.path()))?;
            let Ok(name) = entry.file_name().into_string() else {
                let name = crate::event::input::printable(&entry.file_name());
                return Err(Diagnostic::new(
                    "image::context",
                    format!("`{prefix}{name}` has a name that is not UTF-8"),
                )
                .help("rename it, or leave it out with a line in .dockerignore"));
            };
            let name = format!("{prefix}{name}");
            // The engine needs these two; it keeps them from the image itself.
            let is_out = name != IGNORE && ignore.leaves_out(&name);
            let mode = data.permissions().mode() & 0o7777;
            if data.is_dir() {
                if !is_out || !ignore.is_final(&name) {
                    pending.push((entry.path(), format!("{name}/")));
                }
                if !is_out {
                    items.push(Item { name, kind: Kind::Folder(mode) });
                }
            } else if !is_out && data.is_symlink() {
                let target = fs::read_link(entry.path()).map_err(|error| unreadable(error, &entry.path()))?;
                items.push(Item { name, kind: Kind::Link(target) });
            } else if !is_out && data.is_file() && name != DOCKERFILE {
                items.push(Item { name, kind: Kind::File(entry.path(), mode) });
            }
        }
        if items.len() > MOST_FILES {
            return Err(Diagnostic::new(
                "image::context",
                format!("`{}` holds more than {MOST_FILES} files", root.display()),
            )
            .help("an image's folder holds its Dockerfile and what that copies; .dockerignore leaves things out"));
        }
    }
    items.sort();
    Ok(items)
}

/// Adds all of an item that decides what is built: not times, and of the permissions only who may execute.
fn hash(item: &Item, hasher: &mut Hasher) -> std::io::Result<()> {
    match &item.kind {
        Kind::Folder(_) => hasher.update(format!("\0folder {}\0", item.name).as_bytes()),
        Kind::Link(target) => {
            hasher.update(format!("\0link {}\0", item.name).as_bytes());
            hasher.update(target.as_os_str().as_bytes());
        }
        Kind::File(path, mode) => {
            let mut file = fs::File::open(path)?;
            let size = file.metadata()?.len();
            hasher.update(format!("\0file {} {:o} {size}\0", item.name, mode & 0o111).as_bytes());
            let mut piece = vec![0; 256 * 1024];
            loop {
                let count = file.read(&mut piece)?;
                if count == 0 {
                    break;
                }
                hasher.update(&piece[..count]);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_what_the_ignore_file_leaves() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            let path = root.path().join("image").join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        };
        put("Dockerfile", "FROM scratch\n");
        put(".dockerignore", "*\n!keep\nkeep/*.log\n");
        put("keep/a.txt", "a");
        put("keep/b.log", "b");
        put("big/c", "c");
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("image/keep/link")).expect("a link");
        let read = || Context::read(root.path(), "image").expect("a context");
        let names =
            |context: &Context| context.items.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
        let before = read();
        assert_eq!(names(&before), [".dockerignore", "keep", "keep/a.txt", "keep/link"]);
        assert_eq!(before.items[3].kind, Kind::Link("/etc/passwd".into()));
        put("big/c", "what is left out does not matter");
        assert_eq!(read().digest, before.digest);
        put("keep/a.txt", "b");
        assert_ne!(read().digest, before.digest);
        put("Dockerfile.dockerignore", "big\n");
        assert_eq!(
            names(&read()),
            [".dockerignore", "Dockerfile.dockerignore", "keep", "keep/a.txt", "keep/b.log", "keep/link"]
        );
    }
}
