//! Runs that go on after their process died: nothing is paid for twice, nothing is done twice.

mod agent;
mod checkpoints;
mod daemon;
mod killed;
mod published;
