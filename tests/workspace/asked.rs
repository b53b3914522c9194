//! Manifests that a function makes for a run, from what was published before it.

use tidemill::diagnostic::Diagnostic;

use super::artifacts::published;
use super::{Yard, contents, file, paths};

/// The manifest function with this body.
fn function(body: &str) -> String {
    format!("function(run) {body} end")
}

/// What is wrong with it.
async fn wrong(body: &str) -> Diagnostic {
    Yard::new().await.fill_by(&function(body)).await.unwrap_err()
}

#[tokio::test]
async fn a_function_declares_all_that_a_table_does() {
    let yard = Yard::new().await;
    yard.project.put("reference/tariff.md", "# Tariff\n");
    yard.project.put("policies/a.txt", "a");
    let body = r#"return {
      ["input/" .. run.input.stem .. ".csv"] = mill.input { access = "rw" },
      ["tariff.md"] = mill.file "reference/tariff.md",
      ["policies/"] = mill.dir "policies",
      ["run.txt"] = mill.text(run.id),
      ["raw"] = mill.bytes("\255"),
    }"#;
    let filling = yard.fill_by(&function(body)).await.unwrap();
    assert_eq!(paths(&filling), ["input/h7.csv", "policies/a.txt", "raw", "run.txt", "tariff.md"]);
    assert_eq!(contents(&filling)["run.txt"], "r1");
    let rights = file(&filling, "input/h7.csv").access;
    assert_eq!(rights, tidemill::workflow::manifest::Access::ReadWrite);
}

#[tokio::test]
async fn what_was_published_is_found_by_time_and_name() {
    let yard = Yard::new().await;
    published(&yard, "20261130-000001-aaaa", &[("output/a.csv", "old")]).await;
    published(&yard, "20261130-000002-bbbb", &[("output/a.csv", "x,y\n1,2\n"), ("output/sub/b.md", "b")])
        .await;
    let body = r#"
      local entries, seen = {}, {}
      for _, found in ipairs(mill.artifacts { workflow = "energy" }) do
        entries["in/" .. found.run_id .. "/" .. found.name] = found
        seen[#seen + 1] = ("%s %s %d %s"):format(found.name, found.path, found.size, found.published_at:date() ~= "")
      end
      for _, found in ipairs(mill.artifacts { workflow = "energy", name = "sub/b.md" }) do
        seen[#seen + 1] = found:text()
      end
      for _, found in ipairs(mill.artifacts { workflow = "energy", name = "output/a.csv", since = nil }) do
        for line in found:lines() do seen[#seen + 1] = line end
      end
      -- The run was queued in 1970: nothing was published before, and all of it after.
      seen[#seen + 1] = #mill.artifacts { workflow = "energy", since = "7d" }
      seen[#seen + 1] = #mill.artifacts { workflow = "energy", ["until"] = "7d" }
      seen[#seen + 1] = #mill.artifacts { workflow = "nobody" }
      entries["seen.txt"] = mill.text(table.concat(seen, "\n"))
      return entries"#;
    let filling = yard.fill_by(&function(body)).await.unwrap();
    let contents = contents(&filling);
    assert_eq!(contents["in/20261130-000001-aaaa/a.csv"], "old");
    assert_eq!(contents["in/20261130-000002-bbbb/sub/b.md"], "b");
    let seen: Vec<&str> = contents["seen.txt"].lines().collect();
    let wanted = [
        "a.csv output/a.csv 3 true",
        "a.csv output/a.csv 8 true",
        "sub/b.md output/sub/b.md 1 true",
        "b",
        "old",
        "x,y",
        "1,2",
        "3",
        "0",
        "0",
    ];
    assert_eq!(seen, wanted);
    let origin = filling.origins.iter().find(|origin| origin.path.ends_with("b.md")).unwrap();
    assert_eq!(origin.run.as_ref().unwrap().as_str(), "20261130-000002-bbbb");
}

#[tokio::test]
async fn what_was_changed_in_the_outbox_is_neither_placed_nor_read() {
    let yard = Yard::new().await;
    published(&yard, "20261130-000001-aaaa", &[("output/a.json", "{}")]).await;
    yard.project.put("outbox/energy/20261130-000001-aaaa/a.json", "{\"evil\":1}");
    let placed = r#"return { ["a"] = mill.artifacts({ workflow = "energy" })[1] }"#;
    assert_eq!(yard.fill_by(&function(placed)).await.unwrap_err().code(), "manifest::changed");
    let read = r#"
      local value, why = mill.artifacts({ workflow = "energy" })[1]:json()
      assert(value == nil)
      return { ["why.txt"] = mill.text(why) }"#;
    let filling = yard.fill_by(&function(read)).await.unwrap();
    assert!(contents(&filling)["why.txt"].contains("is not what was published"));
}

#[tokio::test]
async fn mistakes_are_those_of_a_table_with_their_line() {
    for (body, code, message) in [
        (
            r#"return { ["../x"] = mill.text "x" }"#,
            "script::bad_path",
            "the path `../x` leaves the workspace",
        ),
        (
            r#"return { ["a"] = mill.text "x", ["a/b"] = mill.text "x" }"#,
            "script::bad_path",
            "in the way of another",
        ),
        (
            r#"return { ["a/"] = mill.text "x" }"#,
            "script::bad_path",
            "gets a file, and is written as a folder",
        ),
        (r#"return { ["a"] = 5 }"#, "script::wrong_type", "`manifest[\"a\"]` is a number (5)"),
        ("return { mill.input() }", "script::wrong_type", "holds a mill.input without a name"),
        (r#"return { ["a"] = mill.text(5) }"#, "script::wrong_type", "`mill.text` is a number (5)"),
        (r#"return { ["a"] = mill.file "../x" }"#, "script::bad_path", "leaves the project's folder"),
        (
            r#"mill.artifacts { workflow = "energy", sinc = "7d" } return {}"#,
            "script::unknown_field",
            "no field `sinc`",
        ),
        (
            r#"mill.artifacts { since = "7d" } return {}"#,
            "script::missing_field",
            "needs the field `workflow`",
        ),
        (
            r#"mill.artifacts { workflow = "e", since = 5 } return {}"#,
            "script::wrong_type",
            "a time, or a duration",
        ),
        (
            r#"mill.artifacts { workflow = "e", since = "soon" } return {}"#,
            "script::bad_limit",
            "is not a duration",
        ),
        ("return 5", "hook::bad_manifest", "the manifest function returned a number (5)"),
        ("local x = 1", "hook::bad_manifest", "the manifest function returned nothing"),
        (r#"error "no"  "#, "hook::failed", "no"),
        ("while true do end", "hook::limit", "the script was stopped"),
        (
            r#"local t = {} for i = 1, 10001 do t["a" .. i] = 1 end return t"#,
            "hook::bad_manifest",
            "more than 10000",
        ),
    ] {
        let refused = wrong(body).await;
        assert_eq!(refused.code(), code, "{body}: {}", refused.message());
        assert!(refused.message().contains(message), "{body}: {}", refused.message());
        let place = refused.report().place.unwrap_or_else(|| panic!("no place for {body}"));
        assert_eq!((place.file.as_str(), place.line), ("workflows/yard.lua", 4), "{body}");
    }
    let several = wrong(r#"return { ["../x"] = mill.input(), ["b"] = 1 }"#).await;
    assert_eq!(several.message(), "the manifest of this run has 2 mistakes");
}

#[tokio::test]
async fn only_a_manifest_function_asks_for_what_was_published() {
    let yard = Yard::new().await;
    let declared = yard.fill(r#"["a"] = mill.artifacts { workflow = "energy" }"#).await.unwrap_err();
    assert!(declared.advice().is_none_or(|advice| advice.contains("manifest = function(run)")));
    assert_eq!(declared.code(), "script::invalid", "and the list is no content");
}
