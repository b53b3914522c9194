//! `cargo bench --bench sandbox [-- ROW...]`: what sandboxes cost, beside plain Docker on the same image in the same run.
//!
//! Commands and files are compared with the `docker` command (`docker exec`, `docker cp`), the start with the engine's
//! own create and start over its API, which is quicker than the command. All workspaces are memory-backed. Ratios are
//! what counts: compare times of one machine with each other, not with another machine's. Named rows (`exec start
//! small big`) are measured alone.

#![expect(clippy::expect_used, clippy::print_stdout, reason = "a benchmark that cannot run says so and ends")]

#[path = "../tests/support/engine.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod engine;
#[path = "sandbox/files.rs"]
mod files;
#[path = "sandbox/plain.rs"]
mod plain;

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{run_id, small_image, spec};
use files::Files;
use plain::Plain;
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::local::Bubblewrap;
use tidemill::sandbox::{Caps, Command, Engine, ReadyImage, Sandbox, Silent};
use tidemill::workflow::image::Image;
use tidemill::workflow::limits::Limits;
use tidemill::workflow::manifest::Access;

const COMMANDS: usize = 60;
const STARTS: usize = 10;
const SMALL: usize = 10_000;
const BIG: u64 = 1 << 30;

/// Where sandboxes are made, and what from.
struct Bench {
    docker: Docker,
    bubblewrap: Bubblewrap,
    image: ReadyImage,
    none: ReadyImage,
}

/// What one thing took in each of three ways.
#[derive(Default)]
struct Row {
    docker: Vec<Duration>,
    local: Vec<Duration>,
    plain: Vec<Duration>,
}

#[tokio::main]
async fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    let state = tempfile::tempdir().expect("a folder");
    let bubblewrap = Bubblewrap::open(state.path()).await.expect("bubblewrap: `apt install bubblewrap`");
    let none = bubblewrap.prepare(&Image::tag(""), &Silent).await.expect("no image");
    let bench = Bench { docker: engine::engine().await, bubblewrap, image: small_image().await, none };
    println!("{:<34} {:>10} {:>10} {:>10}   docker÷ours  docker÷local", "", "docker", "local", "plain");
    if wanted("exec") {
        bench.commands().await;
    }
    if wanted("start") {
        bench.starts().await;
    }
    if wanted("small") {
        bench.files(&Files::small(SMALL), 3).await;
    }
    if wanted("big") {
        bench.files(&Files::big(BIG), 2).await;
    }
    bench.docker.settle(Duration::from_secs(30)).await;
}

impl Bench {
    async fn docker(&self, limits: Limits) -> Arc<dyn Sandbox> {
        self.docker.start(&run_id(), &self.image, &spec(limits)).await.expect("a sandbox")
    }

    async fn local(&self, limits: Limits) -> Arc<dyn Sandbox> {
        self.bubblewrap.start(&run_id(), &self.none, &spec(limits)).await.expect("a sandbox")
    }

    async fn commands(&self) {
        let (docker, local) = (self.docker(limits()).await, self.local(limits()).await);
        let plain = Plain::start(&self.image.digest).await;
        let command = Command { argv: vec!["true".to_owned()], timeout: Duration::from_secs(60) };
        let mut row = Row::default();
        for _ in 0..COMMANDS {
            row.docker.push(timed(async || drop(docker.exec(&command).await.expect("a command"))).await);
            row.local.push(timed(async || drop(local.exec(&command).await.expect("a command"))).await);
            row.plain.push(timed(async || plain.exec("true").await).await);
        }
        row.show("one command (`true`)");
        remove([docker, local]).await;
        plain.remove().await;
    }

    async fn starts(&self) {
        let (mut row, mut ready) = (Row::default(), Row::default());
        let command = Command { argv: vec!["true".to_owned()], timeout: Duration::from_secs(60) };
        // The first one fills the helper's volume.
        self.docker(limits()).await.remove().await.expect("removed");
        for _ in 0..STARTS {
            let start = Instant::now();
            let docker = self.docker(limits()).await;
            row.docker.push(start.elapsed());
            docker.exec(&command).await.expect("a command");
            ready.docker.push(start.elapsed());
            let start = Instant::now();
            let local = self.local(limits()).await;
            row.local.push(start.elapsed());
            local.exec(&command).await.expect("a command");
            ready.local.push(start.elapsed());
            let start = Instant::now();
            let plain = Plain::start(&self.image.digest).await;
            row.plain.push(start.elapsed());
            plain.exec("true").await;
            ready.plain.push(start.elapsed());
            remove([docker, local]).await;
            plain.remove().await;
        }
        row.show("cold start");
        ready.show("cold start and one command");
    }

    async fn files(&self, files: &Files, rounds: usize) {
        let [mut up, mut later, mut down] = [Row::default(), Row::default(), Row::default()];
        for _ in 0..rounds {
            let mut all = Vec::new();
            for (sandbox, docker) in
                [(self.docker(limits()).await, true), (self.local(limits()).await, false)]
            {
                let pick =
                    |row: &mut Row, took| if docker { &mut row.docker } else { &mut row.local }.push(took);
                let given = files.placements("given", Access::ReadOnly);
                pick(&mut up, timed(async || assert!(sandbox.put(given).await.is_ok())).await);
                let written = files.placements("written", Access::ReadWrite);
                pick(&mut later, timed(async || assert!(sandbox.put(written).await.is_ok())).await);
                let into = tempfile::tempdir().expect("a folder");
                let caps = Caps { file: 2 * BIG, total: 2 * BIG };
                let paths = files.paths("written");
                let taking = async || {
                    let collected = sandbox.collect(&paths, &caps, into.path()).await.expect("collected");
                    assert_eq!(collected.artifacts.len(), paths.len(), "{:?}", collected.refused.first());
                };
                pick(&mut down, timed(taking).await);
                all.push(sandbox);
            }
            remove(all).await;
            let plain = Plain::start(&self.image.digest).await;
            let took = timed(async || plain.copy_in(files.folder(), "given").await).await;
            up.plain.push(took);
            let took = timed(async || plain.copy_in(files.folder(), "written").await).await;
            later.plain.push(took);
            let into = tempfile::tempdir().expect("a folder");
            down.plain.push(timed(async || plain.copy_out("written", into.path()).await).await);
            plain.remove().await;
        }
        up.show(&format!("upload {}", files.name()));
        later.show(&format!("write {} later", files.name()));
        down.show(&format!("download {}", files.name()));
    }
}

/// Room for the big file, twice.
fn limits() -> Limits {
    Limits { memory: 6 << 30, disk: 5 << 30, ..Limits::default() }
}

async fn timed(work: impl AsyncFnOnce()) -> Duration {
    let start = Instant::now();
    work().await;
    start.elapsed()
}

async fn remove(sandboxes: impl IntoIterator<Item = Arc<dyn Sandbox>>) {
    for sandbox in sandboxes {
        sandbox.remove().await.expect("removed");
    }
}

impl Row {
    fn show(self, what: &str) {
        let [docker, local, plain] =
            [self.docker, self.local, self.plain].map(|times| median(times).as_secs_f64() * 1e3);
        let ratio = |ours: f64| format!("{:.2}", plain / ours);
        println!(
            "{what:<34} {docker:>7.1} ms {local:>7.1} ms {plain:>7.1} ms {:>13} {:>13}",
            ratio(docker),
            ratio(local)
        );
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
