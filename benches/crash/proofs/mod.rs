//! What must hold in the end.

mod calls;
mod daemons;
mod ended;
mod left;
mod paid;
mod published;
mod put_away;

use crate::evidence::Evidence;

/// One thing that must hold.
pub struct Proof {
    /// What.
    pub name: &'static str,
    /// The numbers.
    pub numbers: String,
    /// Where it does not.
    pub wrong: Vec<Wrong>,
}

/// Where something does not hold.
pub struct Wrong {
    /// What is the matter.
    pub what: String,
    /// The run it is about.
    pub run: Option<String>,
}

impl Wrong {
    fn new(what: String) -> Self {
        Self { what, run: None }
    }

    fn of(run: impl Into<String>, what: String) -> Self {
        Self { what, run: Some(run.into()) }
    }
}

/// All of them.
pub async fn all(evidence: &Evidence<'_>) -> Vec<Proof> {
    vec![
        daemons::hold(evidence),
        published::once(evidence),
        published::whole(evidence),
        published::instants(evidence),
        put_away::put_away(evidence),
        ended::succeeded(evidence),
        paid::once(evidence),
        paid::well_formed(evidence),
        calls::once(evidence),
        calls::witnessed(evidence),
        left::in_files(evidence),
        left::on_the_machine(evidence).await,
    ]
}
