//! The daemons, one after another, and what is dropped meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fastrand::Rng;
use jiff::Timestamp;
use tidemill::event::state::InputState;
use tidemill::store::{RunFilter, Store};
use tokio::time::sleep;

use crate::daemon::{Daemon, Signal};
use crate::drops::Dropper;
use crate::evidence::{entries, files_below, store};
use crate::kind::Kind;
use crate::models::Models;
use crate::moment::Moment;
use crate::options::Options;
use crate::project::Project;

/// All of them.
pub struct Lives<'a> {
    project: &'a Project,
    models: &'a Models,
    rng: Rng,
    /// Who drops files.
    pub dropper: Dropper,
    /// Process ids of all so far.
    pub pids: BTreeSet<u32>,
    /// When each of them was ended.
    pub ends: Vec<Timestamp>,
    /// What those said that ended by themselves, without being told to.
    pub fallen: Vec<String>,
    /// How many ended by themselves when they were told to.
    obeyed: usize,
}

impl<'a> Lives<'a> {
    /// More inputs than this are not open at once: what is left must be worked off in the end.
    const OPEN: usize = 8;
    /// How often it is looked whether all is done, and how long nothing may happen meanwhile.
    const LOOK: Duration = Duration::from_millis(200);
    const PATIENCE: Duration = Duration::from_secs(120);
    /// A daemon that is told to stop when all is done stops soon.
    const STOPS: Duration = Duration::from_secs(30);

    /// None yet.
    pub fn new(project: &'a Project, models: &'a Models, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let dropper = Dropper::new(project.path("inbox"), rng.fork());
        Self {
            project,
            models,
            rng,
            dropper,
            pids: BTreeSet::new(),
            ends: Vec::new(),
            fallen: Vec::new(),
            obeyed: 0,
        }
    }

    /// Starts and ends them as often, or for as long, as is asked.
    pub async fn end_one_after_another(&mut self, options: &Options) {
        let start = Instant::now();
        let mut ended = 0;
        while options.go_on(ended, start.elapsed()) {
            self.one(ended).await;
            ended += 1;
        }
        println!(
            "{ended} daemons ended in {:.0} s, {} of them by themselves; {} inputs, {} published so far",
            start.elapsed().as_secs_f64(),
            self.obeyed,
            self.dropper.dropped.len(),
            self.published()
        );
    }

    async fn one(&mut self, number: usize) {
        let moment = Moment::draw(&mut self.rng, number);
        let mut daemon = self.start(number);
        let open = self.open();
        let wanted = if open == 0 { 1 } else { self.rng.usize(..3) };
        let drops = wanted.min(Self::OPEN.saturating_sub(open));
        let drop = async {
            for _ in 0..drops {
                self.dropper.drop_one().await;
            }
        };
        let outbox = self.project.path("outbox");
        tokio::join!(moment.comes(self.models, &outbox), drop);
        if let Some(end) = daemon.has_ended() {
            self.fallen.push(format!("daemon {number} ended by itself: {end}"));
        } else if let Some((signal, left)) = moment.told {
            daemon.tell(signal).await;
            self.obeyed += usize::from(daemon.ends(left).await.is_some());
        }
        self.ends.push(Timestamp::now());
        daemon.kill().await;
    }

    fn start(&mut self, number: usize) -> Daemon {
        let daemon = Daemon::start(self.project, number);
        self.pids.insert(daemon.pid);
        daemon
    }

    /// Lets a last one finish everything.
    pub async fn work_off(&mut self) {
        let start = Instant::now();
        let mut daemon = self.start(self.pids.len());
        // What only it can have taken shows that it works, also when nothing was left.
        for _ in Kind::DROPPED {
            self.dropper.drop_one().await;
        }
        let store = store(self.project).await;
        let (mut seen, mut since) = (0, Instant::now());
        while !self.is_done(&store).await && since.elapsed() < Self::PATIENCE {
            sleep(Self::LOOK).await;
            let now = self.models.count() + self.published();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        println!("the rest was worked off in {:.0} s", start.elapsed().as_secs_f64());
        store.close().await;
        daemon.tell(Signal::Interrupt).await;
        let end = daemon.ends(Self::STOPS).await;
        assert!(
            end.is_some_and(|end| end.success()),
            "the last daemon ended with {end:?}; see {}",
            self.project.talk().display()
        );
    }

    async fn is_done(&self, store: &Store) -> bool {
        let ticks = RunFilter { workflow: Some(Kind::Tick.name().to_owned()), ..RunFilter::default() };
        let fired = store.runs(&ticks).await.expect("the runs").len() >= self.project.instants.len();
        let inbox = files_below(&self.project.path("inbox"));
        let waiting = [InputState::Seen, InputState::Settling, InputState::Ready, InputState::Claimed];
        fired
            && inbox.is_empty()
            && store.unended().await.expect("the runs").is_empty()
            && store.inputs(&waiting).await.expect("the ledger").is_empty()
    }

    /// Inputs that were dropped and not put away yet.
    fn open(&self) -> usize {
        let away = ["processed", "failed"].map(|folder| files_below(&self.project.path(folder)));
        let away =
            away.iter().flatten().filter(|path| !path.to_string_lossy().ends_with(".reason.txt")).count();
        (self.dropper.dropped.len() + self.dropper.spoilt.len()).saturating_sub(away)
    }

    fn published(&self) -> usize {
        entries(&self.project.path("outbox")).iter().map(|workflow| entries(workflow).len()).sum()
    }
}
