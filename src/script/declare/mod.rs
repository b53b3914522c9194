//! What `mill.workflow` is given, read into the plain types of [`crate::workflow`].

pub(super) mod agent;
pub(super) mod columns;
pub(super) mod limits;
pub(super) mod manifest;
pub(super) mod network;
pub(super) mod schema;
pub(super) mod workflow;
