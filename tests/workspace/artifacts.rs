//! What another workflow published.

use jiff::Timestamp;
use tidemill::event::What;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::state::RunState;
use tidemill::event::trigger::Trigger;
use tidemill::event::usage::Usage;
use tidemill::store::NewRun;

use super::{Yard, contents, paths};

/// A run of `energy` that published these artifacts, recorded as the conductor does.
pub(super) async fn published(yard: &Yard, id: &str, artifacts: &[(&str, &str)]) {
    let run = RunId::parse(id).unwrap();
    let new = NewRun::new(run.clone(), "energy", Trigger::Manual, Digest::of(""), "actor", Timestamp::now());
    yard.store.queue_run(new).await.unwrap();
    let folder = format!("outbox/energy/{id}");
    for (path, text) in artifacts {
        let (size, digest) = (text.len() as u64, Digest::of(text));
        let collected = What::ArtifactCollected { path: (*path).into(), size, digest };
        yard.store.append(&run, collected).await.unwrap();
        yard.project.put(format!("{folder}/{}", path.trim_start_matches("output/")), text);
    }
    let ended =
        What::RunEnded { state: RunState::Succeeded, report: None, usage: Usage::default(), cost: None };
    yard.store.append(&run, What::Published { folder, artifacts: Vec::new() }).await.unwrap();
    yard.store.append(&run, ended).await.unwrap();
}

#[tokio::test]
async fn the_last_run_hands_over_its_artifacts() {
    let yard = Yard::new().await;
    published(&yard, "20261130-000001-aaaa", &[("output/a.csv", "old")]).await;
    published(&yard, "20261130-000002-bbbb", &[("output/a.csv", "new"), ("output/sub/b.md", "b")]).await;
    let filling = yard
        .fill(
            r#"["all/"] = mill.artifacts "energy",
            ["one.csv"] = mill.artifacts("energy", { path = "output/a.csv", access = "rw" }),
            ["in/"] = mill.artifacts("energy", { path = "output/sub/b.md" }),
            ["old.csv"] = mill.artifacts("energy", { path = "output/a.csv", which = "20261130-000001-aaaa" }),
            ["none/"] = mill.artifacts("never", { optional = true })"#,
        )
        .await
        .unwrap();
    assert_eq!(paths(&filling), ["all/a.csv", "all/sub/b.md", "in/b.md", "old.csv", "one.csv"]);
    assert_eq!(contents(&filling)["one.csv"], "new");
    assert_eq!(contents(&filling)["old.csv"], "old");
    let origin = &filling.origins[0];
    assert_eq!(origin.run.as_ref().map(RunId::as_str), Some("20261130-000002-bbbb"));
    assert_eq!(origin.from.as_deref(), Some("energy"));
}

#[tokio::test]
async fn what_was_changed_in_the_outbox_is_refused() {
    for change in ["edit", "link", "gone"] {
        let yard = Yard::new().await;
        published(&yard, "20261130-000001-aaaa", &[("output/a.csv", "good")]).await;
        let file = yard.project.path("outbox/energy/20261130-000001-aaaa/a.csv");
        std::fs::remove_file(&file).unwrap();
        let code = match change {
            "edit" => {
                std::fs::write(&file, "evil").unwrap();
                "manifest::changed"
            }
            "link" => {
                std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
                "manifest::artifacts"
            }
            _ => "manifest::artifacts",
        };
        let refused = yard.fill(r#"["in/"] = mill.artifacts "energy""#).await.unwrap_err();
        assert_eq!(refused.code(), code, "{change}: {}", refused.message());
        assert!(refused.advice().unwrap().contains("run `energy` again"));
    }
}

#[tokio::test]
async fn none_is_said_with_what_to_do() {
    let yard = Yard::new().await;
    let refused = yard.fill(r#"["in/"] = mill.artifacts "energy""#).await.unwrap_err();
    assert_eq!(refused.message(), "`in/` of the manifest: no run of `energy` has succeeded yet");
    assert!(refused.advice().unwrap().contains("optional = true"));
    published(&yard, "20261130-000001-aaaa", &[("output/a.csv", "x")]).await;
    let refused = yard.fill(r#"["in/"] = mill.artifacts "enrgy""#).await.unwrap_err();
    assert!(refused.advice().unwrap().starts_with("did you mean `energy`?"));
    let refused = yard.fill(r#"["a"] = mill.artifacts("energy", { path = "b.csv" })"#).await.unwrap_err();
    assert_eq!(refused.code(), "manifest::no_path");
    assert_eq!(refused.advice(), Some("it has `output/a.csv`"));
}
