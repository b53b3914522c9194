//! Webhooks: a request that is who it says becomes one run, and nobody else gets anything or learns anything.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod declared;
mod refused;
mod serving;
mod story;
mod taken;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Client, RequestBuilder};
use tidemill::clock::Clock as _;
use tidemill::event::id::{Digest, RunId};
use tidemill::run::hooks::{Hooks, Table};
use tidemill::run::intake::notice::{Notice, Tell};
use tidemill::run::intake::stop::Stop;
use tidemill::run::intake::{Daemon, WorkflowRoute};
use tidemill::serve::Server;
use tidemill::store::{RunFilter, RunRow, Store};
use tidemill::trigger::webhook::Key;
use tidemill::workflow::queueing::Queueing;
use tidemill::workflow::sandbox::Kind;
use tidemill::workflow::webhook::{Scheme, Webhook};
use tokio::sync::mpsc;

use super::support::clock::ManualClock;
use super::support::conduct::Nobody;
use super::support::project::Project;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_AAKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What the environment of the daemon holds.
fn env(name: &str) -> Option<String> {
    match name {
        "SECRET" => Some(SECRET.to_owned()),
        "OLD" => Some(OLD.to_owned()),
        "SHORT" => Some("t1ny".to_owned()),
        _ => None,
    }
}

/// `hooks/refunds`, signed as Standard Webhooks are.
fn webhook() -> Webhook {
    Webhook {
        path: "refunds".to_owned(),
        secrets: vec!["SECRET".to_owned()],
        scheme: Scheme::Standard,
        max_body: Webhook::MAX_BODY,
        rate: Webhook::RATE,
    }
}

fn route(webhooks: Vec<Webhook>) -> WorkflowRoute {
    WorkflowRoute {
        workflow: "refunds".to_owned(),
        drops: Vec::new(),
        schedules: Vec::new(),
        webhooks,
        model: "clerk".to_owned(),
        bundle: Digest::of("script"),
        sandbox: Kind::None,
        queueing: Queueing::default(),
    }
}

/// A server that takes requests for a project whose runs nobody carries out, in a time that only the test moves.
struct Serving {
    project: Project,
    store: Store,
    clock: Arc<ManualClock>,
    hooks: Arc<Hooks>,
    stop: Stop,
    client: Client,
    base: String,
    notices: mpsc::UnboundedReceiver<Notice>,
    server: tokio::task::JoinHandle<()>,
    _daemon: Daemon,
}

impl Serving {
    async fn open(webhook: Webhook) -> Self {
        Self::of(Project::new(), webhook).await
    }

    async fn of(project: Project, webhook: Webhook) -> Self {
        let clock = Arc::new(ManualClock::new());
        let opened = project.open();
        let store = Store::open_with(&opened.state(), clock.clone()).await.unwrap();
        let (say, notices) = mpsc::unbounded_channel();
        let tell = Tell::to(move |notice| drop(say.send(notice)));
        let routes = vec![route(vec![webhook])];
        let table = Table::of(&routes, &env).unwrap();
        let daemon = Daemon::open(
            Daemon::lock(&opened).unwrap(),
            &opened,
            store.clone(),
            clock.clone(),
            routes,
            Arc::new(Nobody),
            tell,
        );
        let daemon = daemon.await.unwrap();
        let hooks = daemon.hooks();
        hooks.set(table);
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let base = format!("http://{}", server.address());
        let stop = Stop::new();
        let (heard, time, until) = (hooks.clone(), clock.clone(), stop.clone());
        let server = tokio::spawn(async move { server.run(heard, time, &until).await });
        let client = Client::builder().no_proxy().build().unwrap();
        Self { project, store, clock, hooks, stop, client, base, notices, server, _daemon: daemon }
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.base))
    }

    /// A request signed now by `secret`.
    fn signed_by(&self, secret: &str, path: &str, id: &str, body: &str) -> RequestBuilder {
        self.signed_at(self.clock.now(), secret, path, id, body)
    }

    fn signed_at(&self, at: Timestamp, secret: &str, path: &str, id: &str, body: &str) -> RequestBuilder {
        let signature = Key::standard(secret).unwrap().sign_standard(id, at.as_second(), body.as_bytes());
        self.post(path)
            .header("webhook-id", id)
            .header("webhook-timestamp", at.as_second())
            .header("webhook-signature", signature)
            .header("content-type", "application/json")
            .body(body.to_owned())
    }

    fn signed(&self, id: &str, body: &str) -> RequestBuilder {
        self.signed_by(SECRET, "/hooks/refunds", id, body)
    }

    async fn runs(&self) -> Vec<RunRow> {
        self.store.runs(&RunFilter::default()).await.unwrap()
    }

    /// What was said so far.
    fn said(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }

    /// Waits until so many wait for time to pass.
    async fn sleepers(&self, count: usize) {
        soon(async {
            while self.clock.sleepers() < count {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what).await.unwrap()
}

/// Status and document of an answer.
async fn answer(request: RequestBuilder) -> (u16, serde_json::Value) {
    let response = soon(request.send()).await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

/// The run that an answer names.
fn run_of(document: &serde_json::Value) -> RunId {
    RunId::parse(document["run"].as_str().unwrap_or_else(|| panic!("no run in {document}"))).unwrap()
}
