//! Tidemill turns dropped files into checked artifacts.
//!
//! A file is dropped, or a signed request comes in through [`serve`] ([`trigger`]). It is matched to the [`workflow`]
//! that a Lua [`script`] declares, and queued in the [`store`]. The conductor ([`run`]) makes a [`sandbox`] and lets the
//! [`agent`] work in it with a [`model`]; every step passes the [`guard`]rails. What comes out is checked ([`expect`]),
//! repaired if need be, and published with a receipt ([`artifact`]). All of it is an [`event`], shown by [`report`], started from [`cli`].
//!
//! Scenes do not import each other; `run` hands values along.

pub mod agent;
pub mod artifact;
pub mod cli;
pub mod clock;
pub mod config;
pub mod diagnostic;
pub mod event;
pub mod expect;
pub mod guard;
pub mod model;
pub mod owner;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod script;
pub mod serve;
pub mod store;
pub mod trigger;
pub mod workflow;
