//! `cargo bench --bench log [-- RUNS]`: what it costs to append events, one run after the other and many at once.
//!
//! Each event is on the disk before it is reported. Events that wait at the same time share one commit, so many runs at
//! once append more per second than one alone. Printed are events per second, events per commit, and the ratio: compare
//! ratios, since the seconds are those of this machine's disk. The state is in the folder that `TMPDIR` names.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot run says so and ends")]
#![expect(clippy::cast_precision_loss, reason = "numbers for show")]

use std::path::Path;
use std::time::Instant;

use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::store::{NewRun, Store};

/// Events in all: so few that the journal is not folded into the database in between, and its commits can be counted.
const EVENTS: usize = 160;
/// Runs at once, when nothing is asked for.
const RUNS: usize = 16;

/// What appending came to.
struct Measured {
    per_second: f64,
    per_commit: f64,
}

#[tokio::main]
async fn main() {
    let asked = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let runs = asked.unwrap_or(RUNS).clamp(1, EVENTS);
    println!("runs   events/s   events/commit");
    let alone = measure(1).await;
    let many = measure(runs).await;
    println!(
        "{runs} at once append {:.1} times as many events per second as 1",
        many.per_second / alone.per_second
    );
}

/// So many runs append their share of the events at once.
async fn measure(runs: usize) -> Measured {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).await.expect("a store");
    let mut ids = Vec::new();
    for number in 0..runs {
        let id = RunId::parse(&format!("run-{number}")).expect("an id");
        let at = "2026-11-30T23:00:00Z".parse().expect("a time");
        let run = NewRun::new(id.clone(), "bench", Trigger::Webhook, Digest::of("script"), "none", at);
        store.queue_run(run).await.expect("a queued run");
        ids.push(id);
    }
    let before = commits(folder.path());
    let began = Instant::now();
    let appending = ids.into_iter().map(|run| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..EVENTS / runs {
                let what = What::StateEntered { state: RunState::Running, reason: None };
                store.append(&run, what).await.expect("an event");
            }
        })
    });
    for task in appending.collect::<Vec<_>>() {
        task.await.expect("it does not panic");
    }
    let events = (EVENTS / runs * runs) as f64;
    let measured = Measured {
        per_second: events / began.elapsed().as_secs_f64(),
        per_commit: events / (commits(folder.path()) - before) as f64,
    };
    println!("{runs:>4}   {:>8.0}   {:>13.1}", measured.per_second, measured.per_commit);
    measured
}

/// Commits in SQLite's journal: frames that say how large the database is after them.
fn commits(state: &Path) -> usize {
    const HEADER: usize = 32;
    const FRAME: usize = 24;
    let journal = std::fs::read(state.join(format!("{}-wal", Store::FILE))).expect("the journal");
    let page = u32::from_be_bytes(journal[8..12].try_into().expect("four bytes")) as usize;
    journal[HEADER..].chunks_exact(FRAME + page).filter(|frame| frame[4..8] != [0; 4]).count()
}
