//! From a file that is complete to its run.

use std::fs;
use std::time::{Duration, Instant};

use crate::measure::{millis, percentile};
use crate::mill::Mill;

const FILES: usize = 200;
const SETTLE: Duration = Duration::from_millis(50);

pub async fn measure() {
    let mill = Mill::new("50ms").await;
    let mut watching = mill.watch().await;
    let mut random = fastrand::Rng::with_seed(7);
    let mut times = Vec::with_capacity(FILES);
    for number in 0..FILES {
        // At any moment of the daemon's round.
        tokio::time::sleep(Duration::from_micros(random.u64(1_000..40_000))).await;
        let name = format!("{number}.csv");
        fs::write(mill.path("aside").join(&name), "a,b\n1,2\n").expect("a file");
        let start = Instant::now();
        fs::rename(mill.path("aside").join(&name), mill.path("inbox").join(&name)).expect("a move");
        let (_, claimed) = watching.claimed.recv().await.expect("a daemon");
        times.push(claimed.saturating_duration_since(start).saturating_sub(SETTLE));
    }
    watching.end().await;
    let [p50, p95, most] = [50, 95, 100].map(|part| millis(percentile(&mut times, part)));
    println!("latency: {FILES} files one after the other, from move + settle to the run's row");
    println!("  p50 {p50:.1} ms, p95 {p95:.1} ms, most {most:.1} ms");
}
