//! The way to the engine, which a test can cut, freeze and mend.

use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// How the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Cut,
    Frozen,
}

/// A socket of ours that leads to the engine's.
pub struct Way {
    folder: TempDir,
    state: watch::Sender<State>,
    strands: watch::Sender<u32>,
    _serving: AbortOnDropHandle<()>,
}

impl Way {
    /// Opens it.
    pub fn open() -> Self {
        let folder = TempDir::with_prefix("tidemill-test-").expect("a temporary folder");
        let listener = UnixListener::bind(folder.path().join("engine.sock")).expect("a socket");
        let state = watch::Sender::new(State::Open);
        let strands = watch::Sender::new(0);
        let serving = tokio::spawn(serve(listener, state.clone(), strands.clone()));
        Self { folder, state, strands, _serving: AbortOnDropHandle::new(serving) }
    }

    /// As `DOCKER_HOST`.
    pub fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("engine.sock").display())
    }

    /// Every connection ends, and there is no new one: a daemon that is down.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Nothing comes through, and nothing ends: a daemon that hangs.
    pub fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    /// Nothing more comes through what is open now, and it does not end either; what is opened from now on works.
    pub fn strand(&self) {
        self.strands.send_modify(|strands| *strands += 1);
    }

    /// All goes on.
    pub fn mend(&self) {
        self.state.send_replace(State::Open);
    }
}

async fn serve(listener: UnixListener, state: watch::Sender<State>, strands: watch::Sender<u32>) {
    while let Ok((near, _)) = listener.accept().await {
        if *state.borrow() != State::Cut {
            let mut stranded = strands.subscribe();
            let connected = connect(near, state.subscribe());
            tokio::spawn(async move {
                tokio::pin!(connected);
                tokio::select! {
                    () = &mut connected => {}
                    // What it holds stays open as long as this waits.
                    _ = stranded.changed() => std::future::pending().await,
                }
            });
        }
    }
}

async fn connect(near: UnixStream, state: watch::Receiver<State>) {
    let Ok(far) = UnixStream::connect(socket()).await else {
        return;
    };
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    let mut cut = state.clone();
    let both =
        async { tokio::join!(carry(from_near, to_far, state.clone()), carry(from_far, to_near, state)) };
    tokio::select! {
        _ = both => {}
        _ = cut.wait_for(|state| *state == State::Cut) => {}
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = from.read(&mut piece).await.unwrap_or(0);
        if state.wait_for(|state| *state == State::Open).await.is_err() {
            return;
        }
        if length == 0 {
            // The other direction may go on.
            let _ = to.shutdown().await;
            return;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// The engine's own socket.
fn socket() -> PathBuf {
    let named =
        std::env::var("DOCKER_HOST").ok().and_then(|host| Some(PathBuf::from(host.strip_prefix("unix://")?)));
    let socket = named.unwrap_or_else(|| PathBuf::from("/var/run/docker.sock"));
    let kind = std::fs::metadata(&socket).expect("an engine's socket").file_type();
    assert!(kind.is_socket(), "these tests need an engine behind a socket");
    socket
}
