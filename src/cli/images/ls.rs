//! `tidemill images ls`

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::cli::images::{short, wanted, with_bases};
use crate::cli::{Context, Exit};
use crate::diagnostic::Result;
use crate::sandbox::docker::{Docker, Kept, Whose};
use crate::workflow::units::{show_duration, show_size};

/// Arguments of `tidemill images ls`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A JSON list
    #[arg(long)]
    json: bool,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Row {
    /// The folder, tag or script.
    image: String,
    digest: Option<String>,
    tag: Option<String>,
    size: Option<u64>,
    created_at: Option<Timestamp>,
    state: State,
    workflows: Vec<String>,
}

/// What an image is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The next run uses it.
    Current,
    /// It is neither pulled nor built yet.
    Missing,
    /// It was made from earlier content, or for a workflow that is gone.
    Old,
    /// Others are built on it.
    Base,
    /// Another project's.
    Others,
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Current => "current",
            Self::Missing => "missing",
            Self::Old => "old",
            Self::Base => "base",
            Self::Others => "others",
        })
    }
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let engine = Docker::open(&project).await?;
    let wanted = wanted(&project).await;
    if wanted.mistakes > 0 {
        context
            .screen
            .talk("some scripts have mistakes, so what they need is not listed; `tidemill check` shows them");
    }
    let kept = engine.kept_images().await?;
    let mut rows = Vec::new();
    for (image, workflows) in wanted.images {
        let found = match engine.find_image(&image).await {
            Ok(found) => found,
            Err(diagnostic) => {
                context.screen.diagnostic(&diagnostic);
                None
            }
        };
        let digest = found.map(|ready| ready.digest);
        let facts = match &digest {
            Some(digest) => engine.size_and_age(digest).await?,
            None => None,
        };
        rows.push(Row {
            image: image.reference().to_owned(),
            tag: kept
                .iter()
                .find(|kept| Some(&kept.digest) == digest.as_ref())
                .and_then(|kept| kept.tag.clone()),
            state: if digest.is_some() { State::Current } else { State::Missing },
            digest,
            size: facts.map(|(size, _)| size),
            created_at: facts.and_then(|(_, created_at)| created_at),
            workflows,
        });
    }
    let current = rows.iter().filter_map(|row| Some((row.digest.clone()?, String::new()))).collect();
    let needed = with_bases(current, &kept);
    let others = kept.into_iter().filter(|kept| !is_listed(&rows, kept));
    let others: Vec<Row> = others.map(|kept| row(kept, &needed)).collect();
    rows.extend(others);
    if args.json {
        context.screen.line(crate::cli::json(&rows)?);
        return Ok(Exit::Succeeded);
    }
    if rows.is_empty() {
        context.screen.talk("no workflow names an image, and none was made here");
    }
    let width = rows.iter().map(|row| row.image.len()).max().unwrap_or(0);
    for row in rows {
        context.screen.line(line(&row, width, Timestamp::now()).trim_end());
    }
    Ok(Exit::Succeeded)
}

fn is_listed(rows: &[Row], kept: &Kept) -> bool {
    rows.iter().any(|row| row.digest.as_ref() == Some(&kept.digest))
}

fn row(kept: Kept, needed: &BTreeMap<String, String>) -> Row {
    let is_needed = needed.contains_key(&kept.digest);
    Row {
        image: kept.name,
        digest: Some(kept.digest),
        tag: kept.tag,
        size: Some(kept.size),
        created_at: Some(kept.created_at),
        state: match kept.of {
            Whose::Ours if is_needed => State::Base,
            Whose::Ours => State::Old,
            Whose::Others => State::Others,
            Whose::Everyones => State::Base,
        },
        workflows: Vec::new(),
    }
}

fn line(row: &Row, width: usize, now: Timestamp) -> String {
    let digest = row.digest.as_deref().map_or("-", short);
    let size = row.size.map_or("-".to_owned(), show_size);
    let age = row.created_at.map(|created_at| age(now.duration_since(created_at).unsigned_abs()));
    let age = age.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:<width$}  {digest:<12}  {size:>9}  {age:>11}  {:<7}  {}",
        row.image,
        row.state,
        row.workflows.join(", ")
    )
}

fn age(age: Duration) -> String {
    const DAY: u64 = 24 * 3600;
    match age.as_secs() / DAY {
        0 => show_duration(age),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_there_and_what_is_not() {
        let now = Timestamp::from_second(10 * 24 * 3600).expect("a time");
        let row = Row {
            image: "images/a".into(),
            digest: Some(format!("sha256:{}", "ab".repeat(32))),
            tag: None,
            size: Some(12_300_000),
            created_at: Some(Timestamp::UNIX_EPOCH),
            state: State::Current,
            workflows: vec!["one".into(), "two".into()],
        };
        assert_eq!(
            line(&row, 10, now),
            "images/a    abababababab    12.3 MB      10 days  current  one, two"
        );
        let missing = Row { digest: None, size: None, created_at: None, state: State::Missing, ..row };
        assert_eq!(
            line(&missing, 8, now),
            "images/a  -                     -            -  missing  one, two"
        );
    }
}
