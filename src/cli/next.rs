//! `tidemill next`: the instants that come next.

use jiff::Timestamp;
use serde_json::json;

use crate::cli::{Context, Exit};
use crate::clock::{Clock as _, SystemClock};
use crate::config::Project;
use crate::diagnostic::Result;
use crate::run::schedules::plans;
use crate::run::watching;
use crate::script;
use crate::trigger::schedule::plan::{Instant, Oddity, Plan};
use crate::workflow::Workflow;

/// Arguments of `tidemill next`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only of this workflow
    pub workflow: Option<String>,
    /// So many instants
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    pub count: usize,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// An instant of one of the schedules.
struct Coming<'a> {
    workflow: &'a str,
    plan: &'a Plan,
    instant: Instant,
}

/// Carries it out.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let project = context.project()?;
    let workflows = workflows(&project, args.workflow.as_deref()).await?;
    let mut all = Vec::new();
    for workflow in &workflows {
        let plans = plans(&workflow.name, &workflow.schedules)?;
        all.extend(plans.into_iter().map(|plan| (workflow.name.as_str(), plan)));
    }
    let coming = coming(&all, SystemClock::new().now(), args.count);
    if args.json {
        let list: Vec<serde_json::Value> = coming.iter().map(Coming::as_json).collect();
        context.screen.line(super::json(&list)?);
        return Ok(Exit::Succeeded);
    }
    if all.is_empty() {
        context.screen.talk("no schedule; give a workflow `triggers = { mill.schedule { cron = \"...\" } }`");
    } else if coming.is_empty() {
        context.screen.talk("no schedule fires any more");
    }
    for line in table(&coming) {
        context.screen.line(line);
    }
    Ok(Exit::Succeeded)
}

/// The workflow of that name, or all of them. Scripts with mistakes are an error: what they declare is not known.
async fn workflows(project: &Project, name: Option<&str>) -> Result<Vec<Workflow>> {
    if let Some(name) = name {
        return Ok(vec![script::find(project, name).await?.workflow]);
    }
    watching::workflows(project, "name a workflow without mistakes: `tidemill next WORKFLOW`").await
}

/// The first `count` instants of all schedules together.
fn coming<'a>(plans: &'a [(&'a str, Plan)], now: Timestamp, count: usize) -> Vec<Coming<'a>> {
    let mut found: Vec<Coming<'a>> = Vec::new();
    for (workflow, plan) in plans {
        let instants = std::iter::successors(plan.next(now), |last| plan.next(last.at)).take(count);
        found.extend(instants.map(|instant| Coming { workflow, plan, instant }));
    }
    found.sort_by(|left, right| (left.instant.at, left.plan.id()).cmp(&(right.instant.at, right.plan.id())));
    found.truncate(count);
    found
}

/// One line each: local time, UTC, workflow, and what there is to say.
fn table(coming: &[Coming<'_>]) -> Vec<String> {
    let local: Vec<String> = coming.iter().map(Coming::local).collect();
    let width = local.iter().map(String::len).max().unwrap_or_default();
    let name = coming.iter().map(|coming| coming.workflow.len()).max().unwrap_or_default();
    let line = |(coming, local): (&Coming<'_>, &String)| {
        let utc = coming.instant.at.strftime("%Y-%m-%d %H:%M:%S UTC");
        let line = format!("{local:<width$}  {utc}  {:<name$}  {}", coming.workflow, coming.remarks());
        line.trim_end().to_owned()
    };
    coming.iter().zip(&local).map(line).collect()
}

impl Coming<'_> {
    /// `Mon 2026-11-30 06:00:00 Europe/Zurich`
    fn local(&self) -> String {
        let schedule = self.plan.schedule();
        let local = schedule.timezone.to_datetime(self.instant.at);
        format!("{} {}", local.strftime("%a %Y-%m-%d %H:%M:%S"), schedule.zone())
    }

    fn remarks(&self) -> String {
        let start = self.plan.start(self.instant.at);
        let late = (start != self.instant.at).then(|| {
            let local = self.plan.schedule().timezone.to_datetime(start);
            format!("starts {} (jitter)", local.strftime("%H:%M:%S"))
        });
        let odd = self.instant.oddity.map(|oddity| oddity.as_str().to_owned());
        odd.into_iter().chain(late).collect::<Vec<_>>().join("; ")
    }

    fn as_json(&self) -> serde_json::Value {
        let schedule = self.plan.schedule();
        json!({
            "workflow": self.workflow,
            "schedule": self.plan.id(),
            "instants": schedule.describe(),
            "at": self.instant.at.to_string(),
            "local": schedule.timezone.to_datetime(self.instant.at).to_string(),
            "timezone": schedule.zone(),
            "starts_at": self.plan.start(self.instant.at).to_string(),
            "oddity": self.instant.oddity.map(Oddity::as_str),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::tz::TimeZone;

    use super::*;
    use crate::workflow::schedule::{Missed, Overlap, Schedule, When};

    fn schedule(when: When, jitter: Duration) -> Schedule {
        Schedule {
            when,
            timezone: TimeZone::get("Europe/Berlin").unwrap(),
            missed: Missed::Skip,
            catchup_window: None,
            overlap: Overlap::Skip,
            start_deadline: None,
            jitter,
        }
    }

    #[test]
    fn local_and_utc_times_stand_beside_what_is_odd() {
        let daily = schedule(When::Cron("30 2 * * *".into()), Duration::ZERO);
        let every = schedule(When::Every(Duration::from_hours(12)), Duration::from_secs(600));
        let plans = [
            ("daily", Plan::new("daily/1", &daily).unwrap()),
            ("beat", Plan::new("beat/1", &every).unwrap()),
        ];
        let found = coming(&plans, "2026-03-28T12:00:00Z".parse().unwrap(), 4);
        let start = found[0].plan.start(found[0].instant.at);
        assert!(start > found[0].instant.at);
        let lines = table(&found);
        assert_eq!(
            lines[1],
            "Sun 2026-03-29 03:00:00 Europe/Berlin  2026-03-29 01:00:00 UTC  daily  the time is left out that day; right \
             after the gap"
        );
        let shown =
            TimeZone::get("Europe/Berlin").unwrap().to_datetime(start).strftime("%H:%M:%S").to_string();
        assert_eq!(
            lines[0],
            format!(
                "Sun 2026-03-29 01:00:00 Europe/Berlin  2026-03-29 00:00:00 UTC  beat   starts {shown} (jitter)"
            )
        );
        assert_eq!(lines.len(), 4);
        assert_eq!(found[1].as_json()["at"], "2026-03-29T01:00:00Z");
    }
}
