//! The drop folder: which files stand in the inbox, and which of them are complete.
//!
//! File events are hints: they mark folders as [`dirty`]. The truth is the [`scan`]: it looks at a [`scope`], some folders
//! or the whole inbox, and [`settle`] compares what it saw with what it saw before. A [`watch`] makes the looks and sets
//! the watches on its way, [`pace`] says when to look without a hint, so a lost event costs time and never a file.
//! [`names`] tells temporary names from real ones, [`routes`] which workflows a file is for.

mod armed;
pub mod dirty;
mod doubt;
pub mod limits;
pub mod looked;
mod mounts;
pub mod names;
pub mod pace;
mod polled;
pub mod routes;
pub mod scan;
pub mod scope;
pub mod settle;
pub mod watch;
