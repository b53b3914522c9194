//! The conductor: prepare, loop, check, repair, publish.
//!
//! [`conductor::Conductor`] takes one queued run through the story, scene by scene, and hands values along.
//! [`intake`] turns dropped files into queued runs, [`queue`] works them off.

pub mod abandoned;
pub mod cancel;
pub mod checkpoint;
pub mod checks;
pub mod conductor;
pub mod deliveries;
pub mod ended;
pub mod engines;
pub mod folder;
pub mod gc;
pub mod gc_daily;
pub mod guarded;
pub mod hooks;
pub mod inputs;
pub mod intake;
pub mod journal;
pub mod listing;
pub mod models;
pub mod network;
pub mod outcome;
pub mod past;
pub mod patience;
mod pause;
mod published;
pub mod queue;
pub mod redact;
pub mod reload;
pub mod retry;
pub(crate) mod room;
pub mod route;
pub mod schedules;
mod shelter;
pub mod socket;
pub mod status;
mod story;
pub mod sweeping;
mod taken;
pub mod watching;
mod work;
pub mod workspace;
