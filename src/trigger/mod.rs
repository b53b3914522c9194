//! What starts runs besides `tidemill run`: files that are dropped, the clock, and signed requests.

pub mod drop_folder;
pub mod schedule;
pub mod webhook;
