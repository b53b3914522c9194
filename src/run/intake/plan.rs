//! What a parcel means: where its files go afterwards, what its runs are told, and what would be the same.

use std::path::Path;

use crate::event::id::Digest;
use crate::event::input::RawPath;
use crate::event::trigger::Params;
use crate::store::Then;
use crate::trigger::drop_folder::batch;
use crate::trigger::drop_folder::captures::{Capture, Glob, params};
use crate::trigger::drop_folder::parcel::{Parcel, Work};
use crate::trigger::drop_folder::routes::Route;
use crate::trigger::drop_folder::template::Template;
use crate::workflow::trigger::Afterwards;

/// Where a file goes when its runs succeeded, and when not. Of several drops the one counts that holds it most: one that
/// keeps it before one that moves it, and that before one that deletes it.
pub(super) fn afterwards(parcel: &Parcel, file: usize) -> (Then, Then) {
    let path = &parcel.files[file].path;
    let routes = || parcel.work.iter().filter(|work| work.files.contains(&file)).map(|work| &work.route);
    let success = routes().map(|route| then(route, route.drop.on_success.as_ref(), path));
    let failure = routes().map(|route| then(route, route.drop.on_failure.as_ref(), path));
    (strongest(success), strongest(failure))
}

fn then(route: &Route, said: Option<&Afterwards>, path: &RawPath) -> Then {
    match said {
        None => Then::Usual,
        Some(Afterwards::Keep) => Then::Keep,
        Some(Afterwards::Delete) => Then::Delete,
        Some(Afterwards::Move(folder)) => match Template::parse(folder, &names(route)) {
            Ok(template) => Then::Into(template.fill(&captures(route, path))),
            // Scripts are checked before; and `processed/` loses nothing.
            Err(_) => Then::Usual,
        },
    }
}

fn strongest(thens: impl Iterator<Item = Then>) -> Then {
    let rank = |then: &Then| match then {
        Then::Keep => 0,
        Then::Into(_) => 1,
        Then::Usual => 2,
        Then::Delete => 3,
    };
    thens.min_by_key(rank).unwrap_or_default()
}

fn names(route: &Route) -> Vec<String> {
    let by = route.by.iter().flat_map(Glob::names);
    route.glob.names().iter().chain(by).cloned().collect()
}

fn captures(route: &Route, path: &RawPath) -> Vec<Capture> {
    let mut captures = route.glob.captures(path.as_path());
    captures.extend(route.by.iter().flat_map(|by| by.captures(Path::new(path.name()))));
    captures
}

/// What a run is told: what its path says, as far as it is the same for all its files, and what sidecars say besides.
pub(super) fn told(parcel: &Parcel, work: &Work, sidecars: &[(usize, Params)]) -> Params {
    let all: Vec<Vec<Capture>> =
        work.files.iter().map(|file| captures(&work.route, &parcel.files[*file].path)).collect();
    let common = |capture: &Capture| all.iter().all(|captures| captures.contains(capture));
    let first = all.first().cloned().unwrap_or_default();
    let captured: Vec<Capture> = first.into_iter().filter(common).collect();
    let mut told = params(&captured);
    for (_, said) in sidecars.iter().filter(|(of, _)| work.files.contains(of)) {
        for (name, value) in said {
            // What a path says decides where files go, and no file can say otherwise.
            told.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    told
}

/// What would make another run the same: the path of the file or what its batch has in common, and the hash of all.
pub(super) fn sameness(parcel: &Parcel, work: &Work, digests: &[Digest]) -> (RawPath, Digest) {
    let first = &parcel.files[work.files[0]].path;
    let Some(declared) = &work.route.drop.batch else {
        return (first.clone(), digests[work.files[0]].clone());
    };
    let folder = parcel.folder(work);
    let mut list = Vec::new();
    for file in &work.files {
        let path = parcel.files[*file].path.as_path();
        let below = path.strip_prefix(folder.as_path()).unwrap_or(path);
        list.extend_from_slice(format!("{}  {}\n", digests[*file], RawPath::new(below).encode()).as_bytes());
    }
    (batch::place(&work.route, declared, first), Digest::of(list))
}
