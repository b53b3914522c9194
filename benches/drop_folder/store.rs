//! Commits and events of the store, beside what the disk does by itself.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::event::trigger::Trigger;
use tidemill::store::NewRun;

use crate::measure::rate;
use crate::mill::Mill;

const TIMES: usize = 2_000;

pub async fn measure() {
    let mill = Mill::new("2s").await;
    let disk = disk(&mill);
    let start = Instant::now();
    for number in 0..TIMES {
        let change = InputChange {
            path: RawPath::new(format!("{number}.csv")),
            fingerprint: Fingerprint { size: 1, mtime_ns: 1, inode: 1, device: 1 },
            state: InputState::Seen,
            reason: None,
        };
        mill.store.record(&[change]).await.expect("a row");
    }
    let commits = start.elapsed();
    let id = RunId::parse("20261130-230000-abcd").expect("an id");
    let at = "2026-11-30T23:00:00Z".parse().expect("a time");
    let run = NewRun::new(id.clone(), "idle", Trigger::Manual, Digest::of("script"), "nobody", at);
    mill.store.queue_run(run).await.expect("a run");
    let start = Instant::now();
    for _ in 0..TIMES {
        let what = What::StateEntered { state: RunState::Running, reason: None };
        mill.store.append(&id, what).await.expect("an event");
    }
    let events = start.elapsed();
    println!("store: {TIMES} of each, one after the other, each on the disk before the next");
    println!("  commits (a file's row)        {:>9.0} /s", rate(TIMES, commits));
    println!("  events                        {:>9.0} /s", rate(TIMES, events));
    println!("  4 KiB appended and synced     {:>9.0} /s", rate(TIMES, disk));
    println!("  commits ÷ disk {:.2}, events ÷ disk {:.2}", ratio(disk, commits), ratio(disk, events));
}

/// What a log that does nothing else would take.
fn disk(mill: &Mill) -> Duration {
    let mut file = File::create(mill.path("log")).expect("a file");
    let start = Instant::now();
    for _ in 0..TIMES {
        file.write_all(&[7; 4096]).expect("room");
        file.sync_data().expect("a disk");
    }
    start.elapsed()
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
