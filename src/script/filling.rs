//! The manifest that a function of the script makes for a run, read as a declared one is.

use std::sync::Arc;

use jiff::tz::TimeZone;
use mlua::Value;

use super::archive::Archive;
use super::declare::manifest;
use super::hooks::Script;
use super::host::Host;
use super::place::Place;
use super::published::Filling;
use super::{value, view};
use crate::diagnostic::{Diagnostic, Result};
use crate::workflow::Hook;
use crate::workflow::manifest::Entry;
use crate::workflow::view::RunView;

/// More entries than these are a loop without an end; a folder is one entry.
const MOST_ENTRIES: usize = 10_000;

impl Script {
    /// The manifest that a function makes for a run; `archive` knows what others published.
    ///
    /// Errors: as where a manifest is a table; `hook::bad_manifest` for anything but a table.
    pub async fn manifest(
        &self,
        hook: Hook,
        run: Arc<RunView>,
        archive: Arc<dyn Archive>,
    ) -> Result<Vec<Entry>> {
        let fired = run.fired.as_ref();
        let filling = Filling {
            archive,
            now: fired.map_or(run.queued_at, |fired| fired.at),
            timezone: fired.map_or(TimeZone::UTC, |fired| fired.timezone.clone()),
        };
        let place = self.place(hook);
        let made = self
            .call(hook, move |lua, function| {
                let host = Host::of(lua)?;
                host.fill(Some(filling));
                let value = function.call::<Value>(view::Run(run));
                host.fill(None);
                Ok(entries(&host, &place, &value?))
            })
            .await;
        let mut mistakes = self.host().take_mistakes();
        mistakes.retain(|mistake| !mistake.is_warning());
        // What was noted says more than the error that then ended the function.
        match mistakes.len() {
            0 => made?.map_err(|what| {
                let message = format!("the manifest function returned {what}");
                self.nonsense(hook, "hook::bad_manifest", &message)
                    .help("return a table of content by path: { [\"input/a.csv\"] = mill.input() }")
            }),
            1 => Err(mistakes.remove(0)),
            count => {
                let message = format!("the manifest of this run has {count} mistakes");
                Err(Diagnostic::new("hook::bad_manifest", message).related(mistakes))
            }
        }
    }

    /// A table that a function makes stands nowhere else than in it.
    fn place(&self, hook: Hook) -> Place {
        let Some((chunk, line)) = self.host().defined(hook) else {
            return Place::default();
        };
        Place::new(chunk.source.clone(), chunk.source.line_span(line), None)
    }
}

/// The entries of the returned table; the error is what was returned instead. Mistakes in them are noted.
fn entries(host: &Host, place: &Place, value: &Value) -> std::result::Result<Vec<Entry>, String> {
    let Value::Table(table) = value else {
        return Err(match value {
            Value::Nil => "nothing".to_owned(),
            other => value::describe(other),
        });
    };
    if table.pairs::<Value, Value>().count() > MOST_ENTRIES {
        return Err(format!("more than {MOST_ENTRIES} entries"));
    }
    Ok(manifest::read(host, value::map(host, place, "manifest", value).unwrap_or_default()))
}
