//! `cargo bench --bench drop_folder [-- ROW...]`: what the drop folder and its store cost.
//!
//! Rows: `burst`, 10,000 files moved in at once; `reconcile`, a look at 100,000 files that have not changed; `latency`,
//! from a file's being complete to its run; `store`, commits and events. Beside what depends on the disk stands what the
//! disk does by itself: compare the ratios, and times of one machine only with each other. Named rows are measured alone.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot run says so and ends")]
#![expect(clippy::cast_precision_loss, reason = "numbers for show")]

#[path = "drop_folder/burst.rs"]
mod burst;
#[path = "drop_folder/latency.rs"]
mod latency;
#[path = "drop_folder/measure.rs"]
mod measure;
#[path = "drop_folder/mill.rs"]
mod mill;
#[path = "drop_folder/reconcile.rs"]
mod reconcile;
#[path = "drop_folder/store.rs"]
mod store;

#[tokio::main]
async fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    if wanted("burst") {
        burst::measure().await;
    }
    if wanted("reconcile") {
        reconcile::measure().await;
    }
    if wanted("latency") {
        latency::measure().await;
    }
    if wanted("store") {
        store::measure().await;
    }
}
