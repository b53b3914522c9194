//! From a file in the inbox to its runs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use tidemill::event::id::Digest;
use tidemill::event::input::RawPath;
use tidemill::event::state::InputState;
use tidemill::store::InputRow;
use tidemill::trigger::drop_folder::scan::Root;
use tidemill::workflow::trigger::Drop;

use super::{Inbox, SETTLE};
use crate::support::project::Project;

#[tokio::test]
async fn a_file_that_was_there_before_is_taken() {
    let project = Project::new().file("inbox/energy/a.csv", "abc");
    let mut inbox = Inbox::with(project, &[("energy", "energy/*.csv")]).await;
    assert_eq!(inbox.tick().await, 0);
    assert_eq!(inbox.after(SETTLE).await, 1);

    let run = inbox.runs().await.remove(0);
    assert_eq!((run.workflow.as_str(), run.trigger.as_str()), ("energy", "drop"));
    assert_eq!(run.inputs[0].path, RawPath::new("energy/a.csv"));
    assert_eq!((run.inputs[0].size, &run.inputs[0].digest), (3, &Digest::of("abc")));
    let claimed = inbox.store.claimed(run.input.unwrap()).await.unwrap().unwrap();
    assert_eq!(fs::read(claimed).unwrap(), b"abc");
    assert!(inbox.project.files("inbox").is_empty());
    let history = inbox.store.history(&RawPath::new("energy/a.csv")).await.unwrap();
    let states: Vec<InputState> = history[0].1.iter().map(|change| change.to).collect();
    assert_eq!(states, [InputState::Seen, InputState::Ready, InputState::Claimed]);
}

#[tokio::test]
async fn a_slow_writer_is_waited_for() {
    let mut inbox = Inbox::new().await;
    let mut content = String::new();
    for piece in 0..5 {
        content.push_str("row ");
        content.push_str(&piece.to_string());
        content.push('\n');
        inbox.project.put("inbox/a.csv", &content);
        assert_eq!(inbox.after(SETTLE * 3 / 4).await, 0, "after piece {piece}");
    }
    assert_eq!(inbox.standing("a.csv").await.0, InputState::Settling);
    assert_eq!(inbox.after(SETTLE / 2).await, 0);
    assert_eq!(inbox.after(SETTLE / 2).await, 1);
    assert_eq!(inbox.runs().await[0].inputs[0].digest, Digest::of(&content));
}

#[tokio::test]
async fn an_old_time_of_the_file_does_not_make_it_complete() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    let file = fs::File::options().write(true).open(inbox.project.path("inbox/a.csv")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    assert_eq!(inbox.tick().await, 0);
    assert_eq!(inbox.after(SETTLE.checked_sub(Duration::from_millis(1)).unwrap()).await, 0);
    assert_eq!(inbox.after(Duration::from_millis(1)).await, 1);
}

#[tokio::test]
async fn a_change_of_rights_is_no_change() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    inbox.tick().await;
    fs::set_permissions(inbox.project.path("inbox/a.csv"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(inbox.after(SETTLE).await, 1);
}

#[tokio::test]
async fn a_file_renamed_into_place_is_taken_once() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv.part", "abc");
    assert_eq!(inbox.settle().await, 0);
    let (state, reason) = inbox.standing("a.csv.part").await;
    assert_eq!(state, InputState::Ignored);
    assert_eq!(reason, "a download that is not finished (rule `part`)");
    fs::rename(inbox.project.path("inbox/a.csv.part"), inbox.project.path("inbox/a.csv")).unwrap();
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(inbox.standing("a.csv.part").await.0, InputState::Gone);
    assert_eq!(inbox.settle().await, 0);
}

#[tokio::test]
async fn files_in_new_and_moved_folders_are_taken() {
    let mut inbox = Inbox::new().await;
    inbox.tick().await;
    inbox.project.put("inbox/a/b/c/1.csv", "1");
    inbox.project.put("outside/d/e/2.csv", "2");
    inbox.project.put("outside/d/3.csv", "3");
    fs::rename(inbox.project.path("outside/d"), inbox.project.path("inbox/d")).unwrap();
    assert_eq!(inbox.settle().await, 3);
    let paths: HashSet<String> = inbox.runs().await.iter().map(|run| run.inputs[0].path.display()).collect();
    assert_eq!(paths, ["a/b/c/1.csv", "d/e/2.csv", "d/3.csv"].map(str::to_owned).into());
}

#[tokio::test]
async fn names_of_any_bytes_are_taken() {
    let names: [&[u8]; 12] = [
        b"with blank.csv",
        b"new\nline.csv",
        b"-rf",
        b"'quo\"te`$(x);.csv",
        "\u{1f30a}\u{202e}.csv".as_bytes(),
        b"\xff\xfe.csv",
        b"..a..",
        b"a\\b.csv",
        b"*?[].csv",
        b"hex:00.csv",
        b"\x1b[31m.csv",
        &[b'x'; 255],
    ];
    let mut inbox = Inbox::new().await;
    for name in names.iter().filter(|name| !name.starts_with(b".")) {
        inbox.project.put(Path::new("inbox").join(OsStr::from_bytes(name)), name);
    }
    assert_eq!(inbox.settle().await, names.len() - 1);
    for run in inbox.runs().await {
        let name = run.inputs[0].path.name().as_bytes();
        assert_eq!(run.inputs[0].digest, Digest::of(name), "{:?}", run.inputs[0].path);
        let claimed = inbox.store.claimed(run.input.unwrap()).await.unwrap().unwrap();
        assert_eq!(claimed.file_name().unwrap().as_bytes(), name);
    }
}

#[tokio::test]
async fn an_empty_file_waits_until_it_grows_unless_its_drop_takes_it() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/empty.csv", "");
    assert_eq!(inbox.settle().await, 0);
    let reason = "it is empty; it waits until it has 1 B (`min_size` of energy)";
    assert_eq!(inbox.standing("empty.csv").await, (InputState::Settling, reason.to_owned()));
    inbox.project.put("inbox/empty.csv", "x");
    assert_eq!(inbox.settle().await, 1);

    let project = Project::new().file("inbox/empty.csv", "");
    let mut inbox = Inbox::dropping(project, Drop { min_size: 0, ..Drop::new("*") }).await;
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(inbox.runs().await[0].inputs[0].size, 0);
}

#[tokio::test]
async fn only_regular_files_are_taken_and_links_are_not_followed() {
    let mut inbox = Inbox::new().await;
    let at = |name: &str| inbox.project.path("inbox").join(name);
    symlink("/etc/passwd", at("link.csv")).unwrap();
    symlink("nowhere", at("dangling.csv")).unwrap();
    symlink("/etc", at("folder")).unwrap();
    symlink(".", at("loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo.csv"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket.csv")).unwrap();
    assert_eq!(inbox.settle().await, 0);
    for (name, kind) in [
        ("link.csv", "a symbolic link"),
        ("dangling.csv", "a symbolic link"),
        ("folder", "a symbolic link"),
        ("loop", "a symbolic link"),
        ("fifo.csv", "a FIFO"),
        ("socket.csv", "a socket"),
    ] {
        let expected = format!("{kind}, not a regular file (rule `regular-files`)");
        assert_eq!(inbox.standing(name).await, (InputState::Ignored, expected), "{name}");
    }
}

#[tokio::test]
async fn overlapping_globs_make_one_run_each() {
    let project = Project::new().file("inbox/energy/a.csv", "abc");
    let routes = [("first", "energy/*"), ("second", "**/*.csv"), ("first", "**"), ("third", "*.csv")];
    let mut inbox = Inbox::with(project, &routes).await;
    assert_eq!(inbox.settle().await, 2);
    let runs = inbox.runs().await;
    let workflows: HashSet<&str> = runs.iter().map(|run| run.workflow.as_str()).collect();
    assert_eq!(workflows, HashSet::from(["first", "second"]));
    assert_eq!(runs[0].input, runs[1].input);
}

#[tokio::test]
async fn a_file_no_workflow_matches_stays_where_it_is() {
    let project = Project::new().file("inbox/a.txt", "abc");
    let mut inbox = Inbox::with(project, &[("energy", "*.csv")]).await;
    assert_eq!(inbox.settle().await, 0);
    let (state, reason) = inbox.standing("a.txt").await;
    assert_eq!(
        (state, reason.as_str()),
        (InputState::Ignored, "no workflow matches it (rule `no-workflow`)")
    );
    assert_eq!(inbox.project.files("inbox"), [Path::new("a.txt")]);

    // A script is changed, and watched anew.
    let mut inbox = Inbox::with(inbox.project, &[("energy", "*.txt")]).await;
    assert_eq!(inbox.settle().await + inbox.after(SETTLE).await, 1);
}

#[tokio::test]
async fn the_same_name_again_is_another_input() {
    let mut inbox = Inbox::new().await;
    for content in ["one", "two", "two"] {
        inbox.project.put("inbox/a.csv", content);
        assert_eq!(inbox.settle().await, 1);
    }
    let inputs: HashSet<Option<i64>> = inbox.runs().await.iter().map(|run| run.input).collect();
    assert_eq!(inputs.len(), 3);
    assert_eq!(inbox.project.files(".tidemill/claimed").len(), 3);
}

#[tokio::test]
async fn what_is_taken_away_before_it_is_claimed_is_gone_and_no_run() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    inbox.tick().await;
    fs::remove_file(inbox.project.path("inbox/a.csv")).unwrap();
    assert_eq!(inbox.after(SETTLE).await, 0);
    assert_eq!(inbox.standing("a.csv").await.0, InputState::Gone);
}

#[tokio::test]
async fn an_absent_inbox_deletes_nothing() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    inbox.tick().await;
    fs::rename(inbox.project.path("inbox"), inbox.project.path("unmounted")).unwrap();
    assert_eq!((inbox.look().root, inbox.tick().await), (Root::Absent, 0));
    let reason = "the inbox is not there; it is waited for";
    assert_eq!(inbox.standing("a.csv").await, (InputState::RootAbsent, reason.to_owned()));
    fs::rename(inbox.project.path("unmounted"), inbox.project.path("inbox")).unwrap();
    assert_eq!(inbox.after(SETTLE).await, 1);
}

#[tokio::test]
async fn a_file_that_cannot_be_moved_is_blocked_until_it_can() {
    let mut inbox = Inbox::new().await;
    inbox.project.put("inbox/a.csv", "abc");
    // A file where the folder of claimed files should be: moving fails whoever the user is.
    inbox.project.put(".tidemill/claimed", "");
    assert_eq!(inbox.settle().await, 0);
    let (state, reason) = inbox.standing("a.csv").await;
    assert_eq!(state, InputState::Blocked);
    assert!(!reason.is_empty());
    assert_eq!(inbox.project.files("inbox"), [Path::new("a.csv")]);
    assert_eq!(inbox.after(SETTLE).await, 0);
    fs::remove_file(inbox.project.path(".tidemill/claimed")).unwrap();
    assert_eq!(inbox.after(Duration::from_secs(10)).await, 1);
    assert!(inbox.runs().await[0].inputs[0].digest == Digest::of("abc"));
}

#[tokio::test]
async fn a_thousand_files_at_once_are_each_taken_once() {
    const FILES: usize = 1000;
    let mut inbox = Inbox::new().await;
    for number in 0..FILES {
        inbox.project.put(format!("inbox/{}/{number}.csv", number % 7), number.to_string());
    }
    assert_eq!(inbox.settle().await, FILES);
    assert_eq!(inbox.settle().await, 0);
    let runs = inbox.runs().await;
    let digests: HashSet<&Digest> = runs.iter().map(|run| &run.inputs[0].digest).collect();
    assert_eq!((runs.len(), digests.len()), (FILES, FILES));
    assert!((0..FILES).all(|number| digests.contains(&Digest::of(number.to_string()))));
    assert!(inbox.project.files("inbox").is_empty());
    let claimed: Vec<InputRow> = inbox.store.inputs(&[InputState::Claimed]).await.unwrap();
    assert_eq!(claimed.len(), FILES);
}
