//! Which things stand ready, of which kind, since when, and how many more may be made.

use std::time::{Duration, Instant};

/// What stands ready and what is on its way, within its bounds. The oldest stands first.
pub(super) struct Shelves<Kind, Item> {
    each: usize,
    total: usize,
    standing: Vec<(Kind, Instant, Item)>,
    coming: Vec<Kind>,
    state: State,
}

/// Whether anything may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Closed,
}

impl<Kind: PartialEq + Clone, Item> Shelves<Kind, Item> {
    /// Room for `each` of a kind, and for `total` in all.
    pub(super) fn new(each: usize, total: usize) -> Self {
        let each = each.min(total);
        Self { each, total, standing: Vec::new(), coming: Vec::new(), state: State::Open }
    }

    pub(super) fn standing(&self) -> usize {
        self.standing.len()
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// The oldest of a kind, for good, and since when it stood.
    pub(super) fn take(&mut self, kind: &Kind) -> Option<(Instant, Item)> {
        let at = self.standing.iter().position(|(of, ..)| of == kind)?;
        let (_, since, item) = self.standing.remove(at);
        Some((since, item))
    }

    /// How many of a kind are to be made: each must be [put](Self::put) here. What nobody asked for as lately may have to
    /// make room.
    pub(super) fn reserve(&mut self, kind: &Kind) -> (usize, Vec<Item>) {
        if !self.is_open() {
            return (0, Vec::new());
        }
        let have = self.standing.iter().filter(|(of, ..)| of == kind).count()
            + self.coming.iter().filter(|of| *of == kind).count();
        let missing = self.each.saturating_sub(have);
        let mut displaced = Vec::new();
        while self.room() < missing
            && let Some(at) = self.standing.iter().position(|(of, ..)| of != kind)
        {
            displaced.push(self.standing.remove(at).2);
        }
        let missing = missing.min(self.room());
        self.coming.extend(std::iter::repeat_n(kind.clone(), missing));
        (missing, displaced)
    }

    fn room(&self) -> usize {
        self.total.saturating_sub(self.standing.len() + self.coming.len())
    }

    /// What was reserved has come, or will not. Gives it back when it is too late for it.
    pub(super) fn put(&mut self, kind: &Kind, item: Option<Item>, now: Instant) -> Option<Item> {
        if let Some(at) = self.coming.iter().position(|of| of == kind) {
            self.coming.swap_remove(at);
        }
        let item = item?;
        if !self.is_open() {
            return Some(item);
        }
        self.standing.push((kind.clone(), now, item));
        None
    }

    /// Those that have stood longer than `age`.
    pub(super) fn take_older(&mut self, age: Duration, now: Instant) -> Vec<Item> {
        let old = |since: Instant| now.saturating_duration_since(since) > age;
        self.standing.extract_if(.., |(_, since, _)| old(*since)).map(|(.., item)| item).collect()
    }

    /// Takes nothing in from now on, and gives all that stands.
    pub(super) fn close(&mut self) -> Vec<Item> {
        self.state = State::Closed;
        self.standing.drain(..).map(|(.., item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(shelves: &mut Shelves<char, u32>, kind: char, first: u32, now: Instant) -> Vec<u32> {
        let (missing, displaced) = shelves.reserve(&kind);
        for item in (first..).take(missing) {
            assert_eq!(shelves.put(&kind, Some(item), now), None);
        }
        displaced
    }

    #[test]
    fn the_oldest_of_a_kind_is_given_once() {
        let (mut shelves, now) = (Shelves::new(2, 4), Instant::now());
        fill(&mut shelves, 'a', 1, now);
        let taken = [shelves.take(&'a'), shelves.take(&'b'), shelves.take(&'a'), shelves.take(&'a')];
        assert_eq!(taken, [Some((now, 1)), None, Some((now, 2)), None]);
    }

    #[test]
    fn what_is_coming_is_not_made_twice_and_what_failed_is_made_again() {
        let mut shelves: Shelves<char, u32> = Shelves::new(2, 8);
        assert_eq!(shelves.reserve(&'a').0, 2);
        assert_eq!(shelves.reserve(&'a').0, 0);
        assert_eq!(shelves.put(&'a', None, Instant::now()), None);
        assert_eq!(shelves.reserve(&'a').0, 1);
    }

    #[test]
    fn the_oldest_of_other_kinds_make_room_and_the_total_holds() {
        let (mut shelves, now) = (Shelves::new(2, 3), Instant::now());
        assert!(fill(&mut shelves, 'a', 1, now).is_empty());
        assert_eq!(fill(&mut shelves, 'b', 3, now), [1]);
        assert_eq!((shelves.standing(), shelves.take(&'a')), (3, Some((now, 2))));
        let mut narrow: Shelves<char, u32> = Shelves::new(5, 2);
        assert_eq!(narrow.reserve(&'a').0, 2);
        assert_eq!(narrow.reserve(&'b').0, 0, "what is coming cannot make room");
        assert_eq!(Shelves::<char, u32>::new(0, 8).reserve(&'a').0, 0);
    }

    #[test]
    fn what_stands_too_long_goes() {
        let (mut shelves, now) = (Shelves::new(1, 4), Instant::now());
        let minute = Duration::from_secs(60);
        fill(&mut shelves, 'a', 1, now);
        fill(&mut shelves, 'b', 2, now + 5 * minute);
        assert!(shelves.take_older(10 * minute, now + 10 * minute).is_empty());
        assert_eq!(shelves.take_older(10 * minute, now + 11 * minute), [1]);
        assert_eq!(shelves.standing(), 1);
    }

    #[test]
    fn closed_shelves_take_nothing_in() {
        let (mut shelves, now) = (Shelves::new(2, 4), Instant::now());
        assert_eq!(shelves.reserve(&'a').0, 2);
        shelves.put(&'a', Some(1), now);
        assert_eq!(shelves.close(), [1]);
        assert_eq!(shelves.put(&'a', Some(2), now), Some(2), "it came too late");
        assert_eq!((shelves.reserve(&'a').0, shelves.take(&'a')), (0, None));
    }
}
