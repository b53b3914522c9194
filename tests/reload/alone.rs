//! What is in force after an edit.

use tidemill::store::Version;

use super::{open, project, script};

#[tokio::test]
async fn an_edit_is_in_force_for_new_runs() {
    let project = project().workflow("a.lua", &script("a", "")).workflow("b.lua", &script("b", ""));
    let mut reloading = open(&project).await;
    let before = reloading.in_force.routes();
    assert!(reloading.told().is_empty(), "what was there at the start is no news");
    project.put("workflows/a.lua", script("a", "description = \"New.\","));
    reloading.settle().await;
    assert_eq!(reloading.told(), ["a changed"]);
    let after = reloading.in_force.routes();
    assert_ne!(after[0].bundle, before[0].bundle);
    assert_eq!(after[1], before[1]);
    let versions = reloading.store.versions().await.unwrap();
    let [a, b] = versions.as_slice() else { panic!("{versions:?}") };
    assert_eq!((&a.bundle, a.broken.as_ref()), (&after[0].bundle, None));
    assert_eq!(a.since.duration_since(b.since).as_millis(), 1300, "in force since it settled");
    // A touch is no edit.
    project.put("workflows/a.lua", script("a", "description = \"New.\","));
    reloading.settle().await;
    assert!(reloading.told().is_empty() && reloading.shown().is_empty());
    assert_eq!(reloading.store.versions().await.unwrap(), versions);
}

#[tokio::test]
async fn what_is_written_in_pieces_is_loaded_whole() {
    let project = project().workflow("a.lua", &script("a", ""));
    let mut reloading = open(&project).await;
    let text = script("a", "description = \"New.\",");
    project.put("workflows/a.lua", &text[..text.len() / 2]);
    reloading.pass(1000).await;
    project.put("workflows/a.lua", &text);
    reloading.pass(300).await;
    assert!(reloading.told().is_empty(), "it is not quiet yet");
    reloading.pass(300).await;
    assert_eq!(reloading.told(), ["a changed"]);
    assert!(reloading.shown().is_empty());
}

#[tokio::test]
async fn a_broken_edit_keeps_the_old_version_and_is_shown_once() {
    let good = script("a", "");
    let project = project().workflow("a.lua", &good).workflow("b.lua", &script("b", ""));
    let mut reloading = open(&project).await;
    let before = reloading.in_force.routes();
    for (text, code) in [
        ("return mill.workflow {", "script::syntax"),
        (&script("a", "promtp = \"x\","), "script::unknown_field"),
        ("", "script::no_workflow"),
        (&script("a", "limits = { cost_usd = 1 },").replace("actor", "other"), "script::unknown_price"),
    ] {
        project.put("workflows/a.lua", text);
        reloading.settle().await;
        assert_eq!(reloading.shown(), [code]);
        assert_eq!(reloading.in_force.routes(), before, "{code}");
        let versions = reloading.store.versions().await.unwrap();
        assert_eq!(versions[0].broken.as_ref().unwrap().code, code);
        assert_eq!(versions[0].bundle, before[0].bundle);
    }
    // An edit elsewhere is no reason to show it again; one of its own is.
    project.put("workflows/b.lua", script("b", "description = \"New.\","));
    reloading.settle().await;
    assert_eq!(reloading.told(), ["b changed"]);
    assert!(reloading.shown().is_empty());
    project.put("workflows/a.lua", "return mill.workflow {");
    reloading.settle().await;
    assert_eq!(reloading.shown().len(), 1);
    project.put("workflows/a.lua", &good);
    reloading.settle().await;
    assert!(reloading.shown().is_empty() && reloading.told().is_empty());
    assert!(reloading.store.versions().await.unwrap().iter().all(|version| version.broken.is_none()));
}

#[tokio::test]
async fn a_version_whose_secrets_are_missing_is_not_put_in_force() {
    let fields = |secret: &str| {
        format!(
            "triggers = {{ mill.webhook {{ path = \"a\", secret = mill.secret \"{secret}\", scheme = \"github\" }} }},"
        )
    };
    let project = project().workflow("a.lua", &script("a", &fields("KNOWN")));
    let mut reloading = open(&project).await;
    let before = reloading.in_force.routes();
    let notify = "on_failure = mill.notify { url = mill.secret \"UNKNOWN\" },";
    for (fields, code) in
        [(fields("UNKNOWN"), "hooks::no_secret"), (notify.to_owned(), "deliveries::no_secret")]
    {
        project.put("workflows/a.lua", script("a", &fields));
        reloading.settle().await;
        assert_eq!(reloading.shown(), [code]);
        assert!(reloading.told().is_empty());
        assert_eq!(reloading.in_force.routes(), before);
    }
}

#[tokio::test]
async fn of_two_that_claim_a_path_the_one_that_has_it_keeps_it() {
    let listens = |name: &str, path: &str| {
        let hook = format!(
            "mill.webhook {{ path = \"{path}\", secret = mill.secret \"KNOWN\", scheme = \"github\" }}"
        );
        script(name, &format!("triggers = {{ {hook} }},"))
    };
    let project =
        project().workflow("b.lua", &listens("b", "shared")).workflow("c.lua", &listens("c", "other"));
    let mut reloading = open(&project).await;
    // A copy of a script, and one that is edited; the one that has it is broken meanwhile.
    for (file, name) in [("a.lua", "a"), ("c.lua", "c")] {
        project.put(format!("workflows/{file}"), listens(name, "shared"));
        reloading.settle().await;
        assert_eq!(reloading.shown(), ["script::duplicate_webhook"], "{file}");
        assert!(reloading.told().is_empty());
        let routes = reloading.in_force.routes();
        let paths: Vec<_> =
            routes.iter().map(|route| (route.workflow.as_str(), route.webhooks[0].path.as_str())).collect();
        assert_eq!(paths, [("b", "shared"), ("c", "other")]);
    }
    project.put("workflows/b.lua", "return mill.workflow {");
    reloading.settle().await;
    assert_eq!(reloading.shown(), ["script::syntax"]);
    assert_eq!(reloading.in_force.routes().len(), 2);
    // Once nobody has it, the first gets it.
    std::fs::remove_file(project.path("workflows/b.lua")).unwrap();
    reloading.settle().await;
    assert_eq!(reloading.told(), ["a new", "b removed"]);
}

#[tokio::test]
async fn scripts_come_and_go_and_come_back_new() {
    let project = project().workflow("a.lua", &script("a", ""));
    let mut reloading = open(&project).await;
    project.put("workflows/b.lua", script("b", ""));
    reloading.settle().await;
    assert_eq!(
        (reloading.told(), reloading.names()),
        (vec!["b new".to_owned()], vec!["a".into(), "b".into()])
    );
    let first = reloading.store.versions().await.unwrap().remove(1);
    std::fs::remove_file(project.path("workflows/b.lua")).unwrap();
    reloading.settle().await;
    assert_eq!((reloading.told(), reloading.names()), (vec!["b removed".to_owned()], vec!["a".into()]));
    project.put("workflows/b.lua", script("b", ""));
    reloading.settle().await;
    assert_eq!(reloading.told(), ["b new"]);
    let again = reloading.store.versions().await.unwrap().remove(1);
    assert_eq!(again, Version { since: again.since, ..first.clone() });
    assert!(again.since > first.since);
    // Under another name of its own, and in another file, it is another and the same.
    std::fs::rename(project.path("workflows/b.lua"), project.path("workflows/c.lua")).unwrap();
    reloading.settle().await;
    assert_eq!(reloading.told(), ["b changed"]);
    project.put("workflows/c.lua", script("c", ""));
    reloading.settle().await;
    assert_eq!(reloading.told(), ["c new", "b removed"]);
}

#[tokio::test]
async fn whatever_a_script_reads_is_part_of_it() {
    let fields = "description = require \"words\", manifest = { [\"rules.md\"] = mill.file \"rules.md\" },";
    let project = project()
        .workflow("a.lua", &script("a", fields))
        .workflow("words.lua", "return \"Counts.\"")
        .file("rules.md", "Count all.");
    let mut reloading = open(&project).await;
    for (file, text) in [("rules.md", "Count some."), ("workflows/words.lua", "return \"Counts some.\"")] {
        project.put(file, text);
        reloading.settle().await;
        assert_eq!(reloading.told(), ["a changed"], "{file}");
    }
    // One that is gone breaks it, and mends it when it is back.
    let kept = std::fs::read(project.path("rules.md")).unwrap();
    std::fs::remove_file(project.path("rules.md")).unwrap();
    reloading.settle().await;
    assert_eq!(
        (reloading.shown(), reloading.names()),
        (vec!["script::missing_file".to_owned()], vec!["a".into()])
    );
    project.put("rules.md", kept);
    reloading.settle().await;
    assert!(reloading.told().is_empty() && reloading.shown().is_empty());
    assert_eq!(reloading.store.versions().await.unwrap()[0].broken, None);
}

#[tokio::test]
async fn of_two_that_claim_a_name_the_one_that_has_it_keeps_it() {
    let project = project().workflow("b.lua", &script("same", ""));
    let mut reloading = open(&project).await;
    let before = reloading.in_force.routes();
    for other in ["a.lua", "c.lua"] {
        project.put(format!("workflows/{other}"), script("same", ""));
        reloading.settle().await;
        assert_eq!(reloading.shown(), ["script::duplicate_workflow"], "{other}");
        assert_eq!(reloading.in_force.routes(), before);
        std::fs::remove_file(project.path(format!("workflows/{other}"))).unwrap();
        reloading.settle().await;
    }
    assert!(reloading.told().is_empty());
}

#[tokio::test]
async fn a_folder_that_is_away_changes_nothing_and_is_told_once() {
    let project = project().workflow("a.lua", &script("a", ""));
    let mut reloading = open(&project).await;
    std::fs::rename(project.path("workflows"), project.path("away")).unwrap();
    reloading.settle().await;
    assert_eq!(reloading.shown(), ["script::no_folder"]);
    for _ in 0..40 {
        reloading.pass(1000).await;
    }
    assert!(reloading.shown().is_empty(), "it is tried again in silence");
    assert_eq!(reloading.names(), ["a"]);
    std::fs::rename(project.path("away"), project.path("workflows")).unwrap();
    reloading.settle().await;
    assert!(reloading.told().is_empty() && reloading.shown().is_empty());
}

#[tokio::test]
async fn settings_are_not_reloaded_and_that_is_told_once() {
    let project = project().workflow("a.lua", &script("a", ""));
    let mut reloading = open(&project).await;
    for text in ["# one", "# two"] {
        project.put("tidemill.toml", format!("{text}\n{}", super::MODELS));
        reloading.settle().await;
    }
    assert_eq!(reloading.told(), ["watch::settings"]);
}
