//! What may be said on the command line.

use std::time::Duration;

use clap::Parser;

/// Kills `tidemill watch` again and again, and proves that nothing came of it.
#[derive(Debug, Parser)]
pub struct Options {
    /// How often it is killed [default: 200, or as often as the seconds allow]
    #[arg(long)]
    kills: Option<usize>,
    /// How long it is killed, in seconds; what is left is worked off after that
    #[arg(long)]
    seconds: Option<u64>,
    /// What the moments are drawn from [default: drawn as well]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Cargo says this to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    const KILLS: usize = 200;

    /// Whether it is to be killed once more.
    pub fn go_on(&self, kills: usize, since: Duration) -> bool {
        let most = match (self.kills, self.seconds) {
            (None, None) => Self::KILLS,
            (most, _) => most.unwrap_or(usize::MAX),
        };
        kills < most && self.seconds.is_none_or(|seconds| since < Duration::from_secs(seconds))
    }
}
