//! Waits for the run of the dropped readings, by what the daemon says.

use std::path::Path;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::cli::demo::drop::PATH;
use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::RunId;
use crate::event::input::RawPath;
use crate::run::intake::notice::Notice;
use crate::store::{RunRow, Store};

/// What the daemon says about the readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// They were taken, and this run is queued.
    Claimed(RunId),
    /// A file of their name was put away.
    PutAway,
    /// They were not taken.
    Left(String),
}

/// Hands on what a notice says about the readings, if anything.
pub fn hand_on(notice: &Notice, to: &UnboundedSender<News>) {
    let ours = |path: &RawPath| path.as_path() == Path::new(PATH);
    let news = match notice {
        Notice::Claimed { path, runs } if ours(path) => runs.first().map(|(_, run)| News::Claimed(run.clone())),
        Notice::PutAway { path, .. } if ours(path) => Some(News::PutAway),
        Notice::Left { path, reason, .. } if ours(path) => Some(News::Left(reason.clone())),
        _ => None,
    };
    if let Some(news) = news {
        // Who waits no longer need not be told.
        let _ = to.send(news);
    }
}

/// The readings' run once it has ended, or nothing when the daemon stopped before that.
pub async fn ended(store: &Store, mut news: UnboundedReceiver<News>) -> Result<Option<RunRow>> {
    let mut claimed = None;
    while let Some(news) = news.recv().await {
        match news {
            News::Claimed(run) => claimed = Some(run),
            // Asked below: a file of an earlier demo may have had the same name.
            News::PutAway => {}
            News::Left(reason) => {
                return Err(Diagnostic::new("demo::left", format!("the readings were not taken: {reason}"))
                    .help(format!("`tidemill explain inbox/{PATH}` says why")));
            }
        }
        if let Some(run) = &claimed
            && let Some(row) = store.run(run).await?
            && row.state.is_end()
        {
            return Ok(Some(row));
        }
    }
    Ok(None)
}
