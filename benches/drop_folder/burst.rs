//! Many files moved in at once.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use tidemill::event::state::InputState;
use tidemill::store::RunFilter;

use crate::measure::{forget_peak, millis, peak, rate};
use crate::mill::Mill;

const FILES: usize = 10_000;
const SETTLE: Duration = Duration::from_secs(2);
/// How often the ledger is asked.
const LOOK: Duration = Duration::from_millis(100);

pub async fn measure() {
    let mill = Mill::new("2s").await;
    for number in 0..FILES {
        fs::write(mill.path(&format!("aside/{number}.csv")), number.to_string()).expect("a file");
    }
    let mut watching = mill.watch().await;
    forget_peak();
    let before = peak();
    let start = Instant::now();
    for number in 0..FILES {
        let name = format!("{number}.csv");
        fs::rename(mill.path("aside").join(&name), mill.path("inbox").join(&name)).expect("a move");
    }
    let moved = start.elapsed();
    let mut ledgered = None;
    let mut claimed = 0;
    while claimed < FILES {
        tokio::select! {
            taken = watching.claimed.recv() => {
                taken.expect("a daemon");
                claimed += 1;
            }
            () = tokio::time::sleep(LOOK), if ledgered.is_none() => {
                let states = [InputState::Seen, InputState::Settling, InputState::Ready, InputState::Claimed];
                if mill.store.inputs(&states).await.expect("the ledger").len() == FILES {
                    ledgered = Some(start.elapsed());
                }
            }
        }
    }
    let queued = start.elapsed();
    let peak = peak();
    watching.end().await;
    let runs = mill.store.runs(&RunFilter::default()).await.expect("the runs");
    let paths: HashSet<_> = runs.iter().map(|run| run.inputs[0].path.clone()).collect();
    let left = fs::read_dir(mill.path("inbox")).expect("the inbox").count();
    let ledgered = ledgered.unwrap_or(queued);
    println!("burst: {FILES} files moved in at once ({:.0} ms)", millis(moved));
    println!(
        "  in the ledger after           {:>9.0} ms   (seen every {:.0} ms)",
        millis(ledgered),
        millis(LOOK)
    );
    println!(
        "  all queued after              {:>9.0} ms   (settle is {:.0} ms)",
        millis(queued),
        millis(SETTLE)
    );
    println!("  claimed                       {:>9.0} files/s", rate(FILES, queued.saturating_sub(SETTLE)));
    println!("  lost {}, taken twice {}", FILES - paths.len() + left, runs.len() - paths.len());
    println!("  peak memory                   {peak:>9.1} MiB   ({before:.1} before)");
}
