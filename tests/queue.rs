//! The queue at work: which run begins when, what is tried again, and what people may ask of it.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod again;
mod cancel;
mod control;
mod order;
mod pending;
mod quarantine;
mod retry;
mod work;
