//! The host's side of the helper: commands and files over one stream, for whatever kind of sandbox holds it.

mod client;
mod files;
mod link;
mod process;
mod route;
mod take;
#[cfg(test)]
mod tests;
mod untouched;

use std::sync::LazyLock;

use crate::event::id::Digest;

pub use client::{Client, PAUSED};
pub use files::Piece;
pub use link::{Ends, Key, Link};
pub use process::{Held, Next, Process};

/// The program itself, linked statically for this machine's architecture; empty where there is none.
pub static PROGRAM: &[u8] = include_bytes!(env!("TIDEMILL_HELPER"));

/// The hash of [`PROGRAM`].
pub static DIGEST: LazyLock<Digest> = LazyLock::new(|| Digest::of(PROGRAM));
