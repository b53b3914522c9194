//! Progress of long steps: a live line on a terminal, plain lines elsewhere.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::line::safe;
use crate::report::screen::Screen;
use crate::workflow::units::show_duration;

/// Shows the steps of one piece of work: what, how far, for how long.
#[derive(Debug)]
pub struct Steps {
    screen: Screen,
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    step: String,
    started: Instant,
    shown: Instant,
    bar: Option<ProgressBar>,
}

impl Steps {
    /// Without a terminal a detail is printed this often at most.
    const PLAIN_EVERY: Duration = Duration::from_secs(5);

    /// For the given screen.
    pub fn new(screen: Screen) -> Self {
        Self { screen, current: Mutex::new(None) }
    }

    /// A step begins.
    pub fn begin(&self, step: &str) {
        let bar = self.screen.live.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(step.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        if bar.is_none() {
            self.screen.talk(format!("{step} ..."));
        }
        let now = Instant::now();
        self.set(Some(Current { step: step.to_owned(), started: now, shown: now, bar }));
    }

    /// The step is at this point.
    pub fn at(&self, detail: &str) {
        let detail = &safe(detail);
        let Ok(mut current) = self.current.lock() else {
            return;
        };
        let Some(current) = current.as_mut() else { return };
        match &current.bar {
            Some(bar) => bar.set_message(detail.to_owned()),
            None if current.shown.elapsed() >= Self::PLAIN_EVERY => {
                current.shown = Instant::now();
                let elapsed = show_duration(current.started.elapsed());
                self.screen.talk(format!("{} ... {detail} ({elapsed})", current.step));
            }
            None => {}
        }
    }

    /// The step ended well.
    pub fn end(&self, outcome: &str) {
        let Some(current) = self.set(None) else { return };
        if let Some(bar) = &current.bar {
            bar.finish_and_clear();
        }
        self.screen.talk(format!(
            "{}: {outcome} ({})",
            current.step,
            show_duration(current.started.elapsed())
        ));
    }

    fn set(&self, next: Option<Current>) -> Option<Current> {
        let mut current = self.current.lock().ok()?;
        std::mem::replace(&mut *current, next)
    }
}
