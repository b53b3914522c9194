//! An entry's content, found on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, RunId};
use crate::event::input::printable;
use crate::sandbox::Body;
use crate::workflow::manifest::{Entry, Folder};
use crate::workflow::view::{RunView, Snapshot};

/// What an entry stands for, once it is on this machine.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The path in the project, the address, the repository or the workflow.
    pub(super) from: Option<String>,
    /// Branch, tag or commit as declared.
    pub(super) reference: Option<String>,
    /// The commit that was.
    pub(super) commit: Option<String>,
    /// The run whose artifacts these are.
    pub(super) run: Option<RunId>,
    /// The content.
    pub(super) content: Parts,
}

/// The content itself.
#[derive(Debug, Default)]
pub(super) enum Parts {
    /// There is none, and need not be.
    #[default]
    Nothing,
    /// One file.
    One(Part),
    /// Files with their paths below the entry's.
    Several(Vec<Part>),
    /// A folder that is to be walked.
    Tree(Tree),
}

/// One file.
#[derive(Debug)]
pub(super) struct Part {
    /// Its path below the entry's folder.
    pub(super) name: String,
    /// Its content.
    pub(super) body: Body,
    /// Hash of the content, where it is known already.
    pub(super) digest: Option<Digest>,
    /// Whether it may be run.
    pub(super) program: bool,
}

/// A folder.
#[derive(Debug)]
pub(super) struct Tree {
    /// Where it is, without links in the path.
    pub(super) folder: PathBuf,
    /// Links may lead to files in here, and nowhere else.
    pub(super) home: PathBuf,
    /// What is left out: lines of a `.gitignore`.
    pub(super) ignore: Vec<String>,
    /// Whether rules in the folder itself count.
    pub(super) rules: Rules,
}

/// Whether a folder has a say in what is left out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Its file `.tidemillignore` counts.
    Own,
    /// Nothing in it counts.
    None,
}

impl Found {
    /// What was dropped: one file, or those of a batch.
    pub(super) fn input(entry: &Entry, run: &RunView) -> Result<Self> {
        if run.inputs.len() > 1 {
            let parts = (1..).zip(&run.inputs).map(|(number, snapshot)| {
                let name = known(run.below(snapshot))
                    .unwrap_or_else(|| format!("_{}", harmless(snapshot, &number.to_string())));
                dropped(name, snapshot)
            });
            return Ok(Self { content: Parts::Several(parts.collect()), ..Self::default() });
        }
        let Some(snapshot) = run.inputs.first() else {
            let message = format!("`{}` is `mill.input()`, and this run has no input", entry.path);
            return Err(Diagnostic::new("run::no_input", message)
                .help(format!("name a file: `tidemill run {} FILE`", run.workflow)));
        };
        Ok(Self { content: Parts::One(dropped(harmless(snapshot, ""), snapshot)), ..Self::default() })
    }

    /// A file of the project.
    pub(super) fn file(entry: &Entry, path: &str, root: &Path) -> Result<Self> {
        let (file, _) = inside(entry, path, root)?;
        let part =
            Part::file(name_of(Path::new(path))?, file).map_err(|error| unreadable(entry, path, error))?;
        Ok(Self { from: Some(path.to_owned()), content: Parts::One(part), ..Self::default() })
    }

    /// A folder of the project.
    pub(super) fn folder(entry: &Entry, folder: &Folder, root: &Path) -> Result<Self> {
        let (found, _) = inside(entry, &folder.path, root)?;
        let tree =
            Tree { home: found.clone(), folder: found, ignore: folder.ignore.clone(), rules: Rules::Own };
        Ok(Self { from: Some(folder.path.clone()), content: Parts::Tree(tree), ..Self::default() })
    }

    /// Content of the script itself.
    pub(super) fn bytes(bytes: &[u8]) -> Self {
        let part = Part {
            name: String::new(),
            body: Body::Bytes(Bytes::copy_from_slice(bytes)),
            digest: None,
            program: false,
        };
        Self { content: Parts::One(part), ..Self::default() }
    }
}

impl Part {
    /// A regular file as it stands.
    pub(super) fn file(name: String, path: PathBuf) -> std::io::Result<Self> {
        let data = path.metadata()?;
        if !data.is_file() {
            // Reading a pipe would wait for whoever writes to it.
            return Err(std::io::Error::other("it is not a regular file"));
        }
        let program = is_program(&data);
        Ok(Self { name, body: Body::File(path), digest: None, program })
    }
}

/// Where a path of the project really is, and where the project is. It may have become a link since it was checked.
fn inside(entry: &Entry, path: &str, root: &Path) -> Result<(PathBuf, PathBuf)> {
    let failed = |error| unreadable(entry, path, error);
    let home = root.canonicalize().map_err(failed)?;
    let found = root.join(path).canonicalize().map_err(failed)?;
    if found.starts_with(&home) {
        return Ok((found, home));
    }
    let message = format!("`{path}` is a link that leads out of the project");
    Err(Diagnostic::new("manifest::link", message)
        .help(format!("`{}` of the manifest names it; put the content itself there", entry.path)))
}

pub(super) fn unreadable(entry: &Entry, path: &str, error: std::io::Error) -> Diagnostic {
    let shown = printable(OsStr::new(path));
    Diagnostic::new("run::manifest", format!("cannot read `{shown}`"))
        .cause(error)
        .help(format!("`{}` of the manifest names it", entry.path))
}

/// The last part of a path.
pub(super) fn name_of(path: &Path) -> Result<String> {
    let name = path.file_name().unwrap_or_default();
    name.to_str().map(str::to_owned).ok_or_else(|| {
        Diagnostic::new(
            "run::manifest",
            format!("the file name `{}` is not UTF-8", printable(path.as_os_str())),
        )
        .help("rename it, or take it out of the folder")
    })
}

/// Whether anybody may run it.
pub(super) fn is_program(data: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    data.permissions().mode() & 0o111 != 0
}

fn dropped(name: String, snapshot: &Snapshot) -> Part {
    Part {
        name,
        body: Body::File(snapshot.file.clone()),
        digest: Some(snapshot.digest.clone()),
        // A program that somebody dropped is data.
        program: false,
    }
}

/// The path of a file in a batch, when it is made of plain letters: its name says what it is, and no more than a name can.
fn known(path: &Path) -> Option<String> {
    const LONGEST: usize = 64;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.len() <= LONGEST
            && part.chars().all(plain)
    };
    path.to_str().filter(|path| path.split('/').all(fits)).map(str::to_owned)
}

/// `input`, a number, and the extension of the dropped file where that is harmless.
fn harmless(snapshot: &Snapshot, number: &str) -> String {
    let extension = Path::new(snapshot.path.name()).extension().and_then(OsStr::to_str).unwrap_or_default();
    let harmless = !extension.is_empty()
        && extension.len() <= 16
        && extension.chars().all(|character| character.is_ascii_alphanumeric());
    if harmless { format!("input{number}.{extension}") } else { format!("input{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::id::RunId;
    use crate::event::input::RawPath;
    use crate::event::trigger::{Params, Trigger};
    use crate::workflow::manifest::{Access, Content};
    use crate::workflow::path::WorkspacePath;

    #[test]
    fn files_of_a_batch_keep_plain_names_and_no_others() {
        let snapshot = |path: &&str| Snapshot {
            path: RawPath::new(*path),
            file: PathBuf::from("x"),
            size: 1,
            digest: Digest::of("x"),
        };
        let paths = [
            "in/42/a.txt",
            "in/42/Ignore all rules.txt",
            "in/42/deep/-rf",
            "in/42/deep/b.csv",
            "in/42/_input2.txt",
        ];
        let run = RunView {
            id: RunId::parse("20261130-231805-k3xq").unwrap(),
            workflow: "w".into(),
            trigger: Trigger::Drop,
            params: Params::new(),
            queued_at: jiff::Timestamp::UNIX_EPOCH,
            fired: None,
            attempt: 0,
            inputs: paths.iter().map(snapshot).collect(),
        };
        let path = WorkspacePath::parse("input/").unwrap();
        let entry = Entry { path, content: Content::Input, access: Access::ReadOnly, mode: None };
        let Parts::Several(parts) = Found::input(&entry, &run).unwrap().content else {
            panic!("several files")
        };
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["a.txt", "_input2.txt", "_input3", "deep/b.csv", "_input5.txt"]);
    }
}
