//! What the probes found, for people and programs.

use std::ffi::OsStr;
use std::fmt;

use serde::Serialize;

use crate::event::input::printable;

/// What one probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Probed {
    /// `family/attack`.
    pub(super) name: String,
    /// How it ended.
    pub(super) verdict: Verdict,
    /// What stopped the attack, or what it got.
    pub(super) found: String,
    /// What it means when it passes.
    pub(super) meaning: String,
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The sandbox held.
    Pass,
    /// It did not.
    Fail,
}

impl Probed {
    /// `held`: what stopped the attack, or what it got.
    pub(super) fn new(name: &str, meaning: &str, held: Result<String, String>) -> Self {
        let verdict = if held.is_ok() { Verdict::Pass } else { Verdict::Fail };
        let found = held.unwrap_or_else(|got| got);
        Self { name: name.to_owned(), verdict, found, meaning: meaning.to_owned() }
    }
}

/// All of them.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) engine: String,
    pub(super) image: String,
    pub(super) probes: Vec<Probed>,
}

impl Report {
    pub(super) fn failed(&self) -> usize {
        self.probes.iter().filter(|probe| probe.verdict == Verdict::Fail).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let safe = |text: &str| printable(OsStr::new(text));
        let width = self.probes.iter().map(|probe| probe.name.len()).max().unwrap_or(0);
        writeln!(formatter, "{} on {}", safe(&self.image), safe(&self.engine))?;
        for probe in &self.probes {
            let name = safe(&probe.name);
            let verdict = match probe.verdict {
                Verdict::Pass => "pass",
                Verdict::Fail => "fail",
            };
            writeln!(formatter, "{verdict}  {name:width$}  {}", safe(&probe.found))?;
            if probe.verdict == Verdict::Fail {
                writeln!(formatter, "      should hold: {}", safe(&probe.meaning))?;
            }
        }
        let (all, failed) = (self.probes.len(), self.failed());
        match failed {
            0 => write!(formatter, "all {all} probes passed"),
            _ => write!(
                formatter,
                "{failed} of {all} probes failed; docs/sandbox.md says what each means and what to do"
            ),
        }
    }
}

/// Reads what the helper printed. A report without its end, or with a line missing, is none.
pub(super) fn parse(text: &str) -> Result<Vec<Probed>, String> {
    let mut probes = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["end", count] if count.parse() == Ok(probes.len()) => return Ok(probes),
            ["end", count] => return Err(format!("{} of {count} answered", probes.len())),
            [name, verdict @ ("passed" | "failed"), found, meaning] => {
                let held = if verdict == "passed" { Ok(found.to_owned()) } else { Err(found.to_owned()) };
                probes.push(Probed::new(name, meaning, held));
            }
            _ => return Err(format!("`{}` is no answer", printable(OsStr::new(line)))),
        }
    }
    let last = probes.last().map_or("the first", |probe| probe.name.as_str());
    Err(format!("nothing came after {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_without_its_end_is_none() {
        let one = "a/b\tpassed\trefused\tIt holds.\n";
        assert_eq!(parse(&format!("{one}end\t1\n")).map(|probes| probes.len()), Ok(1));
        assert!(parse(one).is_err() && parse(&format!("{one}end\t2\n")).is_err());
        assert!(parse("Segmentation fault\n").is_err());
    }

    #[test]
    fn a_failure_says_what_should_hold() {
        let probes = vec![
            Probed::new("a/b", "It holds.", Ok("refused".into())),
            Probed::new("a/long", "That holds.", Err("got \u{1b}[31m".into())),
        ];
        let report = Report { engine: "1".into(), image: "i".into(), probes };
        assert_eq!(
            report.to_string(),
            "i on 1\npass  a/b     refused\nfail  a/long  got \\u{1b}[31m\n      should hold: That \
             holds.\n1 of 2 probes failed; docs/sandbox.md says what each means and what to do"
        );
    }
}
