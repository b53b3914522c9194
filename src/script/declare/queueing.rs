//! The fields `priority`, `concurrency` and `retry`: how the runs of a workflow stand in the queue.

use std::time::Duration;

use mlua::Value;

use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::queueing::{Queueing, Retry};
use crate::workflow::units::show_duration;

/// What `retry` takes.
pub(in crate::script) const RETRY: Class = Class {
    name: "tidemill.Retry",
    word: "retry",
    doc: "How often and when a run is tried again that failed by a service: a model, an engine.",
    fields: &[
        Field { name: "attempts", kind: "integer?", doc: "Tries in all; 3 without." },
        Field {
            name: "backoff",
            kind: "string|number?",
            doc: "The first wait, doubled each time; `30s` without.",
        },
        Field { name: "max_backoff", kind: "string|number?", doc: "The longest wait; `10m` without." },
    ],
};

/// Further apart than these nobody ranks anything.
const HIGHEST: f64 = 1000.0;
/// More at once no machine carries out.
const MOST_AT_ONCE: u64 = 10_000;
/// What has failed this often fails for ever.
const MOST_TRIES: u64 = 100;
/// A service that has too much to do is not to be asked more often.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Reads the three fields of a workflow.
pub(super) fn read(host: &Host, fields: &Fields<'_>) -> Queueing {
    let usual = Queueing::default();
    let refuse = |name: &str, value: &str, help: &str| {
        let message = format!("`{}` is {value}", fields.path(name));
        value::bad::<()>(host, &fields.at(name), "script::bad_limit", message, help);
    };
    let priority = fields.with("priority", value::number).and_then(|number| {
        let fits = number.fract() == 0.0 && number.abs() <= HIGHEST;
        if !fits {
            refuse("priority", &number.to_string(), "it is a whole number from -1000 to 1000");
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
        fits.then_some(number as i64)
    });
    let concurrency = fields.count("concurrency").and_then(|most| {
        let fits = (1..=MOST_AT_ONCE).contains(&most);
        if !fits {
            refuse("concurrency", &most.to_string(), &format!("it is from 1 to {MOST_AT_ONCE}"));
        }
        usize::try_from(most).ok().filter(|_| fits)
    });
    Queueing {
        priority: priority.unwrap_or(usual.priority),
        concurrency,
        retry: fields.with("retry", retry).unwrap_or_default(),
    }
}

fn retry(host: &Host, place: &Place, _: &str, value: &Value) -> Option<Retry> {
    let fields = Fields::read(host, value.clone(), place.clone(), &RETRY)?;
    let usual = Retry::default();
    let refuse = |name: &str, value: &str, help: &str| {
        let message = format!("`{}` is {value}", fields.path(name));
        value::bad::<()>(host, &fields.at(name), "script::bad_limit", message, help);
    };
    let attempts = fields.count("attempts").and_then(|attempts| {
        let fits = (1..=MOST_TRIES).contains(&attempts);
        if !fits {
            refuse(
                "attempts",
                &attempts.to_string(),
                &format!("it is from 1 to {MOST_TRIES}, the first included"),
            );
        }
        u32::try_from(attempts).ok().filter(|_| fits)
    });
    let wait = |name: &str| {
        let wait = fields.with(name, value::duration)?;
        let fits = (SHORTEST..=LONGEST).contains(&wait);
        if !fits {
            let (least, most) = (show_duration(SHORTEST), show_duration(LONGEST));
            refuse(name, &show_duration(wait), &format!("it is from {least} to {most}"));
        }
        Some(wait).filter(|_| fits)
    };
    let backoff = wait("backoff").unwrap_or(usual.backoff);
    let longest = wait("max_backoff");
    if let Some(longest) = longest.filter(|longest| *longest < backoff) {
        let help = format!("the first wait is {} already; make this one longer", show_duration(backoff));
        refuse("max_backoff", &show_duration(longest), &help);
    }
    Some(Retry {
        attempts: attempts.unwrap_or(usual.attempts),
        backoff,
        max_backoff: longest.unwrap_or(usual.max_backoff.max(backoff)),
    })
}
