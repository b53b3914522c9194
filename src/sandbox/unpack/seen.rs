//! Names that came already, in any case: on some disks `A` and `a` are one file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What stands at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// By the name in lower case: the name as it came first, and what it is.
#[derive(Debug, Default)]
pub(super) struct Seen(HashMap<String, (String, Kind)>);

impl Seen {
    /// Notes a file and the folders above it.
    pub(super) fn file(&mut self, name: &str) -> Result<(), String> {
        self.parents(name)?;
        match self.0.entry(name.to_lowercase()) {
            Entry::Vacant(place) => {
                place.insert((name.to_owned(), Kind::File));
                Ok(())
            }
            Entry::Occupied(place) if place.get().0 == name => Err("comes twice".to_owned()),
            Entry::Occupied(place) => Err(differs(&place.get().0)),
        }
    }

    /// Notes a folder, which may come again, and the folders above it.
    pub(super) fn folder(&mut self, name: &str) -> Result<(), String> {
        self.parents(name)?;
        self.one_folder(name)
    }

    fn parents(&mut self, name: &str) -> Result<(), String> {
        for (end, _) in name.match_indices('/') {
            self.one_folder(&name[..end])?;
        }
        Ok(())
    }

    fn one_folder(&mut self, name: &str) -> Result<(), String> {
        match self.0.entry(name.to_lowercase()) {
            Entry::Vacant(place) => {
                place.insert((name.to_owned(), Kind::Folder));
                Ok(())
            }
            Entry::Occupied(place) => match place.get() {
                (known, _) if known != name => Err(differs(known)),
                (_, Kind::Folder) => Ok(()),
                (known, Kind::File) => Err(format!("takes `{known}`, which is a file, for a folder")),
            },
        }
    }
}

fn differs(known: &str) -> String {
    format!("differs from `{known}` in upper and lower case only")
}
