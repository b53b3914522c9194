//! What an image says of how it was made: one label, because the engine makes a layer of each.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The label of every image that is made here.
pub const IMAGE_LABEL: &str = "tidemill.image";

/// How an image was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Made {
    /// The folder or image it was declared as; the script of a base.
    pub(super) of: String,
    /// The project's hash; empty for a base, which is everyone's.
    pub(super) project: String,
    /// The hash of all that decides what is built, the bases excepted.
    pub(super) content: String,
    /// The ids of the bases.
    pub(super) bases: Vec<String>,
    /// What a base was replaced with, so that it is known without building again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) substitute: Option<String>,
}

impl Made {
    /// As a label's value.
    pub(super) fn label(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads it from an image's labels; what cannot be read was made by somebody else.
    pub(super) fn of(labels: &HashMap<String, String>) -> Option<Self> {
        serde_json::from_str(labels.get(IMAGE_LABEL)?).ok()
    }
}
