//! Archives from a hostile source into a folder of ours.
//!
//! Whatever an archive says, only regular files and folders are made, only below the folder, only new ones, and only
//! as many and as large as [`Rules`] allow. Everything else is refused by name, with the reason. Nothing is
//! decompressed: what is packed in a file stays so.

mod bounded;
mod extensions;
mod members;
mod names;
mod rules;
mod seen;
mod target;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::workflow::path::WorkspacePath;
use crate::workflow::units::show_size;
use crate::workflow::view::Artifact;
use members::{Found, Member, Members};
use seen::Seen;
use target::Target;

pub use rules::Rules;

/// What came out of archives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Regular files, hashed while written, in the order in which they came.
    pub files: Vec<Artifact>,
    /// What was refused, as far as [`Rules::refusals`] goes.
    pub refused: Vec<Refusal>,
    /// How much was refused in all.
    pub refusals: u64,
    /// Why the rest of an archive was not looked at.
    pub stopped: Option<String>,
}

/// Something that does not come out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its name, made harmless to look at.
    pub name: String,
    /// Why, as a fragment such as "is a link, and links are not followed".
    pub why: String,
}

/// Unpacks archives into one folder, counting them together.
#[derive(Debug)]
pub struct Unpacker {
    into: PathBuf,
    target: Target,
    rules: Rules,
    seen: Seen,
    left: u64,
    unpacked: Unpacked,
}

impl Unpacker {
    /// Into the folder `into`, which is there and ours.
    pub fn new(into: &Path, rules: Rules) -> io::Result<Self> {
        let target = Target::open(into)?;
        let (seen, left, unpacked) = (Seen::default(), rules.total, Unpacked::default());
        Ok(Self { into: into.to_owned(), target, rules, seen, left, unpacked })
    }

    /// Unpacks one archive; its names are relative to `under`, a path below the folder, which may be empty. An error
    /// is one of our own disk: what is wrong with the archive is in [`Unpacked`].
    pub fn archive(&mut self, from: impl Read, under: &str) -> io::Result<()> {
        let mut archive = members::archive(from, &self.rules);
        let mut members = match Members::new(&mut archive, self.rules) {
            Ok(members) => members,
            Err(why) => {
                self.unpacked.stopped = Some(why);
                return Ok(());
            }
        };
        loop {
            match members.next() {
                Ok(None) => return Ok(()),
                Ok(Some(member)) => self.member(member, under)?,
                Err(why) => {
                    self.unpacked.stopped = Some(why);
                    return Ok(());
                }
            }
        }
    }

    /// What came out of all archives so far.
    pub fn finish(self) -> Unpacked {
        self.unpacked
    }

    fn member<R: Read>(&mut self, member: Member<'_, R>, under: &str) -> io::Result<()> {
        let Member { name, found } = member;
        if name.is_empty() && matches!(found, Found::Folder) {
            // The folder the archive was made of, which is ours.
            return Ok(());
        }
        if name.is_empty() && !under.is_empty() && matches!(found, Found::File { .. }) {
            self.refuse(under, "has no name".to_owned());
            return Ok(());
        }
        let name = if under.is_empty() { name } else { format!("{}/{name}", under.trim_end_matches('/')) };
        let checked = match found {
            Found::Refused(why) => Err(why),
            Found::Folder => self.folder(&name)?,
            Found::File { size, content } => self.file(&name, size, content)?,
        };
        if let Err(why) = checked {
            self.refuse(&name, why);
        }
        Ok(())
    }

    fn folder(&mut self, name: &str) -> io::Result<Result<(), String>> {
        if let Err(why) = names::check(name, &self.rules).and_then(|()| self.seen.folder(name)) {
            return Ok(Err(why));
        }
        self.target.folder(name)
    }

    fn file(&mut self, name: &str, size: u64, content: impl Read) -> io::Result<Result<(), String>> {
        let path = match names::check(name, &self.rules)
            .and_then(|()| WorkspacePath::parse(name).map_err(str::to_owned))
        {
            Ok(path) => path,
            Err(why) => return Ok(Err(why)),
        };
        if let Err(why) = self.fits(size).and_then(|()| self.seen.file(name)) {
            return Ok(Err(why));
        }
        match self.target.file(name, size, content)? {
            Err(why) => Ok(Err(why)),
            Ok(digest) => {
                self.left -= size;
                let file = self.into.join(name);
                self.unpacked.files.push(Artifact { path, file, size, digest });
                Ok(Ok(()))
            }
        }
    }

    fn fits(&self, size: u64) -> Result<(), String> {
        let (file, left) = (self.rules.file, self.left);
        if size > file {
            return Err(format!("has {}, and at most {} are taken", show_size(size), show_size(file)));
        }
        if size > left {
            let (size, total) = (show_size(size), show_size(self.rules.total));
            return Err(format!("has {size}, and all together may have {total}"));
        }
        Ok(())
    }

    fn refuse(&mut self, name: &str, why: String) {
        self.unpacked.refusals += 1;
        if self.unpacked.refused.len() < self.rules.refusals {
            self.unpacked.refused.push(Refusal { name: names::shown(name.as_bytes()), why });
        }
    }
}

/// The content of the one file an archive holds, at most `limit` bytes of it, without touching the disk. The error is
/// a fragment such as "is a folder".
pub fn only_file(from: impl Read, limit: u64) -> Result<Bytes, String> {
    let rules = Rules { file: limit, total: limit, entries: 1, ..Rules::default() };
    let mut archive = members::archive(from, &rules);
    let member = Members::new(&mut archive, rules)?.next()?.ok_or("is not in its archive")?;
    match member.found {
        Found::Refused(why) => Err(why),
        Found::Folder => Err("is a folder".to_owned()),
        Found::File { size, .. } if size > limit => {
            Err(format!("has {}, and at most {} are taken", show_size(size), show_size(limit)))
        }
        Found::File { size, content } => {
            let mut bytes = Vec::new();
            content.take(size).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            if bytes.len() as u64 == size { Ok(bytes.into()) } else { Err("ends too early".to_owned()) }
        }
    }
}
