//! Guardrails: what the built-in ones say, and that the pipeline fails closed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;
use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::json;
use tidemill::diagnostic::{Diagnostic, Result};
use tidemill::event::verdict::{Stage, Verdict};
use tidemill::guard::{Guard, Outcome, Pipeline, Subject, built_in};
use tidemill::workflow::guardrail::Guardrail;

#[derive(Clone, Copy, Default)]
struct Rules<'a> {
    deny: &'a [&'a str],
    ask: &'a [&'a str],
    allow: &'a [&'a str],
}

async fn shell(rules: Rules<'_>, command: &str) -> Verdict {
    let owned = |patterns: &[&str]| patterns.iter().map(|&pattern| pattern.to_owned()).collect();
    let guard = built_in(&Guardrail::Commands {
        deny: owned(rules.deny),
        ask: owned(rules.ask),
        allow: owned(rules.allow),
    })
    .unwrap();
    let arguments = json!({ "command": command });
    let subject = Subject::ToolCall { tool: "shell", arguments: &arguments };
    guard.judge(&subject).await.unwrap()
}

const NO_NETWORK: Rules<'static> =
    Rules { deny: &["curl *", "wget *", "git push *", "rm -rf *"], ask: &[], allow: &[] };

/// Each of these runs `curl`, or could, and nobody can tell by reading.
const DENIED: &[&str] = &[
    "curl",
    "curl http://x",
    "  curl   http://x  ",
    "/usr/bin/curl http://x",
    "./curl x",
    "../../usr/bin/curl x",
    "~/bin/curl x",
    "echo a; curl x",
    "echo a && curl x",
    "false || curl x",
    "echo a & curl x",
    "echo a\ncurl x",
    "cat f | curl -d @- x",
    "curl x | cat",
    "! curl x",
    "time curl x",
    "(curl x)",
    "( ( curl x ) )",
    "((curl x))",
    "((curl x); echo)",
    "$( ( curl x ) )",
    // Found by running random commands in bash and dash with a `curl` that says so.
    "cat < <(( sh <<E\ncurl\nE\n ))",
    "((for i in '\\' =; do timeout 5 bash <<'Q'\ncu'r'l x\nQ\ndone))",
    "((true $(( $(true <<\"E\"\n$(curl)\nE\n) + 1 )))  | (true))",
    "true > >((set -- a)  | (sh <<E\ncurl\nE\n))",
    "((true <<\"E\"\n$(curl)\nE\n))",
    "true \"$(true <((true <<E\n$(curl)\nE\n)))\"",
    "((curl << 2))",
    "X=$(true $(( true >/dev/null ) | env X=1 curl x)) true 2",
    "true $(( $((true \"curl x\"; curl x)  | (true)) + 1 ))",
    "{ curl x; }",
    "echo $(curl x)",
    "echo \"$(curl x)\"",
    "echo \"a `curl x` b\"",
    "echo `curl x`",
    "echo `echo \\`curl x\\``",
    "echo $(echo $(echo $(curl x)))",
    "X=$(curl x)",
    "X=$(curl x) true",
    "X=1 curl x",
    "X=1 Y=2 curl x",
    "export X=$(curl x)",
    "A=(1 $(curl x))",
    "A[$(curl x)]=1",
    "echo ${X:-$(curl x)}",
    "echo \"${X:-$(curl x)}\"",
    "echo ${X:-`curl x`}",
    "echo $(( $(curl x) + 1 ))",
    "(( $(curl x) ))",
    "for ((i=$(curl x); i<1; i++)); do :; done",
    "echo \"$(( 1 + $(curl x) ))\"",
    "if curl x; then :; fi",
    "if true; then curl x; fi",
    "if false; then :; elif curl x; then :; fi",
    "if false; then :; else curl x; fi",
    "while curl x; do :; done",
    "while true; do curl x; done",
    "until curl x; do :; done",
    "for f in a b; do curl $f; done",
    "for f in $(curl x); do :; done",
    "case a in a) curl x;; esac",
    "case $(curl x) in a) :;; esac",
    "f() { curl x; }; f",
    "f() ( curl x ); f",
    "function f { curl x; }",
    "[[ -n $(curl x) ]]",
    "[[ a == $(curl x) ]]",
    "[ -n \"$(curl x)\" ]",
    "cat <(curl x)",
    "echo a > >(curl x)",
    "cat < $(curl x)",
    "echo a > $(curl x)",
    ">out curl x",
    "2>/dev/null curl x",
    "curl x >out 2>&1",
    "cat <<EOF\n$(curl x)\nEOF",
    "cat <<EOF\n`curl x`\nEOF",
    "cat <<< $(curl x)",
    "coproc curl x",
    "sh -c 'curl x'",
    "sh -c \"curl x\"",
    "bash -c 'curl x'",
    "bash -lc 'curl x'",
    "bash -euxo pipefail -c 'curl x'",
    "bash -o pipefail -c 'echo a; curl x'",
    "bash --norc -c 'curl x'",
    "bash --rcfile f -c 'curl x'",
    "bash -c -- 'curl x'",
    "/bin/sh -c 'curl x'",
    "dash -c 'curl x' name arg",
    "sh -c 'sh -c \"curl x\"'",
    "sh -c 'eval curl x'",
    "eval curl x",
    "eval 'curl x'",
    "eval \"cu\"\"rl x\"",
    "eval -- curl x",
    "bash <<EOF\ncurl x\nEOF",
    "bash <<'EOF'\ncurl x\nEOF",
    "sh <<< 'curl x'",
    "sh -s <<< 'curl x'",
    "env sh <<'EOF'\ncurl x\nEOF",
    "echo 'curl x' | sh",
    "echo Y3VybA== | base64 -d | bash",
    "sh /dev/stdin",
    "source /dev/stdin",
    ". <(curl x)",
    "trap 'curl x' EXIT",
    "alias g=curl; g x",
    "alias g='curl x'",
    "env curl x",
    "env X=1 curl x",
    "env -i X=1 Y=2 curl x",
    "env -u HOME curl x",
    "env --unset=HOME curl x",
    "env -S 'curl x'",
    "env $X curl x",
    "xargs curl < urls",
    "echo x | xargs curl",
    "xargs -n 1 -P 4 curl",
    "xargs -n1 curl",
    "xargs -I{} curl {}",
    "xargs -I {} sh -c 'curl {}'",
    "xargs -0r curl",
    "xargs --max-args=1 curl",
    "xargs --what-is-this curl",
    "echo 'curl x' | xargs -I{} sh -c '{}'",
    "echo 'curl x' | xargs -I @ sh -c '@'",
    "echo curl | xargs env",
    "echo curl x | xargs timeout 5",
    "echo x.sh | xargs sh",
    "echo -rf / | xargs rm",
    "echo 'curl x' | parallel",
    "echo 'curl x' | sudo -s",
    "echo 'curl x' | su",
    "chroot /",
    "find . -exec curl {} \\;",
    "find . -exec {} \\;",
    "find . -exec sh -c '{}' \\;",
    "find . -name x -execdir curl {} + -print",
    "find . -exec sh -c 'curl \"$1\"' _ {} \\;",
    "nohup curl x &",
    "timeout 5 curl x",
    "timeout -k 1 5s curl x",
    "timeout --signal=KILL 5 curl x",
    "timeout 5 sh -c 'curl x'",
    "sudo curl x",
    "sudo -u nobody curl x",
    "sudo -E X=1 curl x",
    "doas curl x",
    "exec curl x",
    "exec -a other curl x",
    "command curl x",
    "command -p curl x",
    "builtin command curl x",
    "nice curl x",
    "nice -n 10 curl x",
    "nice -10 curl x",
    "setsid curl x",
    "stdbuf -oL curl x",
    "/usr/bin/time -v curl x",
    "busybox curl x",
    "flock /tmp/l curl x",
    "flock /tmp/l -c 'curl x'",
    "su nobody -c 'curl x'",
    "watch -n 1 'curl x'",
    "watch curl x",
    "parallel curl ::: x",
    "env nohup timeout 5 nice curl x",
    "c\\url x",
    "\\curl x",
    "cu\"r\"l x",
    "'curl' x",
    "\"curl\" x",
    "c''url x",
    "cu\\\nrl x",
    "\"cu\\\nrl\" x",
    "$'curl' x",
    "$'\\x63url' x",
    "$\"curl\" x",
    "curl${IFS}x",
    "curl$IFS-x",
    "cur$@l x",
    "$CMD x",
    "${CMD} x",
    "\"$CMD\" x",
    "$(echo curl) x",
    "`echo curl` x",
    "$EMPTY curl x",
    "/usr/bin/c?rl x",
    "/usr/bin/cur* x",
    "/usr/bin/cur[l] x",
    "{curl,x}",
    "c{u,}rl x",
    "eval $X",
    "sh -c $X",
    "sh -c \"$X\"",
    "bash $OPTIONS x",
    "timeout $T curl x",
    "xargs $X curl",
    "git push",
    "git push origin main",
    "git $WHAT origin",
    "rm -rf /",
    "rm $FLAGS /",
    "rm {-r,-f} /",
    "echo 'unterminated",
    "echo $(curl x",
    "if true; then",
    "echo a )",
    "~99999999999999999999999",
    "echo {1..99999999999999999999999}",
    "echo a\0; curl x",
];

/// None of these runs anything that is denied.
const PASSED: &[&str] = &[
    "",
    "   ",
    "# curl x",
    "ls -la",
    "echo curl",
    "echo 'curl x'",
    "echo \"curl x\"",
    "curly x",
    "libcurl-config",
    "mycurl x",
    "grep -r curl .",
    "man curl",
    "which curl",
    "command -v curl",
    "type curl",
    "X=curl",
    "X=1",
    "cat curl",
    "cat <<'EOF'\ncurl x\n$(curl x)\nEOF",
    "cat > fetch.md <<'EOF'\nuse `curl x` to fetch\nEOF",
    "cat <<EOF\ncurl $HOME\nEOF",
    "git status",
    "git pull",
    "git -C x log",
    "rm file",
    "rm -r dir",
    "rm *.tmp",
    "rm -f -r x",
    "[ -f x ] && echo yes",
    "[[ -f x ]] && echo yes",
    "test -f x",
    "python3 - <<'EOF'\nimport pandas as pd\nprint(pd.read_csv('x.csv').describe())\nEOF",
    "python3 -c 'print(1)'",
    "cd /workspace && python3 analyse.py > out.txt 2>&1; echo $?",
    "for f in *.csv; do wc -l \"$f\"; done",
    "while read -r line; do echo \"$line\"; done < x",
    "if [ -f a ]; then cat a; else echo none; fi",
    "f() { ls; }; f",
    "awk -F, '{ s += $2 } END { print s }' x.csv",
    "sed -n '1,5p' x | sort | uniq -c | head",
    "find . -name '*.py' -exec wc -l {} +",
    "find . -type f | xargs wc -l",
    "ls | xargs -I{} mv {} old/{}",
    "ls | xargs",
    "find . -exec sh -c 'wc -l \"$1\"' _ {} \\;",
    "env X=1 python3 x.py",
    "timeout 5 python3 x.py",
    "bash run.sh",
    "bash -c 'echo hello'",
    "sh -c 'ls | wc -l'",
    "bash <<'EOF'\necho hello\nEOF",
    "trap 'rm -f tmp' EXIT",
    "trap - EXIT",
    "exec 3>&1",
    "set -euo pipefail; ls",
    "echo $((1 + 2)) ${HOME:-x} \"${X%.csv}\"",
    "i=$((i + 1)); echo $(( ($i + ${n:-1}) * 2 )) $(( $(wc -l < x.csv) - 1 ))",
    "for ((i = 0; i < 3; i++)); do echo $i; done",
    "((i++)); ((n = i > 3 ? 1 : 0))",
    "echo a > \"$OUT\"",
    "echo {1..5}",
    "mkdir -p output && cp ~/x output/",
    "case \"$1\" in a|b) echo x;; *) echo y;; esac",
    "echo \u{e9}\u{1f600}",
];

#[tokio::test]
async fn a_denied_program_is_found_wherever_it_stands() {
    let mut wrong = String::new();
    for command in DENIED {
        let verdict = shell(NO_NETWORK, command).await;
        if !matches!(verdict, Verdict::Deny { .. }) {
            writeln!(wrong, "{command:?} -> {verdict:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "not denied:\n{wrong}");
}

#[tokio::test]
async fn what_is_harmless_passes() {
    let mut wrong = String::new();
    for command in PASSED {
        let verdict = shell(NO_NETWORK, command).await;
        if verdict != Verdict::Pass {
            writeln!(wrong, "{command:?} -> {verdict:?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "not passed:\n{wrong}");
}

#[tokio::test]
async fn the_reason_names_the_rule_and_the_command() {
    let Verdict::Deny { reason } = shell(NO_NETWORK, "cd x && env A=1 curl -s http://x").await else {
        panic!("passed");
    };
    assert_eq!(reason, "the rule `curl *` denies `curl -s http://x`");
    let Verdict::Deny { reason } = shell(NO_NETWORK, "$CMD http://x").await else {
        panic!("passed");
    };
    assert!(reason.contains("`$CMD http://x`") && reason.contains("only when it runs"), "{reason}");
}

#[tokio::test]
async fn with_allow_what_no_rule_names_is_denied() {
    let rules = Rules { allow: &["python3 *", "ls", "git log *", "timeout *"], ..Rules::default() };
    for command in [
        "python3 x.py",
        "ls",
        "ls -la | python3 -",
        "git log",
        "git log -p x",
        "python3 $FILE",
        "timeout 5 python3 x",
        "X=1",
    ] {
        assert_eq!(shell(rules, command).await, Verdict::Pass, "{command}");
    }
    for command in ["cat x", "git", "git push", "git $X", "ls; cat x", "timeout 5 cat x", "sh -c ls", "$X"] {
        assert!(matches!(shell(rules, command).await, Verdict::Deny { .. }), "{command}");
    }
    let Verdict::Deny { reason } = shell(rules, "cat x").await else {
        panic!("passed");
    };
    assert_eq!(reason, "no rule allows `cat x`; allowed are: python3 *, ls, git log *, timeout *");
}

#[tokio::test]
async fn the_strictest_rule_counts() {
    let rules = Rules { deny: &["pip install evil*"], ask: &["pip *"], allow: &["ls *"] };
    assert!(matches!(shell(rules, "pip install x").await, Verdict::Ask { .. }));
    assert!(matches!(shell(rules, "ls; pip list").await, Verdict::Ask { .. }));
    assert!(matches!(shell(rules, "pip install evil-1").await, Verdict::Deny { .. }));
    assert!(matches!(shell(rules, "pip list; pip install evil").await, Verdict::Deny { .. }));
    assert!(matches!(shell(rules, "pip list; cat x").await, Verdict::Deny { .. }));
    assert_eq!(shell(rules, "ls").await, Verdict::Pass);
}

#[tokio::test]
async fn patterns_are_matched_word_by_word() {
    let rule = |pattern: &'static str, command: &'static str| async move {
        let rules = Rules { deny: &[pattern], ..Rules::default() };
        shell(rules, command).await != Verdict::Pass
    };
    assert!(rule("curl", "curl x").await, "the program alone stands for any arguments");
    assert!(rule("git push", "git push").await);
    assert!(!rule("git push", "git push origin").await, "without `*` nothing may follow");
    assert!(rule("pip* install *", "pip3.11 install x").await);
    assert!(!rule("pip* install *", "pip3.11 list").await);
    assert!(rule("rm -r? *", "rm -rf x").await);
    assert!(rule("/opt/tool *", "/opt/tool x").await);
    assert!(!rule("/opt/tool *", "/usr/bin/tool x").await);
    assert!(rule("* --force", "anything --force").await);
}

#[tokio::test]
async fn a_rule_that_is_no_pattern_denies_everything() {
    let rules = Rules { deny: &["a[ *"], ..Rules::default() };
    let Verdict::Deny { reason } = shell(rules, "ls").await else {
        panic!("passed");
    };
    assert!(reason.contains("`a[ *`"), "{reason}");
}

#[tokio::test]
async fn without_rules_anything_passes_and_other_tools_are_not_judged() {
    assert_eq!(shell(Rules::default(), "curl $X").await, Verdict::Pass);
    let guard = built_in(&Guardrail::Commands {
        deny: vec!["curl *".to_owned()],
        ask: Vec::new(),
        allow: Vec::new(),
    })
    .unwrap();
    let arguments = json!({ "path": "x", "content": "curl x" });
    let tool = "write_file";
    let subject = Subject::ToolCall { tool, arguments: &arguments };
    assert_eq!(guard.judge(&subject).await.unwrap(), Verdict::Pass);
    let subject = Subject::ToolCall { tool: "shell", arguments: &arguments };
    assert!(matches!(guard.judge(&subject).await.unwrap(), Verdict::Deny { .. }));
}

/// The parser recurses, and takes exponential time on some texts that are no shell code.
#[tokio::test]
async fn a_text_made_to_break_the_parser_is_denied() {
    let deep = |open: &str, close: &str, count: usize| open.repeat(count) + "curl x" + &close.repeat(count);
    for command in [
        deep("(", ")", 2_900),
        deep("$(", ")", 2_900),
        deep("\"$(", ")\"", 1_400),
        deep("if a; then ", "; fi", 2_900),
        deep("f() { ", "; }", 700),
        deep("${a:-", "}", 700),
        deep("(", ")", 100_000),
        "a;".repeat(200_000),
        "\\`".repeat(4_000),
    ] {
        let verdict = shell(NO_NETWORK, &command).await;
        assert!(matches!(verdict, Verdict::Deny { .. }), "{command:.40}");
    }
}

/// Says what it is told to, and remembers what it was shown.
#[derive(Debug)]
struct Double {
    name: &'static str,
    stage: Stage,
    answer: Answer,
    seen: std::sync::Arc<Mutex<Vec<String>>>,
}

#[derive(Debug, Clone)]
enum Answer {
    Say(Verdict),
    Fail,
}

#[async_trait]
impl Guard for Double {
    fn name(&self) -> &str {
        self.name
    }

    fn watches(&self, stage: Stage) -> bool {
        stage == self.stage
    }

    async fn judge(&self, subject: &Subject<'_>) -> Result<Verdict> {
        let shown = match subject {
            Subject::Input { name, .. } => (*name).to_owned(),
            Subject::ToolCall { arguments, .. } => arguments.to_string(),
            Subject::Prompt { text } | Subject::Answer { text } => (*text).to_owned(),
            Subject::ToolOutput { output, .. } => (*output).to_owned(),
        };
        self.seen.lock().unwrap().push(format!("{} saw {shown}", self.name));
        match &self.answer {
            Answer::Say(verdict) => Ok(verdict.clone()),
            Answer::Fail => Err(Diagnostic::new("test::broken", "it fell over").help("pick it up")),
        }
    }
}

type Seen = std::sync::Arc<Mutex<Vec<String>>>;

fn pipeline(stage: Stage, answers: &[(&'static str, Answer)]) -> (Pipeline, Seen) {
    let seen = Seen::default();
    let guards = answers.iter().map(|(name, answer)| {
        Box::new(Double { name, stage, answer: answer.clone(), seen: Seen::clone(&seen) }) as Box<dyn Guard>
    });
    (Pipeline::new(guards.collect()), seen)
}

fn pass() -> Answer {
    Answer::Say(Verdict::Pass)
}

fn replace(with: &str) -> Answer {
    Answer::Say(Verdict::Replace { with: with.to_owned(), reason: "because".to_owned() })
}

fn denied_by(outcome: &Outcome, by: &str) -> String {
    let Outcome::Denied { guard, reason } = outcome else {
        panic!("not denied: {outcome:?}");
    };
    assert_eq!(guard, by);
    reason.clone()
}

const PROMPT: Subject<'static> = Subject::Prompt { text: "original" };

#[tokio::test]
async fn every_guard_of_the_stage_is_asked_in_order() {
    let (pipeline, seen) = pipeline(Stage::Prompt, &[("a", pass()), ("b", pass())]);
    let judgement = pipeline.judge(PROMPT).await;
    assert_eq!(judgement.outcome, Outcome::Pass);
    assert_eq!(judgement.verdicts, [("a".to_owned(), Verdict::Pass), ("b".to_owned(), Verdict::Pass)]);
    let other = Subject::Answer { text: "answer" };
    assert!(pipeline.judge(other).await.verdicts.is_empty(), "asked at another stage");
    assert_eq!(*seen.lock().unwrap(), ["a saw original", "b saw original"]);
}

#[tokio::test]
async fn the_first_denial_and_the_first_question_end_it() {
    let deny = Answer::Say(Verdict::Deny { reason: "no".to_owned() });
    let (denying, seen) = pipeline(Stage::Prompt, &[("a", pass()), ("b", deny), ("c", pass())]);
    let judgement = denying.judge(PROMPT).await;
    assert_eq!(denied_by(&judgement.outcome, "b"), "no");
    assert_eq!(judgement.verdicts.len(), 2);
    assert_eq!(seen.lock().unwrap().len(), 2);

    let ask = Answer::Say(Verdict::Ask { reason: "really".to_owned() });
    let (asking, _) = pipeline(Stage::Prompt, &[("a", ask), ("b", pass())]);
    let judgement = asking.judge(PROMPT).await;
    let reason = denied_by(&judgement.outcome, "a");
    assert_eq!(reason, "really: needs a person's approval, and approvals do not exist yet");
    assert!(matches!(judgement.verdicts[..], [(_, Verdict::Ask { .. })]));
}

#[tokio::test]
async fn an_error_denies_and_says_so() {
    let (failing, _) = pipeline(Stage::Prompt, &[("a", Answer::Fail), ("b", pass())]);
    let judgement = failing.judge(PROMPT).await;
    let reason = denied_by(&judgement.outcome, "a");
    assert!(reason.contains("it fell over"), "{reason}");
    let broken = judgement.broken.expect("the error that ends the run");
    assert_eq!(broken.advice(), Some("pick it up"));
    assert!(matches!(judgement.verdicts[..], [(_, Verdict::Deny { .. })]));
}

#[tokio::test]
async fn a_replacement_is_what_the_next_guard_sees_and_what_comes_out() {
    let arguments = json!({ "command": "original" });
    let subjects = [
        (PROMPT, "new"),
        (Subject::Answer { text: "original" }, "new"),
        (Subject::ToolOutput { tool: "shell", output: "original" }, "new"),
        (Subject::ToolCall { tool: "shell", arguments: &arguments }, r#"{"command":"new"}"#),
    ];
    for (subject, new) in subjects {
        let (pipeline, seen) = pipeline(subject.stage(), &[("a", replace(new)), ("b", pass())]);
        let judgement = pipeline.judge(subject).await;
        assert_eq!(judgement.outcome, Outcome::Replaced(new.to_owned()));
        assert_eq!(seen.lock().unwrap()[1], format!("b saw {new}"));
    }
}

#[tokio::test]
async fn a_replacement_that_cannot_be_used_denies() {
    let arguments = json!({});
    let call = Subject::ToolCall { tool: "shell", arguments: &arguments };
    for wrong in ["not json", "[1]", "\"text\"", ""] {
        let (pipeline, _) = pipeline(Stage::ToolCall, &[("a", replace(wrong)), ("b", pass())]);
        let reason = denied_by(&pipeline.judge(call).await.outcome, "a");
        assert!(reason.contains("arguments"), "{reason}");
    }
    let input = Subject::Input { name: "x.csv", size: 1, file: std::path::Path::new("/nowhere") };
    let (pipeline, _) = pipeline(Stage::Input, &[("a", replace("new"))]);
    let reason = denied_by(&pipeline.judge(input).await.outcome, "a");
    assert!(reason.contains("replace the input, which is not possible"), "{reason}");
}

#[test]
fn a_function_of_the_script_is_no_built_in() {
    let hook =
        Guardrail::Hook { on: Stage::Prompt, name: "mine".to_owned(), hook: tidemill::workflow::Hook(0) };
    assert!(built_in(&hook).is_none());
}
