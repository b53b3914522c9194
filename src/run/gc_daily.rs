//! A daemon that runs for a year removes its garbage by itself.

use std::time::Duration;

use crate::clock::Clock;
use crate::config::Project;
use crate::diagnostic::{Diagnostic, Result};
use crate::run::gc;
use crate::run::reload::in_force::InForce;
use crate::store::Store;

/// How often the scripts new runs are pinned to are made fresh.
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Hours between two looks for garbage.
const DAY: u32 = 24;

/// Removes garbage once a day, the first time an hour after the start.
pub async fn collect_daily(
    clock: &dyn Clock,
    project: &Project,
    store: &Store,
    in_force: &InForce,
    tell: impl Fn(Diagnostic),
) {
    let mut hour: u32 = 0;
    loop {
        clock.sleep(HOUR).await;
        gc::keep(store, &in_force.bundles());
        if hour.is_multiple_of(DAY)
            && let Err(diagnostic) = collect(clock, project, store).await
        {
            tell(diagnostic.warning());
        }
        hour = hour.wrapping_add(1);
    }
}

async fn collect(clock: &dyn Clock, project: &Project, store: &Store) -> Result<()> {
    let garbage = gc::find(project, store, clock.now()).await?;
    gc::remove(store, garbage).await.map(drop)
}
