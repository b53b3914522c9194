//! What a sandbox may reach.

/// The network of a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing at all.
    #[default]
    None,
}
