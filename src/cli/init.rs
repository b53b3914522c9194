//! `tidemill init`: a new project that runs with no model key.

mod template;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::cli::init::template::{FILES, FOLDERS, File};
use crate::cli::{Context, Exit};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::printable;

/// Arguments of `tidemill init`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder to make; it may exist if it is empty
    #[arg(value_name = "NAME")]
    pub folder: PathBuf,
}

/// Carries it out.
#[expect(clippy::unused_async, reason = "every command is awaited alike")]
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    make(&args.folder)?;
    context.screen.line(next_steps(&args.folder));
    Ok(Exit::Succeeded)
}

/// Makes a project in `folder`, which must be missing or empty.
pub fn make(folder: &Path) -> Result<()> {
    must_be_free(folder)?;
    for name in FOLDERS {
        let path = folder.join(name);
        fs::create_dir_all(&path).map_err(|error| cannot_make(&path, error))?;
    }
    for file in FILES {
        write(folder, file).map_err(|error| cannot_make(&folder.join(file.path), error))?;
    }
    Ok(())
}

fn must_be_free(folder: &Path) -> Result<()> {
    let shown = printable(folder.as_os_str());
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(Diagnostic::new("usage::not_empty", format!("`{shown}` is not empty; nothing was changed"))
                .help("name a folder that does not exist yet, or empty this one first"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Diagnostic::new("usage::not_a_folder", format!("`{shown}` exists and is not a folder"))
                .help("name a folder that does not exist yet"))
        }
        Err(error) => Err(cannot_make(folder, error)),
    }
}

/// Never overwrites: a file that appeared in between is somebody's.
fn write(folder: &Path, file: File) -> io::Result<()> {
    let path = folder.join(file.path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(file.mode)
        .open(path)?
        .write_all(file.text.as_bytes())
}

fn cannot_make(path: &Path, error: io::Error) -> Diagnostic {
    let shown = printable(path.as_os_str());
    Diagnostic::new("init::write", format!("cannot make `{shown}`"))
        .cause(error)
        .help("check the folder's permissions and the disk's free space")
}

fn next_steps(folder: &Path) -> String {
    let shown = printable(folder.as_os_str());
    format!(
        "Made the project `{shown}`. Next:

  cd {}
  echo 'the tide comes and the tide goes' > sample.txt
  tidemill check                                        every mistake in every script
  tidemill run hello sample.txt --model hello-script    one run, with no model key
  tidemill watch --model hello-script                   run what is dropped into inbox/hello/

With a key in OPENAI_API_KEY, leave out --model. Other models: tidemill.toml.",
        quoted(&shown)
    )
}

/// As a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    use crate::config::Project;

    #[test]
    fn a_new_project_opens_and_has_every_file() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("deep/reports");
        make(&folder).unwrap();
        let project = Project::open(&folder).unwrap();
        assert!(project.inbox().is_dir() && project.outbox().is_dir());
        for file in FILES {
            let path = folder.join(file.path);
            assert_eq!(fs::read_to_string(&path).unwrap(), file.text);
            let executable = fs::metadata(&path).unwrap().permissions().mode() & 0o100 != 0;
            assert_eq!(executable, file.mode & 0o100 != 0, "{}", file.path);
        }
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), "kept").unwrap();
        assert_eq!(make(folder.path()).unwrap_err().code(), "usage::not_empty");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_empty_folder_is_taken_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let empty = folder.path().join("empty");
        fs::write(&file, "").unwrap();
        fs::create_dir(&empty).unwrap();
        make(&empty).unwrap();
        assert_eq!(make(&file).unwrap_err().code(), "usage::not_a_folder");
    }
}
