//! The conductor: prepare, loop, check, repair, publish.

pub mod intake;
pub mod queue;
