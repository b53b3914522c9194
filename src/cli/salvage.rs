//! `tidemill salvage`: saves what can be read of a damaged database, and says how to begin anew.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::{Context, Exit};
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::RawPath;
use crate::run::intake::Daemon;
use crate::store::{FirstPage, Salvaged, Store, salvage};

/// Arguments of `tidemill salvage`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A new folder for what is saved
    #[arg(long, value_name = "FOLDER", default_value = "salvaged")]
    into: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// All that is told.
#[derive(Debug, Serialize)]
struct Told {
    into: RawPath,
    #[serde(flatten)]
    salvaged: Salvaged,
    /// Files that were taken out of the inbox and are still there.
    waiting: Vec<Waiting>,
}

/// A file that was taken out of the inbox, and whose run is not known to have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Waiting {
    /// Relative to the project.
    file: RawPath,
    /// Relative to the inbox; only its name where the ledger could not be read.
    dropped: RawPath,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    if Daemon::watches(&project) {
        return Err(Diagnostic::new("salvage::watched", "this project is being watched")
            .help("stop `tidemill watch` first: what it writes meanwhile would be copied half"));
    }
    let into = std::path::absolute(&args.into).unwrap_or(args.into);
    let salvaged = salvage(&project.state().join(Store::FILE), &into).await?;
    let waiting = waiting(&project, &salvaged);
    let told = Told { into: RawPath::new(into), salvaged, waiting };
    if args.json {
        context.screen.line(super::json(&told)?);
        return Ok(Exit::Succeeded);
    }
    for line in lines(&told, &project) {
        context.screen.line(line);
    }
    Ok(Exit::Succeeded)
}

/// What stands in the folder of claimed files.
fn waiting(project: &Project, salvaged: &Salvaged) -> Vec<Waiting> {
    let state = project.state();
    let dropped: HashMap<&Path, &RawPath> =
        salvaged.claimed.iter().map(|file| (file.claimed.as_path(), &file.dropped)).collect();
    let mut found = Vec::new();
    let mut folders = vec![state.join("claimed")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
                continue;
            }
            let inside = path.strip_prefix(&state).unwrap_or(&path);
            let name = || RawPath::new(path.file_name().unwrap_or_default());
            let file = RawPath::new(path.strip_prefix(&project.root).unwrap_or(&path));
            found.push(Waiting {
                file,
                dropped: dropped.get(inside).map_or_else(name, |path| (*path).clone()),
            });
        }
    }
    found.sort_by(|left, right| left.file.cmp(&right.file));
    found
}

fn lines(told: &Told, project: &Project) -> Vec<String> {
    let Told { into, salvaged, waiting } = told;
    let mut lines = vec![format!("saved in {}:", into.display())];
    for table in &salvaged.tables {
        let gaps = if table.gaps { ", and others could not be read" } else { "" };
        lines.push(format!("  {}.jsonl: {} rows{gaps}", table.name, table.rows));
    }
    lines.push(format!("{} of {} pages are lost", salvaged.lost_pages, salvaged.pages));
    lines.extend(first_page(salvaged.first_page).map(str::to_owned));
    let inbox = project.config.folders.inbox.display();
    if !waiting.is_empty() {
        lines.push("files that were taken out of the inbox, and where they were dropped:".to_owned());
    }
    for file in waiting {
        lines.push(format!("  {}  {inbox}/{}", file.file.display(), file.dropped.display()));
    }
    if salvaged.is_whole() {
        lines.push("the database can be read as it is: there is no need to begin anew".to_owned());
        return lines;
    }
    lines.push("the database was left as it is. To begin anew:".to_owned());
    lines.push("  1. move the folder .tidemill away, and keep it".to_owned());
    let back = if waiting.is_empty() { "" } else { ", and put the files above back into the inbox" };
    lines.push(format!("  2. start `tidemill watch`{back}"));
    lines.push("what was published stands in the outbox, with its receipts".to_owned());
    lines
}

fn first_page(page: FirstPage) -> Option<&'static str> {
    match page {
        FirstPage::Whole => None,
        FirstPage::Header => Some("the header was lost; that of a new database stood for it"),
        FirstPage::Replaced => Some(
            "the first page was lost; rows were taken where they fit the tables of a new database, and may be missing",
        ),
        FirstPage::Lost => {
            Some("the first page was lost, and what is behind it fits no table: nothing could be read")
        }
    }
}
