//! Who is told what becomes of a run.

use serde::{Deserialize, Serialize};

use crate::event::What;
use crate::event::state::RunState;

/// A server that is told of certain moments of each run. Kept with the script, so that a run tells those it was pinned to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// Where to.
    pub url: Address,
    /// The variable with the secret that messages are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Which moments.
    pub events: Vec<Moment>,
}

/// Where a message goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// An address without secrets.
    Url(String),
    /// The variable that holds the address.
    Secret(String),
}

/// A moment of a run that others may want to know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Moment {
    /// It waits for its turn.
    #[serde(rename = "run.queued")]
    Queued,
    /// It begins, or starts over.
    #[serde(rename = "run.started")]
    Started,
    /// It published.
    #[serde(rename = "run.succeeded")]
    Succeeded,
    /// Checks failed.
    #[serde(rename = "run.rejected")]
    Rejected,
    /// A guardrail stopped it.
    #[serde(rename = "run.denied")]
    Denied,
    /// A limit stopped it.
    #[serde(rename = "run.exhausted")]
    Exhausted,
    /// An error stopped it.
    #[serde(rename = "run.failed")]
    Failed,
    /// A person stopped it.
    #[serde(rename = "run.cancelled")]
    Cancelled,
}

impl Moment {
    /// Every moment, in the order of the story.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Started,
        Self::Succeeded,
        Self::Rejected,
        Self::Denied,
        Self::Exhausted,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Every end but success.
    pub const BAD_ENDS: [Self; 5] =
        [Self::Rejected, Self::Denied, Self::Exhausted, Self::Failed, Self::Cancelled];

    /// The word used in Lua, the store and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "run.queued",
            Self::Started => "run.started",
            Self::Succeeded => "run.succeeded",
            Self::Rejected => "run.rejected",
            Self::Denied => "run.denied",
            Self::Exhausted => "run.exhausted",
            Self::Failed => "run.failed",
            Self::Cancelled => "run.cancelled",
        }
    }

    /// The moment of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|moment| moment.as_str() == word)
    }

    /// The moment that `what` is, when it is one.
    pub fn of(what: &What) -> Option<Self> {
        match what {
            What::RunQueued { .. } => Some(Self::Queued),
            What::StateEntered { state: RunState::Preparing, .. } => Some(Self::Started),
            What::RunEnded { state, .. } => match state {
                RunState::Succeeded => Some(Self::Succeeded),
                RunState::Rejected => Some(Self::Rejected),
                RunState::Denied => Some(Self::Denied),
                RunState::Exhausted => Some(Self::Exhausted),
                RunState::Cancelled => Some(Self::Cancelled),
                _ => Some(Self::Failed),
            },
            _ => None,
        }
    }

    /// The state a run is in at that moment.
    pub fn state(self) -> RunState {
        match self {
            Self::Queued => RunState::Queued,
            Self::Started => RunState::Preparing,
            Self::Succeeded => RunState::Succeeded,
            Self::Rejected => RunState::Rejected,
            Self::Denied => RunState::Denied,
            Self::Exhausted => RunState::Exhausted,
            Self::Failed => RunState::Failed,
            Self::Cancelled => RunState::Cancelled,
        }
    }
}

impl Notify {
    /// The variables with its secrets.
    pub fn secrets(&self) -> Vec<String> {
        let address = match &self.url {
            Address::Secret(name) => Some(name.clone()),
            Address::Url(_) => None,
        };
        address.into_iter().chain(self.secret.clone()).collect()
    }
}

impl Address {
    /// For people: a path or a query may be a key, so there is none.
    pub fn shown(&self) -> String {
        match self {
            Self::Secret(name) => format!("[secret {name}]"),
            Self::Url(url) => hidden(url),
        }
    }
}

/// `https://host/...`
pub fn hidden(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "...".to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let rest_is_short = rest.len() <= end + 1;
    let host = rest[..end].rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}/{}", if rest_is_short { "" } else { "..." })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_its_host_is_shown() {
        for (url, shown) in [
            ("https://hooks.example/services/T0/B0/key", "https://hooks.example/..."),
            ("https://hooks.example?key=1", "https://hooks.example/..."),
            ("https://hooks.example:8443/", "https://hooks.example:8443/"),
            ("https://me:key@hooks.example", "https://hooks.example/"),
            ("key", "..."),
        ] {
            assert_eq!(hidden(url), shown, "{url}");
        }
    }

    #[test]
    fn a_moment_is_known_by_its_word() {
        for moment in Moment::ALL {
            assert_eq!(Moment::parse(moment.as_str()), Some(moment));
            let word = serde_json::to_value(moment).unwrap();
            assert_eq!(word, moment.as_str());
        }
    }
}
