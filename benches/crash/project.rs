//! The project that is watched: a workflow for each way a run can go.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::kind::Kind;

/// How long a file must be quiet.
pub const SETTLE: std::time::Duration = std::time::Duration::from_millis(300);
/// The variable with the "key", which says which daemon asks.
pub const LIFE: &str = "CRASH_LIFE";
/// Instants of the schedule, and how far they are apart.
const INSTANTS: i64 = 20;
const APART: SignedDuration = SignedDuration::from_secs(2);

/// A project in a temporary folder.
pub struct Project {
    folder: TempDir,
    /// When its schedule fires.
    pub instants: Vec<Timestamp>,
}

impl Project {
    /// With models at these addresses: one that speaks Responses and one that speaks Chat Completions.
    pub fn new(image: &str, responses: &str, chat: &str) -> Self {
        let folder = TempDir::with_prefix("tidemill-crash-").expect("a temporary folder");
        let first = Timestamp::from_second(Timestamp::now().as_second() + 3).expect("a time");
        let instants: Vec<Timestamp> =
            (0..INSTANTS).map(|number| first + APART * i32::try_from(number).expect("few")).collect();
        let project = Self { folder, instants };
        for name in ["inbox", "outbox"] {
            fs::create_dir(project.path(name)).expect("a folder");
        }
        // Commands run as another user.
        fs::create_dir(project.witness()).expect("a folder");
        fs::set_permissions(project.witness(), Permissions::from_mode(0o777)).expect("rights");
        project.put("tidemill.toml", &project.settings(responses, chat));
        for kind in Kind::ALL {
            project.put(&format!("workflows/{}.lua", kind.name()), &project.script(kind, image));
        }
        project
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A path in it.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root().join(path)
    }

    /// Where every command in a container leaves a line when it begins: a file for each run.
    pub fn witness(&self) -> PathBuf {
        self.path("witness")
    }

    /// What the daemons say.
    pub fn talk(&self) -> PathBuf {
        self.path("daemon.log")
    }

    /// Leaves it where it is.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn settings(&self, responses: &str, chat: &str) -> String {
        let settle = SETTLE.as_millis();
        let witness = self.witness();
        let witness = witness.display();
        format!(
            r#"[watch]
settle = "{settle}ms"
concurrency = 3

[sandbox]
warm = 1
mounts = [{{ host = "{witness}", at = "/witness", access = "rw" }}]

[models.responses]
provider = "openai"
base_url = "{responses}"
api_key_env = "{LIFE}"

[models.chat]
provider = "openai-chat"
base_url = "{chat}"
api_key_env = "{LIFE}"
"#
        )
    }

    fn script(&self, kind: Kind, image: &str) -> String {
        let name = kind.name();
        let given = match kind {
            Kind::Tick => format!(
                "triggers = {{ mill.schedule {{ at = {}, missed = \"all\", overlap = \"allow\" }} }},",
                self.times()
            ),
            _ => format!(
                "triggers = {{ mill.drop {{ glob = \"{name}/*.txt\" }} }},\n  manifest = {{ [\"input/data.txt\"] = mill.input() }},"
            ),
        };
        let place = match kind {
            Kind::Steps | Kind::Mended => {
                format!("image = mill.image \"{image}\",\n  mounts = {{ \"/witness\" }},")
            }
            Kind::Local => "sandbox = \"local\",".to_owned(),
            Kind::Notes | Kind::Tick => "sandbox = \"none\",".to_owned(),
        };
        let model = match kind {
            Kind::Steps | Kind::Notes => "responses",
            Kind::Mended | Kind::Local | Kind::Tick => "chat",
        };
        let outputs: Vec<String> = kind
            .artifacts()
            .iter()
            .map(|(path, words)| format!("[\"output/{path}\"] = expect.text {{ min_words = {words} }}"))
            .collect();
        format!(
            r#"local mill, expect = require "tidemill", require "tidemill.expect"
return mill.workflow {{
  name = "{name}",
  {given}
  {place}
  agent = {{ model = "{model}", instructions = "Work.", max_turns = 60 }},
  prompt = function(run) return ("{name} %s %s"):format(run.id, run.scheduled_at or "") end,
  outputs = {{ {} }},
  repair = {{ attempts = 3 }},
}}
"#,
            outputs.join(", ")
        )
    }

    /// The instants, and one that never comes: a schedule that cannot fire any more would be refused.
    fn times(&self) -> String {
        let times =
            self.instants.iter().map(|instant| format!("\"{}\"", instant.strftime("%Y-%m-%d %H:%M:%S")));
        let all: Vec<String> = times.chain(["\"2099-01-01 00:00\"".to_owned()]).collect();
        format!("{{ {} }}", all.join(", "))
    }
}
