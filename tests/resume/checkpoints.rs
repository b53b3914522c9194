//! The workspace as it is kept after each turn.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use tidemill::agent::Keeper as _;
use tidemill::event::trigger::Trigger;
use tidemill::event::{What, id::Digest};
use tidemill::run::checkpoint::tree::Tree;
use tidemill::run::checkpoint::{Checkpoints, Known};
use tidemill::run::journal::Journal;
use tidemill::sandbox::none::NoSandbox;
use tidemill::sandbox::{Body, Engine as _, Placement, Sandbox, Silent};
use tidemill::store::{NewRun, RunRow, Store};
use tidemill::workflow::image::Image;
use tidemill::workflow::manifest::Access;
use tidemill::workflow::path::WorkspacePath;
use tokio::sync::Mutex;

use crate::support::clock::ManualClock;
use crate::support::engine::{run_id, small_limits, spec};
use crate::support::project::Project;

/// A workspace in a folder, and where it is kept.
struct House {
    project: Project,
    store: Store,
    run: RunRow,
    sandbox: Arc<dyn Sandbox>,
    clock: ManualClock,
}

impl House {
    async fn build() -> Self {
        let project = Project::new();
        let opened = project.open();
        let store = Store::open(&opened.state()).await.unwrap();
        let id = run_id();
        let new = NewRun::new(
            id.clone(),
            "story",
            Trigger::Manual,
            Digest::of("script"),
            "actor",
            Timestamp::UNIX_EPOCH,
        );
        store.queue_run(new).await.unwrap();
        let run = store.run(&id).await.unwrap().unwrap();
        let engine = NoSandbox::open(&opened.state()).unwrap();
        let image = engine.prepare(&Image::tag(""), &Silent).await.unwrap();
        let sandbox = engine.start(&run.id, &image, &spec(small_limits())).await.unwrap();
        let clock = ManualClock::new();
        // Every file is older than what is doubted.
        clock.set_wall("2100-01-01T00:00:00Z".parse().unwrap());
        Self { project, store, run, sandbox, clock }
    }

    async fn write(&self, path: &str, text: &str) {
        let path = WorkspacePath::parse(path).unwrap();
        let body = Body::Bytes(Bytes::from(text.to_owned()));
        self.sandbox.put(vec![Placement::new(path, body, Access::ReadWrite)]).await.unwrap();
    }

    fn keeper<'a>(&'a self, journal: &'a Journal, room: u64) -> Checkpoints<'a> {
        Checkpoints {
            sandbox: self.sandbox.as_ref(),
            store: &self.store,
            journal,
            clock: &self.clock,
            folder: self.project.path(".tidemill/passing"),
            room,
            given: BTreeSet::from([WorkspacePath::parse("given.txt").unwrap()]),
            known: Mutex::new(Known::default()),
        }
    }

    fn journal(&self) -> Journal {
        Journal::of(&self.project.open(), &self.store, &self.run)
    }

    /// Every checkpoint: files that were read, and what stands in it.
    async fn kept(&self) -> Vec<(u64, Vec<String>)> {
        let mut kept = Vec::new();
        for event in self.store.all_events(&self.run.id).await.unwrap() {
            if let What::Checkpointed { tree, files, .. } = event.what {
                let tree = Tree::read(&self.store, &tree).await.unwrap();
                kept.push((files, tree.files.into_iter().map(|leaf| leaf.path).collect()));
            }
        }
        kept
    }
}

#[tokio::test]
async fn only_what_changed_is_read() {
    let house = House::build().await;
    let journal = house.journal();
    let keeper = house.keeper(&journal, 1 << 20);
    for path in ["a.txt", "b/c.txt", "given.txt"] {
        house.write(path, path).await;
    }
    keeper.keep(1).await.unwrap();
    keeper.keep(2).await.unwrap();
    house.write("b/c.txt", "something longer").await;
    keeper.keep(3).await.unwrap();
    let paths = vec!["a.txt".to_owned(), "b/c.txt".to_owned()];
    assert_eq!(house.kept().await, [(2, paths.clone()), (0, paths.clone()), (1, paths)]);
    house.sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn what_was_changed_just_now_is_looked_at_again() {
    let house = House::build().await;
    house.clock.set_wall("2000-01-01T00:00:00Z".parse().unwrap());
    let journal = house.journal();
    let keeper = house.keeper(&journal, 1 << 20);
    house.write("a.txt", "a").await;
    keeper.keep(1).await.unwrap();
    keeper.keep(2).await.unwrap();
    let counts: Vec<u64> = house.kept().await.into_iter().map(|(files, _)| files).collect();
    assert_eq!(counts, [1, 1]);
    house.sandbox.remove().await.unwrap();
}

#[tokio::test]
async fn what_is_too_large_is_left_out_and_said_once() {
    let house = House::build().await;
    let journal = house.journal();
    let keeper = house.keeper(&journal, 10);
    house.write("large.txt", "more than ten bytes").await;
    house.write("small.txt", "few").await;
    keeper.keep(1).await.unwrap();
    keeper.keep(2).await.unwrap();
    let small = vec!["small.txt".to_owned()];
    assert_eq!(house.kept().await, [(1, small.clone()), (0, small)]);
    let warned = house.store.all_events(&house.run.id).await.unwrap().into_iter().filter_map(|event| {
        match event.what {
            What::Warned { report } => Some(report),
            _ => None,
        }
    });
    let warned: Vec<_> = warned.collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(warned[0].code, "run::not_kept");
    assert!(warned[0].message.contains("large.txt"), "{}", warned[0].message);
    house.sandbox.remove().await.unwrap();
}
