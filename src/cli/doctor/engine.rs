//! The Docker engine and the images the workflows need.

use std::time::Duration;

use jiff::Timestamp;

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::machine;
use crate::config::Project;
use crate::sandbox::docker::{Docker, Facts};
use crate::workflow::image::Image;
use crate::workflow::limits::Limits;
use crate::workflow::units::{show_duration, show_size};

/// Clocks that differ by more make times in logs and receipts useless.
const SKEW: Duration = Duration::from_secs(60);

/// What was found; nothing is started, pulled or built.
pub(super) async fn examine(project: &Project, images: &[Image]) -> Vec<Finding> {
    let docker = match Docker::of_project(project).await {
        Ok(docker) => docker,
        Err(diagnostic) => return vec![Finding::of("docker", &diagnostic)],
    };
    let mut findings = match docker.facts().await {
        Ok(facts) => judge(&facts, Timestamp::now()),
        Err(diagnostic) => return vec![Finding::of("docker", &diagnostic)],
    };
    for image in images {
        let what = format!("image {}", image.reference());
        findings.push(match docker.find_image(image).await {
            Err(diagnostic) => Finding::of(what, &diagnostic),
            Ok(Some(ready)) => Finding::ok(what, ready.digest.get(..19).unwrap_or(&ready.digest)),
            Ok(None) => Finding::warn(what, "not on the engine yet", "the first run pulls or builds it"),
        });
    }
    findings
}

fn judge(facts: &Facts, now: Timestamp) -> Vec<Finding> {
    let Facts { version, api, storage, .. } = facts;
    let memory = show_size(facts.memory);
    let found = format!(
        "{version}, API {api}, storage {storage}, {} processors, {memory} of memory",
        facts.processors
    );
    let mut findings = vec![if facts.lacks.is_empty() {
        Finding::ok("docker", found)
    } else {
        Finding::fail(
            "docker",
            format!("{found}; it enforces no {} limit", facts.lacks.join(" and no ")),
            "containers without limits are refused: the engine's kernel needs those cgroup controllers \
             (rootless Docker: systemd must delegate them)",
        )
    }];
    let wanted = Limits::default().memory;
    if facts.memory < wanted {
        findings.push(Finding::warn(
            "memory",
            format!("the engine has {memory}, and a run may use {} unless it says less", show_size(wanted)),
            "lower `limits.memory` in the workflows",
        ));
    }
    // A folder of this name is the engine's only when the engine runs here.
    findings.extend(
        facts
            .folder
            .as_ref()
            .filter(|folder| folder.is_dir())
            .and_then(|folder| machine::disk("docker disk", folder)),
    );
    if let Some(clock) = facts.clock {
        let apart = now.duration_since(clock).unsigned_abs();
        if apart > SKEW {
            findings.push(Finding::warn(
                "docker clock",
                format!("it differs from this machine's by {}", show_duration(apart)),
                "set both clocks, e.g. `timedatectl set-ntp true`",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    #[test]
    fn an_engine_without_limits_fails_and_a_wrong_clock_warns() {
        let facts = Facts {
            version: "20.10.24".into(),
            api: "1.41".into(),
            storage: "overlay2".into(),
            folder: None,
            memory: 1 << 30,
            processors: 2,
            clock: Some(Timestamp::UNIX_EPOCH),
            lacks: vec!["process"],
        };
        let levels: Vec<Level> =
            judge(&facts, Timestamp::now()).iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Fail, Level::Warn, Level::Warn]);
    }
}
