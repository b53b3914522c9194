//! States as people write them on the command line.

use crate::diagnostic::{Diagnostic, Result, nearest};

/// The state that `word` names among `all`.
///
/// Errors: `usage::unknown_state`.
pub(super) fn named<State: Copy>(
    word: &str,
    all: &[State],
    as_str: impl Fn(State) -> &'static str,
) -> Result<State> {
    all.iter().copied().find(|state| as_str(*state) == word).ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|state| as_str(*state)).collect();
        let near = nearest(word, words.iter().copied());
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Diagnostic::new("usage::unknown_state", format!("there is no state `{word}`"))
            .help(format!("{near}the states are {}", words.join(", ")))
    })
}
