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
use crate::store::{InputId, InputRow, RunRow, Store, Then};
use crate::trigger::drop_folder::parcel::common;

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

    /// Puts an input away, with all that was claimed with it, if all their runs have ended and that was not done before.
    ///
    /// What was done before a crash is found and not done again.
    pub(crate) async fn put_away(&self, input: InputId) -> Result<()> {
        let _one = self.one.lock().await;
        let runs = self.store.runs_of_parcel(input).await?;
        if runs.is_empty() || !runs.iter().all(|run| run.state.is_end()) {
            return Ok(());
        }
        let rows = self.store.parcel(input).await?;
        let common = common(rows.iter().map(|row| row.path.as_path()));
        for row in rows.iter().filter(|row| row.state == InputState::Claimed) {
            let own: Vec<RunRow> = runs
                .iter()
                .filter(|run| run.inputs.iter().any(|file| file.path == row.path))
                .cloned()
                .collect();
            // What goes with a file ends as all of it does.
            let own = if own.is_empty() { runs.clone() } else { own };
            let state = end_of(&own);
            // One reason for all that was claimed together.
            let text = if state == InputState::Done || row.id != row.parcel {
                None
            } else {
                let inbox = &self.project.config.folders.inbox;
                Some(reason::text(&row.path, inbox, &self.stories(&own).await?))
            };
            let mark = own.last().map_or("", |run| run.id.as_str());
            self.put(row, common.as_path(), End { state, why: "all its runs ended", text, mark }).await?;
        }
        Ok(())
    }

    /// Puts files away that are the same as those of a run before, with the reason beside the first one.
    pub(crate) async fn put_duplicates_away(&self, input: InputId) -> Result<()> {
        let _one = self.one.lock().await;
        let rows = self.store.parcel(input).await?;
        let common = common(rows.iter().map(|row| row.path.as_path()));
        for row in rows.iter().filter(|row| row.state == InputState::Duplicate && row.claimed_path.is_some())
        {
            let why = row.reason.as_deref().unwrap_or_default();
            let text = (row.id == row.parcel).then(|| reason::duplicate(&row.path, why));
            let mark = format!("again-{}", row.id);
            self.put(row, common.as_path(), End { state: InputState::Duplicate, why, text, mark: &mark })
                .await?;
        }
        Ok(())
    }

    /// Puts one file where it goes.
    async fn put(&self, row: &InputRow, common: &Path, end: End<'_>) -> Result<()> {
        let Some(claimed) = row.claimed_path.as_ref().map(|path| self.store.folder().join(path)) else {
            return Ok(());
        };
        let home = self.project.inbox().join(row.path.as_path());
        let then = match end.state {
            InputState::Done | InputState::Duplicate => &row.on_success,
            _ => &row.on_failure,
        };
        let (to, what) = match then {
            Then::Keep => {
                remove(&claimed)?;
                (
                    Some(self.project.config.folders.inbox.join(row.path.as_path())),
                    "it stays in the inbox".to_owned(),
                )
            }
            Then::Delete => {
                leave_inbox(row, &home)?;
                remove(&claimed)?;
                (None, "it was removed".to_owned())
            }
            Then::Usual | Then::Into(_) => match self.bring(row, common, &claimed, &home, &end).await? {
                Some(path) => {
                    let stands = format!("it stands in {}", shown(&path));
                    (Some(path), stands)
                }
                None => (None, String::new()),
            },
        };
        let (state, why) = if what.is_empty() {
            (InputState::Gone, format!("{}, and it was taken out of .tidemill by someone else", end.why))
        } else {
            (end.state, format!("{}; {what}", end.why))
        };
        if row.role.is_none() && *then == Then::Keep {
            self.store.finish_kept(row.id, state, &why).await?;
        } else {
            self.store.finish(row.id, state, &why).await?;
        }
        if let Some(folder) = claimed.parent() {
            // Empty by now; that it is not, or is gone, harms nobody.
            let _ = std::fs::remove_dir(folder);
        }
        if row.role.is_none() {
            self.tell.say(Notice::PutAway { path: row.path.clone(), state, to: to.map(RawPath::new) });
        }
        Ok(())
    }

    /// Brings a file to its folder: the original where it was copied, else what was taken. `None` when neither is there.
    async fn bring(
        &self,
        row: &InputRow,
        common: &Path,
        claimed: &Path,
        home: &Path,
        end: &End<'_>,
    ) -> Result<Option<PathBuf>> {
        // Moved before a crash.
        let moved = row
            .final_path
            .clone()
            .filter(|path| place::stands(&self.project.root.join(path), row.fingerprint));
        if let Some(path) = moved {
            remove(claimed)?;
            return Ok(Some(path));
        }
        if !exists(claimed) {
            // Over to another file system, or taken away by someone.
            return Ok(row.final_path.clone().filter(|path| exists(&self.project.root.join(path))));
        }
        let original = row.kept && place::stands(home, row.fingerprint) && !place::is_read_only(home);
        let to = self.carry(row, common, if original { home } else { claimed }, end).await?;
        if original {
            remove(claimed)?;
        } else {
            leave_inbox(row, home)?;
        }
        Ok(Some(to))
    }

    /// Moves a file to a name that is free. Gives where it stands, relative to the project.
    async fn carry(&self, row: &InputRow, common: &Path, from: &Path, end: &End<'_>) -> Result<PathBuf> {
        let place = self.place_of(row, common, end.state);
        for attempt in 0..names::ATTEMPTS {
            let to = names::numbered(&place, end.mark, attempt);
            let absolute = self.project.root.join(&to);
            let beside = names::beside(&absolute, reason::SUFFIX);
            // A reason that stands there belongs to another file, unless this one was on its way to it.
            let ours = row.final_path.as_deref() == Some(&to);
            if ours && is_copied(row, &absolute) {
                remove(from)?;
                return Ok(to);
            }
            if exists(&absolute) || (end.text.is_some() && exists(&beside) && !ours) {
                continue;
            }
            self.store.bound_for(row.id, &to).await?;
            let failed = |error: std::io::Error| unmovable(&to, error);
            if let Some(text) = &end.text {
                write(&beside, text, end.mark).map_err(failed)?;
            }
            match relocate(from, &absolute) {
                Ok(()) => return Ok(to),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Diagnostic::new(
            "watch::no_free_name",
            format!(
                "no name is free for {} in {}",
                row.path.display(),
                shown(place.parent().unwrap_or(&place))
            ),
        )
        .help("make room there; the file is kept in .tidemill/claimed"))
    }

    /// Where a file goes if the name is free, relative to the project. Under a folder of its drop it stands as it stood
    /// among the files it was claimed with.
    fn place_of(&self, row: &InputRow, common: &Path, state: InputState) -> PathBuf {
        let folders = &self.project.config.folders;
        let (then, usual) = match state {
            InputState::Done | InputState::Duplicate => (&row.on_success, &folders.processed),
            _ => (&row.on_failure, &folders.failed),
        };
        match then {
            Then::Into(folder) => {
                let path = row.path.as_path();
                folder.join(path.strip_prefix(common).unwrap_or(path))
            }
            _ => usual.join(row.path.as_path()),
        }
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

/// How a file ends.
struct End<'a> {
    state: InputState,
    /// Why, for the ledger.
    why: &'a str,
    /// What is written beside it.
    text: Option<String>,
    /// What is put into its name where that is taken.
    mark: &'a str,
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

/// What was copied and is not kept leaves the inbox: that version of the file, or the link.
fn leave_inbox(row: &InputRow, home: &Path) -> Result<()> {
    if row.kept && (place::stands(home, row.fingerprint) || home.is_symlink()) {
        return remove(home);
    }
    Ok(())
}

/// Removes a file; that it is gone already is no error.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unmovable(path, error)),
        _ => Ok(()),
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
fn write(path: &Path, text: &str, mark: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = place::half(folder, &format!(".reason-{mark}"))?;
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
