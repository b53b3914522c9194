//! The ledger: every input the drop folder ever saw, and why it stands where it stands.

/// An input's row.
pub type InputId = i64;
