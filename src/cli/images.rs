//! `tidemill images`: the images workflows run in.

pub mod build;
pub mod ls;
pub mod prune;

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::{Context, Exit};
use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::What;
use crate::sandbox::docker::Kept;
use crate::script;
use crate::store::{RunFilter, Store};
use crate::workflow::image::Image;

/// What to do with images.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List images: what they are of, how old and large they are, who uses them
    Ls(ls::Args),
    /// Build, or pull, what workflows need before they need it
    Build(build::Args),
    /// Remove images that no workflow and no run needs any more
    Prune(prune::Args),
}

/// Carries it out.
pub async fn run(context: &Context, command: Command) -> Result<Exit> {
    match command {
        Command::Ls(args) => ls::run(context, args).await,
        Command::Build(args) => build::run(context, args).await,
        Command::Prune(args) => prune::run(context, args).await,
    }
}

/// The images that workflows name, in the order of the workflows, each with those that name it.
#[derive(Debug, Default)]
struct Wanted {
    images: Vec<(Image, Vec<String>)>,
    /// Mistakes in scripts: which images those want is not known.
    mistakes: usize,
}

/// Reads the scripts.
async fn wanted(project: &Project) -> Wanted {
    let checked = script::check(project, &[]).await;
    let mut wanted = Wanted { images: Vec::new(), mistakes: checked.mistakes() };
    for workflow in checked.workflows {
        let Some(wants) = workflow.container_image() else {
            continue;
        };
        match wanted.images.iter_mut().find(|(image, _)| image == wants) {
            Some((_, workflows)) => workflows.push(workflow.name),
            None => wanted.images.push((wants.clone(), vec![workflow.name])),
        }
    }
    wanted
}

/// The images of runs that have not ended, with the runs.
async fn of_live_runs(project: &Project) -> Result<BTreeMap<String, String>> {
    let store = Store::open(&project.state()).await?;
    let mut images = BTreeMap::new();
    for run in store.runs(&RunFilter { workflow: None, state: None, limit: None }).await? {
        if run.state.is_end() {
            continue;
        }
        for event in store.all_events(&run.id).await? {
            if let What::ImageReady { digest, .. } = event.what {
                images.insert(digest, run.id.to_string());
            }
        }
    }
    Ok(images)
}

/// The folders with a Dockerfile under `images/`.
fn folders(project: &Project) -> BTreeSet<String> {
    let entries = std::fs::read_dir(project.root.join("images")).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().join("Dockerfile").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .map(|name| format!("images/{name}"))
        .collect()
}

/// The digest as people know it again.
fn short(digest: &str) -> &str {
    let digits = digest.strip_prefix("sha256:").unwrap_or(digest);
    digits.get(..12).unwrap_or(digits)
}

/// What is needed, and the images it is built on.
fn with_bases(mut needed: BTreeMap<String, String>, kept: &[Kept]) -> BTreeMap<String, String> {
    loop {
        let below: Vec<(String, String)> = kept
            .iter()
            .filter(|kept| needed.contains_key(&kept.digest))
            .flat_map(|kept| {
                kept.bases.iter().map(|base| (base.clone(), format!("{} is built on it", kept.name)))
            })
            .filter(|(base, _)| !needed.contains_key(base))
            .collect();
        if below.is_empty() {
            return needed;
        }
        needed.extend(below);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::sandbox::docker::Whose;

    #[test]
    fn what_a_needed_image_is_built_on_is_needed() {
        let kept = |digest: &str, bases: &[&str]| Kept {
            digest: digest.to_owned(),
            tag: None,
            name: digest.to_owned(),
            size: 1,
            created_at: Timestamp::UNIX_EPOCH,
            bases: bases.iter().map(|base| (*base).to_owned()).collect(),
            of: Whose::Ours,
        };
        let all =
            [kept("low", &[]), kept("middle", &["low"]), kept("top", &["middle"]), kept("old", &["low"])];
        let needed = with_bases([("top".to_owned(), "used".to_owned())].into(), &all);
        assert_eq!(needed.keys().collect::<Vec<_>>(), ["low", "middle", "top"]);
        assert_eq!(needed["low"], "middle is built on it");
    }
}
