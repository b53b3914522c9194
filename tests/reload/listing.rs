//! What `tidemill workflows` tells.

use tidemill::event::id::RunId;
use tidemill::event::trigger::Trigger;
use tidemill::run::listing::{Counts, Listed, list};
use tidemill::store::NewRun;

use super::{open, project, script};

fn shown(listed: &[Listed]) -> Vec<(Option<&str>, &str, Option<&str>)> {
    let show = |one: &'_ Listed| one.broken.as_ref().map(|report| report.code.clone());
    let codes: Vec<Option<String>> = listed.iter().map(show).collect();
    listed
        .iter()
        .zip(codes)
        .map(|(one, code)| {
            let code = code.map(|code| match code.as_str() {
                "script::syntax" => "syntax",
                _ => "other",
            });
            (one.workflow.as_deref(), one.file.as_str(), code)
        })
        .collect()
}

#[tokio::test]
async fn the_version_in_force_is_listed_with_what_is_wrong_now() {
    let glob = "triggers = { mill.drop { glob = \"*.csv\" },
        mill.webhook { path = \"a\", secret = mill.secret \"KNOWN\", scheme = \"github\" } },";
    let project = project().workflow("a.lua", &script("a", glob)).workflow("b.lua", &script("b", ""));
    let reloading = open(&project).await;
    let opened = project.open();
    let store = &reloading.store;
    let routes = reloading.in_force.routes();
    let id = RunId::parse("20261130-230000-aaaa").unwrap();
    let at = "2026-11-30T23:00:00Z".parse().unwrap();
    let run = NewRun::new(id.clone(), "a", Trigger::Drop, routes[0].bundle.clone(), "actor", at);
    store.queue_run(run).await.unwrap();
    let listed = list(&opened, Some(store), Counts::InForce).await.unwrap();
    assert_eq!(shown(&listed), [(Some("a"), "workflows/a.lua", None), (Some("b"), "workflows/b.lua", None)]);
    assert_eq!(listed[0].version.as_ref(), Some(&routes[0].bundle));
    assert_eq!(listed[0].last_run.as_ref().map(|run| &run.id), Some(&id));
    assert_eq!(
        (listed[0].triggers.as_slice(), listed[0].sandbox),
        (["*.csv".to_owned(), "POST /hooks/a".to_owned()].as_slice(), Some("none"))
    );
    assert!(listed[0].since.is_some());
    // Edited, and not yet noticed: new runs still use what is in force; without a daemon, what the file says.
    project.put("workflows/b.lua", script("b", "description = \"New.\","));
    let now = list(&opened, Some(store), Counts::InForce).await.unwrap();
    assert_eq!(now[1].version.as_ref(), Some(&routes[1].bundle));
    let files = list(&opened, Some(store), Counts::Files).await.unwrap();
    assert_ne!(files[1].version.as_ref(), Some(&routes[1].bundle));
    assert_eq!(files[1].since, None);
    // Broken: what new runs are made of stays listed beside why.
    project.put("workflows/a.lua", "return mill.workflow {");
    project.put("workflows/c.lua", "return mill.workflow {");
    reloading.settle().await;
    let listed = list(&opened, Some(store), Counts::InForce).await.unwrap();
    let wanted = [
        (Some("a"), "workflows/a.lua", Some("syntax")),
        (Some("b"), "workflows/b.lua", None),
        (None, "workflows/c.lua", Some("syntax")),
    ];
    assert_eq!(shown(&listed), wanted);
    assert_eq!(listed[0].version.as_ref(), Some(&routes[0].bundle));
    assert_eq!(listed[0].triggers, ["*.csv", "POST /hooks/a"]);
    let kept = tidemill::run::listing::in_force(&opened, store).await.unwrap();
    let names: Vec<&str> = kept.iter().map(|workflow| workflow.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "what is in force is known, whatever the scripts say");
    let without = list(&opened, None, Counts::Files).await.unwrap();
    assert_eq!(without[0].workflow.as_deref(), Some("b"));
}

#[tokio::test]
async fn what_new_runs_are_made_of_is_no_garbage() {
    let project = project().workflow("a.lua", &script("a", ""));
    let reloading = open(&project).await;
    project.put("workflows/a.lua", script("a", "description = \"New.\","));
    reloading.settle().await;
    let mentioned = reloading.store.mentioned(None).await.unwrap();
    for bundle in reloading.in_force.bundles() {
        assert!(mentioned.contains(&bundle));
    }
}

#[tokio::test]
async fn all_that_starts_a_workflow_is_listed() {
    let triggers = r#"triggers = {
      mill.webhook { path = "shop/orders", secret = mill.secret "ORDERS" },
      mill.schedule { every = "6h" },
      mill.drop { glob = "*.csv" },
    },"#;
    let project = project().workflow("a.lua", &script("a", triggers));
    let listed = list(&project.open(), None, Counts::Files).await.unwrap();
    assert_eq!(listed[0].triggers, ["*.csv", "every 6h", "POST /hooks/shop/orders"]);
}
