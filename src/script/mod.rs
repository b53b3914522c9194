//! The Lua host: a script goes in, a workflow and its hooks come out.
