//! Schedules as arithmetic: which instants come next, and what becomes of those that have come. Nothing waits here.

mod cron;
pub mod due;
mod jitter;
pub mod plan;

pub use cron::check;
