//! noop
fn main() {}
