//! `cargo bench --bench crash [-- KILLS] [-- --seconds N]`: `tidemill watch`, killed with SIGKILL again and again at
//! random moments, at most so often and for so long.
//!
//! Each round drops a file, starts the daemon, and kills it some time later, while runs make sandboxes, ask the model,
//! work, are checked, publish, and put inputs away. In the end the daemon works off what is left. Then every input must
//! have been published once; no answer of the model may have been paid for twice, and no command run twice; and nothing
//! of any of the processes may be on the engine, among the temporary files, or in the runs' folders. With
//! `--profile dev` nothing needs to be built for release.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::large_futures,
    reason = "a benchmark that cannot run says so and ends"
)]

#[path = "../tests/support/engine.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod engine;
#[path = "crash/found.rs"]
mod found;
#[path = "crash/mill.rs"]
mod mill;
#[path = "../tests/support/wire.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod wire;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use found::{answers_paid_twice, given_up, left_of, published, stories, waiting_files};
use mill::Mill;

const KILLS: usize = 200;
/// A daemon lives for at most so long.
const LIFE: Duration = Duration::from_millis(4000);
/// How often it is looked whether all is done, and for how long.
const LOOK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(1800);

#[tokio::main]
async fn main() {
    let asked = Asked::of(std::env::args().skip(1));
    let mill = Mill::build(&engine::small_image().await.digest).await;
    let (mut pids, mut dropped, mut hit) = (BTreeSet::new(), 0, 0);
    let start = Instant::now();
    while dropped < asked.kills && start.elapsed() < asked.time {
        mill.drop_file(dropped);
        dropped += 1;
        let mut child = mill.watch();
        pids.extend(child.id());
        tokio::time::sleep(LIFE.mul_f64(fastrand::f64())).await;
        child.kill().await.expect("killed");
        hit += usize::from(left_of(&pids).await > 0);
    }
    let (took, done) = (start.elapsed().as_secs_f64(), published(mill.root()).len());
    println!("{dropped} kills in {took:.0} s, {hit} of them left something; {done} inputs published so far");
    let mut child = mill.watch();
    pids.extend(child.id());
    let since = Instant::now();
    let all_are_through = || published(mill.root()).len() + given_up(mill.root()).len() >= dropped;
    while !all_are_through() && since.elapsed() < PATIENCE {
        tokio::time::sleep(LOOK).await;
    }
    println!("the rest was worked off in {:.0} s", since.elapsed().as_secs_f64());
    mill::end(&mut child).await;
    report(&mill, dropped, &pids).await;
}

/// Counts, and fails when a count is not what it must be.
async fn report(mill: &Mill, dropped: usize, pids: &BTreeSet<u32>) {
    let (published, given_up) = (published(mill.root()), given_up(mill.root()));
    let lost = (0..dropped).filter(|number| !published.contains_key(number)).count();
    let twice = published.values().filter(|texts| texts.len() > 1).count();
    let is_wrong = |number: usize, texts: &[String]| texts.iter().any(|text| *text != mill::artifact(number));
    let wrong = published.iter().filter(|(number, texts)| is_wrong(**number, texts)).count();
    let (paid_twice, interruptions) = answers_paid_twice(mill).await;
    let left = left_of(pids).await + waiting_files(mill.root());
    println!("inputs {dropped}: published {}, given up {}", published.len(), given_up.len());
    println!("runs were interrupted and went on {interruptions} times, model calls {}", mill.calls());
    println!("lost {lost}, published twice {twice}, commands not run once {wrong}");
    println!("answers paid twice {paid_twice}, left on the engine and in files {left}");
    let astray = |number: &usize| published.get(number).is_none_or(|texts| is_wrong(*number, texts));
    for line in stories(mill, &(0..dropped).filter(astray).collect()).await {
        println!("{line}");
    }
    assert!(lost == 0 && twice == 0 && wrong == 0 && paid_twice == 0 && left == 0, "see above");
}

/// What the command line asks for.
struct Asked {
    kills: usize,
    time: Duration,
}

impl Asked {
    fn of(words: impl Iterator<Item = String>) -> Self {
        let mut asked = Self { kills: KILLS, time: Duration::MAX };
        let mut is_time = false;
        for word in words {
            match word.parse() {
                Ok(seconds) if is_time => asked.time = Duration::from_secs(seconds),
                Ok(kills) => asked.kills = usize::try_from(kills).unwrap_or(KILLS),
                Err(_) => {}
            }
            is_time = word == "--seconds";
        }
        asked
    }
}
