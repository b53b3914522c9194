//! `tidemill demo`: the whole thing at work, on readings made here.

pub mod drop;
pub mod found;
pub mod play;
pub mod readings;
pub mod summary;
pub mod wait;

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::cli::demo::play::{Afterwards, Play};
use crate::cli::demo::summary::summary;
use crate::cli::{Context, Exit, SETTLE, live, show, stop};
use crate::config::Project;
use crate::diagnostic::Result;
use crate::event::What;
use crate::event::state::RunState;
use crate::report::progress::Steps;
use crate::run::conductor::{Conductor, Unfinished};
use crate::run::engines::Engines;
use crate::run::intake::stop::Stop;
use crate::run::route::route;
use crate::script::{self, Loaded};
use crate::store::{RunRow, Store};
use crate::workflow::units::show_duration;

/// The scripted analyst: no key and no network needed.
const MODEL: &str = "analyst";

/// The workflow that is shown.
const WORKFLOW: &str = "energy-anomalies";

/// Arguments of `tidemill demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A model in place of the scripted analyst, e.g. gpt-5.4
    #[arg(long, value_name = "NAME", default_value = MODEL)]
    pub model: String,
    /// Go on watching afterwards, for files of your own in inbox/energy/, until Ctrl-C
    #[arg(long)]
    pub keep: bool,
}

/// Carries it out. The exit code is the run's.
pub async fn run(context: &Context, args: Args) -> Result<Exit> {
    let started = Instant::now();
    let project = context.project()?;
    let loaded = script::find(&project, WORKFLOW).await?;
    let store = Store::open(&project.state()).await?;
    let route = route(&project, &store, &loaded, Some(&args.model)).await?;
    let engines = context.engines(&project);
    let conductor = set_up(context, &project, &store, engines.clone(), &loaded).await?;
    let pressed = CancellationToken::new();
    let given_up = stop::on_signals(context.screen, pressed.clone(), "cancelling; again kills at once");
    let stop = Stop::new();
    let view = live::show(context.screen, &store, None);
    let play = Play {
        screen: context.screen,
        project: project.clone(),
        store: store.clone(),
        route,
        conduct: Arc::new(conductor),
        stop: stop.clone(),
        afterwards: if args.keep { Afterwards::Watch } else { Afterwards::Stop },
    };
    let breaking_off = async {
        pressed.cancelled().await;
        stop.interrupt();
        std::future::pending::<()>().await;
    };
    let closing = async |row: &RunRow| {
        // What is still to be shown of the run comes before its summary.
        view.finish().await;
        close(context, &project, &store, row).await?;
        context.screen.talk(format!("\nthe demo took {}", show_duration(started.elapsed())));
        if args.keep {
            live::show(context.screen, &store, None);
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = play.run(closing) => ended,
        () = breaking_off => Ok(None),
        () = given_up => Ok(None),
    };
    // After a second signal the work was dropped where it stood, and its container still needs an end.
    engines.settle(SETTLE).await;
    let ended = ended?;
    Ok(ended.map_or(Exit::Cancelled, |row| Exit::of(row.state)))
}

/// Makes the image before anything is dropped, so that what takes long is seen as what it is.
async fn set_up(
    context: &Context,
    project: &Project,
    store: &Store,
    engines: Engines,
    loaded: &Loaded,
) -> Result<Conductor> {
    let progress = Arc::new(Steps::new(context.screen));
    let engine = engines.get(loaded.workflow.sandbox).await?;
    let image = &loaded.workflow.image;
    if !engine.prepare(image, &*progress).await?.fresh {
        context.screen.talk(format!("image {}: there already, nothing is built", image.reference()));
    }
    Ok(Conductor::new(project, store, engines, progress, Unfinished::Ends))
}

/// The last words: what was found when it was published, and how the run ended when it was not.
async fn close(context: &Context, project: &Project, store: &Store, row: &RunRow) -> Result<()> {
    let events = store.all_events(&row.id).await?;
    let published = events.iter().find_map(|event| match &event.what {
        What::Published { folder, artifacts } => Some((folder, artifacts)),
        _ => None,
    });
    context.screen.talk("");
    match published {
        Some((folder, artifacts)) if row.state == RunState::Succeeded => {
            context.screen.line(summary(&project.root, folder, artifacts)?);
        }
        _ => context.screen.line(show::text(row, &events)),
    }
    Ok(())
}
