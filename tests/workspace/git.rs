//! Repositories, made on the spot.

use std::path::Path;
use std::process::Command;

use super::{Yard, contents, file, paths};
use crate::support::project::Project;

/// Runs git in a folder of the project; gives what it printed.
fn git(project: &Project, folder: &str, arguments: &[&str]) -> String {
    run(&project.path(folder), arguments)
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    let done = Command::new("git")
        .current_dir(folder)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
        ])
        .args(arguments)
        .output()
        .expect("git is installed");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// A repository `repos/NAME` with these files in one commit; gives the commit.
fn repository(project: &Project, name: &str, files: &[(&str, &str)]) -> String {
    let folder = format!("repos/{name}");
    std::fs::create_dir_all(project.path(&folder)).unwrap();
    git(project, &folder, &["init", "--quiet", "--initial-branch=main"]);
    commit(project, &folder, files)
}

fn commit(project: &Project, folder: &str, files: &[(&str, &str)]) -> String {
    for (name, text) in files {
        project.put(format!("{folder}/{name}"), text);
    }
    git(project, folder, &["add", "--all"]);
    git(project, folder, &["commit", "--quiet", "--message", "more"]);
    git(project, folder, &["rev-parse", "HEAD"])
}

#[tokio::test]
async fn a_branch_moves_and_a_commit_needs_no_network() {
    let yard = Yard::new().await;
    let first = repository(&yard.project, "shared", &[("a.md", "one"), ("sub/b.md", "b")]);
    git(&yard.project, "repos/shared", &["tag", "v1"]);
    let branch = r#"["src/"] = mill.git("repos/shared", { ref = "main" })"#;
    let filling = yard.fill(branch).await.unwrap();
    assert_eq!(paths(&filling), ["src/a.md", "src/sub/b.md"]);
    let origin = &filling.origins[0];
    assert_eq!(origin.commit.as_deref(), Some(first.as_str()));
    assert_eq!((origin.from.as_deref(), origin.reference.as_deref()), (Some("repos/shared"), Some("main")));

    let second = commit(&yard.project, "repos/shared", &[("a.md", "two")]);
    let filling = yard.fill(branch).await.unwrap();
    assert_eq!(filling.origins[0].commit.as_deref(), Some(second.as_str()));
    assert_eq!(contents(&filling)["src/a.md"], "two");
    let tag = yard.fill(r#"["src/"] = mill.git("repos/shared", { ref = "v1" })"#).await.unwrap();
    assert_eq!(contents(&tag)["src/a.md"], "one");

    // What a dead process was checking out is removed by the next one.
    let cached = yard.project.files(".tidemill/cache/git").remove(0);
    let trees = Path::new(".tidemill/cache/git").join(cached.iter().next().unwrap()).join("trees");
    yard.project.put(trees.join(".new-dead/files/a.md"), "half");
    let third = commit(&yard.project, "repos/shared", &[("a.md", "three")]);
    assert_eq!(yard.fill(branch).await.unwrap().origins[0].commit.as_deref(), Some(third.as_str()));
    assert!(!yard.project.path(trees.join(".new-dead")).exists());

    // The repository is gone, and a commit that was seen is still there.
    let url = format!("file://{}", yard.project.path("repos/shared").canonicalize().unwrap().display());
    std::fs::remove_dir_all(yard.project.path("repos/shared")).unwrap();
    let pinned = format!(r#"["src/"] = mill.git("{url}", {{ ref = "{first}" }})"#);
    assert_eq!(contents(&yard.fill(&pinned).await.unwrap())["src/a.md"], "one");
    let moved = format!(r#"["src/"] = mill.git("{url}", {{ ref = "main" }})"#);
    let refused = yard.fill(&moved).await.unwrap_err();
    assert_eq!(refused.code(), "manifest::git");
    assert!(refused.advice().unwrap().contains("git ls-remote"), "{:?}", refused.advice());
}

#[tokio::test]
async fn a_part_of_a_repository_keeps_programs_and_copies_links_that_stay_inside() {
    let yard = Yard::new().await;
    repository(&yard.project, "shared", &[("top.md", "top"), ("sub/run.sh", "#!/bin/sh\n")]);
    let sub = yard.project.path("repos/shared/sub");
    std::os::unix::fs::symlink("../top.md", sub.join("copy.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", sub.join("out")).unwrap();
    std::os::unix::fs::symlink("../../../../../../../../etc/passwd", sub.join("up")).unwrap();
    git(&yard.project, "repos/shared", &["update-index", "--add", "--chmod=+x", "sub/run.sh"]);
    git(&yard.project, "repos/shared", &["config", "core.fileMode", "false"]);
    commit(&yard.project, "repos/shared", &[]);
    let filling = yard
        .fill(
            r#"["tools/"] = mill.git("repos/shared", { ref = "main", path = "sub" }),
            ["top.md"] = mill.git("repos/shared", { ref = "main", path = "top.md", access = "rw" })"#,
        )
        .await
        .unwrap();
    assert_eq!(paths(&filling), ["tools/copy.md", "tools/run.sh", "top.md"]);
    assert_eq!(contents(&filling)["tools/copy.md"], "top");
    assert_eq!(file(&filling, "tools/run.sh").mode.map(|mode| mode.to_string()), Some("0755".into()));
    assert_eq!(filling.origins[0].links_left_out, 2);
    let refused = yard.fill(r#"["x/"] = mill.git("repos/shared", { ref = "main", path = "none" })"#).await;
    assert_eq!(refused.unwrap_err().code(), "manifest::no_path");
}

#[tokio::test]
async fn with_history_it_is_a_repository_that_knows_nothing_of_this_machine() {
    let yard = Yard::new().await;
    let first = repository(&yard.project, "shared", &[("a.md", "one")]);
    let second = commit(&yard.project, "repos/shared", &[("a.md", "two")]);
    let manifest = r#"["src/"] = mill.git("repos/shared", { ref = "main", history = true, access = "rw" })"#;
    let filling = yard.fill(manifest).await.unwrap();
    let copy = Project::new();
    for file in &filling.files {
        let bytes = match &file.body {
            tidemill::sandbox::Body::File(path) => std::fs::read(path).unwrap(),
            tidemill::sandbox::Body::Bytes(bytes) => bytes.to_vec(),
        };
        let shown = String::from_utf8_lossy(&bytes);
        assert!(!shown.contains(yard.project.root().to_str().unwrap()), "{}: {shown}", file.path);
        copy.put(file.path.as_str(), bytes);
    }
    assert_eq!(git(&copy, "src", &["rev-list", "HEAD"]), format!("{second}\n{first}"));
    assert_eq!(git(&copy, "src", &["status", "--porcelain"]), "");
    assert_eq!(git(&copy, "src", &["rev-parse", "refs/tidemill/placed"]), second);
    assert_eq!(git(&copy, "src", &["remote", "get-url", "origin"]), "repos/shared");
}

#[tokio::test]
async fn submodules_come_along_only_when_asked_for() {
    let yard = Yard::new().await;
    repository(&yard.project, "inner", &[("inner.md", "inner")]);
    repository(&yard.project, "outer", &[("outer.md", "outer")]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../inner", "inner"];
    git(&yard.project, "repos/outer", &add);
    commit(&yard.project, "repos/outer", &[]);
    let without = yard.fill(r#"["src/"] = mill.git("repos/outer", { ref = "main" })"#).await.unwrap();
    assert_eq!(paths(&without), ["src/.gitmodules", "src/outer.md"]);
    let manifest = r#"["src/"] = mill.git("repos/outer", { ref = "main", submodules = true })"#;
    let with = yard.fill(manifest).await.unwrap();
    assert_eq!(paths(&with), ["src/.gitmodules", "src/inner/inner.md", "src/outer.md"]);
}

#[tokio::test]
async fn nothing_of_a_repository_or_its_place_is_run() {
    let yard = Yard::new().await;
    repository(&yard.project, "shared", &[("a.md", "one"), (".gitattributes", "*.md filter=evil\n")]);
    let marker = yard.project.path("ran");
    let evil = format!("#!/bin/sh\ntouch {}\ncat\n", marker.display());
    for hook in ["post-checkout", "post-merge", "reference-transaction", "pre-receive"] {
        let path = format!("repos/shared/.git/hooks/{hook}");
        yard.project.put(&path, &evil);
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(yard.project.path(path), rights).unwrap();
    }
    git(
        &yard.project,
        "repos/shared",
        &["config", "filter.evil.smudge", &format!("touch {}", marker.display())],
    );
    let before = marker.exists();
    yard.fill(r#"["src/"] = mill.git("repos/shared", { ref = "main" })"#).await.unwrap();
    yard.fill(r#"["src/"] = mill.git("repos/shared", { ref = "main", history = true })"#).await.unwrap();
    assert!(!before && !marker.exists());
}

#[tokio::test]
async fn a_ref_that_is_not_there_or_says_two_things_is_explained() {
    let yard = Yard::new().await;
    repository(&yard.project, "shared", &[("a.md", "one")]);
    git(&yard.project, "repos/shared", &["tag", "both"]);
    git(&yard.project, "repos/shared", &["branch", "both"]);
    commit(&yard.project, "repos/shared", &[("a.md", "two")]);
    git(&yard.project, "repos/shared", &["tag", "--force", "both"]);
    for (name, says) in [
        ("none", "has no branch, tag or commit `none`"),
        ("both", "is a branch and a tag"),
        ("0123456789012345678901234567890123456789", "has no branch, tag or commit"),
    ] {
        let manifest = format!(r#"["src/"] = mill.git("repos/shared", {{ ref = "{name}" }})"#);
        let refused = yard.fill(&manifest).await.unwrap_err();
        assert_eq!(refused.code(), "manifest::no_ref", "{}", refused.message());
        assert!(refused.message().contains(says), "{}", refused.message());
    }
    yard.fill(r#"["src/"] = mill.git("repos/shared", { ref = "refs/tags/both" })"#).await.unwrap();
}

/// Counts what takes long.
#[derive(Debug, Default)]
struct Steps(std::sync::Mutex<Vec<String>>);

impl tidemill::sandbox::Progress for Steps {
    fn begin(&self, step: &str) {
        self.0.lock().unwrap().push(step.to_owned());
    }
    fn at(&self, _: &str) {}
    fn end(&self, _: &str) {}
}

#[tokio::test]
async fn a_branch_is_one_commit_in_all_entries_of_a_run() {
    let yard = Yard::new().await;
    repository(&yard.project, "shared", &[("a.md", "one"), ("b.md", "b")]);
    let steps = Steps::default();
    let manifest = r#"["a.md"] = mill.git("repos/shared", { ref = "main", path = "a.md" }),
        ["rest/"] = mill.git("repos/shared", { ref = "main", ignore = { "a.md" } })"#;
    let filling = yard.fill_with(manifest, || (), &steps).await.unwrap();
    assert_eq!(paths(&filling), ["a.md", "rest/b.md"]);
    assert_eq!(filling.origins[0].commit, filling.origins[1].commit);
    assert_eq!(*steps.0.lock().unwrap(), ["fetching repos/shared"]);
}

#[tokio::test]
async fn the_users_filters_hooks_and_variables_have_no_say_in_what_is_placed() {
    let image = crate::support::engine::small_image().await;
    let project = Project::new()
        .config("[models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n")
        .file(
            "models/actor.lua",
            "return require('tidemill.test').script { require('tidemill.test').say 'done' }",
        );
    let text = format!(
        r#"local mill = require "tidemill"
return mill.workflow {{
  name = "yard", image = mill.image "{}", agent = {{ model = "actor" }}, prompt = "x",
  manifest = {{
    ["src/"] = mill.git("repos/shared", {{ ref = "main" }}),
    ["all/"] = mill.git("repos/shared", {{ ref = "main", history = true, access = "rw" }}),
  }},
}}
"#,
        image.digest
    );
    project.put("workflows/yard.lua", text);
    repository(&project, "shared", &[("a.md", "one"), (".gitattributes", "*.md filter=evil\n")]);
    let marker = project.path("ran");
    let evil = format!("touch {}", marker.display());
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        project.put(format!("hooks/{hook}"), format!("#!/bin/sh\n{evil}\n"));
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(project.path(format!("hooks/{hook}")), rights).unwrap();
    }
    let config = format!(
        "[core]\nhooksPath = {hooks}\nfsmonitor = {evil}\n[filter \"evil\"]\nsmudge = {evil}\nrequired = true\n",
        hooks = project.path("hooks").display()
    );
    project.put("gitconfig", config);
    let done = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(["run", "yard"])
        .current_dir(project.root())
        .env("GIT_CONFIG_GLOBAL", project.path("gitconfig"))
        .env("GIT_DIR", "/nonexistent")
        .env("GIT_WORK_TREE", "/nonexistent")
        .env("GIT_INDEX_FILE", "/nonexistent/index")
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    assert!(said.contains("src/ is git repos/shared main (commit "), "{said}");
    assert!(!marker.exists(), "{said}");
}
