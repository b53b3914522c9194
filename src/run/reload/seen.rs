//! What files look like from outside: enough to notice that one is not what it was, without reading it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How each of a set of files looks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen(BTreeMap<String, Look>);

/// How one looks.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Look {
    /// Not there.
    Absent,
    /// A folder: that it is one is all that scripts know of it.
    Folder,
    /// A file.
    File { inode: u64, size: u64, modified: (i64, i64), changed: (i64, i64) },
}

impl Seen {
    /// The root-relative `names`, and every script that stands in the root-relative folder `workflows`.
    pub(super) fn look(root: &Path, workflows: &Path, names: &BTreeSet<String>) -> Self {
        let scripts = std::fs::read_dir(root.join(workflows)).into_iter().flatten().flatten();
        let scripts = scripts.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Path::new(&name)
                .extension()
                .is_some_and(|kind| kind == "lua")
                .then(|| workflows.join(name).to_string_lossy().into_owned())
        });
        let names: BTreeSet<String> = scripts.chain(names.iter().cloned()).collect();
        Self(names.into_iter().map(|name| (name.clone(), look_at(&root.join(name)))).collect())
    }

    /// Only these of them.
    pub(super) fn only(&self, names: &BTreeSet<String>) -> Self {
        let kept = self.0.iter().filter(|(name, _)| names.contains(*name));
        Self(kept.map(|(name, look)| (name.clone(), look.clone())).collect())
    }

    /// Whether there is a name in it that is not in `other`.
    pub(super) fn lacks(&self, names: &BTreeSet<String>) -> bool {
        names.iter().any(|name| !self.0.contains_key(name))
    }
}

fn look_at(path: &Path) -> Look {
    match path.metadata() {
        Ok(data) if data.is_dir() => Look::Folder,
        Ok(data) => Look::File {
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        },
        // One that cannot be read is as good as gone; the script says why.
        Err(_) => Look::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_comes_changes_or_goes_looks_different() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir(root.join("workflows")).unwrap();
        let names = BTreeSet::from(["prompt.md".to_owned(), "images".to_owned()]);
        let look = || Seen::look(root, Path::new("workflows"), &names);
        let mut before = look();
        let mut change = |act: &dyn Fn()| {
            act();
            let now = look();
            let differs = now != before;
            before = now;
            differs
        };
        assert!(!change(&|| ()));
        assert!(change(&|| std::fs::write(root.join("prompt.md"), "Count.").unwrap()));
        assert!(change(&|| std::fs::write(root.join("workflows/a.lua"), "").unwrap()));
        assert!(!change(&|| std::fs::write(root.join("workflows/notes.txt"), "").unwrap()));
        assert!(change(&|| std::fs::create_dir(root.join("images")).unwrap()));
        assert!(!change(&|| std::fs::write(root.join("images/Dockerfile"), "").unwrap()));
        assert!(change(&|| std::fs::remove_file(root.join("workflows/a.lua")).unwrap()));
        // An editor writes a new file and renames it over the old one.
        assert!(change(&|| {
            std::fs::write(root.join("new"), "Count.").unwrap();
            std::fs::rename(root.join("new"), root.join("prompt.md")).unwrap();
        }));
        assert!(before.lacks(&BTreeSet::from(["other".to_owned()])));
    }
}
