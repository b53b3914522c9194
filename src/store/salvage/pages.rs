//! Pages that tables and indexes lead to and that are none of theirs.
//!
//! SQLite's own check ends at the first page of this kind, so that it cannot be used to count them.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::copy::{BYTES, HEADER};

/// The pages below these roots that are within the file and damaged.
pub(super) fn damaged(file: &Path, roots: impl IntoIterator<Item = u32>) -> std::io::Result<BTreeSet<u64>> {
    let file = File::open(file)?;
    let size = u64::try_from(BYTES).unwrap_or(u64::MAX);
    let present = file.metadata()?.len() / size;
    let mut pending: Vec<u64> = roots.into_iter().map(u64::from).collect();
    let (mut seen, mut damaged) = (BTreeSet::new(), BTreeSet::new());
    while let Some(number) = pending.pop() {
        // What is behind the end is missing, which is counted elsewhere.
        if number == 0 || number > present || !seen.insert(number) {
            continue;
        }
        let mut page = [0; BYTES];
        file.read_exact_at(&mut page, (number - 1) * size)?;
        match children(&page, if number == 1 { HEADER } else { 0 }) {
            Some(children) => pending.extend(children),
            None => {
                damaged.insert(number);
            }
        }
    }
    Ok(damaged)
}

/// The pages that this one leads to; `None` when it is no page of a tree. `start` is where its own header begins.
fn children(page: &[u8; BYTES], start: usize) -> Option<Vec<u64>> {
    let header = match page[start] {
        // Inner pages of an index and of a table, and their leaves.
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return None,
    };
    let cells = usize::from(u16::from_be_bytes([page[start + 3], page[start + 4]]));
    let pointers = page.get(start + header..start + header + 2 * cells)?;
    if header == 8 {
        return Some(Vec::new());
    }
    let number = |at: usize| {
        let bytes = <[u8; 4]>::try_from(page.get(at..at + 4)?).ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    let cells =
        pointers.chunks_exact(2).map(|pair| number(usize::from(u16::from_be_bytes([pair[0], pair[1]]))));
    cells.chain([number(start + 8)]).collect()
}
