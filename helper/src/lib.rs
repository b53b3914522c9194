//! Tidemill's part inside a container, on the standard library alone.
//!
//! It is linked statically and embedded in Tidemill, so it runs in any image, one without a shell included. The host
//! uses [`frame`], [`message`] and [`sync`] as well: both ends speak through one definition.

pub mod fields;
pub mod frame;
pub mod gateway;
pub mod init;
pub mod launch;
pub mod message;
#[cfg(target_os = "linux")]
pub mod probe;
pub mod sync;
pub mod sys;
