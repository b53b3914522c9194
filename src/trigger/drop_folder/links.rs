//! Symbolic links: followed where a drop says so, to files that lie in the inbox or in a declared folder.
//!
//! A link is data of someone else's choosing. Where it ends is opened from the folder that holds it, and nothing on the
//! way down may be a link any more: what is replaced in between leads nowhere.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::event::input::RawPath;
use crate::trigger::drop_folder::routes::{Called, Routes};
use crate::trigger::drop_folder::scan::{Found, Scan, Sight, fingerprint};
use crate::workflow::trigger::Symlinks;

/// Which links were followed, and where they end.
#[derive(Debug)]
pub struct Links {
    inbox: PathBuf,
    /// Where links may lead.
    folders: Vec<PathBuf>,
    followed: HashMap<RawPath, End>,
}

/// Where a link ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    folder: PathBuf,
    below: PathBuf,
}

impl Links {
    /// Links of this inbox may lead into it and into `folders`.
    pub fn new(inbox: &Path, folders: &[PathBuf]) -> Self {
        let folders = std::iter::once(inbox.to_owned()).chain(folders.iter().cloned()).collect();
        Self { inbox: inbox.to_owned(), folders, followed: HashMap::new() }
    }

    /// The scan with the links followed that may be. Reads no content.
    pub fn resolve<'a>(&mut self, scan: &'a Scan, routes: &Routes) -> Cow<'a, Scan> {
        let mut scan = Cow::Borrowed(scan);
        // An inbox may hold very many files, and hardly ever a link.
        if scan.found.iter().any(|found| matches!(found.sight, Sight::Link(_))) {
            scan.to_mut().found.iter_mut().for_each(|found| self.resolve_one(found, routes));
        }
        scan
    }

    /// Follows it if it is a link that may be followed.
    pub fn resolve_one(&mut self, found: &mut Found, routes: &Routes) {
        if let Sight::Link(_) = found.sight
            && let Called::Input(takers) = routes.called(&found.path)
            && takers.iter().any(|route| route.drop.symlinks == Symlinks::Inside)
        {
            self.follow(found);
        }
    }

    fn follow(&mut self, found: &mut Found) {
        self.followed.remove(&found.path);
        match self.find(&found.path) {
            Ok((end, file)) => match file.metadata() {
                Ok(metadata) if metadata.is_file() => {
                    found.sight = Sight::Linked;
                    found.fingerprint = fingerprint(&metadata);
                    self.followed.insert(found.path.clone(), end);
                }
                Ok(_) => found.sight = Sight::Link("leads to no regular file"),
                Err(_) => found.sight = Sight::Link("leads to what cannot be read"),
            },
            Err(why) => found.sight = Sight::Link(why),
        }
    }

    fn find(&self, path: &RawPath) -> Result<(End, File), &'static str> {
        let target = self.inbox.join(path.as_path()).canonicalize().map_err(|_| "leads nowhere")?;
        let end = self.folders.iter().find_map(|folder| {
            let folder = folder.canonicalize().ok()?;
            let below = target.strip_prefix(&folder).ok()?.to_owned();
            Some(End { folder, below })
        });
        let end = end.ok_or("leads out of the inbox and of the folders in `links_to` under [watch]")?;
        let file = end.open().map_err(|_| "leads to what cannot be read")?;
        Ok((end, file))
    }

    /// Where a link ends that is followed.
    pub fn end(&self, path: &RawPath) -> Option<&End> {
        self.followed.get(path)
    }

    /// Opens a file of the inbox, or the end of a link that is followed, and waits for nothing.
    pub fn open_file(&self, path: &RawPath) -> io::Result<File> {
        match self.followed.get(path) {
            Some(end) => end.open(),
            None => open(&self.inbox.join(path.as_path())),
        }
    }
}

impl End {
    /// Opens the file for reading.
    pub fn open(&self) -> io::Result<File> {
        let folder = File::open(&self.folder)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(File::from(openat2(&folder, &self.below, flags, Mode::empty(), resolve)?))
    }
}

/// Opens a regular file for reading, following no link and waiting for nothing.
pub fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file any more"))
    }
}
