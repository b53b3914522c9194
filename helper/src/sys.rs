//! What the standard library does not offer, and the C library does.

pub mod confine;
pub mod probe;
