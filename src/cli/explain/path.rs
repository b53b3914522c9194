//! Which path in the inbox a person means.

use std::path::{Component, Path, PathBuf};

use crate::config::Project;
use crate::event::input::RawPath;

/// The path relative to the inbox; `None` when it lies elsewhere, or is the inbox itself.
pub(super) fn in_inbox(project: &Project, given: &Path) -> Option<RawPath> {
    let inbox = project.inbox();
    let absolute = plain(&std::path::absolute(given).ok()?);
    let direct = absolute.strip_prefix(plain(&inbox)).map(Path::to_owned);
    // The same folder may be reached through links.
    let relative = direct.ok().or_else(|| {
        let real = real(&absolute)?;
        real.strip_prefix(inbox.canonicalize().ok()?).map(Path::to_owned).ok()
    })?;
    (!relative.as_os_str().is_empty()).then(|| RawPath::new(relative))
}

/// Without `.` and `..`, as people read them.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// With the links of its folders followed, its own name kept: the file itself may be gone or be a link.
fn real(path: &Path) -> Option<PathBuf> {
    let folder = path.ancestors().skip(1).find_map(|folder| {
        let real = folder.canonicalize().ok()?;
        Some((real, folder))
    })?;
    let rest = path.strip_prefix(folder.1).ok()?;
    Some(folder.0.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(root: &str) -> Project {
        Project { root: root.into(), config: crate::config::Config::default() }
    }

    fn relative(given: &str) -> Option<String> {
        in_inbox(&project("/p"), Path::new(given)).map(|path| path.display())
    }

    #[test]
    fn a_path_is_read_as_it_is_meant() {
        assert_eq!(relative("/p/inbox/energy/a.csv").as_deref(), Some("energy/a.csv"));
        assert_eq!(relative("/p/inbox/./x/../a.csv").as_deref(), Some("a.csv"));
        assert_eq!(relative("/p/inbox"), None);
        assert_eq!(relative("/p/inbox/../outbox/a.csv"), None);
        assert_eq!(relative("/p/inboxes/a.csv"), None);
    }
}
