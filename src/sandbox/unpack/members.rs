//! The entries of an archive, each judged by its header before a byte of its content is looked at.
//!
//! The crate reads raw headers only. What it would do for us with extensions is unbounded: a long name or a record is
//! read whole into memory, however long it says it is.

use std::io::Read;

use tar::{Archive, Entries, Entry, EntryType};

use crate::sandbox::unpack::bounded::Bounded;
use crate::sandbox::unpack::extensions::Extensions;
use crate::sandbox::unpack::{Rules, names};

/// One entry.
pub(super) struct Member<'a, R: Read> {
    /// Its name, checked only for being text; of a refused one, whatever can be shown.
    pub(super) name: String,
    /// What it is.
    pub(super) found: Found<'a, R>,
}

/// What an entry is.
pub(super) enum Found<'a, R: Read> {
    /// A folder.
    Folder,
    /// A regular file.
    File {
        /// Bytes it says it has.
        size: u64,
        /// They, unless the archive ends before.
        content: Box<Entry<'a, R>>,
    },
    /// Something that does not come out, and why.
    Refused(String),
}

/// An archive that is read no further than the rules allow.
pub(super) fn archive<R: Read>(from: R, rules: &Rules) -> Archive<Bounded<R>> {
    Archive::new(Bounded::new(from, rules.stream()))
}

/// Reads them one by one.
pub(super) struct Members<'a, R: Read> {
    entries: Entries<'a, R>,
    rules: Rules,
    count: u64,
}

impl<'a, R: Read> Members<'a, R> {
    pub(super) fn new(archive: &'a mut Archive<R>, rules: Rules) -> Result<Self, String> {
        let entries = archive.entries().map_err(|error| error.to_string())?.raw(true);
        Ok(Self { entries, rules, count: 0 })
    }

    /// The next one. The error says why there is no going on.
    pub(super) fn next(&mut self) -> Result<Option<Member<'a, R>>, String> {
        let mut extensions = Extensions::default();
        let mut announced = false;
        loop {
            let Some(entry) = self.entries.next() else {
                return if announced {
                    Err("ends where an entry was announced".to_owned())
                } else {
                    Ok(None)
                };
            };
            let entry = entry.map_err(|error| format!("cannot be read: {error}"))?;
            let header = entry.header();
            let (kind, size, limit) = (header.entry_type(), entry.size(), self.rules.extension);
            match kind {
                EntryType::GNULongName => extensions.long_name(entry, size, limit)?,
                EntryType::XHeader => extensions.records(entry, size, limit)?,
                EntryType::GNULongLink | EntryType::XGlobalHeader => extensions.skip(entry, size, limit)?,
                _ => {
                    self.count += 1;
                    if self.count > self.rules.entries {
                        return Err(format!("has more than {} entries", self.rules.entries));
                    }
                    return judge(entry, kind, extensions).map(Some);
                }
            }
            announced = true;
        }
    }
}

fn judge<R: Read>(
    entry: Entry<'_, R>,
    kind: EntryType,
    extensions: Extensions,
) -> Result<Member<'_, R>, String> {
    let size = entry.size();
    if extensions.size.is_some_and(|other| other != size) {
        // Where the next entry begins depends on whom one believes.
        return Err("gives an entry two sizes".to_owned());
    }
    if kind == EntryType::GNUSparse && entry.header().as_gnu().is_some_and(tar::GnuHeader::is_extended) {
        // The map of its holes goes on, and is no entry.
        return Err("holds a sparse file whose map goes on".to_owned());
    }
    let bytes = extensions.name.unwrap_or_else(|| entry.header().path_bytes().into_owned());
    let refused = |why: &str| Found::Refused(why.to_owned());
    let found = match kind {
        _ if extensions.sparse => refused("is stored with holes (a sparse file)"),
        EntryType::Regular if bytes.ends_with(b"/") => refused("is a file with the name of a folder"),
        EntryType::Regular => Found::File { size, content: Box::new(entry) },
        EntryType::Directory if size > 0 => refused("is a folder with a content"),
        EntryType::Directory => Found::Folder,
        EntryType::Symlink => refused("is a link, and links are not followed"),
        EntryType::Link => refused("is a second name of another file (a hard link)"),
        EntryType::Char | EntryType::Block => refused("is a device"),
        EntryType::Fifo => refused("is a pipe"),
        EntryType::GNUSparse => refused("is stored with holes (a sparse file)"),
        _ => refused("is of an unknown kind"),
    };
    Ok(match names::read(&bytes) {
        Ok(name) => Member { name, found },
        Err(why) => Member { name: names::shown(&bytes), found: Found::Refused(why) },
    })
}
