//! The field `limits`: what a run may use, each limit possible and sane.

use std::time::Duration;

use mlua::Value;

use crate::event::usage::Cost;
use crate::script::api::{Class, Field};
use crate::script::fields::Fields;
use crate::script::host::Host;
use crate::script::place::Place;
use crate::script::value;
use crate::workflow::limits::Limits;
use crate::workflow::units::{show_duration, show_size};

/// What `limits` takes.
pub(in crate::script) const LIMITS: Class = Class {
    name: "tidemill.Limits",
    word: "limits",
    doc: "What one run may use, repairs included.",
    fields: &[
        Field { name: "cost_usd", kind: "number?", doc: "Dollars for models. Needs a known price." },
        Field { name: "tokens", kind: "integer?", doc: "Tokens, read and written together." },
        Field {
            name: "wall",
            kind: "string|number?",
            doc: "Wall time: `10m`, or seconds; 30 minutes without.",
        },
        Field {
            name: "command",
            kind: "string|number?",
            doc: "Wall time of one command; 2 minutes without.",
        },
        Field { name: "memory", kind: "string|integer?", doc: "Memory of the sandbox: `2GiB`, or bytes." },
        Field { name: "cpus", kind: "number?", doc: "Processor cores, of those there are; 2 without." },
        Field { name: "pids", kind: "integer?", doc: "Processes at once; 256 without." },
        Field { name: "disk", kind: "string|integer?", doc: "Bytes that fit in /workspace; 1 GiB without." },
    ],
};

/// Less than the smallest call costs; above the other a limit protects nobody.
const LEAST_DOLLARS: f64 = 0.0001;
const MOST_DOLLARS: f64 = 10_000.0;
const MOST_TOKENS: u64 = 1_000_000_000;
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// Less than a command and its answer take.
const SHORTEST: Duration = Duration::from_secs(1);
/// Engines refuse less than 6 MB; a shell and a small tool need this much.
const LEAST_MEMORY: u64 = 16 << 20;
const MOST_BYTES: u64 = 16 << 40;
/// Less than any output takes.
const LEAST_DISK: u64 = 1 << 20;
const LEAST_CPUS: f64 = 0.01;
const MOST_CPUS: f64 = 1024.0;
/// An init, a shell and a pipe of tools.
const LEAST_PIDS: u64 = 8;
const MOST_PIDS: u64 = 100_000;

/// Reads the field `limits`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cores are in range before they are converted"
)]
pub(super) fn read(host: &Host, place: &Place, value: &Value) -> Option<Limits> {
    let fields = Fields::read(host, value.clone(), place.clone(), &LIMITS)?;
    let usual = Limits::default();
    let money = |dollars: &f64| format!("${dollars}");
    let dollars = fields
        .with("cost_usd", value::number)
        .filter(|dollars| within(&fields, host, "cost_usd", dollars, &(LEAST_DOLLARS, MOST_DOLLARS), money));
    let tokens = fields
        .count("tokens")
        .filter(|tokens| within(&fields, host, "tokens", tokens, &(1, MOST_TOKENS), u64::to_string));
    let time = |name: &str| {
        let duration = fields.with(name, value::duration)?;
        within(&fields, host, name, &duration, &(SHORTEST, LONGEST), |duration| show_duration(*duration))
            .then_some(duration)
    };
    let wall = time("wall");
    let command = time("command");
    let bytes = |name: &str, least: u64| {
        let size = fields.with(name, value::size)?;
        within(&fields, host, name, &size, &(least, MOST_BYTES), |size| show_size(*size)).then_some(size)
    };
    let cpus = fields
        .with("cpus", value::number)
        .filter(|cpus| within(&fields, host, "cpus", cpus, &(LEAST_CPUS, MOST_CPUS), f64::to_string));
    let pids = fields
        .count("pids")
        .filter(|pids| within(&fields, host, "pids", pids, &(LEAST_PIDS, MOST_PIDS), u64::to_string));
    let wall_or_usual = wall.unwrap_or(usual.wall);
    if let Some(command) = command
        && command > wall_or_usual
    {
        let message = format!(
            "`limits.command` is {} and `limits.wall` is {}: a command outlasts the run",
            show_duration(command),
            show_duration(wall_or_usual)
        );
        let help = "make `wall` longer or `command` shorter";
        value::bad::<()>(host, &fields.at("command"), "script::bad_limit", message, help);
    }
    Some(Limits {
        cost: dollars.map(Cost::from_usd),
        tokens,
        wall: wall_or_usual,
        command: command.unwrap_or(usual.command.min(wall_or_usual)),
        memory: bytes("memory", LEAST_MEMORY).unwrap_or(usual.memory),
        nano_cpus: cpus.map_or(usual.nano_cpus, |cpus| (cpus * 1e9) as u64),
        pids: pids.unwrap_or(usual.pids),
        disk: bytes("disk", LEAST_DISK).unwrap_or(usual.disk),
    })
}

/// Whether the limit lies in its range; notes it when not.
fn within<T: PartialOrd>(
    fields: &Fields<'_>,
    host: &Host,
    name: &str,
    value: &T,
    range: &(T, T),
    show: impl Fn(&T) -> String,
) -> bool {
    let fits = range.0 <= *value && *value <= range.1;
    if !fits {
        let message = format!("`limits.{name}` is {}, and no run can work with that", show(value));
        let help = format!("it is from {} to {}", show(&range.0), show(&range.1));
        value::bad::<()>(host, &fields.at(name), "script::bad_limit", message, &help);
    }
    fits
}
