//! What was decided, and how often: each decision is told once when it is new, and its numbers when they changed.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::lock;

/// Decisions that are told apart; a program that tries names without end must not fill the log.
const MOST: usize = 256;
/// Stands for the names of all decisions beyond.
pub const OTHERS: &str = "(others)";

/// What was decided.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decision {
    /// `dns`, `tls`, `http`, `swap` or `tcp`.
    pub protocol: String,
    /// The name asked for.
    pub name: String,
    /// The port; 0 where there is none.
    pub port: u16,
    /// Why it was refused; empty when it was allowed.
    pub refused: String,
}

/// How often, and how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Times it was decided.
    pub times: u64,
    /// Bytes from the sandbox.
    pub sent: u64,
    /// Bytes to the sandbox.
    pub received: u64,
}

/// Everything decided so far.
#[derive(Debug, Default)]
pub struct Tallies {
    known: Mutex<BTreeMap<Decision, (Count, Told)>>,
}

/// Whether the host knows the present numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
}

/// Whether a decision was made for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was.
    First,
    /// It was not.
    Again,
}

impl Tallies {
    /// Adds to the numbers of a decision. Gives the decision as it is kept, and whether it is new.
    pub fn add(&self, decision: &Decision, more: Count) -> (Decision, Count, Seen) {
        let mut known = lock(&self.known);
        let mut decision = decision.clone();
        if !known.contains_key(&decision) && known.len() >= MOST {
            // How many kinds of these there are is small: a few protocols, ports of the list, and fixed reasons.
            OTHERS.clone_into(&mut decision.name);
            if !decision.refused.is_empty() {
                "refused".clone_into(&mut decision.refused);
            }
        }
        let seen = if known.contains_key(&decision) { Seen::Again } else { Seen::First };
        let (count, told) = known.entry(decision.clone()).or_insert((Count::default(), Told::No));
        count.times += more.times;
        count.sent += more.sent;
        count.received += more.received;
        *told = if seen == Seen::First { Told::Yes } else { Told::No };
        (decision, *count, seen)
    }

    /// What the host does not know yet; afterwards it does.
    pub fn news(&self) -> Vec<(Decision, Count)> {
        let mut known = lock(&self.known);
        let news = known.iter_mut().filter(|(_, (_, told))| *told == Told::No);
        news.map(|(decision, (count, told))| {
            *told = Told::Yes;
            (decision.clone(), *count)
        })
        .collect()
    }
}

/// A tally as text.
pub fn encode(decision: &Decision, count: Count) -> String {
    let Decision { protocol, name, port, refused } = decision;
    let name = name.replace(|character: char| !character.is_ascii_graphic() && character != ' ', "?");
    let Count { times, sent, received } = count;
    format!("{protocol}\t{name}\t{port}\t{times}\t{sent}\t{received}\t{refused}")
}

/// Reads what [`encode`] wrote.
pub fn parse(text: &str) -> Option<(Decision, Count)> {
    let mut words = text.splitn(7, '\t');
    let mut word = || words.next();
    let (protocol, name, port) = (word()?.to_owned(), word()?.to_owned(), word()?.parse().ok()?);
    let (times, sent, received) = (word()?.parse().ok()?, word()?.parse().ok()?, word()?.parse().ok()?);
    let refused = word()?.to_owned();
    Some((Decision { protocol, name, port, refused }, Count { times, sent, received }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> Decision {
        Decision { protocol: "dns".into(), name: name.into(), port: 0, refused: "not on the list".into() }
    }

    const ONCE: Count = Count { times: 1, sent: 0, received: 0 };

    #[test]
    fn a_decision_is_news_once_and_then_a_number() {
        let tallies = Tallies::default();
        assert_eq!(tallies.add(&refused("a"), ONCE).2, Seen::First);
        assert!(tallies.news().is_empty());
        assert_eq!(tallies.add(&refused("a"), ONCE).2, Seen::Again);
        let news = tallies.news();
        assert_eq!(news, [(refused("a"), Count { times: 2, ..Count::default() })]);
        assert!(tallies.news().is_empty());
    }

    #[test]
    fn names_without_end_become_one_number() {
        let tallies = Tallies::default();
        let first = (0..10_000).filter(|n| tallies.add(&refused(&format!("n{n}")), ONCE).2 == Seen::First);
        assert_eq!(first.count(), MOST + 1);
        let others = tallies.news().into_iter().find(|(decision, _)| decision.name == OTHERS);
        assert_eq!(others.map(|(_, count)| count.times), Some(10_000 - MOST as u64));
    }

    #[test]
    fn a_tally_survives_its_text() {
        let count = Count { times: 3, sent: 10, received: 20 };
        let text = encode(&refused("a\tb\u{1b}[31m"), count);
        assert_eq!(parse(&text), Some((refused("a?b?[31m"), count)));
        assert_eq!(parse("dns\ta\tx"), None);
    }
}
