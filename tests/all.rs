//! The integration tests: one binary, one file per scene of the story.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::large_futures,
    reason = "a test that cannot go on says so by panicking, its helpers included"
)]

mod architecture;
mod artifact;
mod cli;
mod deliveries;
mod diagnostics;
mod docs;
mod doctor;
mod drop_folder;
mod expect;
mod gc;
mod guard;
mod helper;
mod images;
mod isolation;
mod lifecycle;
mod model;
mod network;
mod pool;
mod queue;
mod recovery;
mod reload;
mod resume;
mod salvage;
mod sandbox;
mod schedules;
mod script;
mod store;
mod story;
mod support;
mod unpack;
mod webhooks;
mod weekly;
mod workspace;

/// A file that is not named above would never run.
#[test]
fn no_file_is_forgotten() {
    let this = include_str!("all.rs");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    for entry in std::fs::read_dir(folder).expect("tests/ is readable") {
        let name = entry.expect("an entry").file_name();
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".rs")) else {
            continue;
        };
        assert!(stem == "all" || this.contains(&format!("mod {stem};")), "tests/{stem}.rs is not in all.rs");
    }
}
