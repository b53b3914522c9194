//! `tidemill doctor --sandbox`: attacks a sandbox from inside and looks at it from outside.

mod outside;
mod report;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::cli::{Context, Exit};
use crate::config::{Config, Project};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::isolation::Execution;
use crate::report::progress::Steps;
use crate::sandbox::docker::{Docker, HELPER, INODES, TMP_BYTES};
use crate::sandbox::{Command, Engine as _, Sandbox, Spec};
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
pub(super) async fn run(context: &Context, json: bool, image: Option<&str>) -> Result<Exit> {
    let project = context.project().unwrap_or_else(|_| {
        let here = std::env::current_dir().unwrap_or_else(|_| ".".into());
        Project { root: here, config: Config::default() }
    });
    let docker = Docker::open(&project).await?;
    if let Err(diagnostic) = docker.sweep().await {
        context.screen.diagnostic(&diagnostic.warning());
    }
    let image = choose(&project, &docker, image).await?;
    let ready = docker.prepare(&image, &Steps::new(context.screen)).await?;
    let run = RunId::new(Timestamp::now());
    let limits = limits();
    let sandbox = docker.start(&run, &ready, &Spec { limits: limits.clone(), ..Spec::default() }).await?;
    let mut probes = vec![outside::read_back(sandbox.isolation())];
    let attacked = attack(&docker, &run, &sandbox, &limits).await;
    let removed = sandbox.remove().await;
    probes.extend(attacked?);
    removed?;
    probes.push(outside::nothing_left(docker.count_of(&run).await?));
    let report = Report { image: ready.reference, engine: docker.version().to_owned(), probes };
    if json {
        context.screen.line(super::super::json(&report)?);
    } else {
        context.screen.line(&report);
    }
    Ok(if report.failed() == 0 { Exit::Succeeded } else { Exit::Failed })
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

/// From inside, then from outside what the attacks have left.
async fn attack(
    docker: &Docker,
    run: &RunId,
    sandbox: &Arc<dyn Sandbox>,
    limits: &Limits,
) -> Result<Vec<Probed>> {
    let mut probes = vec![outside::labelled(docker.count_of(run).await?)];
    if sandbox.isolation().execution != Execution::Helper {
        return Err(Diagnostic::new(
            "doctor::no_probes",
            "the helper does not run in this sandbox, and it has the probes",
        )
        .help(
            "the image and the engine must be for this machine's architecture; `--image NAME` tries another",
        ));
    }
    probes.extend(inside(sandbox, limits).await?);
    probes.push(outside::still_there(sandbox).await);
    probes.extend(outside::taken_out(sandbox).await?);
    Ok(probes)
}

/// Runs the helper's probes as an agent's command.
async fn inside(sandbox: &Arc<dyn Sandbox>, limits: &Limits) -> Result<Vec<Probed>> {
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
