//! Names that are not for us: temporary files of programs that write or copy, and what file managers leave behind.
//!
//! A rule looks at one name as bytes; case of ASCII letters does not matter.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Why a name is not for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The rule's name, shown by `tidemill explain`.
    pub name: &'static str,
    /// What such a name is, e.g. "a partial upload of rclone".
    pub what: &'static str,
}

/// How a rule recognizes a name.
enum Shape {
    /// The whole name.
    Is(&'static str),
    /// Its beginning.
    Starts(&'static str),
    /// Its end.
    Ends(&'static str),
    /// Its beginning and its end.
    Between(&'static str, &'static str),
    /// `.NAME.XXXXXX` with six letters or digits.
    Rsync,
}

/// Rules for files, the more telling ones first: the last one takes every name with a dot in front.
const FILES: [(Rule, Shape); 28] = [
    (rule("rclone-partial", "a partial upload of rclone"), Shape::Ends(".partial")),
    (rule("filepart", "a partial upload of WinSCP or FileZilla"), Shape::Ends(".filepart")),
    (rule("crdownload", "a download Chrome has not finished"), Shape::Ends(".crdownload")),
    (rule("part", "a download that is not finished"), Shape::Ends(".part")),
    (rule("download", "a download Safari has not finished"), Shape::Ends(".download")),
    (rule("word-temporary", "a temporary file of Word"), Shape::Between("~WR", ".tmp")),
    (rule("tmp", "a temporary file"), Shape::Ends(".tmp")),
    (rule("vim-swap", "a swap file of vim"), Shape::Ends(".swp")),
    (rule("vim-swap", "a swap file of vim"), Shape::Ends(".swo")),
    (rule("vim-swap", "a swap file of vim"), Shape::Ends(".swx")),
    (rule("vim-probe", "a probe of vim"), Shape::Is("4913")),
    (rule("libreoffice-lock", "a lock of LibreOffice"), Shape::Between(".~lock.", "#")),
    (rule("emacs-autosave", "an unsaved copy of Emacs"), Shape::Between("#", "#")),
    (rule("emacs-lock", "a lock of Emacs"), Shape::Starts(".#")),
    (rule("office-lock", "a lock of Microsoft Office"), Shape::Starts("~$")),
    (rule("syncthing-temporary", "a file Syncthing has not finished"), Shape::Between(".syncthing.", ".tmp")),
    (rule("syncthing-temporary", "a file Syncthing has not finished"), Shape::Starts("~syncthing~")),
    (rule("gnome-temporary", "a file GNOME has not finished"), Shape::Starts(".goutputstream-")),
    (rule("macos-metadata", "metadata of macOS"), Shape::Starts("._")),
    (rule("macos-metadata", "metadata of macOS"), Shape::Is(".DS_Store")),
    (rule("windows-metadata", "metadata of Windows"), Shape::Is("Thumbs.db")),
    (rule("windows-metadata", "metadata of Windows"), Shape::Is("desktop.ini")),
    (rule("nfs-removed", "a removed file that NFS still holds open"), Shape::Starts(".nfs")),
    (rule("synology-metadata", "metadata of a Synology disk station"), Shape::Is("@eaDir")),
    (rule("archive-metadata", "metadata of macOS in an archive"), Shape::Is("__MACOSX")),
    (rule("rsync-temporary", "a file rsync has not finished"), Shape::Rsync),
    (rule("backup", "an editor's backup"), Shape::Ends("~")),
    (rule("hidden", "a hidden file"), Shape::Starts(".")),
];

/// Rules for folders; what lies in such a folder is not looked at.
const FOLDERS: [(Rule, Shape); 5] = [
    (rule("synology-metadata", "metadata of a Synology disk station"), Shape::Is("@eaDir")),
    (rule("archive-metadata", "metadata of macOS in an archive"), Shape::Is("__MACOSX")),
    (rule("syncthing-metadata", "a folder of Syncthing"), Shape::Starts(".st")),
    (rule("download", "a download Safari has not finished"), Shape::Ends(".download")),
    (rule("hidden", "a hidden folder"), Shape::Starts(".")),
];

/// The rule by which a file of that name is not for us.
pub fn ignored_file(name: &OsStr) -> Option<Rule> {
    first(&FILES, name)
}

/// The rule by which a folder of that name is not looked into.
pub fn ignored_folder(name: &OsStr) -> Option<Rule> {
    first(&FOLDERS, name)
}

const fn rule(name: &'static str, what: &'static str) -> Rule {
    Rule { name, what }
}

fn first(rules: &[(Rule, Shape)], name: &OsStr) -> Option<Rule> {
    let name = name.as_bytes().to_ascii_lowercase();
    rules.iter().find(|(_, shape)| shape.fits(&name)).map(|(rule, _)| *rule)
}

impl Shape {
    fn fits(&self, lower: &[u8]) -> bool {
        let starts = |text: &str| lower.starts_with(text.to_ascii_lowercase().as_bytes());
        let ends = |text: &str| lower.ends_with(text.to_ascii_lowercase().as_bytes());
        match self {
            Self::Is(text) => lower == text.to_ascii_lowercase().as_bytes(),
            Self::Starts(text) => starts(text),
            Self::Ends(text) => ends(text),
            Self::Between(start, end) => lower.len() >= start.len() + end.len() && starts(start) && ends(end),
            Self::Rsync => {
                let last = lower.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
                starts(".")
                    && last.len() == 6
                    && last.iter().all(u8::is_ascii_alphanumeric)
                    // A dot, a name, a dot and the six.
                    && lower.len() > 8
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(rule: Option<Rule>) -> Option<&'static str> {
        rule.map(|rule| rule.name)
    }

    #[test]
    fn every_writers_temporary_name_is_known() {
        for (name, rule) in [
            ("data.csv.k3n9x2ab.partial", "rclone-partial"),
            (".data.csv.a8Xk2Q", "rsync-temporary"),
            ("data.csv.filepart", "filepart"),
            ("data.csv.crdownload", "crdownload"),
            ("data.csv.part", "part"),
            ("data.csv.download", "download"),
            (".data.csv.swp", "vim-swap"),
            ("4913", "vim-probe"),
            ("data.csv~", "backup"),
            (".#data.csv", "emacs-lock"),
            ("#data.csv#", "emacs-autosave"),
            (".~lock.data.csv#", "libreoffice-lock"),
            ("~$data.xlsx", "office-lock"),
            ("~WRD0001.tmp", "word-temporary"),
            ("data.csv.tmp", "tmp"),
            (".goutputstream-K3J2X1", "gnome-temporary"),
            ("._data.csv", "macos-metadata"),
            (".DS_Store", "macos-metadata"),
            ("thumbs.DB", "windows-metadata"),
            ("desktop.ini", "windows-metadata"),
            (".nfs000000000123", "nfs-removed"),
            (".hidden", "hidden"),
        ] {
            assert_eq!(name_of(ignored_file(name.as_ref())), Some(rule), "{name}");
        }
    }

    #[test]
    fn ordinary_names_are_for_us() {
        for name in [
            "data.csv",
            "part.csv",
            "partial",
            "4913.csv",
            "a#b#c",
            "~data.csv",
            "tmp",
            "-rf",
            "nfs",
            "Übersicht.csv",
            "a\nb.csv",
        ] {
            assert_eq!(name_of(ignored_file(name.as_ref())), None, "{name}");
        }
        assert_eq!(name_of(ignored_file(OsStr::from_bytes(b"\xff\xfe.csv"))), None);
    }

    #[test]
    fn folders_of_file_managers_are_not_looked_into() {
        for (name, rule) in [
            ("@eaDir", Some("synology-metadata")),
            (".stfolder", Some("syncthing-metadata")),
            (".stversions", Some("syncthing-metadata")),
            ("__MACOSX", Some("archive-metadata")),
            (".git", Some("hidden")),
            ("energy", None),
            ("backup~", None),
        ] {
            assert_eq!(name_of(ignored_folder(name.as_ref())), rule, "{name}");
        }
    }
}
