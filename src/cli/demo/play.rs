//! The demo's middle: a real watch daemon, the readings dropped into its inbox, and the run that follows.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::cli::demo::drop::{self, drop_readings};
use crate::cli::demo::{readings, wait};
use crate::cli::watch;
use crate::clock::SystemClock;
use crate::config::Project;
use crate::diagnostic::Result;
use crate::report::screen::Screen;
use crate::run::intake::notice::Tell;
use crate::run::intake::stop::Stop;
use crate::run::intake::{Daemon, WorkflowRoute};
use crate::run::queue::Conduct;
use crate::store::{RunRow, Store};

/// What the demo plays with.
pub struct Play {
    /// Where it is shown.
    pub screen: Screen,
    /// Whose inbox is watched.
    pub project: Project,
    /// The project's store.
    pub store: Store,
    /// The workflow that is shown.
    pub route: WorkflowRoute,
    /// Who carries its runs out.
    pub conduct: Arc<dyn Conduct>,
    /// Ends it early.
    pub stop: Stop,
    /// What becomes of the daemon in the end.
    pub afterwards: Afterwards,
}

/// What becomes of the daemon when the readings' run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// It stops.
    Stop,
    /// It goes on until it is told to stop.
    Watch,
}

impl Play {
    /// Watches, drops the readings, and gives their run once `closing` has spoken of its end; nothing when it was
    /// stopped before.
    ///
    /// Errors: those of the daemon, `demo::drop` and `demo::left`.
    pub async fn run(self, closing: impl AsyncFnOnce(&RunRow) -> Result<()>) -> Result<Option<RunRow>> {
        let Self { screen, project, store, route, conduct, stop, afterwards } = self;
        let (sender, news) = mpsc::unbounded_channel();
        let tell = Tell::to(move |notice| {
            wait::hand_on(&notice, &sender);
            watch::say(screen, &notice);
        });
        let clock = Arc::new(SystemClock::new());
        let daemon =
            Daemon::open(Daemon::lock(&project)?, &project, store.clone(), clock, vec![route], conduct, tell)
                .await?;
        screen.talk(format!(
            "watching; dropping a year of hourly readings ({} rows, {} abnormal events) into {}",
            readings::HOURS,
            readings::ABNORMAL.len(),
            project.config.folders.inbox.join(drop::PATH).display()
        ));
        drop_readings(&project.inbox(), &readings::csv())?;
        let following = async {
            let ended = wait::ended(&store, news).await?;
            if let Some(row) = &ended {
                closing(row).await?;
            }
            match afterwards {
                Afterwards::Stop => stop.finish(),
                Afterwards::Watch => screen.talk("going on watching; Ctrl-C stops"),
            }
            Ok(ended)
        };
        // An error of one ends the other.
        let ((), ended) = tokio::try_join!(daemon.run(stop.clone()), following)?;
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use tokio_util::sync::CancellationToken;

    use crate::event::What;
    use crate::event::state::RunState;
    use crate::event::usage::Usage;

    /// Ends every run at once.
    struct Ends(Store, RunState);

    #[async_trait]
    impl Conduct for Ends {
        async fn conduct(&self, run: &RunRow, _stop: CancellationToken) -> Result<RunState> {
            let ended = What::RunEnded { state: self.1, report: None, usage: Usage::default(), cost: None };
            self.0.append(&run.id, ended).await?;
            Ok(self.1)
        }
    }

    async fn play(root: &std::path::Path, glob: &str, state: RunState) -> Result<Option<RunRow>> {
        std::fs::write(root.join("tidemill.toml"), "[watch]\nsettle = \"1ms\"\n").unwrap();
        std::fs::create_dir_all(root.join("inbox")).unwrap();
        let project = Project::open(root).unwrap();
        let store = Store::open(&project.state()).await.unwrap();
        let route = WorkflowRoute {
            workflow: "energy-anomalies".into(),
            schedules: Vec::new(),
            webhooks: Vec::new(),
            drops: vec![crate::workflow::trigger::Drop::new(glob)],
            model: "analyst".into(),
            bundle: store.blobs().put("script").await.unwrap(),
            sandbox: crate::workflow::sandbox::Kind::Docker,
            queueing: crate::workflow::queueing::Queueing::default(),
        };
        let conduct = Arc::new(Ends(store.clone(), state));
        let (screen, stop, afterwards) = (Screen::new(), Stop::new(), Afterwards::Stop);
        Play { screen, project, store, route, conduct, stop, afterwards }.run(async |_| Ok(())).await
    }

    #[tokio::test]
    async fn the_readings_run_is_followed_to_its_end_time_and_again() {
        let folder = tempfile::tempdir().unwrap();
        for state in [RunState::Succeeded, RunState::Succeeded, RunState::Rejected] {
            let row = play(folder.path(), "energy/*.csv", state).await.unwrap().unwrap();
            assert_eq!(row.state, state);
            assert!(!folder.path().join("inbox").join(drop::PATH).exists());
        }
    }

    #[tokio::test]
    async fn readings_that_nothing_takes_are_an_error_and_not_a_long_wait() {
        let folder = tempfile::tempdir().unwrap();
        let error = play(folder.path(), "other/*.csv", RunState::Succeeded).await.unwrap_err();
        assert_eq!(error.code(), "demo::left");
    }
}
