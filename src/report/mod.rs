//! Events as people and programs read them.

pub mod progress;
pub mod screen;
