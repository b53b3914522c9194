//! The daemon's socket: other processes wake it there, and ask how it is.
//!
//! One line of JSON asks, one answers. Nothing depends on it: what people want stands in the database, which the daemon
//! looks at every second in any case. The socket only shortens the wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

use crate::config::Project;
use crate::run::intake::Holder;
use crate::run::status::{Status, status};
use crate::store::Store;

/// A path longer than this is none for a socket.
const LONGEST_PATH: usize = 100;
/// A question is a few words.
const LONGEST_LINE: u64 = 4096;
/// A daemon that works answers at once; one that hangs is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Question {
    /// Look at the database now.
    Look,
    /// How are you?
    Status,
}

/// What is answered to `look`.
#[derive(Debug, Serialize, Deserialize)]
struct Looks {
    ok: bool,
}

fn path(state: &Path) -> Option<PathBuf> {
    let path = state.join("daemon.sock");
    (path.as_os_str().len() <= LONGEST_PATH).then_some(path)
}

/// The daemon's end. The socket goes away with it.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: Option<UnixListener>,
    path: Option<PathBuf>,
}

impl Socket {
    /// Listens in the state folder. Only for who holds the project's lock: a socket that stands there is a dead one's.
    /// Where there can be none, the daemon works without.
    pub(crate) fn open(state: &Path) -> Self {
        let path = path(state);
        let listener = path.as_deref().and_then(|path| listen(path).ok());
        Self { listener, path }
    }

    /// Answers for as long as it is polled.
    pub(crate) async fn serve(&self, store: &Store, holder: &Holder, wake: &Arc<Notify>) {
        let Some(listener) = &self.listener else { return std::future::pending().await };
        loop {
            match listener.accept().await {
                // One that asks slowly keeps nobody else from being answered.
                Ok((stream, _)) => {
                    let (store, holder, wake) = (store.clone(), holder.clone(), Arc::clone(wake));
                    tokio::spawn(tokio::time::timeout(PATIENCE, async move {
                        answer(stream, &store, &holder, &wake).await
                    }));
                }
                // Out of descriptors: the next look at the database comes by itself.
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some(path) = self.path.as_ref().filter(|_| self.listener.is_some()) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Nobody else may ask: the socket is made under another name, closed to others, and only then takes its place.
fn listen(path: &Path) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt as _;
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let listener = UnixListener::bind(&fresh)?;
    std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(&fresh, path)?;
    Ok(listener)
}

async fn answer(stream: UnixStream, store: &Store, holder: &Holder, wake: &Notify) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if (&mut stream).take(LONGEST_LINE).read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let text = match serde_json::from_str(&line) {
            Ok(Question::Look) => {
                wake.notify_one();
                serde_json::to_string(&Looks { ok: true })
            }
            Ok(Question::Status) => match status(store, Some(holder)).await {
                Ok(status) => serde_json::to_string(&status),
                Err(error) => serde_json::to_string(&error.report()),
            },
            // Not one of ours.
            Err(_) => return Ok(()),
        };
        stream.get_mut().write_all((text? + "\n").as_bytes()).await?;
    }
}

/// Has the daemon look at the database now, if there is one that listens.
pub async fn look(project: &Project) {
    let _ = ask::<Looks>(project, Question::Look).await;
}

/// How the daemon is, by its own words; nothing when none answers.
pub async fn ask_status(project: &Project) -> Option<Status> {
    ask(project, Question::Status).await
}

async fn ask<T: serde::de::DeserializeOwned>(project: &Project, question: Question) -> Option<T> {
    let path = path(&project.state())?;
    let asking = async {
        let mut stream = BufReader::new(UnixStream::connect(path).await.ok()?);
        let text = serde_json::to_string(&question).ok()? + "\n";
        stream.get_mut().write_all(text.as_bytes()).await.ok()?;
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        serde_json::from_str(&line).ok()
    };
    tokio::time::timeout(PATIENCE, asking).await.ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_path_that_is_too_long_for_a_socket_means_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("d".repeat(LONGEST_PATH));
        std::fs::create_dir(&deep).expect("a folder");
        let socket = Socket::open(&deep);
        assert!(socket.listener.is_none() && path(&deep).is_none());
        assert!(Socket::open(folder.path()).listener.is_some());
    }
}
