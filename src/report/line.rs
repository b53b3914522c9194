//! One event as a person reads it.

use std::fmt::Write as _;
use std::time::Duration;

use crate::event::network::Use;
use crate::event::origin::{Kind, Origin};
use crate::event::state::RunState;
use crate::event::usage::Usage;
use crate::event::verdict::Verdict;
use crate::event::{Event, ToolCall, ToolOutcome, What};
use crate::workflow::units::{show_duration, show_size};

/// Lines of a text that are shown while a run works; the log has all of them.
const SHOWN_LINES: usize = 12;

/// How much of long texts is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The first lines, for watching.
    Short,
    /// All that stands in the event.
    Full,
}

/// The event in words, or nothing where it says nothing new to a person.
pub fn describe(event: &Event, detail: Detail) -> Option<String> {
    let text = match &event.what {
        What::StateEntered { state: RunState::Queued, reason: None }
        | What::PromptReady { .. }
        | What::ModelRequested { .. }
        | What::ModelCut { usage: Usage { input_tokens: 0, output_tokens: 0, .. }, .. }
        | What::Checkpointed { .. }
        | What::GuardrailChecked { verdict: Verdict::Pass, .. } => return None,
        What::Postponed { again } => format!("waits, and is {again}"),
        What::RunQueued { workflow, trigger, inputs, model, retry_of, .. } => {
            let inputs: Vec<_> = inputs
                .iter()
                .map(|input| format!("{} ({})", input.path.display(), show_size(input.size)))
                .collect();
            let on = if inputs.is_empty() { String::new() } else { format!(" on {}", inputs.join(", ")) };
            let over = retry_of.as_ref().map(|run| format!(", {run} once more")).unwrap_or_default();
            format!("run {} of {workflow}{on}, started by {trigger}, with model {model}{over}", event.run)
        }
        What::StateEntered { state, reason } => match reason {
            Some(reason) => format!("{state}: {reason}"),
            None => state.to_string(),
        },
        // Without a container there is none.
        What::ImageReady { digest, .. } if digest.is_empty() => return None,
        What::ImageReady { reference, digest, substituted_base } => {
            let base = substituted_base.as_ref().map(|base| format!(", on {base}")).unwrap_or_default();
            format!("image {reference} ({}){base}", digest.chars().take(19).collect::<String>())
        }
        What::SandboxStarted { isolation, .. } if isolation.engine == "none" => {
            "no sandbox: files, and no commands".to_owned()
        }
        What::SandboxStarted { container, isolation } => format!(
            "sandbox {} as {}, network {}, {} memory, {} processes{}",
            container.chars().take(12).collect::<String>(),
            isolation.user,
            isolation.network,
            show_size(isolation.memory_bytes),
            isolation.pids,
            if isolation.warm.is_some() { ", stood ready" } else { "" }
        ),
        What::WorkspaceFilled { files, bytes, entries } => {
            let what = if *files == 1 { "file" } else { "files" };
            let mut words = format!("placed {files} {what} ({})", show_size(*bytes));
            // What lies in the project is no news while a run works.
            let elsewhere = |entry: &&Origin| matches!(entry.kind, Kind::Url | Kind::Git | Kind::Artifacts);
            for entry in entries.iter().filter(|entry| detail == Detail::Full || elsewhere(entry)) {
                let _ = write!(words, "\n  {}", origin_words(entry));
            }
            words
        }
        What::NetworkDecided { contact } => match &contact.refused {
            None => format!("network: {contact} allowed"),
            Some(why) => format!("network: {contact} refused, {why}"),
        },
        What::NetworkEnded { used } => network_words(used),
        What::NetworkLearned { allow } => learned_words(allow),
        What::GuardrailChecked { stage, guard, verdict } => {
            format!("guardrail {guard} on {stage}: {}", verdict_words(verdict))
        }
        What::ModelRetried { turn, reason, wait_ms } => {
            format!(
                "turn {turn}: {reason}; trying again in {}",
                show_duration(Duration::from_millis(*wait_ms))
            )
        }
        What::ModelCut { turn, usage, .. } => {
            format!("turn {turn}: the answer was cut; about {} tokens are booked", usage.total())
        }
        What::ModelResponded { turn, text, calls, usage, cost, millis, .. } => {
            let cost =
                cost.filter(|cost| cost.usd() > 0.0).map(|cost| format!(", {cost}")).unwrap_or_default();
            let tokens = match usage.total() {
                0 => String::new(),
                _ => format!(", {} tokens in, {} out", usage.input_tokens, usage.output_tokens),
            };
            let took = show_duration(Duration::from_millis(*millis));
            let mut words = format!("turn {turn} ({took}{tokens}{cost})");
            if !text.preview().trim().is_empty() {
                let _ = write!(words, "\n{}", quote(text.preview().trim(), detail));
            }
            if calls.len() > 1 {
                let _ = write!(words, "\n  asks for {} tool calls", calls.len());
            }
            words
        }
        What::Said { text, .. } => format!("told the model\n{}", quote(text.preview(), detail)),
        What::Resumed { from, how } => format!("interrupted while {from}; goes on {how}"),
        What::ToolStarted { call, .. } => format!("{}\n{}", call.tool, quote(&call_words(call), detail)),
        What::ToolEnded { output, outcome, millis, .. } => {
            let outcome = match outcome {
                ToolOutcome::Done => "done",
                ToolOutcome::Failed => "failed",
                ToolOutcome::Denied => "denied",
                ToolOutcome::Withheld => "withheld",
                ToolOutcome::TimedOut => "timed out",
                ToolOutcome::Stopped => "stopped",
                ToolOutcome::Interrupted => "interrupted",
                ToolOutcome::NotCarriedOut => "not carried out",
            };
            let took = show_duration(Duration::from_millis(*millis));
            format!("{outcome} in {took}\n{}", quote(output.preview().trim_end(), detail))
        }
        What::LimitReached { reason, .. } => format!("limit: {reason}"),
        What::ArtifactCollected { path, size, digest } => {
            format!("took {path} out ({}, sha256 {})", show_size(*size), digest.short())
        }
        What::ChecksEnded { findings, .. } if findings.is_empty() => "checks passed".to_owned(),
        What::ChecksEnded { findings, .. } => {
            let mut words = format!("checks found {}", count(findings.len(), "mistake"));
            for finding in findings {
                let _ = write!(words, "\n  - {finding}");
            }
            words
        }
        What::Published { folder, artifacts } => {
            format!("published {} in {folder}", count(artifacts.len(), "artifact"))
        }
        What::KeptAside { folder } => format!("files kept in {folder}"),
        What::Warned { report } => format!("warning: {} [{}]", report.message, report.code),
        What::RunEnded { state, report, usage, cost } => {
            let cost =
                cost.filter(|cost| cost.usd() > 0.0).map(|cost| format!(", {cost}")).unwrap_or_default();
            let tokens =
                if usage.total() == 0 { String::new() } else { format!(", {} tokens", usage.total()) };
            let why = report.as_ref().map(|report| format!(": {}", report.message)).unwrap_or_default();
            format!("{state}{why}{tokens}{cost}")
        }
    };
    Some(safe(&text))
}

/// Text from a model, a container or a file name, without anything a terminal would act on.
pub fn safe(text: &str) -> String {
    text.chars()
        .filter(|character| matches!(character, '\n' | '\t') || !character.is_control())
        .filter(|character| !matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .collect()
}

/// `1 mistake`, `5 mistakes`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// A verdict in words.
pub fn verdict_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Pass => "pass".to_owned(),
        Verdict::Deny { reason } => format!("denied, {reason}"),
        Verdict::Ask { reason } => format!("asks, {reason}"),
        Verdict::Replace { reason, .. } => format!("replaced, {reason}"),
    }
}

/// The list a run needs, ready to be pasted.
pub fn learned_words(allow: &[String]) -> String {
    if allow.is_empty() {
        return "network: nothing was reached, so the workflow needs no `network`".to_owned();
    }
    let names: Vec<String> = allow.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "network: what was reached, for the workflow:\n  network = {{ allow = {{ {} }} }},",
        names.join(", ")
    )
}

/// All a sandbox reached and was refused.
fn network_words(used: &[Use]) -> String {
    let mut words = "network in all".to_owned();
    for Use { contact, times, sent, received } in used {
        let times = count(usize::try_from(*times).unwrap_or(usize::MAX), "time");
        let _ = match &contact.refused {
            None => write!(
                words,
                "\n  - {contact}: {times}, {} out, {} in",
                show_size(*sent),
                show_size(*received)
            ),
            Some(why) => write!(words, "\n  - {contact}: refused {times}, {why}"),
        };
    }
    words
}

/// The one argument that matters of a built-in tool, or all of them.
fn call_words(call: &ToolCall) -> String {
    let parsed: Option<serde_json::Value> = serde_json::from_str(&call.arguments).ok();
    let field =
        |name: &str| parsed.as_ref().and_then(|value| value.get(name)).and_then(|value| value.as_str());
    match call.tool.as_str() {
        "shell" => field("command").unwrap_or(&call.arguments).to_owned(),
        "read_file" | "write_file" => field("path").unwrap_or(&call.arguments).to_owned(),
        _ => call.arguments.clone(),
    }
}

fn quote(text: &str, detail: Detail) -> String {
    let all = text.lines().count();
    let shown = match detail {
        Detail::Short => all.min(SHOWN_LINES),
        Detail::Full => all,
    };
    let mut quoted: Vec<String> = text.lines().take(shown).map(|line| format!("  | {line}")).collect();
    if shown < all {
        quoted.push(format!("  | ... {} more lines", all - shown));
    }
    quoted.join("\n")
}

/// `src/ is git https://example.org/r.git main (commit 0123456789ab), 12 files, 3.4 kB`
fn origin_words(entry: &Origin) -> String {
    let mut words = format!("{} is {}", entry.path, entry.kind);
    for part in [&entry.from, &entry.reference].into_iter().flatten() {
        let _ = write!(words, " {part}");
    }
    if let Some(commit) = &entry.commit {
        let _ = write!(words, " (commit {})", commit.chars().take(12).collect::<String>());
    }
    if let Some(run) = &entry.run {
        let _ = write!(words, " (run {run})");
    }
    let number = |number: u64, thing| count(usize::try_from(number).unwrap_or(usize::MAX), thing);
    let _ = write!(words, ", {}, {}", number(entry.files, "file"), show_size(entry.bytes));
    if entry.links_left_out > 0 {
        let _ = write!(words, ", without {}", number(entry.links_left_out, "link"));
    }
    words
}
