//! What dead processes left goes away while a daemon runs: it may run for a year and see many of them.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::diagnostic::Diagnostic;
use crate::sandbox::{Engine, sweep_scratch};

/// How often it is looked for.
pub const EVERY: Duration = Duration::from_secs(60);

/// Sweeps again and again what `opened` gives: engines that are open stay so and keep their order. An engine's complaint is
/// told once, until it works again.
pub async fn sweep_now_and_then(
    clock: &dyn Clock,
    opened: impl Fn() -> Vec<Arc<dyn Engine>>,
    tell: impl Fn(Diagnostic),
) {
    let mut complained = Vec::new();
    loop {
        clock.sleep(EVERY).await;
        let engines = opened();
        complained.resize(engines.len(), false);
        for (engine, complained) in engines.iter().zip(&mut complained) {
            let swept = engine.sweep().await;
            let before = std::mem::replace(complained, swept.is_err());
            if let (Err(diagnostic), false) = (swept, before) {
                tell(diagnostic.warning());
            }
        }
        // Files, which take no time to speak of and may still not hold up anything else.
        let _ = tokio::task::spawn_blocking(sweep_scratch).await;
    }
}
