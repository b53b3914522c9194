//! BuildKit's log: steps that run side by side, each with what it prints.

use std::collections::BTreeMap;

use prost::Message;

use crate::sandbox::docker::images::log::Log;

/// Bytes kept of a step's last lines.
const KEPT: usize = 64 * 1024;

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(message, repeated, tag = "1")]
    vertexes: Vec<Vertex>,
    #[prost(message, repeated, tag = "3")]
    logs: Vec<Printed>,
}

#[derive(Clone, PartialEq, Message)]
struct Vertex {
    #[prost(string, tag = "1")]
    digest: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(message, optional, tag = "5")]
    started: Option<Time>,
    #[prost(string, tag = "7")]
    error: String,
}

#[derive(Clone, PartialEq, Message)]
struct Time {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Printed {
    #[prost(string, tag = "1")]
    vertex: String,
    #[prost(bytes = "vec", tag = "4")]
    text: Vec<u8>,
}

/// A step that has begun.
#[derive(Debug, Default)]
struct Step {
    name: String,
    /// What it printed, its last part.
    printed: Vec<u8>,
    /// How much of that was shown: whole lines.
    shown: usize,
    failed: bool,
}

/// Follows the log.
#[derive(Debug, Default)]
pub(super) struct Trace {
    steps: BTreeMap<String, Step>,
    current: String,
}

impl Trace {
    /// Takes a piece of the log.
    pub(super) fn take(&mut self, bytes: &[u8], log: &mut Log<'_>) {
        let Ok(status) = Status::decode(bytes) else { return };
        for vertex in status.vertexes {
            // The engine's own steps have names in brackets, too: `[internal] load remote build context`.
            if vertex.started.is_none() || split(&vertex.name).is_none() {
                continue;
            }
            let is_new = !self.steps.contains_key(&vertex.digest);
            let step = self.steps.entry(vertex.digest.clone()).or_default();
            step.name = vertex.name;
            // Steps that stop because another one failed have not failed themselves.
            step.failed |= !vertex.error.is_empty() && !vertex.error.contains("canceled");
            if is_new {
                self.show(&vertex.digest, log);
            }
        }
        for printed in status.logs {
            let Some(step) = self.steps.get_mut(&printed.vertex) else { continue };
            step.printed.extend_from_slice(&printed.text);
            let surplus = step.printed.len().saturating_sub(KEPT);
            step.printed.drain(..surplus);
            step.shown = step.shown.saturating_sub(surplus);
            let whole = step.printed.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            if whole <= step.shown {
                continue;
            }
            let new = String::from_utf8_lossy(&step.printed[step.shown..whole]).into_owned();
            step.shown = whole;
            if self.current != printed.vertex {
                self.show(&printed.vertex, log);
            }
            new.lines().for_each(|line| log.line(line));
        }
    }

    /// Goes back to the step that failed, so that it is the one that is reported.
    pub(super) fn show_failed(&mut self, log: &mut Log<'_>) {
        let failed = self.steps.iter().find(|(_, step)| step.failed).map(|(digest, _)| digest.clone());
        if let Some(digest) = failed {
            self.show(&digest, log);
            let text = String::from_utf8_lossy(&self.steps[&digest].printed).into_owned();
            text.lines().for_each(|line| log.line(line));
        }
    }

    fn show(&mut self, digest: &str, log: &mut Log<'_>) {
        if let Some((number, command)) = self.steps.get(digest).and_then(|step| split(&step.name)) {
            log.begin(&number, command);
        }
        digest.clone_into(&mut self.current);
    }
}

/// `[stage 2/3] RUN make` is `step 2 of 3` and `RUN make`.
fn split(name: &str) -> Option<(String, &str)> {
    let (place, command) = name.strip_prefix('[')?.split_once("] ")?;
    let (number, all) = place.rsplit(' ').next()?.split_once('/')?;
    let number: u32 = number.trim().parse().ok()?;
    Some((format!("step {number} of {all}"), command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Silent;
    use crate::sandbox::docker::images::hidden::Hidden;

    #[test]
    fn the_step_that_failed_is_reported_whatever_ran_beside_it() {
        let vertex = |digest: &str, name: &str, error: &str| Vertex {
            digest: digest.into(),
            name: name.into(),
            started: Some(Time { seconds: 1 }),
            error: error.into(),
        };
        let printed =
            |vertex: &str, text: &str| Printed { vertex: vertex.into(), text: text.as_bytes().to_vec() };
        let status = Status {
            vertexes: vec![
                vertex("x", "[internal] load remote build context", ""),
                vertex("a", "[one 2/3] RUN first", ""),
                vertex("b", "[2/2] RUN second", ""),
            ],
            logs: vec![printed("a", "a clue\nhal"), printed("b", "other\n"), printed("a", "f\n")],
        };
        let mut log = Log::new(&Silent, Hidden::default());
        let mut trace = Trace::default();
        trace.take(&status.encode_to_vec(), &mut log);
        let ended = Status {
            vertexes: vec![
                vertex("b", "[2/2] RUN second", "context canceled"),
                vertex("a", "[one 2/3] RUN first", "exit code: 3"),
            ],
            logs: Vec::new(),
        };
        trace.take(&ended.encode_to_vec(), &mut log);
        trace.show_failed(&mut log);
        let failed = log.failed("images/x", "exit code: 3");
        assert_eq!(failed.message(), "building images/x failed at step 2 of 3: RUN first: exit code: 3");
        assert!(failed.advice().unwrap_or_default().contains("  a clue\n  half\n"), "{failed:?}");
    }
}
