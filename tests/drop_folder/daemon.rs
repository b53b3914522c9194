//! The daemon: from queued runs to files put away.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidemill::event::What;
use tidemill::event::input::{InputChange, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::run::intake::Daemon;
use tidemill::run::intake::notice::Notice;
use tidemill::store::Store;

use super::crash::{claim, version};
use super::harness::{Act, open, watching};
use super::route;
use crate::support::project::Project;

#[tokio::test]
async fn a_file_whose_run_succeeds_is_processed() {
    let project = Project::new().file("inbox/energy/a.csv", "abc");
    let mut watching = watching(&project, &[]).await;
    let put = watching.put_away().await;
    assert_eq!(put, (InputState::Done, "processed/energy/a.csv".into()));
    watching.finish().await;
    assert_eq!(project.files("processed"), [Path::new("energy/a.csv")]);
    assert_eq!(fs::read(project.path("processed/energy/a.csv")).unwrap(), b"abc");
    assert!(project.files("inbox").is_empty());
    assert_eq!(fs::read_dir(project.path(".tidemill/claimed")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_whose_run_fails_has_the_reason_beside_it() {
    for (act, state, lines) in [
        (Act::End(RunState::Rejected), InputState::Rejected, "output/a.csv: it has no rows"),
        (Act::End(RunState::Denied), InputState::Failed, "the test wants denied [run::told]"),
        (Act::End(RunState::Exhausted), InputState::Failed, "energy ended as exhausted (run "),
        (
            Act::Err("image::build_failed"),
            InputState::Failed,
            "it went wrong [image::build_failed]\n  help: mend it",
        ),
        (Act::Panic, InputState::Failed, "the run broke off inside tidemill [run::broken]"),
    ] {
        let project = Project::new().file("inbox/energy/a.csv", "abc");
        let mut watching = watching(&project, &[act]).await;
        assert_eq!(watching.put_away().await, (state, "failed/energy/a.csv".into()), "{act:?}");
        let run = watching.begun().await.id;
        watching.finish().await;
        let reason = fs::read_to_string(project.path("failed/energy/a.csv.reason.txt")).unwrap();
        assert!(reason.contains(lines), "{act:?}: {reason}");
        assert!(reason.contains(&format!("tidemill show {run}")), "{reason}");
        assert!(
            reason.ends_with("\nMoved back to inbox/energy/a.csv, it counts as dropped anew.\n"),
            "{reason}"
        );
        assert_eq!(project.files("failed").len(), 2);
    }
}

#[tokio::test]
async fn a_file_with_two_runs_is_put_away_when_both_have_ended() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let routes = vec![route("first", "*"), route("second", "*")];
    let acts = [Act::Succeed, Act::End(RunState::Failed)];
    let mut watching = open(&project, routes, &acts).await.unwrap();
    assert_eq!(watching.put_away().await, (InputState::Failed, "failed/a.csv".into()));
    watching.finish().await;
    let reason = fs::read_to_string(project.path("failed/a.csv.reason.txt")).unwrap();
    assert_eq!(reason.matches(" (run ").count(), 1, "{reason}");
    assert!(project.files("processed").is_empty());
}

#[tokio::test]
async fn nothing_in_processed_or_failed_is_ever_overwritten() {
    let project = Project::new()
        .file("processed/a.csv", "old")
        .file("failed/b.csv.reason.txt", "old")
        .file("inbox/a.csv", "new");
    let mut watching = watching(&project, &[Act::Succeed, Act::End(RunState::Failed)]).await;
    let run = watching.begun().await.id;
    let (_, to) = watching.put_away().await;
    assert_eq!(to, Path::new(&format!("processed/a-{run}.csv")));
    project.put("inbox/b.csv", "new");
    let run = watching.begun().await.id;
    let (_, to) = watching.put_away().await;
    assert_eq!(to, Path::new(&format!("failed/b-{run}.csv")));
    watching.finish().await;
    assert_eq!(fs::read(project.path("processed/a.csv")).unwrap(), b"old");
    assert_eq!(fs::read(project.path("failed/b.csv.reason.txt")).unwrap(), b"old");
    assert_eq!(project.files("failed").len(), 3);
}

#[tokio::test]
async fn so_many_runs_at_once_and_no_more() {
    let mut project = Project::new().config("[watch]\nconcurrency = 3\n");
    for number in 0..10 {
        project = project.file(format!("inbox/{number}.csv"), "abc");
    }
    let mut watching = watching(&project, &[Act::Hold; 3]).await;
    for _ in 0..3 {
        watching.begun().await;
    }
    watching.double.let_go.notify_waiters();
    for _ in 0..10 {
        watching.put_away().await;
    }
    assert_eq!(watching.double.most.load(Ordering::SeqCst), 3);
    watching.finish().await;
    assert_eq!(project.files("processed").len(), 10);
}

#[tokio::test]
async fn a_run_that_this_machine_cannot_begin_is_tried_as_often_as_it_takes() {
    for code in ["sandbox::no_engine", "store::disk_full"] {
        let project = Project::new().file("inbox/a.csv", "abc").file("inbox/b.csv", "abc");
        let acts =
            [Act::Err(code), Act::Succeed, Act::Err(code), Act::Err(code), Act::Err(code), Act::Err(code)];
        let project = project.config("[watch]\nconcurrency = 2\n");
        let mut watching = watching(&project, &acts).await;
        let first = watching.begun().await;
        // The other one does not wait for it.
        assert_ne!(watching.begun().await.id, first.id);
        for _ in 0..5 {
            let again = watching.begun().await;
            assert_eq!((&again.id, again.attempts), (&first.id, 1), "no fault of the run's");
        }
        for _ in 0..2 {
            assert_eq!(watching.put_away().await.0, InputState::Done);
        }
        let events = watching.store.all_events(&first.id).await.unwrap();
        let mut began = first.queued_at;
        let mut waits = Vec::new();
        for event in events {
            match event.what {
                What::StateEntered { state: RunState::Preparing, .. } => began = event.at,
                What::Postponed { again } => {
                    assert_eq!((again.of, again.why.message.as_str()), (None, "it went wrong"));
                    waits.push(again.at.duration_since(began).as_secs());
                }
                _ => {}
            }
        }
        assert_eq!(waits.len(), 5);
        assert!(waits[0] >= 30 && waits[4] >= 480, "{waits:?}");
        watching.finish().await;
    }
}

#[tokio::test]
async fn a_run_that_published_is_not_carried_out_again_whatever_failed_then() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::PublishThenFull, Act::End(RunState::Failed)]).await;
    let run = watching.begun().await.id;
    assert_eq!(watching.put_away().await, (InputState::Done, "processed/a.csv".into()));
    assert_eq!(watching.store.run(&run).await.unwrap().unwrap().state, RunState::Succeeded);
    watching.finish().await;
}

#[tokio::test]
async fn a_service_that_fails_is_tried_three_times() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Err("model::overloaded"); 5]).await;
    for _ in 0..3 {
        assert_eq!(watching.begun().await.attempts, 1, "no process went down");
    }
    assert_eq!(watching.put_away().await, (InputState::Failed, "failed/a.csv".into()));
    watching.finish().await;
    let reason = fs::read_to_string(project.path("failed/a.csv.reason.txt")).unwrap();
    assert!(reason.contains("it went wrong [model::overloaded]"), "{reason}");
}

#[tokio::test]
async fn with_too_little_room_nothing_is_taken_and_it_is_said_once() {
    let project = Project::new().config("[watch]\nmin_free = \"4000TB\"\n").file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[]).await;
    let paused = watching.notice(|notice| matches!(notice, Notice::Paused { .. })).await;
    let Notice::Paused { what, why } = paused else { unreachable!() };
    assert_eq!((what, why.code.as_str()), ("taking files in", "watch::low_disk"));
    for _ in 0..10 {
        watching.clock.advance(Duration::from_secs(60));
        tokio::task::yield_now().await;
    }
    assert!(watching.notices.try_recv().is_err(), "it was said already");
    watching.finish().await;
    assert_eq!(project.files("inbox"), [Path::new("a.csv")]);
    // With room again the next one takes it.
    let project = project.config("");
    let mut next = self::watching(&project, &[]).await;
    assert_eq!(next.put_away().await.0, InputState::Done);
    next.finish().await;
}

#[tokio::test]
async fn runs_queued_by_another_process_are_found() {
    let project = Project::new();
    let mut watching = watching(&project, &[]).await;
    // What the other one claims never stood where this one looks.
    let other = Store::open(&project.path(".tidemill")).await.unwrap();
    project.put("elsewhere.csv", "abc");
    let change = InputChange {
        path: RawPath::new("a.csv"),
        fingerprint: version(&project.path("elsewhere.csv")),
        state: InputState::Ready,
        reason: None,
    };
    let taken = other.ready(std::slice::from_ref(&change)).await.unwrap().remove(0);
    let to = project.path(".tidemill").join(&taken.claimed_path);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(project.path("elsewhere.csv"), to).unwrap();
    let run = claim(&other, &change, taken.input).await;
    assert_eq!(watching.begun().await.id, run);
    other.close().await;
    assert_eq!(watching.put_away().await.0, InputState::Done);
    watching.finish().await;
}

#[tokio::test]
async fn a_file_that_cannot_be_put_away_is_as_soon_as_it_can() {
    let project = Project::new().file("inbox/a.csv", "abc").file("processed", "in the way");
    let mut watching = watching(&project, &[]).await;
    let warned = watching.notice(|notice| matches!(notice, Notice::Warned(_))).await;
    assert!(matches!(warned, Notice::Warned(report) if report.code == "watch::unmovable"));
    fs::remove_file(project.path("processed")).unwrap();
    assert_eq!(watching.put_away().await, (InputState::Done, "processed/a.csv".into()));
    watching.finish().await;
}

#[tokio::test]
async fn a_file_that_someone_takes_out_of_the_state_folder_is_gone() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Hold]).await;
    watching.begun().await;
    let claimed = project.files(".tidemill/claimed").remove(0);
    fs::remove_file(project.path(".tidemill/claimed").join(claimed)).unwrap();
    watching.double.let_go.notify_one();
    assert_eq!(watching.put_away().await, (InputState::Gone, PathBuf::new()));
    watching.finish().await;
    assert!(project.files("processed").is_empty());
}

#[tokio::test]
async fn an_inbox_that_is_not_there_at_the_start_is_waited_for() {
    let project = Project::new();
    fs::remove_dir(project.path("inbox")).unwrap();
    let mut watching = watching(&project, &[]).await;
    watching.notice(|notice| matches!(notice, Notice::InboxAbsent(_))).await;
    project.put("inbox/a.csv", "abc");
    watching.notice(|notice| matches!(notice, Notice::InboxBack(_))).await;
    assert_eq!(watching.put_away().await.0, InputState::Done);
    watching.finish().await;
}

#[tokio::test]
async fn one_project_is_watched_once() {
    let project = Project::new();
    let first = watching(&project, &[]).await;
    let second = open(&project, Vec::new(), &[]).await.err().unwrap();
    assert_eq!(second.code(), "watch::running");
    let pid = std::process::id().to_string();
    assert!(second.message().contains(&format!("by process {pid} since 20")), "{second}");
    assert!(Daemon::watches(&project.open()));
    first.finish().await;
    assert!(!Daemon::watches(&project.open()));
    watching(&project, &[]).await.finish().await;
}

#[tokio::test]
async fn folders_we_write_to_must_not_lie_in_the_inbox() {
    let project = Project::new().config("[folders]\nprocessed = \"inbox/done\"\n");
    let error = open(&project, Vec::new(), &[]).await.err().unwrap();
    assert_eq!(error.code(), "config::invalid");
    // Nor by way of a link.
    let project = Project::new().config("").file("inbox/out/a.csv", "");
    fs::remove_dir(project.path("outbox")).unwrap();
    std::os::unix::fs::symlink("inbox/out", project.path("outbox")).unwrap();
    let error = open(&project, Vec::new(), &[]).await.err().unwrap();
    assert_eq!(error.code(), "config::invalid");
}

#[tokio::test]
async fn the_first_stop_finishes_what_runs_and_takes_nothing_new() {
    let project =
        Project::new().config("[watch]\nconcurrency = 1\n").file("inbox/a.csv", "a").file("inbox/b.csv", "b");
    let mut watching = watching(&project, &[Act::Hold]).await;
    watching.begun().await;
    watching.stop.finish();
    let finishing = watching.notice(|notice| matches!(notice, Notice::Finishing(_))).await;
    assert_eq!(finishing, Notice::Finishing(1));
    watching.double.let_go.notify_one();
    let store = watching.store.clone();
    watching.end().await.unwrap();
    assert_eq!(project.files("processed").len(), 1);
    // The other one waits for the next daemon.
    assert_eq!(store.waiting(10).await.unwrap().len(), 1);
    let mut next = self::watching(&project, &[]).await;
    next.put_away().await;
    next.finish().await;
    assert_eq!(project.files("processed").len(), 2);
}

#[tokio::test]
async fn the_second_stop_breaks_runs_off_and_they_start_over() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Wait]).await;
    let run = watching.begun().await.id;
    watching.stop.interrupt();
    watching.notice(|notice| matches!(notice, Notice::Requeued(_))).await;
    let store = watching.store.clone();
    watching.end().await.unwrap();
    assert_eq!(store.run(&run).await.unwrap().unwrap().state, RunState::Queued);

    let mut next = self::watching(&project, &[]).await;
    let again = next.begun().await;
    assert_eq!((again.id, again.attempts), (run, 1), "a stop in good order is no failed attempt");
    assert_eq!(next.put_away().await.0, InputState::Done);
    next.finish().await;
}

#[tokio::test]
async fn a_run_that_does_not_stop_is_let_go_of() {
    let project = Project::new().file("inbox/a.csv", "abc");
    let mut watching = watching(&project, &[Act::Hold]).await;
    let run = watching.begun().await.id;
    watching.stop.interrupt();
    let store = watching.store.clone();
    watching.end().await.unwrap();
    assert_eq!(store.run(&run).await.unwrap().unwrap().state, RunState::Queued);
}
