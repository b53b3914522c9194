//! What the scenes' tests share.

pub mod clock;
pub mod conduct;
pub mod engine;
pub mod outside;
pub mod project;
pub mod receiver;
pub mod registry;
pub mod stage;
pub mod way;
pub mod web;
pub mod wire;
