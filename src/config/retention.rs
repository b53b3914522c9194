//! `[retention]`: how long what has ended is remembered.

use std::time::Duration;

use serde::Deserialize;

/// How long what has ended is remembered. What is published is never touched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Runs this long after their end: their events, the files kept aside, and the ledger of their inputs. For ever
    /// when absent.
    #[serde(deserialize_with = "duration")]
    pub runs: Option<Duration>,
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    super::duration(deserializer).map(Some)
}
