//! Which workflows a file is for: globs against its path in the inbox.
//!
//! `*` and `?` stay within a folder, `**` crosses folders. Paths are matched byte for byte, so a name that is not
//! UTF-8 matches `*.csv` like any other, and `?` is one byte.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::{RawPath, Role};
use crate::trigger::drop_folder::captures::Glob;
use crate::trigger::drop_folder::company::{Naming, extensions};
use crate::workflow::trigger::{By, Drop};

/// The drops of every workflow. Everything that follows from the scripts is in here.
#[derive(Debug, Clone, Default)]
pub struct Routes(Vec<Arc<Route>>);

/// One drop of one workflow, ready to match.
#[derive(Debug, Clone)]
pub struct Route {
    /// Its place among all of them.
    pub number: usize,
    /// The workflow's name.
    pub workflow: String,
    /// What the script says.
    pub drop: Drop,
    /// Its glob.
    pub glob: Glob,
    /// `ready_when`
    pub sentinel: Option<Naming>,
    /// `params_from`
    pub sidecar: Option<Naming>,
    /// `batch.by`, where it is a pattern.
    pub by: Option<Glob>,
    /// `batch.require`
    pub require: Vec<Glob>,
    extensions: Vec<String>,
}

/// A workflow that a path matches, and by which glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match<'a> {
    /// The workflow's name.
    pub workflow: &'a str,
    /// The first of its globs that matches.
    pub glob: &'a str,
}

/// What a path is by its name alone.
#[derive(Debug, Clone)]
pub enum Called {
    /// It may become a run of these, one of each workflow.
    Input(Vec<Arc<Route>>),
    /// It goes with another file, and is no input of its own.
    Company(Role, Arc<Route>),
    /// Nobody's.
    Nothing,
}

impl Route {
    fn new(number: usize, workflow: &str, drop: &Drop) -> Result<Self, String> {
        let naming = |text: &Option<String>| text.as_deref().map(Naming::parse).transpose();
        let batch = drop.batch.as_ref();
        let by = match batch.map(|batch| &batch.by) {
            Some(By::Pattern(pattern)) => Some(Glob::parse(pattern)?),
            _ => None,
        };
        let require = batch.map(|batch| batch.require.as_slice()).unwrap_or_default();
        Ok(Self {
            number,
            workflow: workflow.to_owned(),
            glob: Glob::parse(&drop.glob)?,
            sentinel: naming(&drop.ready_when)?,
            sidecar: naming(&drop.params_from)?,
            by,
            require: require.iter().map(|glob| Glob::parse(glob)).collect::<Result<_, _>>()?,
            extensions: extensions(&drop.glob),
            drop: drop.clone(),
        })
    }

    /// The names of files that go with its files, with their roles.
    pub fn company(&self) -> impl Iterator<Item = (Role, &Naming)> {
        let sentinel = self.sentinel.iter().map(|naming| (Role::Sentinel, naming));
        sentinel.chain(self.sidecar.iter().map(|naming| (Role::Sidecar, naming)))
    }

    fn role(&self, path: &RawPath) -> Option<Role> {
        let is_company = |naming: &Naming| {
            let owners = naming.owners(path, &self.extensions);
            owners.iter().any(|owner| self.glob.is_match(owner.as_path()))
        };
        self.company().find(|(_, naming)| is_company(naming)).map(|(role, _)| role)
    }
}

impl Routes {
    /// From workflows and their drops.
    ///
    /// Errors: `trigger::bad_glob`; scripts are checked before, so that this names the workflow only.
    pub fn new<'a>(drops: impl IntoIterator<Item = (&'a str, &'a Drop)>) -> Result<Self> {
        let routes = drops.into_iter().enumerate().map(|(number, (workflow, drop))| {
            Route::new(number, workflow, drop).map(Arc::new).map_err(|why| {
                let message =
                    format!("workflow `{workflow}` has a pattern that is not one: `{}`: {why}", drop.glob);
                Diagnostic::new("trigger::bad_glob", message)
                    .help("write it like `energy/*.csv`; `**` crosses folders")
            })
        });
        routes.collect::<Result<_>>().map(Self)
    }

    /// What a path is by its name. A file that may go with another one is never an input, whoever's glob it matches.
    pub fn called(&self, path: &RawPath) -> Called {
        let company = self.0.iter().find_map(|route| Some((route.role(path)?, Arc::clone(route))));
        if let Some((role, route)) = company {
            return Called::Company(role, route);
        }
        let takers = self.takers(path);
        if takers.is_empty() {
            Called::Nothing
        } else {
            Called::Input(takers.into_iter().map(Arc::clone).collect())
        }
    }

    /// The first drop of each workflow whose glob matches, in the order they were given.
    fn takers(&self, path: &RawPath) -> Vec<&Arc<Route>> {
        let mut found: Vec<&Arc<Route>> = Vec::new();
        for route in self.0.iter().filter(|route| route.glob.is_match(path.as_path())) {
            if !found.iter().any(|known| known.workflow == route.workflow) {
                found.push(route);
            }
        }
        found
    }

    /// The globs that do not match a path, with their workflows.
    pub fn missing(&self, path: &RawPath) -> Vec<Match<'_>> {
        self.0
            .iter()
            .filter(|route| !route.glob.is_match(path.as_path()))
            .map(|route| Match { workflow: &route.workflow, glob: &route.drop.glob })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn routes(globs: &[(&str, &str)]) -> Routes {
        let drops: Vec<(&str, Drop)> = globs.iter().map(|(name, glob)| (*name, Drop::new(*glob))).collect();
        Routes::new(drops.iter().map(|(name, drop)| (*name, drop))).expect("good globs")
    }

    fn workflows(globs: &[(&str, &str)], path: impl Into<std::path::PathBuf>) -> Vec<String> {
        let routes = routes(globs);
        let takers = routes.takers(&RawPath::new(path));
        takers.iter().map(|route| route.workflow.clone()).collect()
    }

    #[test]
    fn a_star_stays_in_its_folder() {
        let globs = [("flat", "energy/*.csv"), ("deep", "energy/**/*.csv"), ("top", "*.csv")];
        assert_eq!(workflows(&globs, "energy/a.csv"), ["flat", "deep"]);
        assert_eq!(workflows(&globs, "energy/2026/a.csv"), ["deep"]);
        assert_eq!(workflows(&globs, "a.csv"), ["top"]);
    }

    #[test]
    fn a_workflow_matches_once() {
        let globs = [("twice", "*.csv"), ("twice", "a*"), ("other", "{a,b}.csv")];
        assert_eq!(workflows(&globs, "a.csv"), ["twice", "other"]);
    }

    #[test]
    fn names_of_any_bytes_match() {
        let globs = [("all", "*.csv")];
        for name in [&b"\xff\xfe.csv"[..], b"a\nb.csv", b"-rf.csv", b"'\".csv", "\u{1f30a}.csv".as_bytes()] {
            let name = OsString::from_vec(name.to_vec());
            assert_eq!(workflows(&globs, &name), ["all"], "{name:?}");
        }
    }

    #[test]
    fn a_file_that_goes_with_another_is_no_input() {
        let told = Drop { params_from: Some("{stem}.json".to_owned()), ..Drop::new("in/*.csv") };
        let marked = Drop { ready_when: Some("{name}.done".to_owned()), ..Drop::new("**") };
        let other = Drop::new("**/*.json");
        let routes =
            Routes::new([("told", &told), ("marked", &marked), ("other", &other)]).expect("good globs");
        let role = |path: &str| match routes.called(&RawPath::new(path)) {
            Called::Company(role, route) => format!("{} of {}", role.as_str(), route.workflow),
            Called::Input(takers) => {
                takers.iter().map(|route| route.workflow.as_str()).collect::<Vec<_>>().join(" ")
            }
            Called::Nothing => "nothing".to_owned(),
        };
        assert_eq!(role("in/a.json"), "sidecar of told");
        assert_eq!(role("out/a.json"), "marked other");
        assert_eq!(role("in/a.csv"), "told marked");
        assert_eq!(role("in/a.csv.done"), "sentinel of marked");
    }

    #[test]
    fn a_broken_glob_names_its_workflow() {
        let error = Routes::new([("energy", &Drop::new("energy/[.csv"))]).expect_err("not a glob");
        assert_eq!(error.code(), "trigger::bad_glob");
        assert!(error.message().contains("`energy`"), "{error}");
    }
}
