//! `tidemill check`

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::cli::{Context, Exit};
use crate::diagnostic::{Diagnostic, Result};
use crate::run::intake::refuse_loops;
use crate::script::{self, Checked};
use crate::workflow::image::Image;
use crate::workflow::schedule::Schedule;

/// Arguments of `tidemill check`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scripts to check; without any, all of the project
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON document with the mistakes and the workflows
    #[arg(long)]
    pub json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let mut checked = script::check(&project, &args.files).await;
    checked.diagnostics.extend(refuse_loops(&project).err());
    if args.json {
        context.screen.line(document(&checked));
    } else {
        for diagnostic in &checked.diagnostics {
            context.screen.diagnostic(diagnostic);
        }
        context.screen.line(summary(&checked));
    }
    Ok(if checked.mistakes() == 0 { Exit::Succeeded } else { Exit::Usage })
}

/// `3 workflows, no mistakes`, `5 mistakes in 2 files`
fn summary(checked: &Checked) -> String {
    let mistakes = checked.mistakes();
    let warnings = checked.diagnostics.len() - mistakes;
    let mut text = if mistakes == 0 {
        format!("{}, no mistakes", counted(checked.workflows.len(), "workflow"))
    } else {
        let places = checked.diagnostics.iter().filter(|found| !found.is_warning());
        let files: BTreeSet<String> =
            places.filter_map(|found| found.report().place.map(|place| place.file)).collect();
        // A mistake without a place is about a file as well.
        format!("{} in {}", counted(mistakes, "mistake"), counted(files.len().max(1), "file"))
    };
    if warnings > 0 {
        text = format!("{text}, {}", counted(warnings, "warning"));
    }
    text
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn document(checked: &Checked) -> String {
    let diagnostics: Vec<_> = checked.diagnostics.iter().map(Diagnostic::report).collect();
    let workflows: Vec<_> = checked
        .workflows
        .iter()
        .map(|workflow| {
            serde_json::json!({
                "name": workflow.name,
                "description": workflow.description,
                "file": workflow.file,
                "digest": workflow.digest,
                "model": workflow.agent.model,
                "sandbox": workflow.sandbox.as_str(),
                "image": workflow.container_image().map(Image::reference),
                "triggers": workflow.triggers.iter().map(|drop| &drop.glob).collect::<Vec<_>>(),
                "schedules": workflow.schedules.iter().map(Schedule::describe).collect::<Vec<_>>(),
                "outputs": workflow.outputs.iter().map(|output| output.path.as_str()).collect::<Vec<_>>(),
            })
        })
        .collect();
    serde_json::json!({ "diagnostics": diagnostics, "workflows": workflows }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    #[test]
    fn the_summary_counts_mistakes_and_their_files() {
        let mut checked = Checked { workflows: Vec::new(), diagnostics: Vec::new() };
        assert_eq!(summary(&checked), "0 workflows, no mistakes");
        checked.diagnostics.push(Diagnostic::new("script::unused_file", "odd").warning());
        assert_eq!(summary(&checked), "0 workflows, no mistakes, 1 warning");
        for file in ["a.lua", "a.lua", "b.lua"] {
            let source = Source::new(file, "text");
            checked.diagnostics.push(Diagnostic::new("script::syntax", "wrong").label(&source, 0..1, "here"));
        }
        assert_eq!(summary(&checked), "3 mistakes in 2 files, 1 warning");
    }
}
