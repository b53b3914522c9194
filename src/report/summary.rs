//! A run on one screen: state, why, findings, artifacts, cost.

use std::fmt::Write as _;

use crate::diagnostic::{Place, Report};
use crate::event::again::Again;
use crate::event::state::RunState;
use crate::event::usage::{Cost, Usage};
use crate::report::fold::Outline;
use crate::report::line::{count, learned_words, safe, verdict_words};

/// What the summary needs of a run.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The run's id.
    pub run: &'a str,
    /// Its workflow.
    pub workflow: &'a str,
    /// Where it stands.
    pub state: RunState,
    /// Its model.
    pub model: &'a str,
    /// Turns taken.
    pub turns: u32,
    /// Tokens used.
    pub usage: Usage,
    /// What it cost, when the price is known.
    pub cost: Option<Cost>,
    /// Why it ended.
    pub report: Option<&'a Report>,
    /// What it waits for before it is tried again.
    pub waits_for: Option<&'a Again>,
    /// The run it does over.
    pub retry_of: Option<&'a str>,
}

/// The run in a few lines.
pub fn summary(facts: &Facts<'_>, outline: &Outline) -> String {
    let mut text = format!("{}  {}  {}", facts.run, facts.workflow, facts.state);
    if let Some(over) = facts.retry_of {
        let _ = write!(text, "\n{over} once more");
    }
    if let Some(again) = facts.waits_for {
        let _ = write!(text, "\n{again}");
    }
    if let Some(report) = facts.report {
        let _ = write!(text, "\n{}", diagnosis(report));
    }
    if let Some((attempt, findings)) = outline.checks.last()
        && !findings.is_empty()
    {
        let repairs = if *attempt == 0 {
            String::new()
        } else {
            format!(" after {}", count(*attempt as usize, "repair"))
        };
        let _ = write!(text, "\nfindings{repairs}:");
        for finding in findings {
            let _ = write!(text, "\n  - {finding}");
        }
    }
    for (stage, guard, verdict) in &outline.verdicts {
        let _ = write!(text, "\nguardrail {guard} on {stage}: {}", verdict_words(verdict));
    }
    if !outline.artifacts.is_empty() {
        text.push_str("\nartifacts:");
        for artifact in &outline.artifacts {
            let _ = write!(text, "\n  {artifact}");
        }
    }
    if let Some(kept) = &outline.kept {
        let _ = write!(text, "\nfiles kept in {kept}");
    }
    if let Some(allow) = &outline.learned {
        let _ = write!(text, "\n{}", learned_words(allow));
    }
    let cost = facts.cost.map_or_else(|| "price unknown".to_owned(), |cost| cost.to_string());
    let _ = write!(
        text,
        "\nmodel {}, {}, {}, {} tokens in, {} out, {cost}",
        facts.model,
        count(facts.turns as usize, "turn"),
        count(outline.tool_calls, "tool call"),
        facts.usage.input_tokens,
        facts.usage.output_tokens
    );
    if outline.interruptions > 0 {
        let _ = write!(text, "\nwent on after {}", count(outline.interruptions, "interruption"));
    }
    safe(&text)
}

/// A stored report as text: what, where, why, what to do.
pub fn diagnosis(report: &Report) -> String {
    let mut text = format!("{} [{}]", report.message, report.code);
    if let Some(place) = &report.place {
        let _ = write!(text, "\n{}", underlined(place));
    }
    for cause in &report.causes {
        let _ = write!(text, "\n  because: {}", cause.trim().replace('\n', "\n    "));
    }
    if let Some(help) = &report.help {
        let _ = write!(text, "\n  help: {}", help.trim().replace('\n', "\n    "));
    }
    text
}

/// The place, and its line with what is meant underlined.
fn underlined(place: &Place) -> String {
    let at = format!("  at {}:{}:{}", place.file, place.line, place.column);
    let Some(line) = &place.text else { return at };
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    // Tabs stay tabs, so that the underline stands where it belongs.
    let before: String =
        line.chars().take(place.column - 1).map(|c| if c == '\t' { c } else { ' ' }).collect();
    let start: usize = line.chars().take(place.column - 1).map(char::len_utf8).sum();
    let end = (start + place.length.max(1)).min(line.len());
    let meant = line.get(start..end).map_or(1, |meant| meant.chars().count().max(1));
    format!("{at}\n  {number} | {line}\n  {margin} | {before}{}", "^".repeat(meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_underlined_where_it_stands() {
        let place = Place {
            file: "workflows/a.lua".into(),
            line: 12,
            column: 5,
            length: 3,
            text: Some("x = foo.bar".into()),
        };
        assert_eq!(underlined(&place), "  at workflows/a.lua:12:5\n  12 | x = foo.bar\n     |     ^^^");
    }
}
