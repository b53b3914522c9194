//! A path inside the workspace: relative, without `..`, in plain UTF-8.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A checked path relative to `/workspace`, e.g. `output/anomalies.csv`. A folder may end in `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Longer names fit no file system.
    const LONGEST: usize = 1024;

    /// Checks a path as a script or a model wrote it; the error is a fragment such as "leaves the workspace".
    ///
    /// `/workspace/x` and `./x` are taken as `x`: models write both.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let relative = text.strip_prefix("/workspace/").unwrap_or(text);
        if relative.starts_with('/') {
            return Err("is absolute; paths are relative to /workspace");
        }
        if relative.len() > Self::LONGEST {
            return Err("is longer than 1024 bytes");
        }
        if relative.chars().any(char::is_control) {
            return Err("holds a control character");
        }
        let mut parts = Vec::new();
        for part in relative.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err("leaves the workspace"),
                part => parts.push(part),
            }
        }
        if parts.is_empty() {
            return Err("is empty");
        }
        let folder = if relative.ends_with('/') { "/" } else { "" };
        Ok(Self(parts.join("/") + folder))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it was written as a folder.
    pub fn is_folder(&self) -> bool {
        self.0.ends_with('/')
    }

    /// The folders above it, outermost first, e.g. `a`, `a/b` for `a/b/c`.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        let path = self.0.trim_end_matches('/');
        path.match_indices('/').map(|(end, _)| &path[..end])
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}
