//! What a sandbox reached and was refused: each kind is an event when it is new, and all of it is one at the end.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::diagnostic::Diagnostic;
use crate::event::What;
use crate::event::network::{Contact, Use};

/// Counts, and tells.
#[derive(Debug)]
pub(super) struct Ledger {
    events: mpsc::UnboundedSender<What>,
    used: Mutex<BTreeMap<Contact, Use>>,
}

impl Ledger {
    /// Tells `events`.
    pub(super) fn new(events: mpsc::UnboundedSender<What>) -> Self {
        Self { events, used: Mutex::default() }
    }

    /// The numbers of a kind of contact are these now.
    pub(super) fn set(&self, one: Use) {
        let contact = one.contact.clone();
        let known = self.used().insert(contact.clone(), one);
        self.tell(known.is_none().then_some(contact));
    }

    /// There was such contact once more.
    pub(super) fn count(&self, contact: Contact) {
        let mut used = self.used();
        let one = used.entry(contact.clone()).or_insert(Use { contact, times: 0, sent: 0, received: 0 });
        one.times += 1;
        let first = (one.times == 1).then(|| one.contact.clone());
        drop(used);
        self.tell(first);
    }

    /// Tells of a contact that is new.
    fn tell(&self, first: Option<Contact>) {
        if let Some(contact) = first {
            // Nobody listens when the run has ended otherwise.
            let _ = self.events.send(What::NetworkDecided { contact });
        }
    }

    /// Something a person should know.
    pub(super) fn warn(&self, warning: Diagnostic) {
        let _ = self.events.send(What::Warned { report: warning.warning().report() });
    }

    /// No more comes: all in one.
    pub(super) fn finish(&self) {
        let used: Vec<Use> = std::mem::take(&mut *self.used()).into_values().collect();
        if !used.is_empty() {
            let _ = self.events.send(What::NetworkEnded { used });
        }
    }

    fn used(&self) -> MutexGuard<'_, BTreeMap<Contact, Use>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
