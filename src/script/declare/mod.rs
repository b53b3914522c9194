//! What `mill.workflow` is given, read into the plain types of [`crate::workflow`].

pub(super) mod agent;
pub(super) mod columns;
pub(super) mod environment;
pub(super) mod image;
pub(super) mod limits;
pub(super) mod manifest;
mod mounts;
pub(super) mod network;
pub(super) mod packages;
pub(super) mod queueing;
mod sandbox;
pub(super) mod schema;
pub(super) mod workflow;
