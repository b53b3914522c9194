//! Containers that stand ready, so that a run need not wait for one. Each is made as a run's own, serves one run, and is
//! never put back.

mod ready;
mod shape;
mod shelves;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use crate::diagnostic::Result;
use crate::event::id::RunId;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::belongings::Belongings;
use crate::sandbox::docker::container::{Container, Filled};
use crate::sandbox::docker::pool::ready::Ready;
use crate::sandbox::docker::pool::shape::Shape;
use crate::sandbox::docker::pool::shelves::Shelves;
use crate::sandbox::{ReadyImage, Spec};

/// One that nobody has needed for so long makes room.
const IDLE: Duration = Duration::from_secs(10 * 60);

/// What stands ready, and what is being made.
pub(super) struct Pool {
    shelves: Mutex<Shelves<Shape, Ready>>,
    /// The making of more.
    filling: TaskTracker,
}

impl Pool {
    /// Room for `each` of a shape, and for `total` in all.
    pub(super) fn new(each: usize, total: usize) -> Self {
        Self { shelves: Mutex::new(Shelves::new(each, total)), filling: TaskTracker::new() }
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves<Shape, Ready>> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Pool {
    /// Without room.
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl Docker {
    /// How many containers stand ready.
    pub fn warm(&self) -> usize {
        self.pool.shelves().standing()
    }

    /// A container that stood ready and is clean, or else a new one. Afterwards more are made ready.
    pub(super) async fn ready_or_new(
        &self,
        run: &RunId,
        image: &ReadyImage,
        spec: &Spec,
    ) -> Result<Container> {
        let Some(shape) = Shape::of(image, spec) else {
            return self.start_container(run, image, spec).await;
        };
        let mut refused = Vec::new();
        let mut container = loop {
            // Apart from the loop's condition, so that nothing is locked while it is waited.
            let standing = self.pool.shelves().take(&shape);
            let Some((since, ready)) = standing else {
                break self.start_container(run, image, spec).await?;
            };
            match self.prove(&ready, since).await {
                Ok(isolation) => {
                    let Ready { mut up, volume } = ready;
                    up.isolation = isolation;
                    break self.container(up, volume, spec, None, Filled::No);
                }
                Err(why) => {
                    refused.push(why);
                    self.put_away(ready);
                }
            }
        };
        container.isolation.refused = refused;
        self.refill(shape, image.clone());
        Ok(container)
    }

    /// Makes in the background what is missing of a shape that was just asked for.
    fn refill(&self, shape: Shape, image: ReadyImage) {
        let (missing, displaced) = self.pool.shelves().reserve(&shape);
        self.put_all_away(displaced);
        if missing == 0 {
            return;
        }
        let engine = self.clone();
        // One after the other: they must not be in the way of the run that has just begun.
        self.pool.filling.spawn(async move {
            for _ in 0..missing {
                let ready = if engine.pool.shelves().is_open() {
                    engine.make_ready(&shape, &image).await
                } else {
                    None
                };
                let left = engine.pool.shelves().put(&shape, ready, Instant::now());
                engine.put_all_away(left);
            }
        });
    }

    /// Removes what has stood ready unused for too long, as of `now`.
    pub(super) fn remove_stale(&self, now: Instant) {
        let stale = self.pool.shelves().take_older(IDLE, now);
        self.put_all_away(stale);
    }

    /// Takes no more in, and begins to remove all that stands ready; ends when nothing is being made any more.
    pub(super) async fn empty_pool(&self) {
        let standing = self.pool.shelves().close();
        self.put_all_away(standing);
        self.pool.filling.close();
        self.pool.filling.wait().await;
    }

    fn put_all_away(&self, ready: impl IntoIterator<Item = Ready>) {
        for ready in ready {
            self.put_away(ready);
        }
    }

    fn put_away(&self, ready: Ready) {
        let engine = self.clone();
        self.removals.spawn(async move {
            let belongings = Belongings { container: ready.up.id, volume: ready.volume, parts: None };
            // What is not removed now is tried again with the next sweep.
            let _ = engine.discard(&belongings).await;
        });
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pool")
    }
}
