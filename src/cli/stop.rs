//! Ctrl-C once stops cleanly, twice at once. SIGTERM counts as the first.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::report::screen::Screen;

/// Cancels `stop` at the first signal, saying `notice`; is done at the second.
pub async fn on_signals(screen: Screen, stop: CancellationToken, notice: &str) {
    next_signal().await;
    screen.talk(format!("\n{notice}"));
    stop.cancel();
    next_signal().await;
}

async fn next_signal() {
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        // Without a handler the default stays in force, which ends the process.
        _ = tokio::signal::ctrl_c() => {}
        () = terminate => {}
    }
}
