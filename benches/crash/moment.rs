//! When a daemon is killed.

use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{sleep, timeout};

use crate::daemon::Signal;
use crate::models::Models;

/// The moment, and what comes before it.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    after: After,
    pause: Duration,
    /// What it is told at that moment, and how long after that it is killed.
    pub told: Option<(Signal, Duration)>,
}

/// What the pause is counted from.
#[derive(Debug, Clone, Copy)]
enum After {
    /// The start.
    Start,
    /// Long enough for every run in work to come further; then the next request to a model.
    Work,
    /// A request to a model.
    Request,
    /// Something that moves in the outbox.
    Publishing,
}

impl Moment {
    /// So many short lives one after another may keep a run from coming any further; then one is longer.
    const SHORT: usize = 5;
    const LONG: Duration = Duration::from_secs(4);
    /// What does not come is waited for no longer.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// How often it is looked for what moves.
    const LOOK: Duration = Duration::from_millis(3);

    /// Draws one for the `number`th life.
    pub fn draw(rng: &mut Rng, number: usize) -> Self {
        let (after, pause) = match rng.u32(..100) {
            _ if number % (Self::SHORT + 1) == Self::SHORT => (After::Work, between(rng, 0.001, 0.5)),
            0..10 => (After::Start, between(rng, 0.005, 0.1)),
            10..55 => (After::Start, between(rng, 0.05, 3.0)),
            55..80 => (After::Request, between(rng, 0.001, 1.0)),
            _ => (After::Publishing, between(rng, 0.001, 0.2)),
        };
        let signal = if rng.bool() { Signal::Interrupt } else { Signal::Terminate };
        let told = (rng.u32(..10) == 0).then(|| (signal, between(rng, 0.05, 3.0)));
        Self { after, pause, told }
    }

    /// Waits for it.
    pub async fn comes(self, models: &Models, outbox: &Path) {
        match self.after {
            After::Start => {}
            After::Work => {
                sleep(Self::LONG).await;
                let _ = timeout(Self::PATIENCE, models.next()).await;
            }
            After::Request => {
                let _ = timeout(Self::PATIENCE, models.next()).await;
            }
            After::Publishing => {
                let _ = timeout(Self::PATIENCE, moves(outbox)).await;
            }
        }
        sleep(self.pause).await;
    }
}

/// Between two times in seconds, each order of magnitude as likely as the other.
fn between(rng: &mut Rng, least: f64, most: f64) -> Duration {
    Duration::from_secs_f64(least * (most / least).powf(rng.f64()))
}

/// Waits until something in a folder of folders is made, renamed or removed.
async fn moves(outbox: &Path) {
    let names = || {
        let below = std::fs::read_dir(outbox).into_iter().flatten().flatten();
        let deeper = below.flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten().flatten());
        deeper.map(|entry| entry.file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    while names() == before {
        sleep(Moment::LOOK).await;
    }
}
