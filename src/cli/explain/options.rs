//! What a drop says besides its glob, as the script writes it.

use crate::workflow::trigger::{Afterwards, By, Dedupe, Drop, Existing, Order, Symlinks};
use crate::workflow::units::{show_duration, show_size};

/// `settle = "5 s"` and the like; nothing for what is not said.
pub(super) fn options(drop: &Drop) -> Vec<String> {
    let mut said = Vec::new();
    let mut say =
        |name: &str, value: Option<String>| said.extend(value.map(|value| format!("{name} = {value}")));
    let quoted = |text: &str| format!("\"{text}\"");
    say("settle", drop.settle.map(|time| quoted(&show_duration(time))));
    say("min_size", (drop.min_size != Drop::MIN_SIZE).then(|| quoted(&show_size(drop.min_size))));
    say("max_size", drop.max_size.map(|size| quoted(&show_size(size))));
    say("ready_when", drop.ready_when.as_deref().map(quoted));
    say("params_from", drop.params_from.as_deref().map(quoted));
    say("batch.by", drop.batch.as_ref().map(|batch| quoted(by(&batch.by))));
    if let Some(batch) = &drop.batch {
        let require: Vec<String> = batch.require.iter().map(|glob| quoted(glob)).collect();
        say("batch.require", (!require.is_empty()).then(|| require.join(", ")));
        say("batch.quiet", batch.quiet.map(|time| quoted(&show_duration(time))));
        say("batch.max", batch.max.map(|count| count.to_string()));
        say("batch.timeout", batch.timeout.map(|time| quoted(&show_duration(time))));
    }
    say("existing", (drop.existing != Existing::Process).then(|| quoted(drop.existing.as_str())));
    say("dedupe", (drop.dedupe != Dedupe::None).then(|| quoted(drop.dedupe.as_str())));
    say("window", drop.window.map(|time| quoted(&show_duration(time))));
    say("order", (drop.order != Order::Arrival).then(|| quoted(drop.order.as_str())));
    say("symlinks", (drop.symlinks != Symlinks::Ignore).then(|| quoted(drop.symlinks.as_str())));
    say("on_success", drop.on_success.as_ref().map(afterwards));
    say("on_failure", drop.on_failure.as_ref().map(afterwards));
    said
}

fn by(by: &By) -> &str {
    match by {
        By::Folder => "folder",
        By::Stem => "stem",
        By::Pattern(pattern) => pattern,
    }
}

fn afterwards(afterwards: &Afterwards) -> String {
    match afterwards {
        Afterwards::Keep => "mill.keep()".to_owned(),
        Afterwards::Delete => "mill.delete()".to_owned(),
        Afterwards::Move(folder) => format!("mill.move \"{folder}\""),
    }
}
