//! Hard cases: what changes between two looks, what looks like another thing, and who else is there.
//!
//! All of them are listed in docs/drop-folder-cases.md.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use tidemill::event::id::Digest;
use tidemill::event::input::RawPath;
use tidemill::event::state::InputState;
use tidemill::run::folder::RunFolder;
use tidemill::run::inputs;

use super::{Inbox, SETTLE};
use crate::support::project::Project;

/// A file that has been quiet for long enough, and something that happens to it after the look that shows that.
async fn claimed_after(happens: impl FnOnce(&Path)) -> (Inbox, usize) {
    let mut inbox = Inbox::with(Project::new(), &[("energy", "*.csv")]).await;
    inbox.project.put("inbox/a.csv", "abc");
    inbox.tick().await;
    inbox.clock.advance(SETTLE);
    let scan = inbox.look();
    happens(&inbox.project.path("inbox/a.csv"));
    let queued = inbox.desk.tick(&scan).await.unwrap();
    (inbox, queued)
}

#[tokio::test]
async fn a_file_that_changes_after_the_look_settles_again() {
    let (mut inbox, queued) = claimed_after(|path| fs::write(path, "abcdef").unwrap()).await;
    assert_eq!(queued, 0);
    let (state, reason) = inbox.standing("a.csv").await;
    assert_eq!((state, reason.as_str()), (InputState::Settling, "it changed while it was being claimed"));
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(inbox.runs().await[0].inputs[0].digest, Digest::of("abcdef"));
}

#[tokio::test]
async fn a_file_that_became_a_fifo_is_not_opened() {
    let fifo = |path: &Path| {
        fs::remove_file(path).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
    };
    // Opened for reading it would wait for a writer for ever.
    let (mut inbox, queued) = claimed_after(fifo).await;
    assert_eq!(queued, 0);
    assert_eq!(inbox.settle().await, 0);
    assert_eq!(inbox.standing("a.csv").await.0, InputState::Ignored);
    assert!(inbox.project.path("inbox/a.csv").symlink_metadata().is_ok());
}

#[tokio::test]
async fn a_file_that_became_a_link_is_not_followed() {
    let secret = Project::new().file("secret", "abc");
    let link = |path: &Path| {
        fs::remove_file(path).unwrap();
        symlink(secret.path("secret"), path).unwrap();
    };
    let (mut inbox, queued) = claimed_after(link).await;
    assert_eq!((queued, inbox.settle().await), (0, 0));
    assert_eq!(inbox.standing("a.csv").await.0, InputState::Ignored);
    assert!(inbox.project.path("inbox/a.csv").is_symlink());
    assert!(inbox.project.files(".tidemill/claimed").is_empty());
}

#[tokio::test]
async fn a_file_that_goes_after_the_look_is_gone() {
    let (inbox, queued) = claimed_after(|path| fs::remove_file(path).unwrap()).await;
    assert_eq!(queued, 0);
    assert!(inbox.runs().await.is_empty());
    assert!(inbox.project.files(".tidemill/claimed").is_empty());
}

#[tokio::test]
async fn a_writer_that_goes_on_after_the_claim_is_found_out() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    let mut writer = File::options().append(true).open(inbox.project.path("inbox/a.csv")).unwrap();
    assert_eq!(inbox.settle().await, 1);
    writer.write_all(b"def").unwrap();
    let run = inbox.runs().await.remove(0);
    let claimed = inbox.store.claimed_files(&run).await.unwrap();
    let folder = RunFolder::new(&inbox.project.path(".tidemill"), &run.id);
    RunFolder::make(folder.input(0).parent().unwrap()).unwrap();
    let refused = inputs::snapshots(&run.inputs, &claimed, &folder).unwrap_err();
    assert_eq!(refused.code(), "input::changed");
}

#[tokio::test]
async fn a_file_dropped_again_while_its_run_waits_is_the_next_run() {
    let mut inbox = Inbox::new().await;
    for content in ["first", "second"] {
        inbox.project.put("inbox/a.csv", content);
        assert_eq!(inbox.settle().await, 1);
    }
    let mut contents = Vec::new();
    for run in inbox.runs().await.iter().rev() {
        let claimed = inbox.store.claimed(run.input.unwrap()).await.unwrap().unwrap();
        contents.push(fs::read_to_string(claimed).unwrap());
    }
    assert_eq!(contents, ["first", "second"]);
}

#[tokio::test]
async fn a_file_renamed_while_it_settles_is_taken_once_under_its_new_name() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    inbox.tick().await;
    fs::rename(inbox.project.path("inbox/a.csv"), inbox.project.path("inbox/b.csv")).unwrap();
    assert_eq!(inbox.after(SETTLE).await, 0, "it waits anew");
    assert_eq!(inbox.after(SETTLE).await, 1);
    assert_eq!(inbox.standing("a.csv").await.0, InputState::Gone);
    assert_eq!(inbox.runs().await[0].inputs[0].path, RawPath::new("b.csv"));
}

#[tokio::test]
async fn however_often_a_file_is_looked_at_it_is_one_run() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    let mut queued = 0;
    for _ in 0..50 {
        queued += inbox.after(SETTLE / 10).await;
        // An event late for what was seen long ago.
        queued += inbox.tick().await;
    }
    assert_eq!((queued, inbox.runs().await.len()), (1, 1));
}

#[tokio::test]
async fn one_letter_in_two_forms_is_two_names() {
    let (composed, decomposed) = ("\u{fc}.csv", "u\u{308}.csv");
    let routes = [("composed", composed), ("any", "*.csv")];
    let mut inbox = Inbox::with(Project::new(), &routes).await;
    inbox.project.put(Path::new("inbox").join(composed), "one");
    inbox.project.put(Path::new("inbox").join(decomposed), "two");
    // The second one matches only what does not spell the letter out.
    assert_eq!(inbox.settle().await, 3);
    for run in inbox.runs().await {
        let name = run.inputs[0].path.as_path();
        assert!(run.workflow == "any" || name == Path::new(composed), "{run:?}");
    }
}

#[tokio::test]
async fn a_glob_minds_case() {
    let project = Project::new().file("inbox/A.CSV", "one").file("inbox/a.csv", "two");
    let mut inbox = Inbox::with(project, &[("energy", "*.csv")]).await;
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(inbox.standing("A.CSV").await.1, "no workflow matches it (rule `no-workflow`)");
    let mut inbox = Inbox::with(inbox.project, &[("energy", "*.{csv,CSV}")]).await;
    assert_eq!(inbox.settle().await + inbox.after(SETTLE).await, 1);
}

#[tokio::test]
async fn times_in_the_future_and_a_clock_that_is_set_change_nothing() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    let file = File::options().write(true).open(inbox.project.path("inbox/a.csv")).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(9_000_000_000)).unwrap();
    inbox.tick().await;
    for wall in ["2001-01-01T00:00:00Z", "2042-01-01T00:00:00Z", "2026-01-01T00:00:00Z"] {
        inbox.clock.set_wall(wall.parse().unwrap());
        assert_eq!(inbox.after(SETTLE / 4).await, 0, "{wall}");
    }
    assert_eq!(inbox.after(SETTLE / 4).await, 1);
}

#[tokio::test]
async fn a_touch_waits_again_and_a_mode_does_not() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    inbox.tick().await;
    let path = inbox.project.path("inbox/a.csv");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(inbox.after(SETTLE).await, 1, "nothing of it has changed");

    inbox.project.put("inbox/b.csv", "abc");
    inbox.tick().await;
    let file = File::options().write(true).open(inbox.project.path("inbox/b.csv")).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    assert_eq!(inbox.after(SETTLE).await, 0, "someone is at it");
    assert_eq!(inbox.after(SETTLE).await, 1);
}

#[tokio::test]
async fn two_projects_that_watch_one_folder_take_each_file_once() {
    const FILES: usize = 200;
    let mut one = Inbox::new().await;
    let other = Project::new();
    fs::remove_dir(other.path("inbox")).unwrap();
    symlink(one.project.path("inbox"), other.path("inbox")).unwrap();
    let mut other = Inbox::with(other, &[("energy", "**/*")]).await;
    for number in 0..FILES {
        one.project.put(format!("inbox/{number}.csv"), number.to_string());
    }
    one.tick().await;
    other.tick().await;
    one.clock.advance(SETTLE);
    other.clock.advance(SETTLE);
    // Both have seen all of them when they begin to take.
    let scans = (one.look(), other.look());
    let (queued, queued_there) = tokio::join!(one.desk.tick(&scans.0), other.desk.tick(&scans.1));
    assert_eq!(queued.unwrap() + queued_there.unwrap(), FILES);
    let mut digests: Vec<Digest> = Vec::new();
    for run in one.runs().await.into_iter().chain(other.runs().await) {
        digests.extend(run.inputs.into_iter().map(|input| input.digest));
    }
    digests.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    digests.dedup();
    assert_eq!(digests.len(), FILES);
}
