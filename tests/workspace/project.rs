//! Content of the project and of the script.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use tidemill::event::id::Digest;
use tidemill::workflow::manifest::Access;

use super::{Yard, contents, file, paths};
use crate::support::project::Project;

#[tokio::test]
async fn every_kind_is_placed_with_its_rights_and_recorded() {
    let yard = Yard::new().await;
    yard.project.put("tools/run.sh", "#!/bin/sh\n");
    yard.project.put("tools/data.txt", "data");
    let program = yard.project.path("tools/run.sh");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let filling = yard
        .fill(
            r#"["input/"] = mill.input(),
            ["a.txt"] = mill.text("text", { access = "rw", mode = "0600" }),
            ["b.bin"] = mill.bytes("\0\255", { mode = 755 }),
            ["c.txt"] = mill.file "tools/data.txt",
            ["tools/"] = mill.dir("tools", { access = "rw" }),
            ["tools/data.txt"] = mill.text "more exact","#,
        )
        .await
        .unwrap();
    assert_eq!(
        paths(&filling),
        ["a.txt", "b.bin", "c.txt", "input/input.csv", "tools/data.txt", "tools/run.sh"]
    );
    assert_eq!(contents(&filling)["tools/data.txt"], "more exact");
    let rights = |path| {
        let file = file(&filling, path);
        (file.access, file.mode.map(|mode| mode.to_string()))
    };
    assert_eq!(rights("a.txt"), (Access::ReadWrite, Some("0600".into())));
    assert_eq!(rights("b.bin"), (Access::ReadOnly, Some("0755".into())));
    assert_eq!(rights("c.txt"), (Access::ReadOnly, None));
    assert_eq!(rights("input/input.csv"), (Access::ReadOnly, None));
    assert_eq!(rights("tools/run.sh"), (Access::ReadWrite, Some("0755".into())));

    let shown: Vec<_> = filling
        .origins
        .iter()
        .map(|origin| {
            (origin.path.as_str(), origin.kind.as_str(), origin.from.as_deref(), origin.files, origin.bytes)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("a.txt", "text", None, 1, 4),
            ("b.bin", "bytes", None, 1, 2),
            ("c.txt", "file", Some("tools/data.txt"), 1, 4),
            ("input/", "input", None, 1, 4),
            ("tools/", "dir", Some("tools"), 2, 14),
            ("tools/data.txt", "text", None, 1, 10),
        ]
    );
    assert_eq!(filling.origins[1].sha256, Digest::of([0, 255]));
    let list = format!("{}  data.txt\n{}  run.sh\n", Digest::of("data"), Digest::of("#!/bin/sh\n"));
    assert_eq!(filling.origins[4].sha256, Digest::of(list));
}

#[tokio::test]
async fn a_folder_is_placed_without_what_is_ignored() {
    let yard = Yard::new().await;
    for name in ["a.md", "b.tmp", "keep.tmp", "cache/x", "deep/cache/y", "deep/z.md", "secret/key"] {
        yard.project.put(format!("folder/{name}"), name);
    }
    yard.project.put("folder/.tidemillignore", "# ours\nsecret/\n*.tmp\n");
    let manifest = r#"["in/"] = mill.dir("folder", { ignore = { "cache/", "!keep.tmp" } })"#;
    let filling = yard.fill(manifest).await.unwrap();
    assert_eq!(paths(&filling), ["in/a.md", "in/deep/z.md", "in/keep.tmp"]);
    yard.project.put("folder/.tidemillignore", "a{b\n");
    assert_eq!(yard.fill(manifest).await.unwrap_err().code(), "manifest::rules");
}

#[tokio::test]
async fn links_are_copies_of_what_is_inside_and_nothing_else() {
    let yard = Yard::new().await;
    yard.project.put("folder/real/a.md", "inside");
    yard.project.put("folder/hidden.env", "ignored");
    yard.project.put("beside.md", "beside");
    for (target, name) in [
        ("real/a.md", "copy.md"),
        ("real", "folder-link"),
        ("../beside.md", "out.md"),
        ("/etc/passwd", "absolute.md"),
        ("nowhere", "broken.md"),
        ("loop", "loop"),
        ("hidden.env", "alias.md"),
    ] {
        symlink(target, yard.project.path("folder").join(name)).unwrap();
    }
    let socket = std::os::unix::net::UnixListener::bind(yard.project.path("folder/socket")).unwrap();
    let filling = yard.fill(r#"["in/"] = mill.dir("folder", { ignore = { "*.env" } })"#).await.unwrap();
    drop(socket);
    assert_eq!(paths(&filling), ["in/copy.md", "in/real/a.md"]);
    assert_eq!(contents(&filling)["in/copy.md"], "inside");
    assert_eq!(filling.origins[0].links_left_out, 6);
}

#[tokio::test]
async fn a_path_that_becomes_a_link_out_of_the_project_is_refused() {
    let yard = Yard::new().await;
    yard.project.put("data/a", "x");
    let outside = Project::new().file("a", "not ours");
    for manifest in [r#"["x"] = mill.file "data/a""#, r#"["data/"] = mill.dir "data""#] {
        let swap = || {
            fs::rename(yard.project.path("data"), yard.project.path("gone")).unwrap();
            symlink(outside.root(), yard.project.path("data")).unwrap();
        };
        let refused = yard.fill_with(manifest, swap, &tidemill::sandbox::Silent).await.unwrap_err();
        assert_eq!(refused.code(), "manifest::link", "{}", refused.message());
        fs::remove_file(yard.project.path("data")).unwrap();
        fs::rename(yard.project.path("gone"), yard.project.path("data")).unwrap();
    }
}

#[tokio::test]
async fn entries_that_cannot_both_be_there_are_named() {
    let yard = Yard::new().await;
    yard.project.put("folder/a", "a file");
    yard.project.put("other/b", "b");
    let refused =
        yard.fill(r#"["in/"] = mill.dir "folder", ["in/a/"] = mill.dir "other""#).await.unwrap_err();
    assert_eq!(refused.message(), "`in/a` of the manifest is a file, and `in/a/b` lies under it");
}

#[tokio::test]
async fn what_cannot_fit_is_said_before_a_container_is_made() {
    let yard = Yard::new().await;
    yard.project.put("big/a", [0; 3000]);
    let filling = yard.fill(r#"["big/"] = mill.dir "big", ["x"] = mill.text "x""#).await.unwrap();
    filling.fits(3001).unwrap();
    let refused = filling.fits(3000).unwrap_err();
    assert_eq!(refused.code(), "sandbox::workspace_full");
    assert!(refused.advice().unwrap().ends_with("the largest entry is `big/`"), "{:?}", refused.advice());
}
