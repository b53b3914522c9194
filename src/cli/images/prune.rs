//! `tidemill images prune`

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::images::{of_live_runs, short, wanted, with_bases};
use crate::cli::{Context, Exit};
use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::{Docker, Removed, Whose};
use crate::workflow::units::show_size;

/// Arguments of `tidemill images prune`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also bases that were made here, and images of other projects; what they need is made again when they need it
    #[arg(long)]
    all: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// One JSON document: what was removed, what stays and why
    #[arg(long)]
    json: bool,
}

/// What was done.
#[derive(Debug, Default, Serialize)]
struct Pruned {
    removed: Vec<Line>,
    stays: Vec<Line>,
    /// Bytes of what was removed, without what it shared with bases that stay.
    freed: u64,
    /// Volumes with other versions of the helper that were removed.
    helpers: usize,
}

#[derive(Debug, Serialize)]
struct Line {
    image: String,
    digest: String,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let wanted = wanted(&project).await;
    if wanted.mistakes > 0 {
        // What a broken script needs is not known, and would be taken away from it.
        return Err(Diagnostic::new(
            "usage::broken_scripts",
            "some scripts have mistakes, so which images they need is not known",
        )
        .help("`tidemill check` shows them; nothing was removed"));
    }
    let engine = Docker::open(&project).await?;
    let mut needed: BTreeMap<String, String> = BTreeMap::new();
    for (image, workflows) in &wanted.images {
        if let Some(ready) = engine.find_image(image).await? {
            needed.insert(ready.digest, format!("used by {}", workflows.join(", ")));
        }
    }
    for (digest, run) in of_live_runs(&project).await? {
        needed.insert(digest, format!("used by the run {run}"));
    }
    for digest in engine.images_in_use().await? {
        needed.entry(digest).or_insert_with(|| "used by a container".to_owned());
    }
    let kept = engine.kept_images().await?;
    let needed = with_bases(needed, &kept);
    let mut pruned = Pruned::default();
    let sizes: BTreeMap<String, u64> = kept.iter().map(|kept| (kept.digest.clone(), kept.size)).collect();
    for kept in kept {
        if kept.of != Whose::Ours && !args.all {
            continue;
        }
        let reason = match needed.get(&kept.digest) {
            Some(reason) => Some(reason.clone()),
            None if args.dry_run => None,
            None => match engine.remove_kept(&kept).await? {
                Removed::Done => None,
                Removed::Stays(why) => Some(why),
            },
        };
        if reason.is_none() {
            let shared = kept.bases.iter().filter_map(|base| sizes.get(base)).max().copied().unwrap_or(0);
            pruned.freed += kept.size.saturating_sub(shared);
        }
        let line = Line { image: kept.name, digest: kept.digest, size: kept.size, reason };
        if line.reason.is_some() { pruned.stays.push(line) } else { pruned.removed.push(line) }
    }
    if !args.dry_run {
        // A megabyte for each version of Tidemill that was ever used here.
        pruned.helpers = engine.remove_old_helpers().await?;
    }
    if args.json {
        context.screen.line(crate::cli::json(&pruned)?);
    } else {
        show(context, &args, &pruned);
    }
    Ok(Exit::Succeeded)
}

fn show(context: &Context, args: &Args, pruned: &Pruned) {
    let screen = context.screen;
    if pruned.helpers > 0 {
        screen.line(format!("{} other versions of the helper removed", pruned.helpers));
    }
    let (done, freed) = if args.dry_run { ("would remove", "would free") } else { ("removed", "freed") };
    for line in &pruned.removed {
        screen.line(format!("{done} {}  {}  {}", line.image, short(&line.digest), show_size(line.size)));
    }
    for line in &pruned.stays {
        let reason = line.reason.as_deref().unwrap_or_default();
        screen.talk(format!("stays: {}  {}  {reason}", line.image, short(&line.digest)));
    }
    if pruned.removed.is_empty() {
        screen.talk("there is nothing to remove");
    } else {
        screen.line(format!("{freed} up to {}", show_size(pruned.freed)));
    }
}
