//! What was refused, said now and then: whoever sends much must not fill the screen.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::run::intake::notice::{Notice, Tell};

/// Refusals by webhook.
#[derive(Debug)]
pub(super) struct Complaints {
    tell: Tell,
    by_hook: Mutex<BTreeMap<String, Complaint>>,
}

/// Those of one webhook.
#[derive(Debug)]
struct Complaint {
    /// When it was last said.
    said: Duration,
    /// Those since that were not.
    unsaid: u64,
}

impl Complaints {
    /// One webhook is spoken of once in this time.
    const PAUSE: Duration = Duration::from_secs(10);

    pub(super) fn new(tell: Tell) -> Self {
        Self { tell, by_hook: Mutex::default() }
    }

    /// A request for `hook` was refused at `now`, by the clock's elapsed time.
    pub(super) fn refused(&self, hook: &str, why: &str, now: Duration) {
        let count = {
            let mut all = self.by_hook.lock().unwrap_or_else(PoisonError::into_inner);
            match all.get_mut(hook) {
                Some(known) if now.saturating_sub(known.said) < Self::PAUSE => {
                    known.unsaid = known.unsaid.saturating_add(1);
                    return;
                }
                Some(known) => {
                    let count = known.unsaid.saturating_add(1);
                    *known = Complaint { said: now, unsaid: 0 };
                    count
                }
                None => {
                    all.insert(hook.to_owned(), Complaint { said: now, unsaid: 0 });
                    1
                }
            }
        };
        self.tell.say(Notice::Refused { hook: hook.to_owned(), count, why: why.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_flood_is_one_line_in_ten_seconds() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let ear = Arc::clone(&said);
        let complaints = Complaints::new(Tell::to(move |notice| {
            let Notice::Refused { hook, count, .. } = notice else { return };
            ear.lock().expect("the list").push(format!("{hook} {count}"));
        }));
        for millis in 0..1_000 {
            complaints.refused("a", "forged", Duration::from_millis(millis));
        }
        complaints.refused("b", "forged", Duration::from_secs(1));
        complaints.refused("a", "forged", Duration::from_secs(10));
        assert_eq!(*said.lock().expect("the list"), ["a 1", "b 1", "a 1000"]);
    }
}
