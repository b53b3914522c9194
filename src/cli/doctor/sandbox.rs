//! `tidemill doctor --sandbox`: attacks a sandbox from inside and looks at it from outside.

mod outside;
mod report;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::cli::doctor::Args;
use crate::cli::{Context, Exit};
use crate::config::{Config, Project};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::isolation::Execution;
use crate::report::progress::Steps;
use crate::sandbox::docker::{Docker, HELPER, INODES, TMP_BYTES};
use crate::sandbox::local::{Bubblewrap, shown};
use crate::sandbox::{Command, Engine as _, Sandbox, Silent, Spec};
use crate::script;
use crate::workflow::Workflow;
use crate::workflow::image::Image;
use crate::workflow::limits::Limits;
use report::{Probed, Report};

/// All probes together; each has a deadline of its own.
const DEADLINE: Duration = Duration::from_secs(10 * 60);
/// What is attacked when no image is named and no workflow has one.
const USUAL_IMAGE: &str = "python:3.12-slim";

/// Carries it out.
pub(super) async fn run(context: &Context, args: &Args) -> Result<Exit> {
    let project = context.project().unwrap_or_else(|_| {
        let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
        Project { root: here, config: Config::default() }
    });
    let report = if args.local {
        local(&project).await?
    } else {
        container(context, &project, args.image.as_deref()).await?
    };
    if args.json {
        context.screen.line(super::super::json(&report)?);
    } else {
        context.screen.line(&report);
    }
    Ok(if report.failed() == 0 { Exit::Succeeded } else { Exit::Failed })
}

async fn container(context: &Context, project: &Project, image: Option<&str>) -> Result<Report> {
    let docker = Docker::open(project).await?;
    if let Err(diagnostic) = docker.sweep().await {
        context.screen.diagnostic(&diagnostic.warning());
    }
    let image = choose(project, &docker, image).await?;
    let ready = docker.prepare(&image, &Steps::new(context.screen)).await?;
    let run = RunId::new(Timestamp::now());
    let limits = limits();
    let sandbox = docker.start(&run, &ready, &Spec { limits: limits.clone(), ..Spec::default() }).await?;
    let mut probes = vec![outside::read_back(sandbox.isolation())];
    let count = docker.count_of(&run).await;
    let attacked = attack(&sandbox, &limits, &[]).await;
    let removed = sandbox.remove().await;
    probes.push(outside::labelled(count?));
    probes.extend(attacked?);
    removed?;
    probes.push(outside::nothing_left(docker.count_of(&run).await?));
    Ok(Report { image: ready.reference, engine: format!("Docker {}", docker.version()), probes })
}

/// What a local sandbox does not hold, fails here, and is what docs/sandbox.md says of it.
async fn local(project: &Project) -> Result<Report> {
    let state = tempfile::tempdir_in(&project.root).map_err(|error| {
        Diagnostic::new("doctor::folder", "no temporary folder can be made")
            .cause(error)
            .help("is the disk full?")
    })?;
    let bubblewrap = Bubblewrap::open(state.path()).await?;
    let ready = bubblewrap.prepare(&Image::default(), &Silent).await?;
    let limits = limits();
    let spec = Spec { limits: limits.clone(), ..Spec::default() };
    let sandbox = bubblewrap.start(&RunId::new(Timestamp::now()), &ready, &spec).await?;
    let attacked = attack(&sandbox, &limits, &shown()).await;
    sandbox.remove().await?;
    Ok(Report { image: ready.reference, engine: format!("{bubblewrap:?}"), probes: attacked? })
}

/// What the sandbox may use: enough for every probe, and soon reached.
fn limits() -> Limits {
    Limits { memory: 768 << 20, disk: 128 << 20, pids: 64, nano_cpus: 1_000_000_000, ..Limits::default() }
}

/// The image that was named; else that of a workflow, one that is on the engine first; else the usual one.
async fn choose(project: &Project, docker: &Docker, named: Option<&str>) -> Result<Image> {
    if let Some(name) = named {
        let folder = project.root.join(name).join("Dockerfile").is_file();
        return Ok(if folder { Image::folder(name) } else { Image::tag(name) });
    }
    let checked = script::check(project, &[]).await;
    let images: Vec<Image> =
        checked.workflows.iter().filter_map(Workflow::container_image).cloned().collect();
    for image in &images {
        if docker.find_image(image).await?.is_some() {
            return Ok(image.clone());
        }
    }
    Ok(images.into_iter().next().unwrap_or_else(|| Image::tag(USUAL_IMAGE)))
}

/// From inside, then from outside what the attacks have left. `shown` are places of the host that are seen by design.
async fn attack(sandbox: &Arc<dyn Sandbox>, limits: &Limits, shown: &[&str]) -> Result<Vec<Probed>> {
    if sandbox.isolation().execution != Execution::Helper {
        return Err(Diagnostic::new(
            "doctor::no_probes",
            "the helper does not run in this sandbox, and it has the probes",
        )
        .help(
            "the image and the engine must be for this machine's architecture; `--image NAME` tries another",
        ));
    }
    let mut probes = inside(sandbox, limits, shown).await?;
    probes.push(outside::still_there(sandbox).await);
    probes.extend(outside::taken_out(sandbox).await?);
    Ok(probes)
}

/// Runs the helper's probes as an agent's command.
async fn inside(sandbox: &Arc<dyn Sandbox>, limits: &Limits, shown: &[&str]) -> Result<Vec<Probed>> {
    // Somebody listens on the host while the probes try to reach it.
    let listener = TcpListener::bind(("127.0.0.1", 0)).ok();
    let port =
        listener.as_ref().and_then(|listener| listener.local_addr().ok()).map(|address| address.port());
    let mut argv = vec![HELPER.to_owned(), "probe".to_owned()];
    let Limits { memory, disk, pids, .. } = limits;
    argv.push(format!("memory={memory}"));
    argv.push(format!("pids={pids}"));
    argv.push(format!("disk={disk}"));
    argv.push(format!("inodes={INODES}"));
    argv.push(format!("tmp={TMP_BYTES}"));
    argv.push(format!("host={}", rustix::system::uname().nodename().to_string_lossy()));
    argv.push("mount=/workspace".to_owned());
    argv.push("mount=/tmp".to_owned());
    argv.extend(Path::new(HELPER).parent().map(|folder| format!("mount={}", folder.display())));
    argv.extend(shown.iter().map(|place| format!("mount={place}")));
    argv.extend(port.map(|port| format!("port={port}")));
    let done = sandbox.exec(&Command { argv, timeout: DEADLINE }).await;
    let done = done.map_err(|error| error.during("attack the sandbox"))?;
    let output = match &done.output.whole {
        Some(file) => std::fs::read(file.path()).unwrap_or_default(),
        None => [done.output.head, done.output.tail].concat(),
    };
    report::parse(&String::from_utf8_lossy(&output)).map_err(|why| {
        Diagnostic::new("doctor::probes", format!("the probes did not come to their end: {why}"))
            .help("the image must be for this machine's architecture; `--image NAME` tries another")
    })
}
