//! What a user sees of every kind of mistake: each script in `diagnostics/bad/` has a snapshot beside it.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tidemill::config::Project;
use tidemill::report::screen::render;
use tidemill::script::{self, Checked};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/diagnostics");

fn project(scripts: &[(&str, &str)]) -> (TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let config = "[models.tide]\nprovider = \"scripted\"\nscript = \"models/tide.lua\"\n";
    std::fs::write(root.join("tidemill.toml"), config).unwrap();
    for made in ["workflows", "images/python-data", "reference"] {
        std::fs::create_dir_all(root.join(made)).unwrap();
    }
    std::fs::write(root.join("images/python-data/Dockerfile"), "FROM scratch\n").unwrap();
    std::fs::write(root.join("reference/tariff.md"), "# Tariff\n").unwrap();
    for (name, text) in scripts {
        std::fs::write(root.join("workflows").join(name), text).unwrap();
    }
    let project = Project::open(root).unwrap();
    (folder, project)
}

fn shown(checked: &Checked) -> String {
    checked.diagnostics.iter().map(|found| render(found, false)).collect()
}

fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("diagnostics/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[tokio::test]
async fn every_kind_of_mistake_is_shown_where_it_stands() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(format!("{SCRIPTS}/bad")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 20);
    let mut without = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let (_folder, project) = project(&[(name, &std::fs::read_to_string(&file).unwrap())]);
        let checked = script::check(&project, &[]).await;
        assert!(checked.mistakes() > 0, "{name} has no mistake");
        assert!(checked.workflows.is_empty(), "{name} is taken as a workflow");
        for found in &checked.diagnostics {
            assert!(found.code().starts_with("script::"), "{name}: {}", found.code());
            if found.report().place.is_none() {
                without.push(name.to_owned());
            }
        }
        snapshot(file.file_stem().unwrap().to_str().unwrap(), &shown(&checked));
    }
    assert!(without.is_empty(), "no place in {without:?}");
}

#[tokio::test]
async fn mistakes_across_files_are_found() {
    let good = |name: &str| {
        format!(
            "local mill = require 'tidemill'\nreturn mill.workflow {{\n  name = '{name}',\n  image = mill.image 'alpine:3',\n  agent = {{ model = 'tide' }},\n  prompt = 'x',\n}}\n"
        )
    };
    let with_module = format!("local shop = require 'shop'\n{}", good("twice"));
    let (_folder, project) = project(&[
        ("a.lua", &good("twice")),
        ("b.lua", &with_module),
        ("c.lua", "return { nobody = 'requires this' }"),
        ("shop.lua", "return { refund = function() end }"),
        ("z.lua", &good("fine")),
    ]);
    let checked = script::check(&project, &[]).await;
    snapshot("across_files", &shown(&checked));
    assert_eq!(checked.mistakes(), 1);
    let names: Vec<&str> = checked.workflows.iter().map(|workflow| workflow.name.as_str()).collect();
    assert_eq!(names, ["fine", "twice"]);
}

#[tokio::test]
async fn artifacts_of_a_workflow_that_is_not_there_are_a_warning() {
    let script = |name: &str, of: &str| {
        format!(
            "local mill = require 'tidemill'\nreturn mill.workflow {{\n  name = '{name}',\n  image = mill.image 'alpine:3',\n  agent = {{ model = 'tide' }},\n  prompt = 'x',\n  manifest = {{ ['in/'] = mill.artifacts '{of}' }},\n}}\n"
        )
    };
    let (_folder, project) =
        project(&[("a.lua", &script("daily", "dialy")), ("b.lua", &script("weekly", "daily"))]);
    let checked = script::check(&project, &[]).await;
    snapshot("unknown_workflow", &shown(&checked));
    assert_eq!((checked.mistakes(), checked.diagnostics.len()), (0, 1));
}

#[tokio::test]
async fn a_file_outside_of_the_project_is_named_as_it_was_given() {
    let (_folder, project) = project(&[]);
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("other.lua");
    std::fs::write(&file, "return require('tidemill').workflo {}").unwrap();
    let checked = script::check(&project, std::slice::from_ref(&file)).await;
    let place = checked.diagnostics[0].report().place.unwrap();
    assert_eq!(Path::new(&place.file), file);
    let missing = script::check(&project, &[other.path().join("none.lua")]).await;
    assert_eq!(missing.diagnostics[0].code(), "script::unreadable");
}
