//! When a batch is complete: everything required is there, and nothing of it has changed for a while.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::Duration;

use crate::event::input::RawPath;
use crate::trigger::drop_folder::company::stem;
use crate::trigger::drop_folder::gather::{Candidate, Wait};
use crate::trigger::drop_folder::routes::Route;
use crate::workflow::trigger::{Batch, By};
use crate::workflow::units::show_duration;

/// A file of a batch.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) index: usize,
    pub(super) candidate: &'a Candidate<'a>,
}

/// How a batch stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// These of its files go now.
    Complete(Vec<usize>),
    /// It waits as a whole.
    Waits(Wait),
}

/// What the files of a batch have in common: equal keys, one batch.
pub(super) fn key(route: &Route, batch: &Batch, path: &RawPath) -> Vec<u8> {
    let folder = path.as_path().parent().unwrap_or(Path::new("")).as_os_str().as_bytes();
    let mut key = folder.to_vec();
    match &batch.by {
        By::Folder => {}
        By::Stem => {
            key.push(b'/');
            key.extend_from_slice(stem(path.name()).as_bytes());
        }
        By::Pattern(_) => {
            let name = Path::new(path.name());
            let captures = route.by.as_ref().map(|by| by.captures(name)).unwrap_or_default();
            // No name holds a zero. One that the pattern does not fit is a batch of its own.
            if captures.is_empty() {
                key.extend([&[0], path.name().as_bytes()].concat());
            }
            for (_, bytes) in captures {
                key.push(0);
                key.extend(bytes);
            }
        }
    }
    key
}

/// What a batch has in common, as a path: its folder, and what distinguishes it in there.
pub fn place(route: &Route, batch: &Batch, path: &RawPath) -> RawPath {
    let bytes = key(route, batch, path).into_iter().map(|byte| if byte == 0 { b'/' } else { byte });
    RawPath::new(OsString::from_vec(bytes.collect()))
}

/// Looks at a batch. `quiet` is what the project says where the drop says nothing.
pub(super) fn standing(
    route: &Route,
    batch: &Batch,
    members: &[Member<'_>],
    quiet: Duration,
    now: Duration,
) -> Standing {
    let name = |member: &&Member<'_>| member.candidate.path.name().to_owned();
    let lacks = route
        .require
        .iter()
        .find(|glob| !members.iter().any(|member| glob.is_match(Path::new(&name(&member)))));
    let last = members.iter().map(|member| member.candidate.since).max().unwrap_or_default();
    if let Some(lacks) = lacks {
        let missing = format!("`{}` is missing (`batch.require` of {})", lacks.as_str(), route.workflow);
        return Standing::Waits(match batch.timeout {
            Some(timeout) if now >= last + timeout => Wait::GivenUp(format!(
                "{missing}; given up after {} (`batch.timeout`), a change of one of its files begins anew",
                show_duration(timeout)
            )),
            timeout => Wait::Missing(missing, timeout.map(|timeout| last + timeout)),
        });
    }
    let settled: Vec<&Member<'_>> = members.iter().filter(|member| member.candidate.is_settled()).collect();
    if let Some(max) = batch.max.filter(|max| settled.len() >= *max) {
        return Standing::Complete(first(route, settled, max));
    }
    let due = last + batch.quiet.or(route.drop.settle).unwrap_or(quiet);
    let is_quiet =
        settled.len() == members.len() && members.iter().all(|member| member.candidate.seen >= due);
    if is_quiet {
        Standing::Complete(members.iter().map(|member| member.index).collect())
    } else {
        Standing::Waits(Wait::Time(Some(due)))
    }
}

/// So many, what is required before the rest, by their paths.
fn first(route: &Route, mut members: Vec<&Member<'_>>, max: usize) -> Vec<usize> {
    members.sort_by_key(|member| {
        let name = Path::new(member.candidate.path.name());
        (!route.require.iter().any(|glob| glob.is_match(name)), member.candidate.path)
    });
    members.into_iter().take(max).map(|member| member.index).collect()
}
