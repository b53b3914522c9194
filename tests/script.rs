//! The Lua host: what a script declares, what its functions may do, and how it is stopped.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tidemill::config::Project;
use tidemill::diagnostic::Diagnostic;
use tidemill::event::id::{Digest, RunId};
use tidemill::event::input::RawPath;
use tidemill::event::trigger::{Params, Trigger};
use tidemill::event::verdict::{Stage, Verdict};
use tidemill::guard::Subject;
use tidemill::report::screen::render;
use tidemill::script::api::{MODULES, docs};
use tidemill::script::{self, Loaded};
use tidemill::workflow::agent::Prompt;
use tidemill::workflow::expectation::Expect;
use tidemill::workflow::guardrail::Guardrail;
use tidemill::workflow::path::WorkspacePath;
use tidemill::workflow::view::{Artifact, RunView, Snapshot};

const ENERGY: &str = include_str!("diagnostics/good/energy.lua");

/// The start and the end of a script around the part that a test is about.
fn workflow(part: &str) -> String {
    format!(
        "local mill = require \"tidemill\"\nlocal expect = require \"tidemill.expect\"\nlocal guard = require \"tidemill.guard\"\n\
         return mill.workflow {{\n  name = \"w\",\n  image = mill.image \"alpine:3\",\n  agent = {{ model = \"m\" }},\n{part}\n}}\n"
    )
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write(
            "tidemill.toml",
            "[models.\"gpt-5.4\"]\nprovider = \"openai\"\nprice = { input = 1.0, output = 4.0 }\n",
        );
        folder.write("images/python-data/Dockerfile", "FROM python:3.12-slim\n");
        folder.write("reference/tariff.md", "# Tariff\n");
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn project(&self) -> Project {
        Project::open(self.0.path()).unwrap()
    }

    async fn load(&self, script: &str) -> Result<Loaded, Diagnostic> {
        self.write("workflows/w.lua", script);
        script::load(&self.project(), "workflows/w.lua").await
    }

    async fn wrong(&self, script: &str) -> Diagnostic {
        self.load(script).await.unwrap_err()
    }

    fn artifact(&self, path: &str, text: &str) -> Artifact {
        self.write(&format!("kept/{path}"), text);
        Artifact {
            path: WorkspacePath::parse(path).unwrap(),
            file: self.0.path().join("kept").join(path),
            size: text.len() as u64,
            digest: Digest::of(text),
        }
    }

    fn run(&self, name: &str, text: &str) -> RunView {
        self.write("snapshot", text);
        RunView {
            id: RunId::parse("20261130-231805-k3xq").unwrap(),
            workflow: "w".into(),
            trigger: Trigger::Drop,
            params: Params::new(),
            queued_at: jiff::Timestamp::UNIX_EPOCH,
            fired: None,
            attempt: 0,
            inputs: vec![Snapshot {
                path: RawPath::new(Path::new(name)),
                file: self.0.path().join("snapshot"),
                size: text.len() as u64,
                digest: Digest::of(text),
            }],
        }
    }
}

fn snapshot(name: &str, mistake: &Diagnostic) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("diagnostics/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, render(mistake, false)));
}

async fn prompt(folder: &Folder, script: &str, run: RunView) -> Result<String, Diagnostic> {
    let loaded = folder.load(script).await?;
    let Prompt::Hook(hook) = loaded.workflow.prompt else { unreachable!("the prompt is a function") };
    loaded.script.prompt(hook, Arc::new(run)).await
}

#[tokio::test]
async fn the_example_is_read_unchanged() {
    let folder = Folder::new();
    let loaded = match folder.load(ENERGY).await {
        Ok(loaded) => loaded,
        Err(mistake) => panic!("{}", render(&mistake, false)),
    };
    let workflow = &loaded.workflow;
    assert_eq!(workflow.name, "energy-anomalies");
    assert_eq!(workflow.file, "workflows/w.lua");
    assert_eq!(workflow.triggers[0].glob, "energy/*.csv");
    assert_eq!(workflow.image.reference(), "images/python-data");
    assert_eq!(workflow.manifest.entries().len(), 2);
    assert_eq!(workflow.agent.max_turns, 25);
    assert_eq!(workflow.limits.wall.as_secs(), 600);
    assert_eq!(workflow.repair.attempts, 2);
    assert_eq!(workflow.outputs.len(), 3);
    assert!(matches!(workflow.guardrails[0], Guardrail::InputSize { max: 20_000_000 }));
    let Expect::Csv(csv) = &workflow.outputs[0].expect else { panic!("a csv comes first") };
    assert_eq!(csv.unique, ["timestamp"]);
    assert_eq!(loaded.bundle.digest(), workflow.digest);
    assert!(loaded.bundle.files.contains_key("reference/tariff.md"));
}

#[tokio::test]
async fn the_examples_validate_finds_what_is_not_in_the_input() {
    let folder = Folder::new();
    let loaded = folder.load(ENERGY).await.unwrap();
    let validate = loaded.script.validate(loaded.workflow.validate.unwrap());
    let run = folder.run("b.csv", "timestamp,energy_kwh\n2026-01-01,1\n");
    let good = folder.artifact("output/anomalies.csv", "timestamp,energy_kwh\n2026-01-01,1\n");
    assert_eq!(validate.validate(&[good], &run).await.unwrap(), []);
    let bad = folder.artifact("output/anomalies.csv", "timestamp,energy_kwh\n2027-01-01,1\n");
    let findings = validate.validate(&[bad], &run).await.unwrap();
    assert_eq!(findings[0].message, "anomaly at 2027-01-01 is not in the input");
}

#[tokio::test]
async fn a_pinned_run_reads_only_its_bundle() {
    let folder = Folder::new();
    folder.write("workflows/lib/words.lua", "return { ask = 'count the rows' }");
    let script = workflow("  prompt = require('lib.words').ask,");
    let loaded = folder.load(&script).await.unwrap();
    folder.write("workflows/lib/words.lua", "return { ask = 'something else' }");
    folder.write("workflows/w.lua", "error('changed')");
    let pinned = script::load_bundle(&folder.project(), &loaded.bundle).await.unwrap();
    assert_eq!(pinned.workflow, loaded.workflow);
    assert_eq!(pinned.workflow.prompt, Prompt::Text("count the rows".into()));
}

#[tokio::test]
async fn a_file_of_a_batch_is_found_by_its_name_or_its_path() {
    let folder = Folder::new();
    let batch = |text: &str| {
        let mut run = folder.run("contracts/42/meta.json", "{\"kind\": \"lease\"}");
        let first = run.inputs[0].clone();
        for path in ["contracts/42/a.txt", "contracts/42/more/a.txt", "contracts/42/more/b.txt"] {
            run.inputs.push(Snapshot {
                path: RawPath::new(Path::new(path)),
                size: path.len() as u64,
                ..first.clone()
            });
        }
        run.inputs.sort_by(|left, right| left.path.cmp(&right.path));
        (workflow(&format!("  prompt = function(run) return tostring({text}) end,")), run)
    };
    for (text, told) in [
        ("run.input['meta.json']:json().kind", "lease"),
        ("run.input['b.txt'].size", "23"),
        ("run.input['a.txt'].size", "18"),
        ("run.input['more/a.txt'].size", "23"),
        ("run.input['c.txt']", "nil"),
        ("#run.inputs .. run.inputs[2].name", "4meta.json"),
        ("run.input.name", "a.txt"),
    ] {
        let (script, run) = batch(text);
        assert_eq!(prompt(&folder, &script, run).await.unwrap(), told, "{text}");
    }
    let (script, run) = batch("run.input.naem");
    let mistake = prompt(&folder, &script, run).await.unwrap_err();
    assert!(mistake.advice().unwrap_or_default().contains("`name`"), "{mistake:?}");
}

#[tokio::test]
async fn a_prompt_function_sees_the_run_and_reads_files() {
    let folder = Folder::new();
    let script = workflow(
        "  prompt = function(run)\n    local tariff = mill.file 'reference/tariff.md'\n    return run.input.name .. '|' .. run.input.stem .. '|' .. run.input.ext .. '|' .. run.input:json().message .. '|' .. run.attempt\n  end,",
    );
    let run = folder.run("inbox/Refund 1.JSON", "{\"message\": \"hello\"}");
    assert_eq!(prompt(&folder, &script, run).await.unwrap(), "Refund 1.JSON|Refund 1|json|hello|0");
    let script = "local tariff = require('tidemill').file 'reference/tariff.md'\n".to_owned()
        + &workflow("  prompt = function(run) return 'by this tariff:\\n' .. tariff:text() end,");
    let run = folder.run("a.txt", "");
    assert_eq!(prompt(&folder, &script, run).await.unwrap(), "by this tariff:\n# Tariff\n");
}

#[tokio::test]
async fn expected_failures_of_reading_are_values_and_broken_rows_are_raised() {
    let folder = Folder::new();
    let script = workflow(
        "  prompt = function(run) local doc, why = run.input:json() return tostring(doc) .. ': ' .. why end,",
    );
    let said = prompt(&folder, &script, folder.run("x.json", "{oops")).await.unwrap();
    assert!(said.starts_with("nil: `x.json` is not JSON"), "{said}");
    let script = workflow("  prompt = function(run) for row in run.input:csv() do end return 'x' end,");
    let mistake = prompt(&folder, &script, folder.run("x.csv", "a,b\n1,2,3\n")).await.unwrap_err();
    assert_eq!(mistake.code(), "hook::misuse");
    assert_eq!(mistake.message(), "`x.csv` cannot be read as CSV: row 1 has 3 cells and the header 2");
}

#[tokio::test]
async fn a_row_without_an_end_is_refused() {
    let folder = Folder::new();
    let script = workflow("  prompt = function(run) for row in run.input:csv() do end return 'x' end,");
    let open = format!("a,b\n1,\"{}", "x,y\n".repeat(300_000));
    let mistake = prompt(&folder, &script, folder.run("x.csv", &open)).await.unwrap_err();
    assert_eq!(
        mistake.message(),
        "`x.csv` cannot be read as CSV: a row is longer than 1 MiB; is a quote not closed?"
    );
    let many = format!("a,b\n{}", "1,2\n".repeat(20_000));
    assert_eq!(prompt(&folder, &script, folder.run("x.csv", &many)).await.unwrap(), "x");
    assert_eq!(prompt(&folder, &script, folder.run("x.csv", "")).await.unwrap(), "x");
}

#[tokio::test]
async fn a_failing_hook_shows_its_line_and_the_way_to_it() {
    let folder = Folder::new();
    let script = "local function inner(run) return run.input.rows.x end\n".to_owned()
        + &workflow("  prompt = function(run)\n    local text = inner(run)\n    return text\n  end,");
    let mistake = prompt(&folder, &script, folder.run("x.csv", "a\n")).await.unwrap_err();
    snapshot("hook_misuse", &mistake);
    let script = workflow("  prompt = function(run)\n    local t = nil\n    return t.field\n  end,");
    let mistake = prompt(&folder, &script, folder.run("x.csv", "a\n")).await.unwrap_err();
    snapshot("hook_failed", &mistake);
}

#[tokio::test]
async fn a_guardrail_function_judges_and_nonsense_is_an_error() {
    let folder = Folder::new();
    let script = workflow(
        "  prompt = 'x',\n  guardrails = {\n    { on = 'tool_call', name = 'no-rm', check = function(call, run)\n      if call.arguments.command == 'rm' then return guard.deny('no %s in %s', call.tool, run.workflow) end\n      if call.arguments.command == 'odd' then return true end\n      if call.arguments.command == 'boom' then error({ code = 1 }) end\n    end },\n  },",
    );
    let loaded = folder.load(&script).await.unwrap();
    let Guardrail::Hook { on, name, hook } = &loaded.workflow.guardrails[0] else { panic!("a hook") };
    let guard = loaded.script.guard(*on, name, *hook, Arc::new(folder.run("a", "")));
    assert!(guard.watches(Stage::ToolCall) && !guard.watches(Stage::Answer));
    let ask = async |command: &str| {
        let arguments = serde_json::json!({ "command": command });
        let subject = Subject::ToolCall { tool: "shell", arguments: &arguments };
        guard.judge(&subject).await
    };
    assert_eq!(ask("ls").await.unwrap(), Verdict::Pass);
    assert_eq!(ask("rm").await.unwrap(), Verdict::Deny { reason: "no shell in w".into() });
    assert_eq!(ask("odd").await.unwrap_err().code(), "hook::bad_verdict");
    let raised = ask("boom").await.unwrap_err();
    assert_eq!(raised.code(), "hook::failed");
    assert_eq!(raised.message(), "the script raised a table as an error");
    assert!(raised.report().place.is_some());
}

#[tokio::test]
async fn a_secret_is_no_text() {
    let folder = Folder::new();
    let start = "local mill = require 'tidemill'\nlocal token = mill.secret 'SHOP_TOKEN'\n";
    for part in [
        "prompt = token",
        "prompt = 'use ' .. token",
        "prompt = tostring(token)",
        "agent = { model = 'm', instructions = token }",
    ] {
        let mistake = folder.wrong(&format!("{start}{}", workflow(&format!("  {part},")))).await;
        let text = render(&mistake, false);
        assert!(text.contains("secret"), "{part}: {text}");
    }
}

#[tokio::test]
async fn only_a_small_standard_library_is_there() {
    let folder = Folder::new();
    for name in ["io", "debug", "package", "load", "loadfile", "dofile", "print", "collectgarbage"] {
        let mistake = folder.wrong(&format!("local x = {name}\nreturn x")).await;
        assert_eq!(mistake.code(), "script::misuse", "{name}");
        assert!(mistake.message().starts_with(&format!("`{name}` is not there")), "{name}");
    }
    for name in ["os.execute", "os.getenv", "os.remove", "os.exit", "string.dump"] {
        let script = format!("assert({name} == nil) return {}", "nil");
        assert_eq!(folder.wrong(&script).await.code(), "script::no_workflow", "{name}");
    }
    let mistake = folder.wrong("setmetatable({}, { __gc = function() while true do end end })").await;
    assert!(mistake.message().contains("__gc"));
}

#[tokio::test]
async fn modules_cannot_be_changed_or_escaped() {
    let folder = Folder::new();
    folder.write("secret.lua", "return {}");
    for name in ["../secret", "..secret", "/etc/passwd", "tidemil", "tidemill.gard"] {
        assert_eq!(folder.wrong(&format!("require '{name}'")).await.code(), "script::misuse", "{name}");
    }
    let changed = folder.wrong("require('tidemill').workflow = nil").await;
    assert_eq!(changed.message(), "`tidemill` cannot be changed");
    let spelled = folder.wrong("local mill = require 'tidemill'\nreturn mill.xyz {}").await;
    assert_eq!(spelled.code(), "script::unknown_name");
    let computed = folder.wrong("return require('tidemill')['work' .. 'flo']").await;
    assert_eq!(computed.advice(), Some("did you mean `workflow`?"));
    folder.write("workflows/a.lua", "return require 'b'");
    folder.write("workflows/b.lua", "return require 'a'");
    let circle = folder.wrong("require 'a'").await;
    assert_eq!(
        circle.message(),
        "files require each other in a circle: workflows/w.lua -> workflows/a.lua -> workflows/b.lua -> workflows/a.lua"
    );
}

/// Each of these would run for ever or eat all memory.
#[tokio::test]
async fn endless_scripts_are_stopped_whatever_they_catch() {
    let folder = Folder::new();
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() end) end",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local function f() return f() end f()",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local x <close> = setmetatable({}, { __close = function() while true do end end })",
        "for _ in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end",
        "local s = 'x' while true do s = s .. s end",
        "while true do pcall(function() local s = 'x' while true do s = s .. s end end) end",
        "local t = {} while true do t[#t + 1] = ('x'):rep(100000) .. #t end",
        "string.rep('x', 1 << 40)",
        "pcall(string.rep, 'x', 1 << 30)",
    ] {
        let mistake = folder.wrong(script).await;
        // Not left behind on its thread, but stopped.
        assert!(!mistake.message().contains("did not load in time"), "{script}");
        let code = mistake.code();
        assert!(
            code == "script::limit" || (code == "script::runtime" && script.starts_with("string.rep")),
            "{script}: {code} {mistake}"
        );
    }
}

#[tokio::test]
async fn an_endless_hook_ends_its_call_and_the_next_one_still_works() {
    let folder = Folder::new();
    let script = workflow(
        "  prompt = function(run) if run.input.size > 0 then while true do pcall(function() while true do end end) end end return 'fine' end,",
    );
    let loaded = folder.load(&script).await.unwrap();
    let Prompt::Hook(hook) = loaded.workflow.prompt else { panic!("the prompt is a function") };
    let endless = loaded.script.prompt(hook, Arc::new(folder.run("a", "x"))).await.unwrap_err();
    assert_eq!(endless.code(), "hook::limit");
    assert_eq!(loaded.script.prompt(hook, Arc::new(folder.run("a", ""))).await.unwrap(), "fine");
}

#[tokio::test]
async fn a_workflow_is_found_by_name() {
    let folder = Folder::new();
    folder.write("workflows/energy.lua", ENERGY);
    folder.write("workflows/shop.lua", "return {}");
    let project = folder.project();
    assert_eq!(
        script::find(&project, "energy-anomalies").await.unwrap().workflow.file,
        "workflows/energy.lua"
    );
    let unknown = script::find(&project, "energy-anomaly").await.unwrap_err();
    assert_eq!(unknown.code(), "usage::unknown_workflow");
    assert_eq!(unknown.advice(), Some("did you mean `energy-anomalies`?"));
}

#[tokio::test]
async fn a_scripted_model_is_a_list_or_a_function() {
    let folder = Folder::new();
    folder.write("models/list.lua", "local test = require 'tidemill.test'\nreturn test.script { test.shell 'ls', { test.say 'both', test.call('read_file', { path = 'a' }) }, test.say(test.read 'reference/tariff.md') }");
    let play = script::load_model(&folder.project(), "models/list.lua").await.unwrap();
    let first = play.step(1, &[]).await.unwrap().unwrap();
    assert_eq!(first.calls, [("shell".to_owned(), "{\"command\":\"ls\"}".to_owned())]);
    let second = play.step(2, &[]).await.unwrap().unwrap();
    assert_eq!((second.text.as_str(), second.calls.len()), ("both", 1));
    assert_eq!(play.step(3, &[]).await.unwrap().unwrap().text, "# Tariff\n");
    assert_eq!(play.step(4, &[]).await.unwrap(), None);
    folder.write("models/f.lua", "local test = require 'tidemill.test'\nreturn function(turn, items) if turn == 1 then return test.say(items[1].text) end end");
    let play = script::load_model(&folder.project(), "models/f.lua").await.unwrap();
    let items = [tidemill::model::Item::User { text: "hello".into() }];
    assert_eq!(play.step(1, &items).await.unwrap().unwrap().text, "hello");
    assert_eq!(play.step(2, &items).await.unwrap(), None);
    folder.write("models/none.lua", "return 5");
    let none = script::load_model(&folder.project(), "models/none.lua").await.unwrap_err();
    assert_eq!(none.code(), "script::no_model");
}

#[tokio::test]
async fn sources_of_any_shape_are_read_or_refused() {
    let folder = Folder::new();
    for terms in [30_000, 100_000] {
        let long = format!("local x = 1{}\nreturn x", "+1".repeat(terms));
        assert_eq!(folder.wrong(&long).await.code(), "script::no_workflow", "{terms}");
    }
    let deep = format!("return {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(folder.wrong(&deep).await.code(), "script::runtime");
    let endless = "local function f() return 1 + f() end return f()";
    assert_eq!(folder.wrong(endless).await.code(), "script::limit");
    assert_eq!(folder.wrong("\u{1b}Lua").await.code(), "script::syntax");
    assert_eq!(folder.wrong("").await.code(), "script::no_workflow");
    std::fs::write(folder.0.path().join("workflows/w.lua"), b"return '\xff'").unwrap();
    let binary = script::load(&folder.project(), "workflows/w.lua").await.unwrap_err();
    assert_eq!(binary.message(), "workflows/w.lua is not UTF-8 text");
    let huge = "-".repeat(2 << 20);
    assert_eq!(folder.wrong(&huge).await.message(), "workflows/w.lua is larger than 1 MiB");
}

/// The table of entries, the live module, the editor's stub and the docs page say the same.
/// `UPDATE_DOCS=1` writes stubs and page anew.
#[tokio::test]
async fn modules_stubs_and_docs_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![
        ("docs/lua-api.md".to_owned(), docs::page()),
        ("stdlib/types/tidemill.objects.lua".to_owned(), docs::objects()),
    ];
    for module in MODULES {
        files.push((format!("stdlib/types/{}", docs::stub_name(module)), docs::stub(module)));
    }
    for (name, text) in files {
        let path = root.join(&name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "{name} is not what the tables say; run UPDATE_DOCS=1 cargo test --test all script"
        );
        if path.extension().is_some_and(|extension| extension == "lua") {
            assert!(full_moon::parse(&text).is_ok(), "{name} is no Lua");
        }
    }
    let folder = Folder::new();
    for module in MODULES {
        let mut names: Vec<&str> = module.entries.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        let live = format!(
            "local names = {{}} for name in pairs(require '{}') do names[#names + 1] = name end table.sort(names) error(table.concat(names, ' '), 0)",
            module.name
        );
        assert_eq!(folder.wrong(&live).await.message(), names.join(" "), "{}", module.name);
    }
}

/// Every type that a signature or a field names is a class of a stub or a type of Lua's.
#[test]
fn every_type_in_the_stubs_is_declared() {
    let mut text = docs::objects();
    for module in MODULES {
        text.push_str(&docs::stub(module));
    }
    let named = regex::Regex::new(r"tidemill\.[A-Z][A-Za-z]*").unwrap();
    for name in named.find_iter(&text) {
        let declared = format!("---@class {}\n", name.as_str());
        assert!(text.contains(&declared), "{} is not declared", name.as_str());
    }
}
