//! The drop folder: which files stand in the inbox, and which of them are complete.
//!
//! File events are hints. The truth is the [`scan`]: it looks at the whole inbox, and [`settle`] compares what it saw
//! with what it saw before. A [`watch`] only says "look again soon", so a lost event costs time and never a file.
//! [`names`] tells temporary names from real ones, [`routes`] which workflows a file is for.

pub mod names;
pub mod routes;
pub mod scan;
pub mod settle;
pub mod watch;
