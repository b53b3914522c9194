//! The container image a workflow's commands run in.

/// Where the image comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Image {
    /// A tag or digest on the engine; pulled when missing.
    Reference(String),
    /// A root-relative folder with a Dockerfile; built when its content has no image yet.
    Build(String),
}

impl Image {
    /// As the script says it.
    pub fn reference(&self) -> &str {
        match self {
            Self::Reference(reference) | Self::Build(reference) => reference,
        }
    }
}
