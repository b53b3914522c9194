//! The fences: who may import whom, which crate is used where, how large a file may be.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What every scene may import.
const SHARED: [&str; 6] = ["workflow", "event", "diagnostic", "clock", "config", "owner"];

/// The scenes. They do not import each other: `run` hands values along.
const SCENES: [&str; 9] =
    ["script", "trigger", "store", "sandbox", "agent", "model", "guard", "expect", "artifact"];

/// What a scene may import besides: `script` implements the traits of others, so that no scene knows Lua, and asks
/// `trigger` whether a schedule can ever fire; in `agent` a model, a sandbox and the guardrails meet, as traits.
const BESIDES: [(&str, &str); 7] = [
    ("script", "guard"),
    ("script", "expect"),
    ("script", "model"),
    ("script", "trigger"),
    ("agent", "model"),
    ("agent", "sandbox"),
    ("agent", "guard"),
];

/// Crates that are used in one place only.
const ONE_PLACE: [(&str, &str); 15] = [
    ("mlua", "script"),
    ("full_moon", "script"),
    ("bollard", "sandbox"),
    ("tar", "sandbox"),
    ("hyper", "sandbox"),
    ("h2", "sandbox"),
    ("prost", "sandbox"),
    ("rcgen", "sandbox"),
    ("rustls", "sandbox"),
    ("sqlx", "store"),
    ("notify", "trigger"),
    ("croner", "trigger"),
    ("multer", "trigger"),
    ("axum", "serve"),
    ("async_openai", "model"),
];

/// No source file is longer.
const LONGEST_FILE: usize = 800;

/// `main.rs` says nothing; `cli` says everything.
const LONGEST_MAIN: usize = 30;

struct File {
    path: PathBuf,
    /// The module right under `src/`: `sandbox` for `src/sandbox/docker/mod.rs` and for `src/sandbox.rs`.
    part: String,
    text: String,
}

fn sources() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("src/ is readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("source is text");
                let path = path.strip_prefix(&root).expect("below src/").to_owned();
                let first = path.iter().next().expect("a name").to_string_lossy();
                let part = first.trim_end_matches(".rs").to_owned();
                files.push(File { path, part, text });
            }
        }
    }
    assert!(files.len() > 30, "only {} files found", files.len());
    files
}

/// The code without comments; a `//` in a string cuts the rest of its line, which no fence needs.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The words that follow `start` in `code`, groups in braces included: `crate::{guard, event::id}` gives both.
fn after(code: &str, start: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for (at, _) in code.match_indices(start) {
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(group) => words.extend(heads(group)),
            None => words.extend(head(rest)),
        }
    }
    words
}

/// The first word of each member of a group, nested groups skipped.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut start) = (0_usize, Vec::new(), 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                heads.extend(head(group[start..at].trim_start()));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                heads.extend(head(group[start..at].trim_start()));
                start = at + 1;
            }
            _ => {}
        }
    }
    heads
}

fn head(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn scenes_do_not_import_each_other() {
    let mut wrong = Vec::new();
    for file in sources() {
        let scene = file.part.as_str();
        if !SCENES.contains(&scene) && !SHARED.contains(&scene) {
            continue;
        }
        for import in after(&code(&file.text), "crate::") {
            let import = import.as_str();
            let besides = BESIDES.contains(&(scene, import));
            let known = SCENES.contains(&import) || ["run", "cli", "report", "serve"].contains(&import);
            if known && import != scene && !besides {
                wrong.push(format!("src/{} imports crate::{import}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_has_its_place() {
    let placed: BTreeSet<&str> =
        SCENES.into_iter().chain(SHARED).chain(["run", "cli", "report", "serve", "lib", "main"]).collect();
    for file in sources() {
        assert!(
            placed.contains(file.part.as_str()),
            "src/{} is behind no fence; name its module in tests/architecture.rs",
            file.path.display()
        );
    }
}

#[test]
fn a_crate_that_belongs_to_one_scene_is_used_there_only() {
    let mut wrong = Vec::new();
    for file in sources() {
        let code = code(&file.text);
        for (name, scene) in ONE_PLACE {
            let path = format!("{name}::");
            let used = code.match_indices(&path).any(|(at, _)| {
                let before = code[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
            });
            if used && file.part != scene {
                wrong.push(format!("src/{} uses {name}", file.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_are_short() {
    for file in sources() {
        let lines = file.text.lines().count();
        let longest = if file.part == "main" { LONGEST_MAIN } else { LONGEST_FILE };
        assert!(lines <= longest, "src/{} has {lines} lines; at most {longest}", file.path.display());
    }
}

#[test]
fn every_file_says_what_it_is() {
    for file in sources() {
        assert!(
            file.text.starts_with("//! "),
            "src/{} does not begin with a `//!` line",
            file.path.display()
        );
    }
}

#[test]
fn the_reader_of_imports_sees_through_groups() {
    let seen =
        after("use crate::guard::Guard;\nuse crate::{event::{id, input}, model::Item, store};", "crate::");
    let words: Vec<&str> = seen.iter().map(String::as_str).collect();
    assert_eq!(words, ["event", "guard", "model", "store"]);
}
