//! The workflows: do they load, and which images do they need?

use std::collections::HashSet;

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::{bubblewrap, git};
use crate::config::Project;
use crate::diagnostic::Diagnostic;
use crate::run::{deliveries, hooks, models};
use crate::script;
use crate::workflow::Workflow;
use crate::workflow::image::Image;

/// What was found, and the images of the workflows without mistakes.
pub(super) async fn examine(project: &Project) -> (Vec<Finding>, Vec<Image>) {
    let checked = script::check(project, &[]).await;
    let mistakes = checked.mistakes();
    let count = checked.workflows.len();
    let mut findings = Vec::new();
    if mistakes > 0 {
        findings.push(Finding::fail(
            "workflows",
            format!("{mistakes} mistakes in the scripts"),
            "`tidemill check` shows them",
        ));
    } else if count == 0 {
        findings.push(Finding::warn(
            "workflows",
            format!("no script in {}", project.config.folders.workflows.display()),
            "put a Lua script that returns `mill.workflow { ... }` there",
        ));
    } else {
        findings.push(Finding::ok("workflows", format!("{count} without mistakes")));
    }
    for workflow in &checked.workflows {
        let model = &workflow.agent.model;
        if !project.config.models.contains_key(model) {
            findings.push(Finding::warn(
                format!("workflow {}", workflow.name),
                format!("its model `{model}` is not in tidemill.toml"),
                format!("add [models.\"{model}\"], or run it with `--model NAME`"),
            ));
        }
    }
    findings.extend(checked.workflows.iter().flat_map(secrets));
    findings.extend(git::examine(&checked.workflows).await);
    findings.extend(bubblewrap::examine(&project.state(), &checked.workflows).await);
    let mut seen = HashSet::new();
    let images = checked.workflows.iter().filter_map(Workflow::container_image);
    let images = images.filter(|image| seen.insert((*image).clone())).cloned().collect();
    (findings, images)
}

/// Secrets without which `tidemill watch` does not start; the one that watches may have been started where they are.
fn secrets(workflow: &Workflow) -> Vec<Finding> {
    let mut wrong = hooks::missing(&workflow.webhooks, &models::env);
    wrong.extend(deliveries::check(&workflow.name, &workflow.notify, &models::env).err());
    let warn = |diagnostic: &Diagnostic| {
        let advice = diagnostic.advice().unwrap_or("`tidemill watch` does not start without it");
        Finding::warn(format!("secrets of {}", workflow.name), diagnostic.message(), advice)
    };
    wrong.iter().map(warn).collect()
}
