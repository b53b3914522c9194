//! A look at many files that have not changed.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemill::clock::SystemClock;
use tidemill::run::intake::desk::Desk;
use tidemill::run::intake::notice::Tell;
use tidemill::trigger::drop_folder::scope::Scope;
use tidemill::trigger::drop_folder::watch::Watch;

use crate::measure::{forget_peak, millis, peak, percentile};
use crate::mill::Mill;

const FOLDERS: usize = 100;
const FILES: usize = 1_000;
const TIMES: usize = 7;

pub async fn measure() {
    println!("reconcile: {} files in {FOLDERS} folders, median of {TIMES}", FOLDERS * FILES);
    for (what, extension) in [("files that wait", "csv"), ("files no workflow is for", "txt")] {
        alike(what, extension).await;
    }
}

async fn alike(what: &str, extension: &str) {
    let mill = Mill::new("10h").await;
    for folder in 0..FOLDERS {
        let folder = mill.path(&format!("inbox/{folder}"));
        fs::create_dir(&folder).expect("a folder");
        for file in 0..FILES {
            fs::write(folder.join(format!("{file}.{extension}")), "x").expect("a file");
        }
    }
    forget_peak();
    let before = peak();
    let mut watch = Watch::new(&mill.project.inbox());
    let mut desk = open(&mill).await;
    let start = Instant::now();
    let first = watch.look(Scope::All).expect("a look");
    let looked = start.elapsed();
    desk.tick(&first).await.expect("the ledger");
    let ledgered = start.elapsed();
    drop(first);
    let first_peak = peak();
    forget_peak();
    let (mut walks, mut looks, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let start = Instant::now();
        std::hint::black_box(walk(&mill));
        walks.push(start.elapsed());
        let start = Instant::now();
        let seen = watch.look(Scope::All).expect("a look");
        looks.push(start.elapsed());
        desk.tick(&seen).await.expect("the ledger");
        whole.push(start.elapsed());
    }
    let peak = peak();
    drop(desk);
    let start = Instant::now();
    drop(open(&mill).await);
    let remembered = start.elapsed();
    let [walk, look, whole] = [walks, looks, whole].map(|mut times| percentile(&mut times, 50));
    println!("  {what}");
    println!(
        "    first look and ledger       {:>9.0} ms   (look {:.0} ms)",
        millis(ledgered),
        millis(looked)
    );
    println!("    reconcile                   {:>9.0} ms   (look {:.0} ms)", millis(whole), millis(look));
    println!("    reconcile ÷ reading names and sizes {:>5.2}", ratio(whole, walk));
    println!("    known again at a start      {:>9.0} ms", millis(remembered));
    println!(
        "    peak memory                 {peak:>9.1} MiB   (first look {first_peak:.1}, {before:.1} before)"
    );
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

/// Only what any scan must do: each name and what stands there.
fn walk(mill: &Mill) -> u64 {
    let mut bytes = 0;
    for folder in fs::read_dir(mill.project.inbox()).expect("the inbox") {
        for file in fs::read_dir(folder.expect("a folder").path()).expect("a folder") {
            bytes += file.expect("a file").metadata().expect("its size").len();
        }
    }
    bytes
}

async fn open(mill: &Mill) -> Desk {
    let (routes, clock) = (mill.routes().await, Arc::new(SystemClock::new()));
    Desk::open(&mill.project, mill.store.clone(), clock, routes, Tell::default()).await.expect("a desk")
}
