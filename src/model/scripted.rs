//! A model that plays a part: a list or a function says what it answers.

use std::fmt;

use async_trait::async_trait;

use crate::diagnostic::Result;
use crate::model::Item;

/// One answer of a scripted model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// What it says to people; may be empty.
    pub text: String,
    /// The tools it asks for: name and arguments, as the text a model would write.
    pub calls: Vec<(String, String)>,
}

/// Says what a scripted model answers; implemented here for lists and in `script` for Lua functions.
#[async_trait]
pub trait Play: Send + Sync + fmt::Debug {
    /// The answer to turn `turn` (from 1) of a conversation; `None` when the script has come to its end.
    async fn step(&self, turn: usize, items: &[Item]) -> Result<Option<Step>>;
}
/// s
#[derive(Debug)]
pub struct Scripted;
impl Scripted {
    /// s
    pub fn new(_: &str, _: Box<dyn Play>) -> Self {
        Self
    }
}
#[async_trait]
impl crate::model::Model for Scripted {
    fn name(&self) -> &str {
        ""
    }
    async fn respond(
        &self,
        _: &crate::model::Request<'_>,
        _: &(dyn Fn(crate::model::Delta) + Send + Sync),
    ) -> std::result::Result<crate::model::Response, crate::model::ModelError> {
        loop {}
    }
}
