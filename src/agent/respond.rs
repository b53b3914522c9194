//! Asking the model once, with retries where they can help.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::agent::Agent;
use crate::agent::budget::Budget;
use crate::agent::deadline::Cut;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::event::usage::Usage;
use crate::model::{Delta, ModelError, Request, Response, Retry, estimate_tokens};
use crate::workflow::units::show_duration;

/// What asking came to.
pub(crate) enum Reply {
    /// An answer, and how long it took.
    Response(Response, Duration),
    /// The wall limit or a stop came first.
    Cut(Cut),
}

/// Which share of the wall limit an attempt may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// The time for work.
    Work,
    /// The time kept back for the closing turn.
    Closing,
}

impl Agent<'_> {
    /// Tries at most; a server that is down for longer than these waits is down.
    const TRIES: u32 = 6;
    /// The first wait; each further one is twice as long.
    const FIRST_WAIT: Duration = Duration::from_secs(1);
    /// No wait of our own choosing is longer.
    const LONGEST_WAIT: Duration = Duration::from_secs(60);

    /// Asks until there is an answer, a reason not to try again, or no time. A call that ends before its answer is
    /// whole is booked by what had come of it: most providers charge for that.
    pub(crate) async fn respond(
        &self,
        turn: u32,
        request: &Request<'_>,
        time: Time,
        budget: &mut Budget,
    ) -> Result<Reply> {
        let mut tries = 1;
        loop {
            let start = self.clock.elapsed();
            let streamed = Streamed::default();
            let count = |delta| streamed.count(&delta);
            let asking = self.model.respond(request, &count);
            let answer = match time {
                Time::Work => self.deadline.race(asking).await,
                Time::Closing => self.deadline.race_closing(asking).await,
            };
            let ended = match answer {
                Ok(Ok(response)) => {
                    return Ok(Reply::Response(response, self.clock.elapsed().saturating_sub(start)));
                }
                Ok(Err(error)) => Ok(error),
                Err(cut) => Err(cut),
            };
            let usage = streamed.usage(request);
            if let Some(usage) = usage {
                self.book_cut(turn, usage, budget).await?;
            }
            let error = match ended {
                Ok(error) => error,
                Err(cut) => return Ok(Reply::Cut(cut)),
            };
            let (wait, reason) = match self.wait_before_retry(error, tries) {
                Ok(waits) => waits,
                Err(diagnostic) => {
                    // A server that says no takes nothing; without a word here it would count as lost.
                    if usage.is_none() {
                        self.book_cut(turn, Usage::default(), budget).await?;
                    }
                    return Err(diagnostic);
                }
            };
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self.journal.append(What::ModelRetried { turn, reason, wait_ms }).await?;
            if let Err(cut) = self.deadline.race(self.clock.sleep(wait)).await {
                return Ok(Reply::Cut(cut));
            }
            tries += 1;
        }
    }

    pub(crate) async fn book_cut(&self, turn: u32, usage: Usage, budget: &mut Budget) -> Result<()> {
        let cost = budget.settle(usage);
        self.journal.append(What::ModelCut { turn, usage, cost }).await
    }

    /// How long to wait and why, or the error when waiting is no use.
    fn wait_before_retry(&self, error: ModelError, tries: u32) -> Result<(Duration, String)> {
        let ModelError { diagnostic, retry } = error;
        let Retry::After { asked } = retry else {
            return Err(diagnostic);
        };
        if tries >= Self::TRIES {
            return Err(given_up(diagnostic, &format!("it failed {tries} times")));
        }
        let doubled = Self::FIRST_WAIT.saturating_mul(1 << (tries - 1)).min(Self::LONGEST_WAIT);
        // Between half and the whole: runs that failed together do not come back together.
        let wait = asked.unwrap_or(Duration::ZERO).max(doubled.mul_f64(0.5 + fastrand::f64() / 2.0));
        let left = self.deadline.left();
        if wait > left {
            let wait = show_duration(wait);
            let left = show_duration(left);
            let why = format!("the next try is due in {wait}, and only {left} of the wall limit are left");
            return Err(given_up(diagnostic, &why));
        }
        Ok((wait, diagnostic.message().to_owned()))
    }
}

/// What has come of an answer so far.
#[derive(Debug, Default)]
struct Streamed {
    bytes: AtomicU64,
    pieces: AtomicU64,
}

impl Streamed {
    fn count(&self, delta: &Delta) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        if let Delta::Text(text) = delta {
            self.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        }
    }

    /// What a provider would charge for it: a piece is about a token. Nothing when nothing came.
    fn usage(&self, request: &Request<'_>) -> Option<Usage> {
        let pieces = self.pieces.load(Ordering::Relaxed);
        let output_tokens = pieces.max(self.bytes.load(Ordering::Relaxed) / 3);
        (pieces > 0).then(|| Usage {
            input_tokens: estimate_tokens(request),
            output_tokens,
            ..Usage::default()
        })
    }
}

fn given_up(diagnostic: Diagnostic, why: &str) -> Diagnostic {
    let message = format!("{}, and {why}", diagnostic.message());
    let help = diagnostic.advice().unwrap_or("drop the input again once the server answers").to_owned();
    Diagnostic::new(diagnostic.code(), message).help(help).cause(diagnostic)
}
