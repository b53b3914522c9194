//! Whether anybody has been in a sandbox since it started.

use tidemill_helper::message::kind;

use crate::sandbox::SandboxError;
use crate::sandbox::helper::client::Client;
use crate::sandbox::helper::route::Answer;

impl Client {
    /// Makes sure that nothing runs in the sandbox but the helper, and that nothing stands where commands can write.
    pub async fn untouched(&self) -> Result<(), SandboxError> {
        let mut asked = self.ask(kind::UNTOUCHED, Vec::new()).await?;
        match asked.next().await? {
            Answer::Done => Ok(()),
            Answer::Failed(failed) => Err(SandboxError::Unfit(failed.reason)),
            _ => Err(SandboxError::Unfit("the stream to its helper broke".to_owned())),
        }
    }
}
