//! Which files are complete together: a file with what goes with it, a batch with all its files.
//!
//! Pure: what stands in the inbox goes in, parcels and what the others wait for come out. Files that are bound to each
//! other, by a batch or by a file they share, are one parcel: it is claimed when every drop says that it is complete.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use crate::event::input::{Fingerprint, InputChange, RawPath, Role};
use crate::event::state::InputState;
use crate::trigger::drop_folder::batch::{self, Member, Standing};
use crate::trigger::drop_folder::parcel::{Companion, Parcel, Work};
use crate::trigger::drop_folder::routes::Route;
use crate::workflow::units::show_duration;

/// A file that may be taken.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) path: &'a RawPath,
    pub(super) fingerprint: Fingerprint,
    /// When it was last seen to change.
    pub(super) since: Duration,
    /// When it was last seen at all.
    pub(super) seen: Duration,
    /// How long it has to be quiet for all its drops.
    pub(super) quiet: Duration,
    /// The drops it is for.
    pub(super) takers: Vec<Arc<Route>>,
}

/// A file that may go with another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub(super) fingerprint: Fingerprint,
    pub(super) since: Duration,
    pub(super) seen: Duration,
}

/// What came out.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// What is complete, with the time it has waited since.
    pub(super) parcels: Vec<(Duration, Parcel)>,
    /// What every other candidate waits for.
    pub(super) waits: Vec<(RawPath, Wait)>,
}

/// What a file waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wait {
    /// Time alone, up to then; nothing when another file's time comes first.
    Time(Option<Duration>),
    /// Something that is not there; a look may be worth it then.
    Missing(String, Option<Duration>),
    /// Something that did not come in time: it is not waited for any more.
    GivenUp(String),
}

impl Candidate<'_> {
    fn due(&self) -> Duration {
        self.since + self.quiet
    }

    /// Whether it was quiet for long enough, and was seen to be.
    pub(super) fn is_settled(&self) -> bool {
        self.seen >= self.due()
    }
}

/// Gathers. `quiet` is what the project says where a drop says nothing.
pub(super) fn gather(
    candidates: &[Candidate<'_>],
    beside: &HashMap<&RawPath, Beside>,
    quiet: Duration,
    now: Duration,
) -> Gathered {
    let mut gathered = Gathered::default();
    let mut bound = Bound::new(candidates.len());
    let mut waits: Vec<Option<Wait>> = vec![None; candidates.len()];
    let mut company: Vec<Companion> = Vec::new();
    let mut sharers: HashMap<RawPath, usize> = HashMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        if !candidate.is_settled() {
            waits[index] = Some(Wait::Time(Some(candidate.due())));
        }
        for route in &candidate.takers {
            for (role, naming) in route.company() {
                let path = naming.beside(candidate.path);
                if let Some(other) = sharers.insert(path.clone(), index) {
                    bound.bind(other, index);
                }
                match beside.get(&path) {
                    None => {
                        let missing = missing(&path, role.option(), &route.workflow);
                        put(&mut waits[index], Wait::Missing(missing, None));
                    }
                    // What a sentinel holds does not matter.
                    Some(stands) if role == Role::Sidecar && stands.seen < stands.since + quiet => {
                        put(&mut waits[index], Wait::Time(Some(stands.since + quiet)));
                        company.push(companion(path, *stands, role, index));
                    }
                    Some(stands) => company.push(companion(path, *stands, role, index)),
                }
            }
        }
    }
    let mut work: Vec<(usize, Work)> = Vec::new();
    for (route, members) in groups(candidates) {
        let standing = match &route.drop.batch {
            None => Standing::Complete(members.clone()),
            Some(declared) => {
                let members: Vec<Member<'_>> = members
                    .iter()
                    .map(|index| Member { index: *index, candidate: &candidates[*index] })
                    .collect();
                batch::standing(&route, declared, &members, quiet, now)
            }
        };
        let (chosen, wait) = match standing {
            Standing::Complete(chosen) => (chosen, None),
            Standing::Waits(wait) => (members.clone(), Some(wait)),
        };
        let going: HashSet<usize> = chosen.iter().copied().collect();
        for index in &members {
            if let Some(wait) = &wait {
                put(&mut waits[*index], wait.clone());
            } else if !going.contains(index) {
                // The next batch begins with it.
                put(&mut waits[*index], Wait::Time(None));
            }
        }
        let Some(first) = chosen.first().copied() else {
            continue;
        };
        for index in &chosen {
            bound.bind(first, *index);
        }
        if wait.is_none() {
            work.push((first, Work { route, files: chosen }));
        }
    }
    gathered.finish(candidates, bound, &waits, company, work);
    gathered
}

/// A drop, and which of the candidates would be one run of it.
type Group = (Arc<Route>, Vec<usize>);

/// The files of each run, single or of a batch.
fn groups(candidates: &[Candidate<'_>]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut batches: BTreeMap<(usize, Vec<u8>), Group> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for route in &candidate.takers {
            match &route.drop.batch {
                None => groups.push((Arc::clone(route), vec![index])),
                Some(declared) => {
                    let key = (route.number, batch::key(route, declared, candidate.path));
                    batches.entry(key).or_insert_with(|| (Arc::clone(route), Vec::new())).1.push(index);
                }
            }
        }
    }
    groups.extend(batches.into_values());
    groups
}

impl Gathered {
    /// What is bound together is one parcel, if nothing of it waits.
    fn finish(
        &mut self,
        candidates: &[Candidate<'_>],
        mut bound: Bound,
        waits: &[Option<Wait>],
        company: Vec<Companion>,
        work: Vec<(usize, Work)>,
    ) {
        let mut parcels: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for index in 0..candidates.len() {
            parcels.entry(bound.root(index)).or_default().push(index);
        }
        let mut work_of: HashMap<usize, Vec<Work>> = HashMap::new();
        for (first, work) in work {
            work_of.entry(bound.root(first)).or_default().push(work);
        }
        let mut company_of: HashMap<usize, Vec<Companion>> = HashMap::new();
        for companion in company {
            company_of.entry(bound.root(companion.of)).or_default().push(companion);
        }
        for (root, mut files) in parcels {
            let first = files.iter().find_map(|index| waits[*index].clone());
            if let Some(first) = first {
                let missing = files
                    .iter()
                    .find_map(|index| waits[*index].clone().filter(|wait| !matches!(wait, Wait::Time(_))));
                for index in files {
                    let wait =
                        waits[index].clone().or_else(|| missing.clone()).unwrap_or_else(|| first.clone());
                    self.waits.push((candidates[index].path.clone(), wait));
                }
                continue;
            }
            files.sort_by_key(|index| candidates[*index].path);
            let place: HashMap<usize, usize> =
                files.iter().enumerate().map(|(at, index)| (*index, at)).collect();
            let at = |index: &usize| place.get(index).copied().unwrap_or_default();
            let mut works = work_of.remove(&root).unwrap_or_default();
            for work in &mut works {
                work.files = work.files.iter().map(at).collect();
                work.files.sort_unstable();
            }
            works.sort_by_key(|work| (work.route.number, work.files.clone()));
            let mut company = company_of.remove(&root).unwrap_or_default();
            company.sort_by(|left, right| left.change.path.cmp(&right.change.path));
            company.dedup_by(|left, right| left.change.path == right.change.path);
            for companion in &mut company {
                companion.of = at(&companion.of);
            }
            let since = files.iter().map(|index| candidates[*index].since).max().unwrap_or_default();
            let files = files.iter().map(|index| ready(&candidates[*index])).collect();
            self.parcels.push((since, Parcel { files, company, work: works }));
        }
    }
}

fn ready(candidate: &Candidate<'_>) -> InputChange {
    InputChange {
        path: candidate.path.clone(),
        fingerprint: candidate.fingerprint,
        state: InputState::Ready,
        reason: Some(format!("quiet for {}", show_duration(candidate.quiet))),
    }
}

fn companion(path: RawPath, stands: Beside, role: Role, of: usize) -> Companion {
    let reason = Some("it goes with its file".to_owned());
    let change = InputChange { path, fingerprint: stands.fingerprint, state: InputState::Ready, reason };
    Companion { change, role, of }
}

/// The reason of a file that waits for another one.
pub(super) fn missing(path: &RawPath, option: &str, workflow: &str) -> String {
    format!("`{}` is missing (`{option}` of {workflow})", path.display())
}

/// What is missing is worth more than how long is waited.
fn put(known: &mut Option<Wait>, wait: Wait) {
    let replaces = match (&known, &wait) {
        (Some(Wait::Time(before)), Wait::Time(after)) => after > before,
        (None | Some(Wait::Time(_)), _) | (_, Wait::GivenUp(_)) => true,
        _ => false,
    };
    if replaces {
        *known = Some(wait);
    }
}

/// Which files are bound to each other.
struct Bound(Vec<usize>);

impl Bound {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn root(&mut self, mut index: usize) -> usize {
        while self.0[index] != index {
            self.0[index] = self.0[self.0[index]];
            index = self.0[index];
        }
        index
    }

    fn bind(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[other.max(one)] = one.min(other);
    }
}

#[cfg(test)]
mod tests;
