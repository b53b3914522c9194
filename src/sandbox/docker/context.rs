//! The build context: the folder's files, hashed for the tag, with a Dockerfile that fits this machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::{Digest, Hasher};
use crate::sandbox::Body;
use crate::sandbox::docker::archive::{Member, Whose};

/// Files of a build context; more is a mistake such as a home folder.
const MOST_FILES: usize = 50_000;
/// The certificates' name in the context.
const CA_FILE: &str = ".tidemill-build-ca.crt";
/// Where build steps find them.
const CA_TARGET: &str = "/etc/ssl/certs/tidemill-build-ca.crt";
/// The variables by which programs are told of certificates. As build arguments they are seen by `RUN` and are not
/// kept in the image.
const CA_VARIABLES: [&str; 6] = [
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
];

/// What is built.
#[derive(Debug)]
pub(super) struct Context {
    files: Vec<(String, PathBuf, u32)>,
    dockerfile: String,
    /// Hash of all that decides what is built.
    pub(super) digest: Digest,
}

impl Context {
    /// Reads the folder `folder` of the project `root`.
    pub(super) fn read(root: &Path, folder: &str, args: &BTreeMap<String, String>) -> Result<Self> {
        let path = root.join(folder);
        let unreadable = |error: std::io::Error, path: &Path| {
            Diagnostic::new("image::context", format!("cannot read {}", path.display())).cause(error).help(
                format!("`mill.image {{ build = \"{folder}\" }}` needs that folder, with a Dockerfile in it"),
            )
        };
        let dockerfile_path = path.join("Dockerfile");
        let dockerfile =
            fs::read_to_string(&dockerfile_path).map_err(|error| unreadable(error, &dockerfile_path))?;
        let mut files = Vec::new();
        let mut pending = vec![(path, String::new())];
        while let Some((folder, prefix)) = pending.pop() {
            for entry in fs::read_dir(&folder).map_err(|error| unreadable(error, &folder))? {
                let entry = entry.map_err(|error| unreadable(error, &folder))?;
                let data = entry.metadata().map_err(|error| unreadable(error, &entry.path()))?;
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if data.is_dir() {
                    pending.push((entry.path(), format!("{name}/")));
                } else if data.is_file() && name != "Dockerfile" {
                    files.push((name, entry.path(), data.permissions().mode() & 0o777));
                }
            }
            if files.len() > MOST_FILES {
                return Err(Diagnostic::new(
                    "image::context",
                    format!("`{folder}` holds more than {MOST_FILES} files", folder = folder.display()),
                )
                .help("an image's folder holds its Dockerfile and what that copies, nothing else"));
            }
        }
        files.sort();
        let mut hasher = Hasher::default();
        hasher.update(dockerfile.as_bytes());
        for (name, value) in args {
            hasher.update(format!("\0arg {name}={value}").as_bytes());
        }
        for (name, path, mode) in &files {
            let content = fs::read(path).map_err(|error| unreadable(error, path))?;
            hasher.update(format!("\0file {name} {:o} {}\0", mode & 0o111, content.len()).as_bytes());
            hasher.update(&content);
        }
        Ok(Self { files, dockerfile, digest: hasher.finish() })
    }

    /// The images it starts from, in order, arguments filled in; stages of its own are not among them.
    pub(super) fn bases(&self, args: &BTreeMap<String, String>) -> Vec<String> {
        let mut known = BTreeMap::new();
        let mut stages = Vec::new();
        let mut bases = Vec::new();
        for line in self.dockerfile.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.first().map(|word| word.to_ascii_uppercase()).as_deref() {
                Some("ARG") if bases.is_empty() => {
                    if let Some((name, value)) = words.get(1).and_then(|word| word.split_once('=')) {
                        known.insert(name.to_owned(), value.trim_matches('"').to_owned());
                    }
                }
                Some("FROM") => {
                    if let Some(image) = from_image(&words) {
                        let image = fill(image, &known, args);
                        if image != "scratch"
                            && !stages.contains(&image.to_lowercase())
                            && !bases.contains(&image)
                        {
                            bases.push(image);
                        }
                    }
                    if let Some(place) = words.iter().position(|word| word.eq_ignore_ascii_case("as")) {
                        stages.extend(words.get(place + 1).map(|name| name.to_lowercase()));
                    }
                }
                _ => {}
            }
        }
        bases
    }

    /// The archive's members, with bases replaced and certificates put in.
    pub(super) fn members(
        self,
        substitutes: &BTreeMap<String, String>,
        args: &BTreeMap<String, String>,
        ca: Option<Vec<u8>>,
    ) -> Vec<Member> {
        let dockerfile = adapt(&self.dockerfile, substitutes, args, ca.is_some());
        let file = |path: &str, bytes: Vec<u8>| Member {
            path: path.to_owned(),
            body: Some(Body::Bytes(Bytes::from(bytes))),
            mode: 0o644,
            of: Whose::Root,
        };
        let mut members = vec![file("Dockerfile", dockerfile.into_bytes())];
        members.extend(ca.map(|bytes| file(CA_FILE, bytes)));
        members.extend(self.files.into_iter().map(|(name, path, mode)| Member {
            path: name,
            body: Some(Body::File(path)),
            mode,
            of: Whose::Root,
        }));
        members
    }
}

/// The image of a `FROM` line: the first word after it that is not a flag.
fn from_image<'a>(words: &[&'a str]) -> Option<&'a str> {
    words.iter().skip(1).find(|word| !word.starts_with("--")).copied()
}

fn fill(text: &str, known: &BTreeMap<String, String>, args: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (name, value) in args.iter().chain(known) {
        text = text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
    }
    text
}

/// The Dockerfile with each replaced base, and with the certificates made known after each `FROM`.
fn adapt(
    dockerfile: &str,
    substitutes: &BTreeMap<String, String>,
    args: &BTreeMap<String, String>,
    ca: bool,
) -> String {
    let mut adapted = String::new();
    let mut known = BTreeMap::new();
    for line in dockerfile.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let instruction = words.first().map(|word| word.to_ascii_uppercase());
        if instruction.as_deref() == Some("ARG")
            && let Some((name, value)) = words.get(1).and_then(|word| word.split_once('='))
        {
            known.entry(name.to_owned()).or_insert_with(|| value.trim_matches('"').to_owned());
        }
        if instruction.as_deref() != Some("FROM") {
            adapted.push_str(line);
            adapted.push('\n');
            continue;
        }
        let image = from_image(&words).unwrap_or_default();
        let line = match substitutes.get(&fill(image, &known, args)) {
            Some(substitute) => line.replacen(image, substitute, 1),
            None => line.to_owned(),
        };
        adapted.push_str(&line);
        adapted.push('\n');
        if ca {
            // One instruction for all of them: the engine makes a layer of each.
            let variables = CA_VARIABLES.map(|variable| format!("{variable}={CA_TARGET}")).join(" ");
            let _ = writeln!(adapted, "COPY {CA_FILE} {CA_TARGET}\nARG {variables}");
        }
    }
    adapted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(dockerfile: &str) -> Context {
        Context { files: vec![], dockerfile: dockerfile.to_owned(), digest: Digest::of("") }
    }

    #[test]
    fn bases_are_found_through_arguments_and_stages() {
        let none = BTreeMap::new();
        let text = "ARG BASE=python:3.12-slim\nFROM --platform=linux/amd64 ${BASE} AS one\nFROM scratch\nFROM one\nFROM debian:12\n";
        assert_eq!(context(text).bases(&none), ["python:3.12-slim", "debian:12"]);
        let args = [("BASE".to_owned(), "alpine".to_owned())].into();
        assert_eq!(context("ARG BASE=x\nFROM $BASE\n").bases(&args), ["alpine"]);
    }

    #[test]
    fn a_dockerfile_is_adapted_after_each_from() {
        let substitutes = [("python:3.12-slim".to_owned(), "tidemill/base:1".to_owned())].into();
        let adapted = adapt("FROM python:3.12-slim\nRUN true\n", &substitutes, &BTreeMap::new(), true);
        assert!(adapted.starts_with("FROM tidemill/base:1\nCOPY .tidemill-build-ca.crt "), "{adapted}");
        assert!(adapted.contains(" PIP_CERT=/etc/ssl/certs/tidemill-build-ca.crt "), "{adapted}");
        assert!(adapted.ends_with("\nRUN true\n"), "{adapted}");
    }
}
