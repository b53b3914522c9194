//! Hints from the file system, and looks at parts of the inbox: no file is missed and none is taken for gone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tidemill::trigger::drop_folder::dirty::Dirty;
use tidemill::trigger::drop_folder::scan::{Alone, Root, Scan, scan};
use tidemill::trigger::drop_folder::scope::{Depth, Scope};
use tidemill::trigger::drop_folder::watch::Watch;

use super::harness::soon;
use crate::support::project::Project;

/// An inbox that is watched and was looked at once.
struct Hints {
    project: Project,
    watch: Watch,
    dirty: Arc<Dirty>,
}

impl Hints {
    fn of(project: Project) -> Self {
        fs::create_dir_all(project.path("inbox/calm")).unwrap();
        let mut watch = Watch::new(&project.path("inbox"));
        assert_eq!(watch.look(Scope::All).unwrap().scope, Scope::All);
        assert!(watch.warnings().is_empty());
        let dirty = watch.hints();
        Self { project, watch, dirty }
    }

    /// Looks at each hint until a look has shown `path`, and gives that look.
    async fn until(&mut self, path: &str) -> Scan {
        soon(async {
            loop {
                self.dirty.hint().await;
                if let Some(scan) = self.watch.look(Scope::none())
                    && paths(&scan).contains(path)
                {
                    return scan;
                }
            }
        })
        .await
    }

    /// A file comes into a folder of the inbox by a rename: that is one hint and no more.
    fn drop_in(&self, path: &str) {
        self.project.put("aside", "abc");
        fs::rename(self.project.path("aside"), self.project.path("inbox").join(path)).unwrap();
    }

    /// Looks until no hint is left. A watched folder is read for a hint of its own only, so that a look that shows what
    /// was dropped there last comes after all hints from before.
    async fn calm(&mut self) {
        self.drop_in("calm/last");
        self.until("calm/last").await;
        while tokio::time::timeout(Duration::ZERO, self.dirty.hint()).await.is_ok() {
            self.watch.look(Scope::none());
        }
    }
}

fn paths(scan: &Scan) -> BTreeSet<String> {
    scan.found.iter().map(|found| found.path.display()).collect()
}

#[tokio::test]
async fn a_hint_is_answered_by_a_look_at_its_folder() {
    let project = Project::new().file("inbox/a/1.csv", "").file("inbox/b/1.csv", "").file("inbox/1.csv", "");
    let mut hints = Hints::of(project);
    hints.drop_in("a/2.csv");
    let scan = hints.until("a/2.csv").await;
    assert_eq!(scan.scope.folders(), [("a".into(), Depth::Entries)]);
    assert_eq!(paths(&scan), ["a/1.csv", "a/2.csv"].map(str::to_owned).into());
    assert!(!scan.looked.covers(Path::new("b/1.csv")) && !scan.looked.covers(Path::new("1.csv")));
    // The folders below are watched, and what is in them stays as it was.
    hints.drop_in("2.csv");
    let scan = hints.until("2.csv").await;
    assert_eq!(paths(&scan), ["1.csv", "2.csv"].map(str::to_owned).into());
    assert!(scan.looked.covers(Path::new("gone.csv")) && !scan.looked.covers(Path::new("a/1.csv")));
}

#[tokio::test]
async fn files_in_folders_made_one_in_the_other_are_seen() {
    let mut hints = Hints::of(Project::new());
    let mut wanted: BTreeSet<String> = (0..50).map(|number| format!("{number}/a/b/x.csv")).collect();
    for path in &wanted {
        hints.project.put(format!("inbox/{path}"), "abc");
    }
    soon(async {
        while !wanted.is_empty() {
            hints.dirty.hint().await;
            if let Some(scan) = hints.watch.look(Scope::none()) {
                let seen = paths(&scan);
                wanted.retain(|path| !seen.contains(path));
            }
        }
    })
    .await;
    hints.calm().await;
    // Each of the new folders is watched.
    hints.drop_in("17/a/b/y.csv");
    assert_eq!(hints.until("17/a/b/y.csv").await.scope.folders(), [("17/a/b".into(), Depth::Entries)]);
}

#[tokio::test]
async fn a_folder_that_is_moved_in_moved_on_and_made_again_is_heard() {
    let project = Project::new().file("outside/a/deep/1.csv", "").file("inbox/other/1.csv", "");
    let mut hints = Hints::of(project);
    let at = |hints: &Hints, path: &str| hints.project.path(path);
    fs::rename(at(&hints, "outside/a"), at(&hints, "inbox/a")).unwrap();
    hints.until("a/deep/1.csv").await;

    fs::rename(at(&hints, "inbox/a"), at(&hints, "inbox/other/b")).unwrap();
    let scan = hints.until("other/b/deep/1.csv").await;
    assert!(!paths(&scan).contains("a/deep/1.csv"));
    hints.calm().await;
    hints.project.put("inbox/other/b/deep/2.csv", "abc");
    hints.until("other/b/deep/2.csv").await;

    fs::remove_dir_all(at(&hints, "inbox/other/b")).unwrap();
    hints.project.put("inbox/other/b/deep/3.csv", "abc");
    hints.until("other/b/deep/3.csv").await;
    hints.calm().await;
    hints.project.put("inbox/other/b/deep/4.csv", "abc");
    hints.until("other/b/deep/4.csv").await;
}

#[tokio::test]
async fn a_folder_that_moved_away_covers_what_was_in_it() {
    let mut hints = Hints::of(Project::new().file("inbox/a/deep/1.csv", ""));
    fs::rename(hints.project.path("inbox/a"), hints.project.path("outside")).unwrap();
    soon(async {
        loop {
            hints.dirty.hint().await;
            if let Some(scan) = hints.watch.look(Scope::none())
                && scan.looked.covers(Path::new("a/deep/1.csv"))
            {
                break assert!(paths(&scan).is_empty());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_inbox_that_was_replaced_is_looked_at_whole_and_heard_again() {
    let mut hints = Hints::of(Project::new().file("inbox/a/1.csv", ""));
    let (inbox, old) = (hints.project.path("inbox"), hints.project.path("old"));
    hints.calm().await;
    // Without any hint, a look notices that it is another one.
    fs::rename(&inbox, &old).unwrap();
    assert_eq!(hints.watch.look(Scope::none()).unwrap().root, Root::Absent);
    assert!(hints.watch.look(Scope::none()).is_none_or(|scan| scan.root == Root::Absent));
    hints.project.put("inbox/b/1.csv", "");
    let scan = hints.watch.look(Scope::none()).unwrap();
    assert_eq!((scan.scope.clone(), paths(&scan)), (Scope::All, ["b/1.csv".to_owned()].into()));
    hints.project.put("inbox/b/2.csv", "");
    hints.until("b/2.csv").await;

    fs::rename(&inbox, hints.project.path("older")).unwrap();
    fs::rename(&old, &inbox).unwrap();
    let scan = hints.watch.look(Scope::none()).unwrap();
    assert_eq!(
        (scan.scope.clone(), paths(&scan)),
        (Scope::All, ["a/1.csv", "calm/last"].map(str::to_owned).into())
    );
}

#[tokio::test]
async fn a_scope_leads_through_no_link_and_no_ignored_folder() {
    let project = Project::new().file("outside/1.csv", "").file("inbox/.git/1.csv", "");
    let mut hints = Hints::of(project);
    hints.calm().await;
    std::os::unix::fs::symlink(hints.project.path("outside"), hints.project.path("inbox/link")).unwrap();
    let mut scope = Scope::none();
    for path in ["link", ".git", "never/was"] {
        scope.add(Path::new(path), Depth::Subtree);
    }
    let scan = hints.watch.look(scope).unwrap();
    assert_eq!(paths(&scan), [".git", "link"].map(str::to_owned).into());
    assert!(scan.looked.covers(Path::new("never/was/1.csv")));
}

/// Makes, moves and removes folders in each other, and writes files in them.
fn churn(inbox: &Path, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut folder = || {
        let depth = random.usize(1..=3);
        (0..depth).fold(inbox.to_owned(), |path, _| path.join(["a", "b", "c"][random.usize(..3)]))
    };
    for turn in 0..300 {
        let (one, other) = (folder(), folder());
        // What cannot be done is left.
        let _ = match turn % 5 {
            0 => fs::create_dir_all(&one),
            1 => fs::rename(&one, &other),
            2 => fs::remove_dir_all(&one),
            3 => fs::remove_dir_all(&one).and_then(|()| fs::create_dir(&one)),
            _ => fs::write(one.join("x.csv"), turn.to_string()),
        };
    }
}

fn folders(inbox: &Path) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::new()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        let entries = fs::read_dir(inbox.join(&folder)).unwrap().map(|entry| entry.unwrap().path());
        let below = entries.filter(|path| path.is_dir());
        folders.extend(below.map(|path| path.strip_prefix(inbox).unwrap().to_owned()));
        next += 1;
    }
    folders
}

#[tokio::test]
async fn what_looks_at_hints_have_shown_is_true_and_every_folder_is_watched() {
    for seed in 0..8 {
        let mut hints = Hints::of(Project::new());
        let inbox = hints.project.path("inbox");
        let mut view = BTreeSet::new();
        let churning = std::thread::spawn({
            let inbox = inbox.clone();
            move || churn(&inbox, seed)
        });
        let mut ended = false;
        while !view.contains("calm/last") {
            if !ended && churning.is_finished() {
                ended = true;
                hints.drop_in("calm/last");
            }
            if let Some(scan) = hints.watch.look(Scope::none()) {
                let found = paths(&scan);
                view.retain(|path: &String| found.contains(path) || !scan.looked.covers(Path::new(path)));
                view.extend(found);
            }
        }
        churning.join().unwrap();
        assert_eq!(view, paths(&scan(&inbox, Scope::All, &mut Alone)), "{seed}");
        hints.calm().await;
        for folder in folders(&inbox) {
            let file = folder.join("new.csv");
            let file = file.to_str().unwrap();
            hints.drop_in(file);
            hints.until(file).await;
        }
    }
}
