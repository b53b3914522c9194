//! HTTP: requests come in and answers go out; what they mean is `run`'s.

mod answer;
mod body;
mod server;

pub use server::Server;
