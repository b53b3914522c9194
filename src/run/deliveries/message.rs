//! What a target reads: a CloudEvent about one moment of a run.

use serde_json::{Value, json};

use crate::event::What;
use crate::store::{Delivery, RunRow};
use crate::workflow::notify::Moment;

/// Artifacts that a message names.
const MOST_ARTIFACTS: usize = 100;
/// Characters of a report's message; receivers take small bodies.
const LONGEST_TEXT: usize = 2_000;

/// CloudEvents 1.0 in structured JSON. The same in every attempt: a run that has gone on since then changes nothing.
/// `events` are the run's, where the moment is an end.
pub(super) fn compose(delivery: &Delivery, row: &RunRow, events: &[What]) -> String {
    let mut data = json!({
        "workflow": row.workflow,
        "run": row.id,
        "trigger": row.trigger,
        "state": delivery.moment.state(),
        "queued_at": row.queued_at.to_string(),
    });
    if !matches!(delivery.moment, Moment::Queued | Moment::Started) {
        data["report"] = row.report.as_ref().map_or(Value::Null, |report| {
            let message: String = report.message.chars().take(LONGEST_TEXT).collect();
            json!({ "code": report.code, "message": message, "help": report.help })
        });
        data["published"] = json!(row.published);
        data["artifacts"] = if row.published.is_some() { artifacts(events) } else { json!([]) };
        data["turns"] = json!(row.turns);
        data["tokens"] = json!(row.usage.total());
        data["cost_usd"] = json!(row.cost);
    }
    let event = json!({
        "specversion": "1.0",
        "id": delivery.message_id(),
        "source": format!("tidemill/workflows/{}", row.workflow),
        "type": format!("tidemill.{}", delivery.moment.as_str()),
        "subject": row.id,
        "time": delivery.at.to_string(),
        "sequence": format!("{:010}", delivery.seq),
        "datacontenttype": "application/json",
        "data": data,
    });
    event.to_string()
}

/// The declared outputs as they were collected last, which is as they were published.
fn artifacts(events: &[What]) -> Value {
    let mut found: Vec<(&String, Value)> = Vec::new();
    for what in events {
        if let What::ArtifactCollected { path, size, digest } = what {
            found.retain(|(known, _)| *known != path);
            found.push((path, json!({ "path": path, "size": size, "sha256": digest })));
        }
    }
    found.into_iter().map(|(_, artifact)| artifact).take(MOST_ARTIFACTS).collect()
}
