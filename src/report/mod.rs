//! Events as people and programs read them.

pub mod fold;
pub mod line;
pub mod progress;
pub mod screen;
pub mod summary;
