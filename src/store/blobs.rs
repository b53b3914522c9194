//! Content by its hash: `.tidemill/blobs/ab/<digest>`. A name either has the right content or does not exist.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::NamedTempFile;

use crate::diagnostic::{Diagnostic, Result, is_full};
use crate::event::id::{Digest, Hasher};

/// How the name of a file begins that is being written.
const NEW: &str = ".new-";

/// A file that nobody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    path: PathBuf,
    /// Bytes.
    pub size: u64,
}

/// The blob store of a project.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
}

impl Blobs {
    /// Content is read and hashed in pieces of this size.
    const PIECE: usize = 64 * 1024;

    /// The store in `state`. Makes its folder.
    pub(super) fn open(state: &Path) -> Result<Self> {
        let folder = state.join("blobs");
        std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
        Ok(Self { folder })
    }

    /// Where the content of that hash stands, or would stand.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(&digest.as_str()[..2]).join(digest.as_str())
    }

    /// Keeps `bytes`. Content that is there already is not written again.
    pub async fn put(&self, bytes: impl Into<Vec<u8>>) -> Result<Digest> {
        let (blobs, bytes) = (self.clone(), bytes.into());
        blocking(move || {
            let digest = Digest::of(&bytes);
            // Fresh again before it is looked at: what is about to be mentioned must not be swept in between.
            blobs.refresh(&digest);
            if blobs.holds(&digest) {
                return Ok(digest);
            }
            blobs.keep(bytes.as_slice()).map(|(digest, _)| digest)
        })
        .await
    }

    /// Keeps the content of a file; gives its hash and its bytes.
    pub async fn put_file(&self, file: &Path) -> Result<(Digest, u64)> {
        let (blobs, file) = (self.clone(), file.to_owned());
        blocking(move || {
            let source = File::open(&file).map_err(|error| unreadable(&file, error))?;
            blobs.keep(source)
        })
        .await
    }

    /// Makes content that is there as young as content that was just written.
    pub fn refresh(&self, digest: &Digest) {
        if let Ok(file) = File::options().append(true).open(self.path(digest)) {
            // Where that fails it is as old as it is, and whoever sweeps is told how old a blob must be.
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Content that is not in `wanted`, and what writers left that were killed; all of it older than `before`.
    pub async fn strays(&self, wanted: HashSet<Digest>, before: SystemTime) -> Result<Vec<Stray>> {
        let blobs = self.clone();
        blocking(move || {
            blobs.look_for_strays(&wanted, before).map_err(|error| unwritable(&blobs.folder, error))
        })
        .await
    }

    /// Removes strays, but for those that were wanted again in between. Gives the bytes that are free now.
    pub async fn remove(&self, strays: Vec<Stray>, before: SystemTime) -> Result<u64> {
        let blobs = self.clone();
        blocking(move || {
            let mut freed = 0;
            for stray in strays {
                let gone = blobs.take_away(&stray.path, before);
                freed += if gone.map_err(|error| unwritable(&blobs.folder, error))? { stray.size } else { 0 };
            }
            Ok(freed)
        })
        .await
    }

    fn look_for_strays(&self, wanted: &HashSet<Digest>, before: SystemTime) -> std::io::Result<Vec<Stray>> {
        let mut strays = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let entry = entry?;
                let Some(data) = there(entry.metadata())? else { continue };
                if data.is_dir() {
                    folders.push(entry.path());
                    continue;
                }
                let name = entry.file_name();
                let digest = name.to_str().and_then(Digest::parse);
                let is_ours = digest.is_some() || name.to_str().is_some_and(|name| name.starts_with(NEW));
                let is_wanted = digest.is_some_and(|digest| wanted.contains(&digest));
                if data.is_file() && is_ours && !is_wanted && data.modified()? < before {
                    strays.push(Stray { path: entry.path(), size: data.len() });
                }
            }
        }
        Ok(strays)
    }

    /// Renamed away first, and looked at once more: whoever wants it now has made it fresh, and gets it back.
    fn take_away(&self, path: &Path, before: SystemTime) -> std::io::Result<bool> {
        let aside = NamedTempFile::with_prefix_in(NEW, &self.folder)?.into_temp_path();
        if there(std::fs::rename(path, &aside))?.is_none() {
            return Ok(false);
        }
        if std::fs::metadata(&aside)?.modified()? < before {
            aside.close().map(|()| true)
        } else {
            aside.persist(path).map(|()| false).map_err(|error| error.error)
        }
    }

    /// The content of that hash, checked; an error when it is longer than `limit` bytes.
    ///
    /// Errors: `store::no_blob`, `store::corrupt_blob`, `store::blob_too_long`.
    pub async fn read(&self, digest: &Digest, limit: u64) -> Result<Vec<u8>> {
        let (path, digest) = (self.path(digest), digest.clone());
        blocking(move || {
            let file = File::open(&path).map_err(|error| unreadable(&path, error))?;
            let mut bytes = Vec::new();
            file.take(limit.saturating_add(1))
                .read_to_end(&mut bytes)
                .map_err(|error| unreadable(&path, error))?;
            if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
                let message = format!("the content {} is longer than {limit} bytes", digest.short());
                return Err(Diagnostic::new("store::blob_too_long", message)
                    .help(format!("read it from {}", path.display())));
            }
            if Digest::of(&bytes) != digest {
                let message = format!("the stored content {} is damaged", path.display());
                return Err(Diagnostic::new("store::corrupt_blob", message).help(
                    "the disk changed it; put back a copy, or delete the file to have it written again",
                ));
            }
            Ok(bytes)
        })
        .await
    }

    /// Whether the whole content is there: a damaged one is written again.
    fn holds(&self, digest: &Digest) -> bool {
        let Ok(mut file) = File::open(self.path(digest)) else {
            return false;
        };
        let mut hasher = Hasher::default();
        let mut piece = vec![0; Self::PIECE];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return hasher.finish() == *digest,
                Ok(read) => hasher.update(&piece[..read]),
                Err(_) => return false,
            }
        }
    }

    /// Writes beside, syncs, renames: a crash leaves a temporary file, never a wrong blob.
    fn keep(&self, mut source: impl Read) -> Result<(Digest, u64)> {
        let failed = |error| unwritable(&self.folder, error);
        let mut file = NamedTempFile::with_prefix_in(NEW, &self.folder).map_err(failed)?;
        let mut hasher = Hasher::default();
        let mut size: u64 = 0;
        let mut piece = vec![0; Self::PIECE];
        loop {
            let read = source.read(&mut piece).map_err(|error| {
                Diagnostic::new("store::unreadable", "cannot read what is to be kept").cause(error)
            })?;
            if read == 0 {
                break;
            }
            hasher.update(&piece[..read]);
            file.write_all(&piece[..read]).map_err(failed)?;
            size = size.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
        }
        let digest = hasher.finish();
        let path = self.path(&digest);
        let drawer = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(drawer).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        sync_folder(drawer).map_err(failed)?;
        Ok((digest, size))
    }
}

/// What somebody else has removed or renamed meanwhile is nothing.
fn there<T>(looked: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match looked {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        looked => looked.map(Some),
    }
}

/// A rename is safe from a power cut once its folder is on the disk.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

fn unwritable(folder: &Path, error: std::io::Error) -> Diagnostic {
    let (code, help) = if is_full(&error) {
        ("store::disk_full", "the disk is full; free some space and start again")
    } else {
        ("store::unwritable", "the folder .tidemill and the files in it must be writable for this user")
    };
    Diagnostic::new(code, format!("cannot write to {}", folder.display())).help(help).cause(error)
}

fn unreadable(file: &Path, error: std::io::Error) -> Diagnostic {
    let code =
        if error.kind() == std::io::ErrorKind::NotFound { "store::no_blob" } else { "store::unreadable" };
    let name = crate::event::input::printable(file.as_os_str());
    Diagnostic::new(code, format!("cannot read {name}"))
        .help("it was moved away or may not be read by this user")
        .cause(error)
}

async fn blocking<T: Send + 'static>(act: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(act).await.map_err(|error| {
        Diagnostic::new("store::failed", "the work on the disk was broken off").cause(error)
    })?
}
