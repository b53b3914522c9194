//! Which workflows a file is for: globs against its path in the inbox.
//!
//! `*` and `?` stay within a folder, `**` crosses folders. Paths are matched byte for byte, so a name that is not
//! UTF-8 matches `*.csv` like any other, and `?` is one byte.

use globset::{GlobBuilder, GlobMatcher};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::RawPath;

/// The globs of every workflow.
#[derive(Debug, Clone, Default)]
pub struct Routes(Vec<Route>);

#[derive(Debug, Clone)]
struct Route {
    workflow: String,
    glob: String,
    matcher: GlobMatcher,
}

/// A workflow that a path matches, and by which glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match<'a> {
    /// The workflow's name.
    pub workflow: &'a str,
    /// The first of its globs that matches.
    pub glob: &'a str,
}

impl Routes {
    /// From workflows and their globs.
    ///
    /// Errors: `trigger::bad_glob`; scripts are checked before, so that this names the workflow only.
    pub fn new<'a>(globs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let routes = globs.into_iter().map(|(workflow, glob)| {
            let matcher = GlobBuilder::new(glob)
                .literal_separator(true)
                .build()
                .map_err(|error| {
                    let message = format!("workflow `{workflow}` has a pattern that is not one: `{glob}`");
                    Diagnostic::new("trigger::bad_glob", message)
                        .cause(error)
                        .help("write it like `energy/*.csv`; `**` crosses folders")
                })?
                .compile_matcher();
            Ok(Route { workflow: workflow.to_owned(), glob: glob.to_owned(), matcher })
        });
        routes.collect::<Result<_>>().map(Self)
    }

    /// The workflows a path is for, each once, in the order they were given.
    pub fn matching(&self, path: &RawPath) -> Vec<Match<'_>> {
        let mut found: Vec<Match<'_>> = Vec::new();
        for route in self.0.iter().filter(|route| route.matcher.is_match(path.as_path())) {
            if !found.iter().any(|known| known.workflow == route.workflow) {
                found.push(Match { workflow: &route.workflow, glob: &route.glob });
            }
        }
        found
    }

    /// The globs that do not match a path, with their workflows.
    pub fn missing(&self, path: &RawPath) -> Vec<Match<'_>> {
        self.0
            .iter()
            .filter(|route| !route.matcher.is_match(path.as_path()))
            .map(|route| Match { workflow: &route.workflow, glob: &route.glob })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn workflows(globs: &[(&str, &str)], path: impl Into<std::path::PathBuf>) -> Vec<String> {
        let routes = Routes::new(globs.iter().copied()).expect("good globs");
        let matching = routes.matching(&RawPath::new(path));
        matching.iter().map(|route| route.workflow.to_owned()).collect()
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
    fn a_broken_glob_names_its_workflow() {
        let error = Routes::new([("energy", "energy/[.csv")]).expect_err("not a glob");
        assert_eq!(error.code(), "trigger::bad_glob");
        assert!(error.message().contains("`energy`"), "{error}");
    }
}
