//! What starts a workflow besides `tidemill run`.

/// Files dropped into the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Pattern relative to the inbox: `*` within a folder, `**` across folders, `{a,b}`, `[0-9]`.
    pub glob: String,
}
