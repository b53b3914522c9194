//! One conversation with a helper, which goes on when its stream breaks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use tidemill_helper::frame::{Decoder, Frame};
use tidemill_helper::message::{VERSION, kind};
use tidemill_helper::sync::Sync;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::diagnostic::Diagnostic;
use crate::sandbox::SandboxError;
use crate::sandbox::helper::link::{Ends, Key, Link, Loss};
use crate::sandbox::helper::route::Routes;
use crate::workflow::units::show_duration;

/// A helper answers at once; an engine under load takes a while to start it.
const GREETING: Duration = Duration::from_secs(20);
/// How often the helper is told that somebody is here.
const PING: Duration = Duration::from_secs(3);
/// Frames that wait to be written.
const WAITING: usize = 64;
/// A helper that answers no ping for so long is not reached any more: another stream may.
const SILENCE: Duration = Duration::from_secs(15);
/// How long a broken stream is tried to be opened again, with pauses that grow: a daemon that restarts takes some
/// seconds, and one that is updated takes some more.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long anything may go unanswered: longer than it takes to find out that the stream broke, and to open it again.
pub(super) const UNANSWERED: Duration = PATIENCE.saturating_add(Duration::from_secs(30));
/// The code of a link's complaint that says: somebody has stopped the sandbox, and can let it go on.
pub const PAUSED: &str = "sandbox::paused";

/// A conversation with one helper.
#[derive(Clone)]
pub struct Client {
    pub(super) shared: Arc<Shared>,
    /// Environment variables of every command, besides the helper's own.
    pub(super) environment: Arc<Variables>,
    _talk: Arc<AbortOnDropHandle<()>>,
}

/// Names and values.
pub(super) type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// What the conversation and those who ask share.
pub(super) struct Shared {
    pub(super) routes: Routes,
    requests: mpsc::Sender<Frame>,
    asides: mpsc::UnboundedSender<Frame>,
    next: AtomicU32,
    /// Why there is no helper any more.
    gone: OnceLock<Loss>,
}

impl Client {
    /// Opens the stream and waits until the helper answers.
    pub async fn connect(link: Arc<dyn Link>, key: Key) -> Result<Self, SandboxError> {
        let ends = link.open().await?;
        Self::connect_over(ends, link, key).await
    }

    /// Waits until the helper answers on a stream that is open already; `link` opens it again when it breaks.
    pub async fn connect_over(ends: Ends, link: Arc<dyn Link>, key: Key) -> Result<Self, SandboxError> {
        let greeted = greet(ends, &key).await?;
        let (requests, requested) = mpsc::channel(WAITING);
        let (asides, mentioned) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            routes: Routes::default(),
            requests,
            asides,
            // Commands of a host that was there before keep their ids.
            next: AtomicU32::new(fastrand::u32(..)),
            gone: OnceLock::new(),
        });
        let talk = tokio::spawn(talk(link, key, greeted, Said { requested, mentioned }, shared.clone()));
        let talk = Arc::new(AbortOnDropHandle::new(talk));
        Ok(Self { shared, environment: Arc::default(), _talk: talk })
    }

    /// Gives every command these environment variables.
    #[must_use]
    pub fn with_environment(mut self, variables: &BTreeMap<String, String>) -> Self {
        let variables = variables.iter();
        let bytes = variables.map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()));
        self.environment = Arc::new(bytes.collect());
        self
    }
}

impl Shared {
    /// An id nobody uses.
    pub(super) fn id(&self) -> u32 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Says something to the helper.
    pub(super) async fn say(&self, frame: Frame) -> Result<(), SandboxError> {
        if self.gone.get().is_some() {
            return Err(self.lost());
        }
        match self.requests.send_timeout(frame, UNANSWERED).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Timeout(_)) => Err(unanswered()),
            Err(SendTimeoutError::Closed(_)) => Err(self.lost()),
        }
    }

    /// Why there are no answers any more.
    pub(super) fn lost(&self) -> SandboxError {
        let ended = || Loss::Sandbox("its helper has ended".to_owned());
        self.gone.get().cloned().unwrap_or_else(ended).into()
    }

    /// Says something small without waiting, for the end of a scope.
    pub(super) fn mention(&self, frame: Frame) {
        // When there is no helper any more, there is nothing to say to it.
        let _ = self.asides.send(frame);
    }
}

/// What there is to say.
struct Said {
    requested: mpsc::Receiver<Frame>,
    mentioned: mpsc::UnboundedReceiver<Frame>,
}

/// A stream on which the helper has answered, and what it has said since.
struct Greeted {
    ends: Ends,
    decoder: Decoder,
}

/// Says hello over an open stream, in reasonable time.
async fn greet(ends: Ends, key: &Key) -> Result<Greeted, SandboxError> {
    let greeting = timeout(GREETING, say_hello(ends, key)).await;
    greeting.unwrap_or_else(|_| Err(broken(&std::io::Error::from(std::io::ErrorKind::TimedOut))))
}

/// Says hello, and reads up to the answer: what comes before it was meant for somebody else.
async fn say_hello(mut ends: Ends, key: &Key) -> Result<Greeted, SandboxError> {
    let nonce = Key::random().map_err(|error| broken(&error))?;
    let mut hello = key.0.to_vec();
    let payload = [VERSION.to_le_bytes().as_slice(), &nonce.0].concat();
    Frame::new(kind::HELLO, 0, payload).encode(&mut hello);
    let answering = async {
        ends.input.write_all(&hello).await?;
        ends.input.flush().await?;
        let (mut sync, mut decoder, mut seen) = (Sync::new(nonce.0), Decoder::default(), Vec::new());
        let mut found = false;
        while let Some(piece) = ends.output.next().await {
            let piece = piece?;
            if found {
                seen.extend_from_slice(&piece);
            } else if let Some(end) = sync.find(&piece) {
                found = true;
                seen.extend_from_slice(&piece[end..]);
            }
            // The version follows the nonce; nothing else has been said yet but what comes after it.
            if found && let Some((version, rest)) = seen.split_first_chunk() {
                decoder.feed(rest);
                return Ok((u32::from_le_bytes(*version), decoder));
            }
        }
        Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
    };
    match answering.await {
        Ok((VERSION, decoder)) => Ok(Greeted { ends, decoder }),
        Ok((version, _)) => Err(other_version(version)),
        Err(error) => Err(broken(&error)),
    }
}

/// What is waited for beyond all measure, while nobody says that the stream broke.
pub(super) fn unanswered() -> SandboxError {
    let message = format!("the sandbox has not answered for {}", show_duration(UNANSWERED));
    let help = "was its container paused, or is the machine overloaded? run it again";
    SandboxError::Engine(Diagnostic::new("sandbox::no_answer", message).help(help))
}

/// A sandbox keeps the helper it was made with, and this program may be a later one.
fn other_version(version: u32) -> SandboxError {
    let message = format!("the sandbox's helper speaks version {version}, and this tidemill {VERSION}");
    let help = "the sandbox was made by another version of tidemill; a new run makes a new one";
    SandboxError::Engine(Diagnostic::new("sandbox::other_version", message).help(help))
}

fn broken(error: &std::io::Error) -> SandboxError {
    let message = format!("the sandbox's helper does not answer: {error}");
    let help = "is the engine under heavy load? `tidemill doctor` checks it; run it again";
    SandboxError::Engine(Diagnostic::new("sandbox::no_answer", message).help(help))
}

/// Carries frames both ways until nobody needs them, over as many streams as it takes.
async fn talk(link: Arc<dyn Link>, key: Key, mut greeted: Greeted, mut said: Said, shared: Arc<Shared>) {
    loop {
        let silence = if link.reopens() { SILENCE } else { Duration::MAX };
        converse(greeted, &mut said, &shared.routes, silence).await;
        greeted = match again(link.as_ref(), &key).await {
            Ok(greeted) => greeted,
            Err(loss) => {
                // Said before it is told: whoever asks from now on learns it at once.
                let _ = shared.gone.set(loss);
                said.requested.close();
                shared.routes.end();
                return;
            }
        };
        shared.routes.broke().await;
        for (id, start, offset) in shared.routes.commands() {
            // A helper that has the command already starts no second one.
            let mut frames = Vec::new();
            if !start.is_empty() {
                Frame::new(kind::START, id, start).encode(&mut frames);
            }
            Frame::new(kind::ATTACH, id, offset.to_le_bytes()).encode(&mut frames);
            // When this stream breaks as well, the next round finds out.
            let _ = greeted.ends.input.write_all(&frames).await;
        }
        let _ = greeted.ends.input.flush().await;
    }
}

/// Opens a broken stream again, as long as there is hope.
async fn again(link: &dyn Link, key: &Key) -> Result<Greeted, Loss> {
    let (mut pause, mut until) = (PAUSE, Instant::now() + PATIENCE);
    loop {
        let diagnostic = match reopen(link, key).await {
            Ok(greeted) => return Ok(greeted),
            Err(SandboxError::Engine(diagnostic)) => diagnostic,
            Err(SandboxError::Gone(reason)) => return Err(Loss::Sandbox(reason)),
            Err(other) => return Err(Loss::Sandbox(other.to_string())),
        };
        if diagnostic.code() == PAUSED {
            // Whoever waits for a command has a limit of its own.
            until = Instant::now() + PATIENCE;
        } else if Instant::now() >= until {
            let message =
                format!("the way to the sandbox is lost for {}: {diagnostic}", show_duration(PATIENCE));
            return Err(Loss::Engine(message));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Opens the stream and says hello, in reasonable time.
async fn reopen(link: &dyn Link, key: &Key) -> Result<Greeted, SandboxError> {
    match timeout(GREETING, link.open()).await {
        Ok(ends) => greet(ends?, key).await,
        Err(_) => Err(broken(&std::io::Error::from(std::io::ErrorKind::TimedOut))),
    }
}

/// Carries frames both ways until the stream breaks, or nothing has come for `silence`.
async fn converse(greeted: Greeted, said: &mut Said, routes: &Routes, silence: Duration) {
    let Greeted { ends: Ends { mut input, mut output }, mut decoder } = greeted;
    let writing = async {
        let mut ping = tokio::time::interval(PING);
        loop {
            let mut bytes = Vec::new();
            tokio::select! {
                // In this order: what was asked for is said before it is taken back.
                biased;
                Some(frame) = said.requested.recv() => frame.encode(&mut bytes),
                Some(frame) = said.mentioned.recv() => frame.encode(&mut bytes),
                _ = ping.tick() => Frame::new(kind::PING, 0, []).encode(&mut bytes),
            }
            while let Ok(frame) = said.requested.try_recv() {
                frame.encode(&mut bytes);
                if bytes.len() > tidemill_helper::frame::LONGEST {
                    break;
                }
            }
            if input.write_all(&bytes).await.is_err() || input.flush().await.is_err() {
                return;
            }
        }
    };
    let reading = async {
        loop {
            loop {
                match decoder.next() {
                    Ok(Some(frame)) => routes.hand(frame).await,
                    Ok(None) => break,
                    // Not frames of ours: the stream is opened again, and begins anew.
                    Err(_) => return,
                }
            }
            match timeout(silence, output.next()).await {
                Ok(Some(Ok(piece))) => decoder.feed(&piece),
                Ok(Some(Err(_)) | None) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = reading => {}
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Client")
    }
}
