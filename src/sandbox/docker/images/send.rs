//! A build context as a stream: read while the engine takes it.

use std::fs::File;
use std::io::{self, Read as _, Write};

use bytes::Bytes;
use futures_util::Stream;

use crate::sandbox::docker::archive::piped;
use crate::sandbox::docker::images::context::{Item, Kind};

/// The archive: the files of our own first, then the folder's.
pub(super) fn send(
    own: Vec<(&'static str, Vec<u8>)>,
    items: Vec<Item>,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    piped(move |pipe| {
        let mut archive = tar::Builder::new(pipe);
        for (name, bytes) in &own {
            let mut header = header(tar::EntryType::Regular, 0o644);
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, name, bytes.as_slice())?;
        }
        for item in &items {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", item.name));
            append(&mut archive, item).map_err(named)?;
        }
        archive.into_inner()?.flush()
    })
}

/// Everything belongs to root, as in every image.
fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

fn append(archive: &mut tar::Builder<impl Write>, item: &Item) -> io::Result<()> {
    match &item.kind {
        Kind::Folder(mode) => {
            let mut header = header(tar::EntryType::Directory, *mode);
            archive.append_data(&mut header, format!("{}/", item.name), io::empty())
        }
        Kind::Link(target) => {
            let mut header = header(tar::EntryType::Symlink, 0o777);
            archive.append_link(&mut header, &item.name, target)
        }
        Kind::File(path, mode) => {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            let mut header = header(tar::EntryType::Regular, *mode);
            header.set_size(size);
            let mut exact = file.take(size);
            archive.append_data(&mut header, &item.name, &mut exact)?;
            if exact.limit() > 0 {
                return Err(io::Error::other("became shorter while it was read"));
            }
            Ok(())
        }
    }
}
