//! `tidemill.toml`: the project's folders, models, images, watch and server settings.

pub mod build;
mod certificates;
mod notify;
mod retention;
mod sandbox;
mod server;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::diagnostic::{Diagnostic, Result, Source};
use crate::event::usage::Price;
use crate::workflow::network::{Mode, Pattern};
use crate::workflow::units;

pub use self::notify::{NotifySettings, Surrounding};
pub use build::{Build, Registry};
pub use certificates::certificates;
pub use retention::Retention;
pub use sandbox::{HostMount, Sandbox, allowed};
pub use server::Server;

/// The file that makes a folder a project.
pub const FILE: &str = "tidemill.toml";

/// A project: its root folder and its settings.
#[derive(Debug, Clone)]
pub struct Project {
    /// The folder with `tidemill.toml`, absolute.
    pub root: PathBuf,
    /// What `tidemill.toml` says.
    pub config: Config,
}

/// What `tidemill.toml` says. Every table may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[folders]`
    pub folders: Folders,
    /// `[watch]`
    pub watch: Watch,
    /// `[server]`
    pub server: Server,
    /// `[notify]`
    pub notify: NotifySettings,
    /// `[retention]`
    pub retention: Retention,
    /// `[build]`
    pub build: Build,
    /// `[network]`
    pub network: NetworkSettings,
    /// `[bases]`: image reference = root-relative bootstrap script, for bases that cannot be pulled.
    pub bases: BTreeMap<String, String>,
    /// `[registries."HOST"]`
    pub registries: BTreeMap<String, Registry>,
    /// `[sandbox]`
    pub sandbox: Sandbox,
    /// `[models.NAME]`
    pub models: BTreeMap<String, ModelConfig>,
}

/// Where things are, relative to the root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Folders {
    /// Scripts.
    pub workflows: PathBuf,
    /// Where files are dropped.
    pub inbox: PathBuf,
    /// Where artifacts are published.
    pub outbox: PathBuf,
    /// Where inputs go whose runs succeeded.
    pub processed: PathBuf,
    /// Where inputs go whose runs did not, with the reason beside them.
    pub failed: PathBuf,
}

impl Default for Folders {
    fn default() -> Self {
        Self {
            workflows: "workflows".into(),
            inbox: "inbox".into(),
            outbox: "outbox".into(),
            processed: "processed".into(),
            failed: "failed".into(),
        }
    }
}

/// How `tidemill watch` works.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// How long a file must be quiet before it counts as complete.
    #[serde(deserialize_with = "duration")]
    pub settle: Duration,
    /// How often the whole inbox is scanned, whatever the file events say.
    #[serde(deserialize_with = "duration")]
    pub rescan: Duration,
    /// Runs at once.
    pub concurrency: usize,
    /// Bytes that are kept free on the disks of the state and of the outbox: with less nothing new begins.
    #[serde(deserialize_with = "size")]
    pub min_free: u64,
    /// When so many runs wait, no more files are taken in.
    pub max_pending: u64,
    /// What failed so often in a row is not run again by itself; 0 for always.
    pub quarantine: u32,
    /// A path that is taken so often within a minute is left alone for a while.
    pub loop_limit: usize,
    /// Folders that symbolic links of the inbox may lead into, where a drop follows them; absolute.
    pub links_to: Vec<PathBuf>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            settle: Duration::from_secs(2),
            rescan: Duration::from_secs(60),
            concurrency: 2,
            min_free: 100_000_000,
            max_pending: 10_000,
            quarantine: 3,
            loop_limit: 10,
            links_to: Vec::new(),
        }
    }
}

/// What sandboxes with a network may reach besides the internet. A script alone cannot open the machine's own
/// surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// Names that may have private addresses, where a workflow allows them.
    #[serde(deserialize_with = "patterns")]
    pub private: Vec<Pattern>,
    /// Who resolves names: `ADDRESS` or `ADDRESS:PORT`; the engine's own when absent.
    #[serde(deserialize_with = "resolver")]
    pub resolver: Option<SocketAddr>,
    /// Root-relative PEM file of authorities by which servers that get credentials are trusted as well.
    pub ca_bundle: Option<PathBuf>,
    /// What `tidemill run --learn` says; no setting of the file.
    #[serde(skip)]
    pub(crate) mode: Mode,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Which protocol it speaks.
    pub provider: Provider,
    /// The provider's name for it; the table's name when absent.
    #[serde(default)]
    pub model: Option<String>,
    /// Where the server is, up to and with `/v1`; OpenAI's when absent.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The environment variable with the key. Servers that need none leave it out.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// Root-relative Lua file of a scripted model.
    #[serde(default)]
    pub script: Option<String>,
    /// Dollars per million tokens. Needed where a workflow has a dollar limit.
    #[serde(default)]
    pub price: Option<Price>,
    /// Tokens it may write per answer.
    #[serde(default)]
    pub max_output_tokens: Option<u64>,
    /// Runs of the queue that use it at once; as many as there are when absent.
    #[serde(default)]
    pub concurrency: Option<usize>,
}

/// Which protocol a model speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// OpenAI's Responses.
    Openai,
    /// Chat Completions, as OpenAI, Ollama, llama.cpp, vLLM and many others speak it.
    OpenaiChat,
    /// A Lua list or function of ours.
    Scripted,
}

impl Project {
    /// Finds the project `start` lies in: the nearest folder upwards with a `tidemill.toml`.
    pub fn find(start: &Path) -> Result<Self> {
        let start = std::path::absolute(start).unwrap_or_else(|_| start.to_owned());
        let root = start.ancestors().find(|folder| folder.join(FILE).is_file()).ok_or_else(|| {
            Diagnostic::new("config::no_project", format!("no {FILE} in {} or above", start.display()))
                .help("make a project with `tidemill init NAME`, or go to one; `--project DIR` names it")
        })?;
        Self::open(root)
    }

    /// Opens the project in `root`.
    pub fn open(root: &Path) -> Result<Self> {
        let path = root.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Diagnostic::new("config::unreadable", format!("cannot read {}", path.display()))
                .cause(error)
                .help("a project is a folder with a tidemill.toml; make one with `tidemill init NAME`")
        })?;
        let config = Config::parse(&text)?;
        Ok(Self { root: root.to_owned(), config })
    }

    /// Where the state lives: database, blobs, files of runs.
    pub fn state(&self) -> PathBuf {
        self.root.join(".tidemill")
    }

    /// Where files are dropped, absolute.
    pub fn inbox(&self) -> PathBuf {
        self.root.join(&self.config.folders.inbox)
    }

    /// Where artifacts are published, absolute.
    pub fn outbox(&self) -> PathBuf {
        self.root.join(&self.config.folders.outbox)
    }
}

impl Config {
    /// Reads the text of a `tidemill.toml`.
    pub fn parse(text: &str) -> Result<Self> {
        let source = Source::new(FILE, text);
        let config: Self = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            Diagnostic::new("config::invalid", format!("{FILE} is not valid"))
                .label(&source, span, error.message().trim_end().replace('\n', "; "))
                .help("docs/configuration.md lists every setting")
        })?;
        config.check(&source)?;
        Ok(config)
    }

    /// What the types cannot say.
    fn check(&self, source: &Source) -> Result<()> {
        let wrong = |table: &str, message: String, help: &str| {
            let start = source.text().find(table).unwrap_or(0);
            let end = source.text()[start..].find('\n').map_or(source.text().len(), |length| start + length);
            Err(Diagnostic::new("config::invalid", message).label(source, start..end, "here").help(help))
        };
        if self.watch.concurrency == 0 {
            return wrong(
                "concurrency",
                "`concurrency` is 0, so nothing would ever run".into(),
                "use 1 or more",
            );
        }
        if self.watch.max_pending == 0 {
            return wrong(
                "max_pending",
                "`max_pending` is 0, so no file would ever be taken".into(),
                "use 1 or more",
            );
        }
        if self.watch.loop_limit == 0 {
            return wrong(
                "loop_limit",
                "`loop_limit` is 0, so nothing would ever be taken".into(),
                "use 1 or more",
            );
        }
        if let Some(folder) = self.watch.links_to.iter().find(|folder| folder.is_relative()) {
            let message = format!("`links_to` names `{}`, which is not absolute", folder.display());
            return wrong(
                "links_to",
                message,
                "name folders by their whole paths; the inbox need not be named",
            );
        }
        if let Some((place, message)) = self.sandbox.mistake() {
            let help = "docs/configuration.md says what a mount may be";
            return wrong(&format!("\"{place}\""), message, help);
        }
        if let Some((host, message)) = self
            .registries
            .iter()
            .find_map(|(host, registry)| registry.mistake(host).map(|message| (host, message)))
        {
            let help = "a registry is named as images are: `[registries.\"registry.example.com\"]`, with `username` and \
                        `password_env`";
            return wrong(&format!("[registries.\"{host}\"]"), message, help);
        }
        for (name, model) in &self.models {
            let table = format!("[models.{name}");
            let table = if source.text().contains(&table) { table } else { format!("[models.\"{name}\"") };
            let scripted = model.provider == Provider::Scripted;
            if scripted && model.script.is_none() {
                let message = format!("scripted model `{name}` has no `script`");
                return wrong(&table, message, "add `script = \"models/NAME.lua\"`");
            }
            if !scripted && model.script.is_some() {
                let message = format!("model `{name}` has a `script`, and its provider is not `scripted`");
                return wrong(&table, message, "take `script` out, or say `provider = \"scripted\"`");
            }
            if model.concurrency == Some(0) {
                let message =
                    format!("`concurrency` of model `{name}` is 0, so no run that uses it would begin");
                return wrong(&table, message, "use 1 or more, or leave it out");
            }
            if let Some(price) = model.price
                && ![price.input, price.output, price.cached.unwrap_or(0.0)]
                    .iter()
                    .all(|dollars| *dollars >= 0.0)
            {
                let message = format!("model `{name}` has a price below zero");
                return wrong(&table, message, "prices are dollars per million tokens");
            }
        }
        Ok(())
    }
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::duration(&text).map_err(serde::de::Error::custom)
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    units::size(&text).map_err(serde::de::Error::custom)
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parsed = texts.iter().map(|text| {
        let wrong =
            || serde::de::Error::custom(format!("`{text}` is not a name like `wiki.intranet.example`"));
        Pattern::parse(text).ok_or_else(wrong)
    });
    parsed.collect()
}

fn resolver<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let alone = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 53));
    alone.ok().or_else(|| text.parse().ok()).filter(|address| address.port() != 0).map(Some).ok_or_else(
        || serde::de::Error::custom(format!("`{text}` is not an address like `10.0.0.1` or `10.0.0.1:53`")),
    )
}
