//! How much may come out of archives.

/// Caps; the default is what an unattended run can be trusted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files together, over all archives.
    pub total: u64,
    /// Entries of one archive that are looked at, refused ones included.
    pub entries: u64,
    /// Folders above a file.
    pub depth: usize,
    /// Bytes of a path.
    pub path: usize,
    /// Bytes of one part of a path: more fits no file system.
    pub part: usize,
    /// Bytes of what an archive says about one entry besides its header: a long name, its attributes.
    pub extension: u64,
    /// Refusals that are listed; the rest is counted.
    pub refusals: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            file: 256 << 20,
            total: 1 << 30,
            entries: 10_000,
            depth: 32,
            path: 1024,
            part: 255,
            extension: 64 << 10,
            refusals: 100,
        }
    }
}

impl Rules {
    /// Bytes of an archive that are read: what may come out, a file that is refused for its size, and what stands
    /// around each entry.
    pub(super) fn stream(&self) -> u64 {
        const AROUND: u64 = 4096;
        let around = self.entries.saturating_mul(AROUND.saturating_add(self.extension));
        self.total.saturating_add(self.file).saturating_add(around)
    }
}
