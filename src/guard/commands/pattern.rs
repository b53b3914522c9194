//! Rules such as `curl *`: a program and, word by word, its arguments.

use globset::{GlobBuilder, GlobMatcher};

use crate::guard::commands::walk::base_name;
use crate::guard::commands::word::Word;

/// One rule.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// As the script says it.
    pub text: String,
    program: GlobMatcher,
    /// Whether the program is given with its folder.
    with_folder: bool,
    arguments: Vec<GlobMatcher>,
    /// Whether further arguments may follow.
    open: bool,
}

/// What a word that is known only at run time counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// As a match: it could be what is forbidden.
    Matches,
    /// As no match: it need not be what is allowed.
    Differs,
}

impl Pattern {
    /// Reads a rule; the error is a fragment such as "is empty".
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.is_empty() {
            return Err("is empty".to_owned());
        }
        let program = words.remove(0);
        // The program alone means the program with whatever arguments.
        let open = words.is_empty() || words.last() == Some(&"*");
        if words.last() == Some(&"*") {
            words.pop();
        }
        Ok(Self {
            text: text.to_owned(),
            program: glob(program)?,
            with_folder: program.contains('/'),
            arguments: words.into_iter().map(glob).collect::<Result<_, _>>()?,
            open,
        })
    }

    /// Whether a command, program first, matches.
    pub fn matches(&self, command: &[Word], doubt: Doubt) -> bool {
        let Some((program, arguments)) = command.split_first() else {
            return false;
        };
        let path = program.value.as_deref().unwrap_or_default();
        let name = if self.with_folder { path } else { base_name(path) };
        self.program.is_match(name) && self.arguments_match(arguments, doubt)
    }

    fn arguments_match(&self, arguments: &[Word], doubt: Doubt) -> bool {
        for (at, wanted) in self.arguments.iter().enumerate() {
            match arguments.get(at).map(|word| word.value.as_deref()) {
                Some(Some(value)) if wanted.is_match(value) => {}
                None | Some(Some(_)) => return false,
                // It may become any number of words, so that all behind it is in doubt as well.
                Some(None) => return doubt == Doubt::Matches,
            }
        }
        let rest = arguments.get(self.arguments.len()..).unwrap_or_default();
        let in_doubt = doubt == Doubt::Matches && rest.iter().all(|word| word.value.is_none());
        self.open || rest.is_empty() || in_doubt
    }
}

fn glob(word: &str) -> Result<GlobMatcher, String> {
    GlobBuilder::new(word)
        .literal_separator(false)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| error.kind().to_string())
}
