//! The drop folder: which files stand in the inbox, and which of them are complete.
//!
//! File events are hints: they mark folders as [`dirty`]. The truth is the [`scan`]: it looks at a [`scope`], some folders
//! or the whole inbox, and [`settle`] compares what it saw with what it saw before. A [`watch`] makes the looks and sets
//! the watches on its way, [`pace`] says when to look without a hint, so a lost event costs time and never a file.
//! [`names`] tells temporary names from real ones, [`routes`] which workflows a file is for, with [`captures`] what its path
//! says. What is complete is a [`parcel`]: a file, or a batch, with the [`company`] that goes with it; [`loops`] tells when
//! something is dropped in circles.

mod armed;
pub mod batch;
pub mod captures;
pub mod company;
pub mod dirty;
mod doubt;
mod existing;
mod gather;
pub mod judge;
pub mod limits;
pub mod links;
pub mod looked;
pub mod loops;
mod mounts;
pub mod names;
mod order;
pub mod pace;
pub mod parcel;
mod polled;
pub mod routes;
pub mod scan;
pub mod scope;
pub mod settle;
pub mod template;
pub mod watch;
