//! What starts runs besides `tidemill run`: files that are dropped, and the clock.

pub mod drop_folder;
pub mod schedule;
