//! Asking the model once, with retries where they can help.

use std::time::Duration;

use crate::agent::Agent;
use crate::agent::deadline::Cut;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::What;
use crate::model::{ModelError, Request, Response, Retry};
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

    /// Asks until there is an answer, a reason not to try again, or no time.
    pub(crate) async fn respond(&self, turn: u32, request: &Request<'_>, time: Time) -> Result<Reply> {
        let mut tries = 1;
        loop {
            let start = self.clock.elapsed();
            let asking = self.model.respond(request, &|_| {});
            let answer = match time {
                Time::Work => self.deadline.race(asking).await,
                Time::Closing => self.deadline.race_closing(asking).await,
            };
            let error = match answer {
                Err(cut) => return Ok(Reply::Cut(cut)),
                Ok(Ok(response)) => {
                    return Ok(Reply::Response(response, self.clock.elapsed().saturating_sub(start)));
                }
                Ok(Err(error)) => error,
            };
            let wait = self.wait_before_retry(error, tries)?;
            let reason = wait.1;
            let wait = wait.0;
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            self.journal.append(What::ModelRetried { turn, reason, wait_ms }).await?;
            if let Err(cut) = self.deadline.race(self.clock.sleep(wait)).await {
                return Ok(Reply::Cut(cut));
            }
            tries += 1;
        }
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

fn given_up(diagnostic: Diagnostic, why: &str) -> Diagnostic {
    let message = format!("{}, and {why}", diagnostic.message());
    let help = diagnostic.advice().unwrap_or("drop the input again once the server answers").to_owned();
    Diagnostic::new(diagnostic.code(), message).help(help).cause(diagnostic)
}
