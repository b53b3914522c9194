//! The stream to a helper, however it is reached.

use std::fmt;
use std::io;
use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;
use tidemill_helper::message::KEY;
use tokio::io::AsyncWrite;

use crate::sandbox::{SandboxError, engine_gone};

/// Both directions of a stream.
pub struct Ends {
    /// To the helper.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// From it, in pieces of any size.
    pub output: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
}

/// Opens the stream to one helper.
#[async_trait]
pub trait Link: Send + Sync + fmt::Debug {
    /// Opens it, again when it broke. [`SandboxError::Gone`] when there is no helper any more.
    async fn open(&self) -> Result<Ends, SandboxError>;

    /// Whether there can be a second stream: one that is silent is then given up for another.
    fn reopens(&self) -> bool {
        true
    }
}

/// Why there is no helper any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loss {
    /// The sandbox is gone.
    Sandbox(String),
    /// The engine, or the way to it, is.
    Engine(String),
}

impl From<Loss> for SandboxError {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Sandbox(reason) => Self::Gone(reason),
            Loss::Engine(reason) => Self::Engine(engine_gone(&reason)),
        }
    }
}

/// What a host proves itself with to one helper; nobody in the sandbox knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(super) [u8; KEY]);

impl Key {
    /// A new one, from the kernel's random numbers.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; KEY];
        let flags = rustix::rand::GetRandomFlags::empty();
        let filled = rustix::rand::getrandom(&mut bytes, flags)?;
        if filled == KEY { Ok(Self(bytes)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// In hexadecimal, for the helper's environment.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// From hexadecimal.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; KEY];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Debug for Key {
    /// It is a secret of the host's.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}
