//! `tidemill workflows`: a list.

use jiff::Timestamp;

use crate::cli::{Context, Exit};
use crate::diagnostic::{Report, Result};
use crate::event::input::printable;
use crate::run::intake::Daemon;
use crate::run::listing::{Counts, Listed, list};
use crate::store::Store;

/// Arguments of `tidemill workflows`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let state = project.state();
    // Where there is no history yet, none is made.
    let store = if state.join(Store::FILE).is_file() { Some(Store::open(&state).await?) } else { None };
    let counts = if Daemon::watches(&project) { Counts::InForce } else { Counts::Files };
    let listed = list(&project, store.as_ref(), counts).await?;
    if args.json {
        context.screen.line(super::json(&listed)?);
        return Ok(Exit::Succeeded);
    }
    if listed.is_empty() {
        context.screen.talk("no workflow yet; a script in the workflows folder declares one");
    }
    for line in lines(&listed) {
        context.screen.line(line);
    }
    Ok(Exit::Succeeded)
}

/// One line for each, what starts it and what is wrong below it.
fn lines(listed: &[Listed]) -> Vec<String> {
    let names: Vec<String> = listed.iter().map(name).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut lines = Vec::new();
    for (one, name) in listed.iter().zip(&names) {
        let version =
            one.version.as_ref().map_or_else(|| "-".to_owned(), |digest| digest.short().to_string());
        let sandbox = one.sandbox.unwrap_or("-");
        let model = one.model.as_deref().map_or_else(|| "-".to_owned(), |model| printable(model.as_ref()));
        lines.push(format!("{name:<width$}  {version:<12}  {sandbox:<6}  {model}"));
        if let Some(since) = one.since {
            lines.push(format!("  in force since {}", show(since)));
        }
        lines.extend(
            one.triggers.iter().map(|trigger| format!("  starts by {}", printable(trigger.as_ref()))),
        );
        if let Some(run) = &one.last_run {
            lines.push(format!("  last run {} of {}: {}", run.id, show(run.queued_at), run.state));
        }
        if let Some(report) = &one.broken {
            lines.push(format!("  broken: {}", broken(report)));
            if one.version.is_some() {
                lines.push("  new runs use the version before".to_owned());
            }
        }
    }
    lines
}

fn name(one: &Listed) -> String {
    one.workflow.clone().unwrap_or_else(|| printable(one.file.as_ref()))
}

fn show(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// Of many mistakes the first: `tidemill check` shows all.
fn broken(report: &Report) -> String {
    let place = report.place.as_ref();
    let place = place.map(|place| format!(" ({}:{})", printable(place.file.as_ref()), place.line));
    format!("{} [{}]{}", report.message, report.code, place.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::id::Digest;

    #[test]
    fn each_has_its_line_and_what_there_is_to_say_below() {
        let fine = Listed {
            workflow: Some("energy".into()),
            file: "workflows/energy.lua".into(),
            version: Some(Digest::of("1")),
            since: Some("2026-12-01T05:00:00Z".parse().unwrap()),
            triggers: vec!["energy/*.csv".into()],
            model: Some("gpt-5.4".into()),
            sandbox: Some("docker"),
            last_run: None,
            broken: None,
        };
        let report =
            Report::clone(&crate::diagnostic::Diagnostic::new("script::syntax", "it ends early").report());
        let broken = Listed {
            workflow: None,
            file: "workflows/\u{1b}b.lua".into(),
            version: None,
            since: None,
            triggers: Vec::new(),
            model: None,
            sandbox: None,
            broken: Some(report.clone()),
            ..fine.clone()
        };
        let kept = Listed { broken: Some(report), ..fine.clone() };
        let version = Digest::of("1").short().to_string();
        assert_eq!(
            lines(&[kept, broken]),
            [
                format!("energy                 {version:<12}  docker  gpt-5.4"),
                "  in force since 2026-12-01 05:00:00Z".into(),
                "  starts by energy/*.csv".into(),
                "  broken: it ends early [script::syntax]".into(),
                "  new runs use the version before".into(),
                format!("workflows/\\u{{1b}}b.lua  {:<12}  {:<6}  -", "-", "-"),
                "  broken: it ends early [script::syntax]".into(),
            ]
        );
    }
}
