//! Tidemill's part inside a container, on the standard library alone.
//!
//! It is linked statically and embedded in Tidemill, so it runs in any image, one without a shell included. The host
//! uses [`frame`] as well: both ends speak through one definition.

pub mod frame;
pub mod gateway;
