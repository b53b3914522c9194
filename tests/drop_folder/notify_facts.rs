//! What file events are known to lose, against our own looks: nothing is lost, and nothing is taken too early.
//!
//! Folders made in each other, folders moved in, an inbox made anew and hard links have their tests in `notify`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::InputState;
use tidemill::run::folder::RunFolder;
use tidemill::run::inputs;
use tidemill::trigger::drop_folder::scope::Scope;
use tidemill::trigger::drop_folder::watch::Watch;
use tidemill::workflow::trigger::Drop;

use super::{Inbox, SETTLE};
use crate::support::project::Project;

/// A file in the inbox that is written through another link of it, of which no event comes.
fn write_through(project: &Project, text: &str) {
    let mut outside = fs::File::options().append(true).open(project.path("outside.csv")).unwrap();
    outside.write_all(text.as_bytes()).unwrap();
}

fn linked() -> Project {
    let project = Project::new().file("outside.csv", "abc");
    fs::hard_link(project.path("outside.csv"), project.path("inbox/a.csv")).unwrap();
    project
}

#[tokio::test]
async fn a_write_of_which_no_event_comes_is_waited_for() {
    let mut inbox = Inbox::dropping(linked(), Drop::new("*")).await;
    inbox.tick().await;
    write_through(&inbox.project, "def");
    // The look at which it would have been complete shows that it is not.
    assert_eq!(inbox.after(SETTLE).await, 0);
    assert_eq!(inbox.standing("a.csv").await.0, InputState::Settling);
    assert_eq!(inbox.after(SETTLE).await, 1);
    assert_eq!(inbox.runs().await[0].inputs[0].digest, Digest::of("abcdef"));
}

#[tokio::test]
async fn a_write_after_the_claim_never_reaches_the_run() {
    let mut inbox = Inbox::dropping(linked(), Drop::new("*")).await;
    assert_eq!(inbox.settle().await, 1);
    let run = inbox.runs().await.remove(0);
    let files = inbox.store.claimed_files(&run).await.unwrap();
    let folder = RunFolder::new(&inbox.project.path(".tidemill"), &run.id);
    let copies = inputs::snapshots(&run.inputs, &files, &folder).unwrap();
    write_through(&inbox.project, "def");
    assert_eq!(fs::read(&copies[0].file).unwrap(), b"abc", "the run has a copy of its own");
    let other =
        RunFolder::new(&inbox.project.path(".tidemill"), &RunId::parse("20261130-230000-late").unwrap());
    let late = inputs::snapshots(&run.inputs, &files, &other).unwrap_err();
    assert_eq!(late.code(), "input::changed");
}

#[tokio::test]
async fn a_fifo_holds_nobody_up() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let fifo = project.path("inbox/fifo.csv");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let mut inbox = Inbox::dropping(project, Drop::new("*")).await;
    assert_eq!(inbox.settle().await, 1);
    assert_eq!(inbox.standing("fifo.csv").await.0, InputState::Ignored);
}

#[tokio::test]
async fn more_files_than_events_fit_are_all_seen() {
    // The queue of the system holds 16,384 events, and nobody takes any out while these are made.
    const FILES: usize = 20_000;
    let project = Project::new().file("outside.csv", "abc");
    let mut watch = Watch::new(&project.path("inbox"));
    watch.look(Scope::All);
    for number in 0..FILES {
        fs::hard_link(project.path("outside.csv"), project.path(format!("inbox/{number}"))).unwrap();
    }
    let hints = watch.hints();
    let mut seen = 0;
    super::harness::soon(async {
        while seen < FILES {
            hints.hint().await;
            if let Some(scan) = watch.look(Scope::none()) {
                seen = scan.found.len();
            }
        }
    })
    .await;
    assert_eq!(seen, FILES);
}

#[tokio::test]
async fn a_file_that_was_never_heard_of_is_found_by_the_scan_of_everything() {
    let project = Project::new().file("inbox/deep/down/a.csv", "abc");
    let mut inbox = Inbox::dropping(project, Drop::new("**")).await;
    inbox.settle().await;
    inbox.project.put(Path::new("inbox/deep/down/b.csv"), "abc");
    assert_eq!(inbox.after(Duration::from_mins(1)).await + inbox.after(SETTLE).await, 1);
}
