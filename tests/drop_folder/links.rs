//! Symbolic links: followed to where a drop and the project allow, and nowhere else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tidemill::event::id::Digest;
use tidemill::event::state::InputState;
use tidemill::run::intake::WorkflowRoute;
use tidemill::workflow::trigger::{Drop, Symlinks};

use super::harness::open;
use super::{Inbox, route};
use crate::support::project::Project;

fn following() -> Drop {
    Drop { symlinks: Symlinks::Inside, ..Drop::new("*.csv") }
}

#[tokio::test]
async fn links_are_followed_into_the_inbox_and_declared_folders_only() {
    let shared = tempfile::tempdir().unwrap();
    fs::write(shared.path().join("s"), "shared").unwrap();
    let config = format!("[watch]\nlinks_to = [{:?}]\n", shared.path());
    let project = Project::new().config(&config).file("inbox/deep/x", "inside").file("secret", "secret");
    let inbox = project.path("inbox");
    symlink("deep/x", inbox.join("relative.csv")).unwrap();
    symlink(shared.path().join("s"), inbox.join("declared.csv")).unwrap();
    symlink(project.path("secret"), inbox.join("outside.csv")).unwrap();
    symlink("../secret", inbox.join("above.csv")).unwrap();
    symlink("nowhere", inbox.join("dangling.csv")).unwrap();
    symlink("loop.csv", inbox.join("loop.csv")).unwrap();
    symlink("deep", inbox.join("folder.csv")).unwrap();
    let mut inbox = Inbox::dropping(project, following()).await;
    assert_eq!(inbox.settle().await, 2);
    let mut digests: Vec<Digest> =
        inbox.runs().await.iter().map(|run| run.inputs[0].digest.clone()).collect();
    digests.sort_by_key(|digest| *digest != Digest::of("inside"));
    assert_eq!(digests, [Digest::of("inside"), Digest::of("shared")]);
    let out = "leads out of the inbox and of the folders in `links_to` under [watch]";
    for (name, why) in [
        ("outside.csv", out),
        ("above.csv", out),
        ("dangling.csv", "leads nowhere"),
        ("loop.csv", "leads nowhere"),
        ("folder.csv", "leads to no regular file"),
    ] {
        let reason = format!("a symbolic link that {why} (rule `symlinks`)");
        assert_eq!(inbox.standing(name).await, (InputState::Ignored, reason), "{name}");
    }
    assert_eq!(inbox.settle().await, 0, "each is taken once");
}

#[tokio::test]
async fn a_followed_link_goes_and_what_it_leads_to_stays() {
    let project = Project::new().file("inbox/deep/x", "abc");
    symlink("deep/x", project.path("inbox/a.csv")).unwrap();
    let routes = vec![WorkflowRoute { drops: vec![following()], ..route("energy", "") }];
    let mut watching = open(&project, routes, &[]).await.unwrap();
    assert_eq!(watching.put_away().await, (InputState::Done, "processed/a.csv".into()));
    watching.finish().await;
    assert_eq!(fs::read(project.path("processed/a.csv")).unwrap(), b"abc");
    assert!(!project.path("processed/a.csv").is_symlink());
    assert_eq!(project.files("inbox"), [Path::new("deep/x")]);
}
