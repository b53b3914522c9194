//! File events of the inbox: are there enough watches for its folders?

use std::path::Path;

use crate::cli::doctor::finding::Finding;
use crate::trigger::drop_folder::limits::Limits;
use crate::trigger::drop_folder::scan::{Alone, Root, scan};
use crate::trigger::drop_folder::scope::Scope;

/// One finding for an inbox that is there.
pub(super) fn examine(inbox: &Path) -> Option<Finding> {
    let scan = scan(inbox, Scope::All, &mut Alone);
    if scan.root == Root::Absent {
        return None;
    }
    let folders = u64::try_from(scan.looked.folders()).unwrap_or(u64::MAX);
    judge(folders, &Limits::read())
}

/// `folders` counts the inbox itself: each needs a watch.
fn judge(folders: u64, limits: &Limits) -> Option<Finding> {
    let below = match folders.saturating_sub(1) {
        1 => "1 folder".to_owned(),
        many => format!("{many} folders"),
    };
    let allowed = limits.watches?;
    let found = format!("{below} below the inbox, {allowed} watches allowed (fs.inotify.max_user_watches)");
    Some(if limits.has_room_for(folders) {
        Finding::ok("file events", found)
    } else {
        let why =
            "folders without a watch are looked at every few seconds, and other programs need watches too";
        Finding::warn("file events", found, format!("{why}\n{}", limits.more_watches(folders)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::doctor::finding::Level;

    #[test]
    fn too_few_watches_come_with_the_command_for_more() {
        let limits = Limits { watches: Some(8192), instances: Some(128) };
        assert_eq!(
            judge(2, &limits).unwrap().to_string(),
            "ok    file events: 1 folder below the inbox, 8192 watches allowed (fs.inotify.max_user_watches)"
        );
        let few = judge(5001, &limits).unwrap();
        assert_eq!(few.level, Level::Warn);
        let shown = few.to_string();
        assert!(shown.contains("5000 folders below"), "{shown}");
        assert!(shown.contains("\n      sudo sysctl fs.inotify.max_user_watches=524288"), "{shown}");
        assert_eq!(judge(1, &Limits { watches: None, ..limits }), None);
    }

    #[test]
    fn the_folders_of_the_inbox_are_counted_without_ignored_ones() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/b", "c", ".git/x"] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        let shown = examine(root.path()).map(|finding| finding.to_string()).unwrap_or_default();
        assert!(shown.is_empty() || shown.contains(" 3 folders below"), "{shown}");
        assert_eq!(examine(&root.path().join("away")), None);
    }
}
