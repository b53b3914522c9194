//! Where a claimed file goes when its runs have ended, decided when it is claimed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Where it goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Then {
    /// To `processed/` or `failed/`, under its path.
    #[default]
    Usual,
    /// Into this folder, relative to the project.
    Into(PathBuf),
    /// It stays where it was dropped.
    Keep,
    /// It is removed.
    Delete,
}

const MOVE: &[u8] = b"move:";

impl Then {
    /// As a column holds it.
    pub(in crate::store) fn encode(&self) -> Option<Vec<u8>> {
        match self {
            Self::Usual => None,
            Self::Keep => Some(b"keep".to_vec()),
            Self::Delete => Some(b"delete".to_vec()),
            Self::Into(folder) => Some([MOVE, folder.as_os_str().as_bytes()].concat()),
        }
    }

    /// From a column.
    pub(in crate::store) fn decode(bytes: Option<&[u8]>) -> Option<Self> {
        Some(match bytes {
            None => Self::Usual,
            Some(b"keep") => Self::Keep,
            Some(b"delete") => Self::Delete,
            Some(other) => Self::Into(PathBuf::from(OsStr::from_bytes(other.strip_prefix(MOVE)?))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_gives_back_what_was_put_in() {
        let odd = PathBuf::from(OsStr::from_bytes(b"archive/\xff"));
        for then in [Then::Usual, Then::Keep, Then::Delete, Then::Into(odd)] {
            assert_eq!(Then::decode(then.encode().as_deref()), Some(then));
        }
        assert_eq!(Then::decode(Some(b"elsewhere")), None);
    }
}
