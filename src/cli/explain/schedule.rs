//! A schedule: which of its instants made runs, why the others made none, and which come next.

mod past;

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::cli::pause;
use crate::clock::{Clock as _, SystemClock};
use crate::config::Project;
use crate::diagnostic::{Report, Result, nearest};
use crate::event::input::printable;
use crate::run::intake::Daemon;
use crate::run::listing;
use crate::run::schedules::plans;
use crate::script;
use crate::store::Store;
use crate::trigger::schedule::plan::{Instant, Oddity, Plan};
use crate::workflow::schedule::{Schedule, Standing};
use crate::workflow::units::show_duration;
use past::Past;

/// So many instants that come are told.
const NEXT: usize = 5;

/// What is known of a schedule, or of one that no script declares any more.
#[derive(Debug)]
struct Explained {
    id: String,
    plan: Option<Plan>,
    standing: Option<Standing>,
    /// Whether a run of it has not ended.
    busy: bool,
    /// Why its runs do not begin, when somebody said so.
    paused: Option<String>,
    /// Oldest first.
    past: Vec<Past>,
    next: Vec<Instant>,
}

/// What a person means by the text: schedules, or nothing.
#[derive(Debug)]
pub(super) enum Meant {
    /// These.
    Schedules(Box<Told>),
    /// A workflow that has none.
    Unscheduled,
    /// None; the nearest name, when there is one.
    Nothing(Option<String>),
}

/// Schedules and what holds for all of them.
#[derive(Debug)]
pub(super) struct Told {
    watched: bool,
    /// Scripts with mistakes: what they declare is not known.
    broken: Vec<Report>,
    schedules: Vec<Explained>,
}

/// Finds what `text` names: a schedule such as `energy/1`, or all those of a workflow.
pub(super) async fn find(project: &Project, text: &str) -> Result<Meant> {
    let checked = script::check(project, &[]).await;
    let state = project.state();
    // Where there is no history yet, none is made.
    let store = if state.join(Store::FILE).is_file() { Some(Store::open(&state).await?) } else { None };
    let mut workflows = checked.workflows;
    if let (Some(store), true) = (&store, checked.diagnostics.iter().any(|found| !found.is_warning())) {
        // A script with mistakes keeps the version in force.
        let kept = listing::in_force(project, store).await?;
        let is_known = |name: &str| workflows.iter().any(|workflow| workflow.name == name);
        let kept: Vec<_> = kept.into_iter().filter(|workflow| !is_known(&workflow.name)).collect();
        workflows.extend(kept);
    }
    let mut known: Vec<(String, Option<Plan>)> = Vec::new();
    for workflow in &workflows {
        let declared = plans(&workflow.name, &workflow.schedules)?;
        known.extend(declared.into_iter().map(|plan| (plan.id().to_owned(), Some(plan))));
    }
    if let Some(store) = &store {
        for id in store.schedule_ids().await? {
            if known.iter().all(|(known, _)| *known != id) {
                known.push((id, None));
            }
        }
    }
    let is_meant = |id: &str| id == text || id.rsplit_once('/').is_some_and(|(workflow, _)| workflow == text);
    let names: Vec<String> = known.iter().map(|(id, _)| id.clone()).collect();
    let now = SystemClock::new().now();
    let mut schedules = Vec::new();
    for (id, plan) in known.into_iter().filter(|(id, _)| is_meant(id)) {
        schedules.push(explain(store.as_ref(), id, plan, now).await?);
    }
    if schedules.is_empty() && workflows.iter().any(|workflow| workflow.name == text) {
        return Ok(Meant::Unscheduled);
    }
    if schedules.is_empty() {
        let workflows = names.iter().filter_map(|id| id.rsplit_once('/')).map(|(workflow, _)| workflow);
        let near = nearest(text, names.iter().map(String::as_str).chain(workflows));
        return Ok(Meant::Nothing(near.map(str::to_owned)));
    }
    let broken = checked.diagnostics.iter().filter(|found| !found.is_warning());
    Ok(Meant::Schedules(Box::new(Told {
        watched: Daemon::watches(project),
        broken: broken.map(crate::diagnostic::Diagnostic::report).collect(),
        schedules,
    })))
}

async fn explain(store: Option<&Store>, id: String, plan: Option<Plan>, now: Timestamp) -> Result<Explained> {
    let next = plan.iter().flat_map(|plan| {
        std::iter::successors(plan.next(now), |last| plan.next(last.at)).take(NEXT).collect::<Vec<_>>()
    });
    let mut explained = Explained {
        next: next.collect(),
        plan,
        standing: None,
        busy: false,
        paused: None,
        past: Vec::new(),
        id,
    };
    if let Some(store) = store {
        explained.standing = store.standing(&explained.id).await?;
        explained.busy = store.is_busy(&explained.id).await?;
        let (workflow, _) = explained.id.rsplit_once('/').unwrap_or_default();
        let paused = store.paused().await?;
        explained.paused = paused.holds(workflow).then(|| pause::words(&paused));
        explained.past = past::gather(store, &explained.id).await?;
    }
    Ok(explained)
}

impl Told {
    /// For people.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for schedule in &self.schedules {
            schedule.tell(&mut lines);
        }
        if !self.watched {
            lines.push(
                "  nobody watches this project now, so no instant makes a run; `tidemill watch` does".into(),
            );
        }
        if !self.broken.is_empty() {
            lines.push(format!(
                "  scripts have {} mistakes, and what was in force before them still is; `tidemill check` shows them",
                self.broken.len()
            ));
        }
        lines.join("\n")
    }

    /// For programs.
    pub(super) fn as_json(&self) -> Value {
        json!({
            "watched": self.watched,
            "broken_scripts": self.broken.len(),
            "schedules": self.schedules.iter().map(Explained::as_json).collect::<Vec<_>>(),
        })
    }
}

impl Explained {
    fn zone(&self) -> TimeZone {
        self.plan.as_ref().map_or(TimeZone::UTC, |plan| plan.schedule().timezone.clone())
    }

    fn tell(&self, lines: &mut Vec<String>) {
        let zone = self.zone();
        match &self.plan {
            Some(plan) => lines.push(format!("{}: {}", self.id, plan.schedule().describe())),
            None => lines.push(format!("{}: no script that loads declares it", printable(self.id.as_ref()))),
        }
        if let Some(plan) = &self.plan {
            lines.push(format!("  {}", rules(plan.schedule())));
            match self.standing {
                Some(standing) => lines.push(format!("  decided up to {}", local(standing.decided, &zone))),
                None => lines.push("  it was never watched: its instants count from when it first is".into()),
            }
        }
        if self.busy {
            lines.push("  a run of it has not ended".into());
        }
        lines.extend(self.paused.iter().map(|paused| format!("  {paused}")));
        if let Some(held) = self.standing.and_then(|standing| standing.held) {
            lines.push(format!("  {} waits for that run to end", local(held, &zone)));
        }
        if self.past.is_empty() {
            lines.push("  no instant of it is known to have come".into());
        }
        lines.extend(self.past.iter().map(|past| format!("  {}", past.text(&zone))));
        for instant in &self.next {
            lines.push(format!("  next: {}", coming(self.plan.as_ref(), *instant, &zone)));
        }
        if self.plan.is_some() && self.next.is_empty() {
            lines.push("  next: none, it fires no more".into());
        }
    }

    fn as_json(&self) -> Value {
        let next = self.next.iter().map(|instant| {
            json!({
                "at": instant.at.to_string(),
                "starts_at": self.plan.as_ref().map(|plan| plan.start(instant.at).to_string()),
                "oddity": instant.oddity.map(Oddity::as_str),
            })
        });
        json!({
            "schedule": self.id,
            "instants": self.plan.as_ref().map(|plan| plan.schedule().describe()),
            "decided": self.standing.map(|standing| standing.decided.to_string()),
            "held": self.standing.and_then(|standing| standing.held).map(|held| held.to_string()),
            "busy": self.busy,
            "paused": self.paused.is_some(),
            "past": self.past.iter().map(Past::as_json).collect::<Vec<_>>(),
            "next": next.collect::<Vec<_>>(),
        })
    }
}

/// What becomes of instants that are missed, or come while a run works.
fn rules(schedule: &Schedule) -> String {
    let mut rules =
        format!("missed = \"{}\", overlap = \"{}\"", schedule.missed.as_str(), schedule.overlap.as_str());
    if let Some(deadline) = schedule.start_deadline {
        let _ = write!(rules, ", start_deadline = \"{}\"", show_duration(deadline));
    }
    rules
}

/// `Mon 2026-11-30 06:00:00 Europe/Zurich`
fn local(at: Timestamp, zone: &TimeZone) -> String {
    let shown = zone.to_datetime(at).strftime("%a %Y-%m-%d %H:%M:%S").to_string();
    format!("{shown} {}", zone.iana_name().unwrap_or("UTC"))
}

fn coming(plan: Option<&Plan>, instant: Instant, zone: &TimeZone) -> String {
    let mut text = local(instant.at, zone);
    if let Some(oddity) = instant.oddity {
        let _ = write!(text, " ({})", oddity.as_str());
    }
    if let Some(start) = plan.map(|plan| plan.start(instant.at)).filter(|start| *start != instant.at) {
        let _ = write!(text, ", starts {} (jitter)", local(start, zone));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::past::Became;
    use super::*;
    use crate::workflow::schedule::{Missed, Overlap, When};

    #[test]
    fn what_clocks_do_to_the_next_instants_is_told() {
        let schedule = Schedule {
            when: When::Cron("30 2 * * *".into()),
            timezone: TimeZone::get("Europe/Berlin").unwrap(),
            missed: Missed::Latest,
            catchup_window: None,
            overlap: Overlap::Skip,
            start_deadline: Some(Duration::from_secs(1800)),
            jitter: Duration::ZERO,
        };
        let plan = Plan::new("daily/1", &schedule).unwrap();
        let now: Timestamp = "2026-03-28T12:00:00Z".parse().unwrap();
        let past = Past {
            first: "2026-03-26T01:30:00Z".parse().unwrap(),
            became: Became::Skipped {
                last: "2026-03-27T01:30:00Z".parse().unwrap(),
                count: 2,
                reason: "nobody watched at the time".into(),
            },
        };
        let explained = Explained {
            id: "daily/1".into(),
            next: plan.next(now).into_iter().collect(),
            plan: Some(plan),
            standing: Some(Standing { decided: now, held: None, missed: 2 }),
            paused: None,
            busy: true,
            past: vec![past],
        };
        let told = Told { watched: false, broken: Vec::new(), schedules: vec![explained] };
        assert_eq!(
            told.text().lines().collect::<Vec<_>>(),
            [
                "daily/1: cron 30 2 * * *, Europe/Berlin",
                "  missed = \"latest\", overlap = \"skip\", start_deadline = \"30 m 00 s\"",
                "  decided up to Sat 2026-03-28 13:00:00 Europe/Berlin",
                "  a run of it has not ended",
                "  Thu 2026-03-26 02:30:00 Europe/Berlin: no run, nobody watched at the time; 2 instants up to \
                 Fri 2026-03-27 02:30:00 Europe/Berlin",
                "  next: Sun 2026-03-29 03:00:00 Europe/Berlin (the time is left out that day; right after the gap)",
                "  nobody watches this project now, so no instant makes a run; `tidemill watch` does",
            ]
        );
        assert_eq!(told.as_json()["schedules"][0]["past"][0]["count"], 2);
    }
}
