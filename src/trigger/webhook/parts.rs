//! `multipart/form-data`: files and fields of a body at hand.

use std::convert::Infallible;

use bytes::Bytes;
use multer::{Constraints, Multipart, SizeLimit};

use super::content::{Brings, MOST_FILES, Malformed};
use crate::event::input::RawPath;

/// Bytes of one field's text.
const LONGEST_FIELD: u64 = 64 << 10;

/// Reads the parts into `brings`. Those with a file name are files, the others fields.
pub(super) async fn read(body: Bytes, boundary: String, brings: &mut Brings) -> Result<(), Malformed> {
    let length = body.len() as u64;
    let stream = futures_util::stream::once(std::future::ready(Ok::<_, Infallible>(body)));
    let limits = Constraints::new().size_limit(SizeLimit::new().whole_stream(length));
    let mut parts = Multipart::with_constraints(stream, boundary, limits);
    while let Some(part) = parts.next_field().await.map_err(|error| broken(&error))? {
        let name = part.name().unwrap_or_default().to_owned();
        if let Some(given) = part.file_name().map(str::to_owned) {
            if brings.files.len() == MOST_FILES {
                return Err(Malformed(format!("more than {MOST_FILES} files")));
            }
            let path = file_name(&given, brings.files.len());
            brings.files.push((path, part.bytes().await.map_err(|error| broken(&error))?));
            continue;
        }
        let text = part.bytes().await.map_err(|error| broken(&error))?;
        if text.len() as u64 > LONGEST_FIELD {
            return Err(Malformed("a field of more than 64 KiB; send it as a file".to_owned()));
        }
        let text =
            String::from_utf8(text.into()).map_err(|_| Malformed("a field that is not UTF-8".to_owned()))?;
        brings.field(&name, &text);
    }
    Ok(())
}

/// What a sender calls a file: its last part, since no folder of theirs is ours.
fn file_name(given: &str, index: usize) -> RawPath {
    const LONGEST: usize = 200;
    let name = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    match &name[..end] {
        "" | "." | ".." => RawPath::new(format!("file-{}", index + 1)),
        name => RawPath::new(name),
    }
}

fn broken(error: &multer::Error) -> Malformed {
    Malformed(format!("a body that is no multipart/form-data: {error}"))
}
