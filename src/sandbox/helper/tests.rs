//! A helper that falls silent because somebody has paused its container, and time that passes at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tidemill_helper::frame::{Decoder, Frame};
use tidemill_helper::message::{VERSION, kind};
use tidemill_helper::sync::Sync as Begin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::time::Instant;
use tokio_util::io::ReaderStream;

use crate::diagnostic::Diagnostic;
use crate::sandbox::helper::client::UNANSWERED;
use crate::sandbox::helper::{Client, Ends, Key, Link, PAUSED};
use crate::sandbox::{Command, SandboxError};
use crate::workflow::path::WorkspacePath;

/// Answers the first greeting and nothing after it; there is no second stream.
#[derive(Debug)]
struct Pausing {
    key: Key,
    opened: AtomicU32,
    version: u32,
}

#[async_trait]
impl Link for Pausing {
    async fn open(&self) -> Result<Ends, SandboxError> {
        if self.opened.fetch_add(1, Ordering::Relaxed) > 0 {
            return Err(SandboxError::Engine(Diagnostic::new(PAUSED, "the sandbox's container is paused")));
        }
        let ((input, heard), (said, output)) = (tokio::io::duplex(1 << 20), tokio::io::duplex(1 << 20));
        tokio::spawn(greet_once(self.key.clone(), self.version, heard, said));
        Ok(Ends { input: Box::pin(input), output: Box::pin(ReaderStream::new(output)) })
    }
}

async fn greet_once(key: Key, version: u32, mut heard: DuplexStream, mut said: DuplexStream) {
    let (mut begin, mut decoder, mut piece, mut met) =
        (Begin::new(key.0), Decoder::default(), [0; 4096], false);
    loop {
        let length = heard.read(&mut piece).await.unwrap();
        let mut bytes = &piece[..length];
        if let Some(end) = begin.find(bytes) {
            (bytes, met) = (&bytes[end..], true);
        }
        if met {
            decoder.feed(bytes);
        }
        if let Some(hello) = decoder.next().unwrap().filter(|frame| frame.kind == kind::HELLO) {
            let mut ready = Vec::new();
            let payload = [&hello.payload[size_of::<u32>()..], &version.to_le_bytes()].concat();
            Frame::new(kind::READY, 0, payload).encode(&mut ready);
            said.write_all(&ready).await.unwrap();
            // Both ends stay open, and nothing comes any more.
            return std::future::pending().await;
        }
    }
}

async fn meet(version: u32) -> Result<Client, SandboxError> {
    let key = Key::random().unwrap();
    let link = Pausing { key: key.clone(), opened: AtomicU32::new(0), version };
    Client::connect(Arc::new(link), key).await
}

async fn paused() -> Client {
    meet(VERSION).await.unwrap()
}

fn code<T: std::fmt::Debug>(outcome: Result<T, SandboxError>) -> String {
    match outcome {
        Err(SandboxError::Engine(diagnostic)) => diagnostic.code().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_in_a_paused_container_is_waited_for_no_longer_than_its_timeout_and_some() {
    let (client, start) = (paused().await, Instant::now());
    let command = Command { argv: vec!["true".to_owned()], timeout: Duration::from_secs(600) };
    assert_eq!(code(client.exec(&command).await), "sandbox::no_answer");
    assert_eq!(start.elapsed().as_secs(), 600 + UNANSWERED.as_secs(), "a person may look at it for a while");
}

#[tokio::test(start_paused = true)]
async fn a_file_in_a_paused_container_is_not_waited_for_for_ever() {
    let client = paused().await;
    let path = WorkspacePath::parse("x").unwrap();
    assert_eq!(code(client.read_whole(&path, 1).await), "sandbox::no_answer");
}

#[tokio::test(start_paused = true)]
async fn a_helper_of_another_version_is_not_talked_to() {
    assert_eq!(code(meet(VERSION + 1).await.map(drop)), "sandbox::other_version");
}
