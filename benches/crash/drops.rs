//! Files that are dropped, in the ways people and programs drop them.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tokio::time::sleep;

use crate::kind::Kind;
use crate::project::SETTLE;

/// Drops files; names come again, as those of exports do.
pub struct Dropper {
    inbox: PathBuf,
    rng: Rng,
    /// What was dropped so far; no two are the same.
    pub dropped: Vec<String>,
    /// What came too slowly to be one file, because this machine was busy: nothing is said of those.
    pub spoilt: Vec<String>,
}

impl Dropper {
    /// So many names there are in each folder.
    const NAMES: u32 = 5;
    /// A slow writer writes so often, and pauses in between.
    const PIECES: usize = 4;
    const PAUSE: Duration = Duration::from_millis(40);

    /// For this inbox.
    pub fn new(inbox: PathBuf, rng: Rng) -> Self {
        for kind in Kind::DROPPED {
            fs::create_dir_all(inbox.join(kind.name())).expect("a folder");
        }
        Self { inbox, rng, dropped: Vec::new(), spoilt: Vec::new() }
    }

    /// Drops one more.
    pub async fn drop_one(&mut self) {
        let number = self.dropped.len() + self.spoilt.len();
        let kind = Kind::DROPPED[number % Kind::DROPPED.len()];
        let content = format!("{}-{number}-{:08x}", kind.name(), self.rng.u32(..));
        let folder = self.inbox.join(kind.name());
        let again = folder.join(format!("{}.txt", self.rng.u32(..Self::NAMES)));
        let way = self.rng.u32(..3);
        let mut is_whole = true;
        // A name that is taken is somebody else's file.
        for path in [again, folder.join(format!("own-{number}.txt"))] {
            let done = match way {
                0 => rename_in(&path, &content),
                1 => create(&path).and_then(|mut file| file.write_all(content.as_bytes())),
                _ => slowly(&path, &content).await.map(|whole| is_whole = whole),
            };
            match done {
                Ok(()) => break,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot drop {}: {error}", path.display()),
            }
        }
        if is_whole {
            self.dropped.push(content);
        } else {
            self.spoilt.push(content);
        }
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// Under a name that is left alone, then under its own.
fn rename_in(path: &Path, content: &str) -> std::io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, content)?;
    let renamed = renameat_with(CWD, &partial, CWD, path, RenameFlags::NOREPLACE);
    if renamed.is_err() {
        fs::remove_file(&partial)?;
    }
    Ok(renamed?)
}

/// In pieces. Gives whether they came quickly enough to be one file.
async fn slowly(path: &Path, content: &str) -> std::io::Result<bool> {
    let mut file = create(path)?;
    let mut longest = Duration::ZERO;
    let mut last = Instant::now();
    for piece in content.as_bytes().chunks(content.len().div_ceil(Dropper::PIECES)) {
        file.write_all(piece)?;
        longest = longest.max(last.elapsed());
        last = Instant::now();
        sleep(Dropper::PAUSE).await;
    }
    Ok(longest < SETTLE / 2)
}
