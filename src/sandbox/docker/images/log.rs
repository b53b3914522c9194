//! A build's log: progress while it runs, the failing step and its last lines when it fails.

use std::collections::VecDeque;
use std::ffi::OsStr;

use crate::diagnostic::Diagnostic;
use crate::sandbox::Progress;
use crate::sandbox::docker::images::hidden::Hidden;
use crate::sandbox::docker::images::made::IMAGE_LABEL;
use crate::sandbox::docker::images::settings::CA_FILE;

/// Lines of a failed step that are shown.
const LAST_LINES: usize = 20;

/// Follows a build.
pub(super) struct Log<'a> {
    progress: &'a dyn Progress,
    hidden: Hidden,
    step: Option<String>,
    last: VecDeque<String>,
}

impl<'a> Log<'a> {
    /// One that never shows what is in `hidden`.
    pub(super) fn new(progress: &'a dyn Progress, hidden: Hidden) -> Self {
        Self { progress, hidden, step: None, last: VecDeque::new() }
    }

    /// What the classic builder prints.
    pub(super) fn classic(&mut self, text: &str) {
        for line in text.lines() {
            match line.strip_prefix("Step ").and_then(|rest| rest.split_once(" : ")) {
                Some((count, command)) => {
                    let (number, all) = count.split_once('/').unwrap_or((count, "?"));
                    self.begin(&format!("step {number} of {all}"), command);
                }
                // The engine's own bookkeeping.
                None if line.starts_with(" ---> ")
                    || line.starts_with("Removing intermediate container ") => {}
                None => self.line(line),
            }
        }
    }

    /// A step begins.
    pub(super) fn begin(&mut self, number: &str, command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let step = shorten(&self.plain(&format!("{number}: {}", words.join(" "))));
        // Steps of our own are none a person knows of.
        if !command.contains(CA_FILE) && !command.contains(IMAGE_LABEL) {
            self.progress.at(&step);
        }
        self.step = Some(step);
        self.last.clear();
    }

    /// A step prints.
    pub(super) fn line(&mut self, line: &str) {
        let line = self.plain(line);
        if line.trim().is_empty() {
            return;
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.progress.at(line.trim());
        self.last.push_back(line);
    }

    /// Whether a step has begun: what fails before is not the Dockerfile's fault.
    pub(super) fn has_begun(&self) -> bool {
        self.step.is_some()
    }

    /// The diagnostic of the build of `name` that failed with the engine's words `why`.
    pub(super) fn failed(&self, name: &str, why: &str) -> Diagnostic {
        let why = self.plain(why.trim());
        let place = self.step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
        let mut help = String::new();
        if !self.last.is_empty() {
            let lines: Vec<String> = self.last.iter().map(|line| format!("  {line}")).collect();
            help = format!("its last lines were:\n{}\n", lines.join("\n"));
        }
        let text: String = self.last.iter().chain([&why]).flat_map(|line| [line.as_str(), "\n"]).collect();
        let message =
            match why.strip_prefix("The command ").and_then(|rest| rest.rsplit_once("non-zero code: ")) {
                // The command stands in the step already.
                Some((_, code)) if !place.is_empty() => format!("exit code {code}"),
                _ => why.clone(),
            };
        Diagnostic::new("image::build_failed", format!("building {name} failed{place}: {message}"))
            .help(help + advice(&text))
    }

    /// A line as it may be shown: what a terminal would show of it at last, and nothing that moves the cursor.
    fn plain(&self, line: &str) -> String {
        let shown = console::strip_ansi_codes(line);
        let shown =
            shown.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().replace('\t', "    ");
        self.hidden.hide(crate::event::input::printable(OsStr::new(&shown)))
    }
}

/// A command may be a whole script; its beginning tells which one.
fn shorten(step: &str) -> String {
    const LONGEST: usize = 160;
    match step.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &step[..end]),
        None => step.to_owned(),
    }
}

/// What usually helps.
fn advice(text: &str) -> &'static str {
    const CASES: [(&[&str], &str); 9] = [
        (
            &["No space left on device", "no space left on device", "Disk quota exceeded"],
            "the engine's disk is full: `docker system df` shows what takes room; `tidemill images prune` and \
             `docker system prune` free it",
        ),
        (
            &[
                "certificate verify failed",
                "CERTIFICATE_VERIFY_FAILED",
                "self-signed certificate",
                "self signed certificate",
                "unable to get local issuer certificate",
                "SSL certificate problem",
                "certificate signed by unknown authority",
            ],
            "the network inspects TLS with a certificate that build steps do not trust: `ca_bundle = \"host\"` (or a \
             path) under [build] in tidemill.toml makes them trust what this machine trusts",
        ),
        (
            &[
                "Temporary failure in name resolution",
                "Temporary failure resolving",
                "Could not resolve",
                "Name or service not known",
                "bad address",
                "Network is unreachable",
                "Connection refused",
                "Connection timed out",
                "Could not connect",
                "Failed to establish a new connection",
                "407 Proxy",
            ],
            "build steps reach no network: behind a proxy set `proxy` under [build] in tidemill.toml, or `network = \
             \"host\"` where it listens on this machine; `apt_mirror` and `pip_index` name servers that are reachable",
        ),
        (
            &[
                "Unable to locate package",
                "has no installation candidate",
                "No matching distribution found",
                "Could not find a version",
                "404  Not Found",
                "was not found",
            ],
            "there is no package of that name and version for this image: is it spelled right, and made for its \
             Debian or Python?",
        ),
        (
            &["requires BuildKit", "unknown flag: --mount", "Unknown flag: mount"],
            "the Dockerfile uses what only BuildKit understands, and this engine builds without it",
        ),
        (
            &["exec format error"],
            "the image is for another platform than the engine's: set `platform`, or install emulation for it \
             (package qemu-user-static)",
        ),
        (&["this image has no "], "choose another image in `from`, or write a Dockerfile"),
        (
            &["COPY failed", "ADD failed", "failed to compute cache key", "file does not exist"],
            "is the file in the image's folder, and does .dockerignore let it through?",
        ),
        (
            &["target stage", "failed to reach build target"],
            "`target` names a stage: what stands behind AS in the Dockerfile",
        ),
    ];
    let fits = |words: &&(&[&str], &str)| words.0.iter().any(|word| text.contains(word));
    CASES.iter().find(fits).map_or(
        "behind a proxy or a firewall, `network`, `proxy` and `ca_bundle` under [build] in tidemill.toml reach the build",
        |(_, help)| help,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Silent;

    #[test]
    fn a_failure_shows_its_step_and_clean_lines() {
        let mut log = Log::new(&Silent, Hidden::new(["s3cret"]));
        log.classic("Step 1/2 : FROM a\n ---> 123\nStep 2/2 : RUN pip install x\n ---> Running in 1\n");
        log.classic("10%\r\u{1b}[31mERROR: No matching distribution found for x (s3cret)\u{1b}[0m\n\u{7}\n");
        let failed =
            log.failed("images/x", "The command '/bin/sh -c pip install x' returned a non-zero code: 1");
        assert_eq!(
            failed.message(),
            "building images/x failed at step 2 of 2: RUN pip install x: exit code 1"
        );
        let help = failed.advice().unwrap_or_default();
        assert!(help.contains("  ERROR: No matching distribution found for x ([hidden])\n"), "{help}");
        assert!(help.contains("no package of that name") && !help.contains('\u{1b}'), "{help}");
    }

    #[test]
    fn the_usual_causes_are_named() {
        for (line, word) in [
            ("curl: (60) SSL certificate problem: self-signed certificate", "ca_bundle"),
            ("Err:1 http://deb.debian.org Temporary failure resolving 'deb.debian.org'", "proxy"),
            ("OSError: [Errno 28] No space left on device", "images prune"),
            ("E: Unable to locate package jqq", "spelled right"),
            ("the --mount option requires BuildKit", "BuildKit"),
            ("something else", "network"),
        ] {
            assert!(advice(line).contains(word), "{line}");
        }
    }
}
