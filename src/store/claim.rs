//! The claim: the rows of files that were taken together and the rows of all their runs, in one transaction.
//!
//! Whether a run would be one that was made before is asked in that same transaction, so that of two equal files that
//! come at once one is the duplicate of the other.

use std::path::PathBuf;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::diagnostic::Result;
use crate::event::id::{Digest, RunId};
use crate::event::input::{Fingerprint, RawPath, Role};
use crate::store::ledger::{InputId, InputRow};
use crate::store::run::{NewRun, RunRow};
use crate::store::then::Then;
use crate::workflow::trigger::Dedupe;

/// Files that were taken together, and the runs they become.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The files; the first one stands for all.
    pub files: Vec<ClaimedFile>,
    /// The runs, one for each workflow and batch.
    pub runs: Vec<DropRun>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedFile {
    /// Its row.
    pub input: InputId,
    /// The version that was read.
    pub fingerprint: Fingerprint,
    /// Hash of what was read.
    pub digest: Digest,
    /// What it is for, when it goes with another one.
    pub role: Option<Role>,
    /// Whether it was copied and stays in the inbox meanwhile.
    pub kept: bool,
    /// Where it goes when its runs succeeded.
    pub on_success: Then,
    /// Where it goes when not.
    pub on_failure: Then,
}

/// A run that a drop makes, and what would make another one the same.
#[derive(Debug, Clone, PartialEq)]
pub struct DropRun {
    /// The run.
    pub run: NewRun,
    /// The path of its file, or what its batch has in common.
    pub place: RawPath,
    /// Hash of all its files.
    pub content: Digest,
    /// What counts as the same.
    pub dedupe: Dedupe,
    /// How far back that is looked for; as far as there are rows without.
    pub since: Option<Timestamp>,
}

/// What became of a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Runs that were queued: workflow and id.
    pub queued: Vec<(String, RunId)>,
    /// Workflows for which it is a duplicate, with the run of which.
    pub duplicates: Vec<(String, RunId)>,
}

impl Claim {
    /// Of one file that is moved, for runs that are never duplicates.
    pub fn of(input: InputId, fingerprint: Fingerprint, digest: Digest, runs: Vec<NewRun>) -> Self {
        let runs = runs.into_iter().map(|run| DropRun {
            place: run.inputs.first().map_or_else(|| RawPath::new(""), |file| file.path.clone()),
            run,
            content: digest.clone(),
            dedupe: Dedupe::None,
            since: None,
        });
        let runs = runs.collect();
        let (on_success, on_failure) = (Then::Usual, Then::Usual);
        let file =
            ClaimedFile { input, fingerprint, digest, role: None, kept: false, on_success, on_failure };
        Self { files: vec![file], runs }
    }
}

/// What is taken out of the inbox, and what becomes of it.
#[async_trait]
pub trait Claims: Send + Sync {
    /// Claims files that were taken: their rows and the rows of all their runs, in one transaction. Gives what became of
    /// each claim: a run that is the same as one before is not queued, and files without any run are duplicates.
    ///
    /// A file that is claimed already is an error (`store::claimed_twice`), and nothing is written.
    async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>>;

    /// The inputs that were claimed together with this one, itself included, the first one first.
    async fn parcel(&self, input: InputId) -> Result<Vec<InputRow>>;

    /// The runs of all inputs that were claimed together with this one, oldest first.
    async fn runs_of_parcel(&self, input: InputId) -> Result<Vec<RunRow>>;

    /// Where the files of a run stand, absolute, in the order of its inputs. None when it was not dropped.
    async fn claimed_files(&self, run: &RunRow) -> Result<Vec<PathBuf>>;

    /// Where the file of a claimed input stands, absolute. `None` when it was not claimed.
    async fn claimed(&self, input: InputId) -> Result<Option<PathBuf>>;

    /// The inputs that were claimed and stand in the inbox all the same, oldest first.
    async fn kept(&self) -> Result<Vec<InputRow>>;

    /// Files that were kept in the inbox stand there no more.
    async fn let_go(&self, paths: &[RawPath]) -> Result<()>;

    /// The workflows whose files were watched for before.
    async fn watched(&self) -> Result<Vec<String>>;

    /// Records that the files of these workflows are watched for from now on.
    async fn note_watched(&self, workflows: &[String]) -> Result<()>;
}
