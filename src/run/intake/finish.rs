//! Putting a file away when all its runs have ended: to `processed/`, or to `failed/` with the reason beside it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tokio::sync::Mutex;

use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result, is_full};
use crate::event::What;
use crate::event::finding::Finding;
use crate::event::input::RawPath;
use crate::event::state::{InputState, RunState};
use crate::run::intake::notice::{Notice, Tell};
use crate::run::intake::place::relocate;
use crate::run::intake::{names, place, reason};
use crate::store::{InputId, InputRow, RunRow, Store};

/// Puts files away, one at a time: two runs of one file may end at once.
#[derive(Debug)]
pub(crate) struct Putter {
    project: Project,
    store: Store,
    tell: Tell,
    one: Mutex<()>,
}

impl Putter {
    pub(crate) fn new(project: Project, store: Store, tell: Tell) -> Self {
        Self { project, store, tell, one: Mutex::new(()) }
    }

    /// Puts an input away if all its runs have ended and it was not put away before.
    ///
    /// What was done before a crash is found and not done again.
    pub(crate) async fn put_away(&self, input: InputId) -> Result<()> {
        let _one = self.one.lock().await;
        let Some(row) = self.store.input(input).await? else {
            return Ok(());
        };
        let runs = self.store.runs_of(input).await?;
        let all_ended = !runs.is_empty() && runs.iter().all(|run| run.state.is_end());
        let (InputState::Claimed, Some(claimed), true) = (row.state, &row.claimed_path, all_ended) else {
            return Ok(());
        };
        let claimed = self.store.folder().join(claimed);
        let state = end_of(&runs);
        let to = if exists(&claimed) {
            Some(self.carry(&row, &claimed, state, &runs).await?)
        } else {
            // Moved before a crash, or taken away by someone.
            row.final_path.clone().filter(|path| exists(&self.project.root.join(path)))
        };
        let (state, why) = match &to {
            Some(path) => (state, format!("all its runs ended; it stands in {}", shown(path))),
            None => (
                InputState::Gone,
                "all its runs ended, and it was taken out of .tidemill by someone else".to_owned(),
            ),
        };
        self.store.finish(input, state, &why).await?;
        if let Some(folder) = claimed.parent() {
            // Empty by now; that it is not, or is gone, harms nobody.
            let _ = std::fs::remove_dir(folder);
        }
        self.tell.say(Notice::PutAway { path: row.path, state, to: to.map(RawPath::new) });
        Ok(())
    }

    /// Moves the file to a name that is free. Gives where it stands, relative to the project.
    async fn carry(
        &self,
        row: &InputRow,
        claimed: &Path,
        state: InputState,
        runs: &[RunRow],
    ) -> Result<PathBuf> {
        let folders = &self.project.config.folders;
        let base = if state == InputState::Done { &folders.processed } else { &folders.failed };
        let text = match state {
            InputState::Done => None,
            _ => Some(reason::text(&row.path, base, &folders.inbox, &self.stories(runs).await?)),
        };
        let run = runs.last().map_or("", |run| run.id.as_str());
        for attempt in 0..names::ATTEMPTS {
            let to = base.join(names::numbered(row.path.as_path(), run, attempt));
            let absolute = self.project.root.join(&to);
            let beside = names::beside(&absolute, reason::SUFFIX);
            // A reason that stands there belongs to another file, unless this one was on its way to it.
            let ours = row.final_path.as_deref() == Some(&to);
            let failed = |error: std::io::Error| unmovable(&to, error);
            if ours && is_copied(row, &absolute) {
                std::fs::remove_file(claimed).map_err(failed)?;
                return Ok(to);
            }
            if exists(&absolute) || (text.is_some() && exists(&beside) && !ours) {
                continue;
            }
            self.store.bound_for(row.id, &to).await?;
            if let Some(text) = &text {
                write(&beside, text, run).map_err(failed)?;
            }
            match relocate(claimed, &absolute) {
                Ok(()) => return Ok(to),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Diagnostic::new(
            "watch::no_free_name",
            format!("no name is free for {} in {}", row.path.display(), base.display()),
        )
        .help("make room there; the file is kept in .tidemill/claimed"))
    }

    /// The runs that did not succeed, with what the last check found.
    async fn stories(&self, runs: &[RunRow]) -> Result<Vec<(RunRow, Vec<Finding>)>> {
        let mut stories = Vec::new();
        for run in runs.iter().filter(|run| run.state != RunState::Succeeded) {
            stories.push((run.clone(), self.findings(run).await?));
        }
        Ok(stories)
    }

    async fn findings(&self, run: &RunRow) -> Result<Vec<Finding>> {
        let events = self.store.all_events(&run.id).await?;
        let last = events.into_iter().rev().find_map(|event| match event.what {
            What::ChecksEnded { findings, .. } => Some(findings),
            _ => None,
        });
        Ok(last.unwrap_or_default())
    }
}

/// What the ends of its runs mean for a file.
fn end_of(runs: &[RunRow]) -> InputState {
    if runs.iter().all(|run| run.state == RunState::Succeeded) {
        InputState::Done
    } else if runs.iter().all(|run| matches!(run.state, RunState::Succeeded | RunState::Rejected)) {
        InputState::Rejected
    } else {
        InputState::Failed
    }
}

/// Whether the file stands there already: it was copied to another file system by a process that was killed before it
/// removed the original.
fn is_copied(row: &InputRow, to: &Path) -> bool {
    let there = place::read_still(to).ok().flatten();
    there.is_some_and(|(_, digest)| row.digest == Some(digest))
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn shown(path: &Path) -> String {
    RawPath::new(path).display()
}

/// Written beside and renamed: nobody reads half a reason.
fn write(path: &Path, text: &str, run: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = place::half(folder, &format!(".reason-{run}"))?;
    file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

fn unmovable(to: &Path, error: std::io::Error) -> Diagnostic {
    let (code, help) = if is_full(&error) {
        (
            "watch::disk_full",
            "the disk is full; free some space and start `tidemill watch` again, the file is kept in .tidemill/claimed",
        )
    } else {
        (
            "watch::unmovable",
            "its folder must be writable for this user; the file is kept in .tidemill/claimed until it is",
        )
    };
    Diagnostic::new(code, format!("cannot put a file away as {}", shown(to))).cause(error).help(help)
}
