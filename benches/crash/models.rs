//! The model servers, which outlive every daemon and remember what they were asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use crate::actor::{Answer, answer};
use crate::talk::Talk;
use crate::wire::{Protocol, Reply, Seen, Wire};

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The whole conversation in short.
    pub conversation: String,
    /// The run it is about.
    pub run: String,
    /// Which daemon asked.
    pub life: String,
    /// When it was read.
    pub at: Timestamp,
    sent: Arc<AtomicBool>,
}

impl Ask {
    /// Whether the last byte of its answer was written.
    pub fn was_sent(&self) -> bool {
        self.sent.load(Ordering::SeqCst)
    }
}

/// Two servers, one for each protocol.
pub struct Models {
    responses: Wire,
    chat: Wire,
    asks: Arc<Mutex<Vec<Ask>>>,
    count: watch::Sender<usize>,
}

impl Models {
    /// Starts them on free ports.
    pub async fn start() -> Self {
        let asks = Arc::<Mutex<Vec<Ask>>>::default();
        let count = watch::Sender::new(0);
        let play = |asks: Arc<Mutex<Vec<Ask>>>, count: watch::Sender<usize>| {
            move |seen: &Seen| {
                let (reply, ask) = reply(seen);
                asks.lock().unwrap_or_else(PoisonError::into_inner).extend(ask);
                count.send_modify(|count| *count += 1);
                reply
            }
        };
        let (responses, chat) = (Wire::start(Protocol::Responses).await, Wire::start(Protocol::Chat).await);
        responses.otherwise(play(asks.clone(), count.clone()));
        chat.otherwise(play(asks.clone(), count.clone()));
        Self { responses, chat, asks, count }
    }

    /// Where they are: Responses, then Chat Completions.
    pub fn urls(&self) -> [String; 2] {
        [self.responses.base_url(), self.chat.base_url()]
    }

    /// All requests so far, in order.
    pub fn asks(&self) -> Vec<Ask> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many there were so far.
    pub fn count(&self) -> usize {
        *self.count.borrow()
    }

    /// Waits for the next one.
    pub async fn next(&self) {
        // The sender lives as long as this.
        let _ = self.count.subscribe().changed().await;
    }

    /// What was wrong with requests.
    pub fn complaints(&self) -> Vec<String> {
        [self.responses.complaints(), self.chat.complaints()].concat()
    }
}

/// How the log names the answer to a conversation: calls have ids that begin so, a last word holds it.
pub fn mark(conversation: &str) -> String {
    format!("call_{conversation}")
}

fn reply(seen: &Seen) -> (Reply, Option<Ask>) {
    let Some(talk) = Talk::of(seen) else {
        return (Reply::error(400, json!({ "error": { "message": "this is no run of ours" } })), None);
    };
    let mark = mark(&talk.hash);
    let sent = Arc::<AtomicBool>::default();
    let reply = match answer(&talk, &|number| format!("{mark}-{number}")) {
        Answer::Calls(calls) => Reply::calls(calls).ids_of(&mark),
        Answer::Says(text) => Reply::text(format!("{text} {mark}")),
    };
    let reply = reply.over(time(&talk.hash)).tells(sent.clone());
    let key = seen.header("authorization").unwrap_or_default();
    let life = key.trim_start_matches("Bearer ").to_owned();
    (reply, Some(Ask { conversation: talk.hash, run: talk.run, life, at: Timestamp::now(), sent }))
}

/// How long an answer takes: most are quick, some are slow enough to be hit.
fn time(hash: &str) -> Duration {
    let drawn = u64::from_str_radix(&hash[..4], 16).unwrap_or_default();
    let most = if drawn.is_multiple_of(5) { 800 } else { 120 };
    Duration::from_millis(drawn % most)
}
