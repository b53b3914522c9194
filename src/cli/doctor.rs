//! `tidemill doctor`: what works here, and what to do about the rest.

mod bubblewrap;
mod engine;
mod finding;
mod git;
mod machine;
mod models;
mod queue;
mod sandbox;
mod scripts;
mod watches;

use std::path::PathBuf;

use crate::cli::{Context, Exit};
use crate::config::{Config, Project};
use crate::diagnostic::Result;
use finding::{Finding, Level};

/// Arguments of `tidemill doctor`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Attack a sandbox like a run's, from inside and from outside, and say what held
    #[arg(long)]
    pub sandbox: bool,
    /// The image that is attacked: a tag, or a folder with a Dockerfile
    #[arg(long, value_name = "IMAGE", requires = "sandbox")]
    pub image: Option<String>,
    /// Attack a local sandbox in place of a container
    #[arg(long, requires = "sandbox", conflicts_with = "image")]
    pub local: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    if args.sandbox {
        return sandbox::run(context, &args).await;
    }
    let findings = examine(context).await;
    if args.json {
        context.screen.line(serde_json::json!({ "checks": findings }));
    } else {
        for finding in &findings {
            context.screen.line(finding);
        }
    }
    let failed = findings.iter().any(|finding| finding.level == Level::Fail);
    Ok(if failed { Exit::Failed } else { Exit::Succeeded })
}

/// Looks at everything; without a project, at what does not need one.
async fn examine(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (project, found) = match context.project() {
        Ok(project) => {
            findings.push(Finding::ok("project", project.root.display()));
            (project, true)
        }
        Err(diagnostic) => {
            findings.push(Finding::of("project", &diagnostic));
            let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
            (Project { root: here, config: Config::default() }, false)
        }
    };
    let mut images = Vec::new();
    if found {
        let (told, wanted) = scripts::examine(&project).await;
        findings.extend(told);
        images = wanted;
        findings.extend(models::examine(&project));
        findings.extend(machine::folders(&project));
        findings.extend(watches::examine(&project.inbox()));
        findings.extend(queue::examine(&project).await);
    }
    findings.extend(machine::disk("disk", &project.root));
    findings.extend(machine::clock(jiff::Timestamp::now()));
    findings.extend(engine::examine(&project, &images).await);
    findings
}
