//! What is removed when it is old, and above all what is not.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::{Fingerprint, InputChange, InputFile, RawPath};
use tidemill::event::state::{InputState, RunState};
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::run::checkpoint::tree::{Leaf, Tree};
use tidemill::run::gc;
use tidemill::store::{Claim, InputId, NewRun, RunFilter, Store};

use crate::support::clock::ManualClock;
use crate::support::project::Project;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct House {
    project: Project,
    store: Store,
    clock: std::sync::Arc<ManualClock>,
}

async fn house(retention: &str) -> House {
    let project = Project::new().config(retention);
    let clock = std::sync::Arc::new(ManualClock::new());
    let store = Store::open_with(&project.path(".tidemill"), clock.clone()).await.unwrap();
    House { project, store, clock }
}

fn run(name: &str, script: &Digest, input: Option<InputId>) -> NewRun {
    NewRun {
        inputs: vec![InputFile { path: RawPath::new("a.csv"), size: 3, digest: Digest::of("abc") }],
        input,
        ..NewRun::new(
            RunId::parse(&format!("20261130-230000-{name}")).unwrap(),
            "energy",
            Trigger::Manual,
            script.clone(),
            "analyst",
            "2026-11-30T23:00:00Z".parse().unwrap(),
        )
    }
}

fn ended() -> What {
    What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None }
}

impl House {
    /// A run with a script of its own, a long answer in the blobs, and a file kept aside.
    async fn run(&self, name: &str) -> RunId {
        let script = self.store.blobs().put(format!("script {name}")).await.unwrap();
        let run = run(name, &script, None);
        self.store.queue_run(run.clone()).await.unwrap();
        let text = self.store.payload(&format!("{name} {}", "x".repeat(100_000))).await.unwrap();
        let what = What::PromptReady { prompt: text, digest: Digest::of(name) };
        self.store.append(&run.id, what).await.unwrap();
        self.project.put(format!(".tidemill/runs/{}/kept/a.txt", run.id), "kept");
        run.id
    }

    async fn ended_run(&self, name: &str) -> RunId {
        let id = self.run(name).await;
        self.store.append(&id, ended()).await.unwrap();
        id
    }

    /// A file that was dropped and claimed, and its run.
    async fn claimed(&self, name: &str) -> (InputId, RunId) {
        let change = InputChange {
            path: RawPath::new(name),
            fingerprint: Fingerprint { size: 3, mtime_ns: 1, inode: 2, device: 3 },
            state: InputState::Ready,
            reason: None,
        };
        let taken = self.store.ready(std::slice::from_ref(&change)).await.unwrap().remove(0);
        let run = run(name, &Digest::of("script"), Some(taken.input));
        let claim = Claim::of(taken.input, change.fingerprint, Digest::of("abc"), vec![run.clone()]);
        self.store.claim(&[claim]).await.unwrap();
        (taken.input, run.id)
    }

    fn later(&self, days: u32) -> Timestamp {
        self.clock.advance(DAY * days);
        let now: Timestamp = "2026-11-30T23:00:00Z".parse().unwrap();
        now + SignedDuration::try_from(tidemill::clock::Clock::elapsed(self.clock.as_ref())).unwrap()
    }

    async fn runs(&self) -> Vec<RunId> {
        let mut ids: Vec<RunId> =
            self.store.runs(&RunFilter::default()).await.unwrap().into_iter().map(|row| row.id).collect();
        ids.sort();
        ids
    }

    fn blobs(&self) -> Vec<std::path::PathBuf> {
        let files = self.project.files(".tidemill/blobs");
        files.into_iter().map(|file| self.project.path(".tidemill/blobs").join(file)).collect()
    }

    /// As if all content had been written two days ago.
    fn age_blobs(&self) {
        for blob in self.blobs() {
            age(&blob);
        }
    }
}

fn age(file: &Path) {
    File::options().append(true).open(file).unwrap().set_modified(SystemTime::now() - DAY * 2).unwrap();
}

#[tokio::test]
async fn what_ended_long_ago_goes_and_everything_else_stays() {
    let house = house("[retention]\nruns = \"30d\"\n").await;
    let old = house.ended_run("aaaa").await;
    let works = house.run("bbbb").await;
    // Its run has ended, and the file was not put away.
    let (_, held) = house.claimed("cccc").await;
    house.store.append(&held, ended()).await.unwrap();
    let (through, gone) = house.claimed("dddd").await;
    house.store.append(&gone, ended()).await.unwrap();
    house.store.finish(through, InputState::Done, "put away").await.unwrap();
    house.later(31);
    let young = house.ended_run("eeee").await;
    house.age_blobs();
    let now = house.later(1);

    let found = gc::find(&house.project.open(), &house.store, now).await.unwrap();
    assert_eq!(found.runs, [old.clone(), gone.clone()]);
    assert_eq!((found.inputs, found.kept.len(), found.kept_bytes, found.strays.len()), (1, 1, 4, 2));
    assert!(found.stray_bytes() > 100_000);
    assert_eq!(house.runs().await.len(), 5, "looking removes nothing");

    let freed = gc::remove(&house.store, found).await.unwrap();
    assert!(freed > 100_000, "{freed}");
    assert_eq!(house.runs().await, [works.clone(), held, young.clone()]);
    assert!(house.store.all_events(&old).await.unwrap().is_empty());
    assert!(house.store.input(through).await.unwrap().is_none());
    assert_eq!(house.blobs().len(), 4, "two for each run that had some");
    let kept = [works, young].map(|run| Path::new(run.as_str()).join("kept/a.txt"));
    assert_eq!(house.project.files(".tidemill/runs"), kept);
    assert!(gc::find(&house.project.open(), &house.store, now).await.unwrap().is_empty());
}

#[tokio::test]
async fn without_a_word_about_it_runs_are_remembered_for_ever() {
    let house = house("").await;
    house.ended_run("aaaa").await;
    let stray = house.store.blobs().put("nobody's").await.unwrap();
    house.project.put(".tidemill/blobs/.new-killed", "half");
    house.age_blobs();
    let fresh = house.store.blobs().put("about to be mentioned").await.unwrap();
    let found = gc::find(&house.project.open(), &house.store, house.later(100_000)).await.unwrap();
    assert_eq!((found.before, found.runs.len(), found.inputs, found.strays.len()), (None, 0, 0, 2));
    gc::remove(&house.store, found).await.unwrap();
    assert!(!house.store.blobs().path(&stray).exists());
    assert!(house.store.blobs().path(&fresh).exists());
    assert_eq!(house.blobs().len(), 3);
}

#[tokio::test]
async fn folders_whose_run_is_forgotten_go_when_they_are_old() {
    let house = house("").await;
    let known = house.run("aaaa").await;
    for (name, file) in [("left", "kept/a.txt"), ("queu", "input/0")] {
        house.project.put(format!(".tidemill/runs/20261130-230000-{name}/{file}"), "1234");
    }
    let folder = |name: &str| house.project.path(format!(".tidemill/runs/20261130-230000-{name}"));
    for name in ["aaaa", "left"] {
        File::open(folder(name)).unwrap().set_modified(SystemTime::now() - DAY * 2).unwrap();
    }
    let found = gc::find(&house.project.open(), &house.store, house.later(1)).await.unwrap();
    assert_eq!((found.kept.clone(), found.kept_bytes), (vec![folder("left")], 4));
    assert_eq!(gc::remove(&house.store, found).await.unwrap(), 4);
    assert!(!folder("left").exists() && folder("queu").exists());
    assert!(folder("aaaa").exists(), "{known} may be asked for");
}

#[tokio::test]
async fn content_that_is_wanted_again_in_the_last_moment_stays() {
    let house = house("").await;
    let again = house.store.blobs().put("again").await.unwrap();
    let pinned = house.store.blobs().put("pinned").await.unwrap();
    house.age_blobs();
    let found = gc::find(&house.project.open(), &house.store, house.later(1)).await.unwrap();
    assert_eq!(found.strays.len(), 2);
    house.store.blobs().put("again").await.unwrap();
    gc::keep(&house.store, std::slice::from_ref(&pinned));
    assert_eq!(gc::remove(&house.store, found).await.unwrap(), 0);
    for digest in [again, pinned] {
        house.store.blobs().read(&digest, 100).await.unwrap();
    }
}

#[tokio::test]
async fn a_workspace_to_which_a_run_comes_back_is_kept() {
    let house = house("").await;
    let mut kept = Vec::new();
    for (name, ends) in [("aaaa", false), ("bbbb", true)] {
        let id = house.run(name).await;
        let digest = house.store.blobs().put(format!("a file of {name}")).await.unwrap();
        let leaf = Leaf { path: "a.txt".to_owned(), digest: digest.clone(), mode: 0o644, size: 14 };
        let tree = Tree { files: vec![leaf], folders: Vec::new() }.put(&house.store).await.unwrap();
        let what = What::Checkpointed { turn: 1, tree, files: 1, bytes: 14 };
        house.store.append(&id, what).await.unwrap();
        if ends {
            house.store.append(&id, ended()).await.unwrap();
        }
        kept.push(house.store.blobs().path(&digest));
    }
    house.age_blobs();
    let found = gc::find(&house.project.open(), &house.store, house.later(2)).await.unwrap();
    gc::remove(&house.store, found).await.unwrap();
    assert_eq!((kept[0].exists(), kept[1].exists()), (true, false));
}
