//! What must not be shown of what a build or a script prints.

/// Less than this is no secret worth the name: it occurs by chance.
const SHORTEST: usize = 4;
/// What stands in its place.
const HIDDEN: &str = "[hidden]";

/// Words that are never shown.
#[derive(Default)]
pub(super) struct Hidden(Vec<String>);

impl Hidden {
    /// Hides these values. A key may have many lines, and each is hidden wherever it stands.
    pub(super) fn new(values: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut words = Vec::new();
        for value in values {
            let lines = value.as_ref().lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
            words.extend(lines.map(str::to_owned));
        }
        // The longest first: one that holds another would leave its rest.
        words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        words.dedup();
        Self(words)
    }

    /// The text without them.
    pub(super) fn hide(&self, text: String) -> String {
        self.0
            .iter()
            .fold(text, |text, word| if text.contains(word) { text.replace(word, HIDDEN) } else { text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_holds_another_leaves_nothing_of_itself() {
        let hidden = Hidden::new(["pass", "password-2", "abc", "first line\n  second line\n"]);
        let shown = hidden.hide("password-2 pass abc; second line".to_owned());
        assert_eq!(shown, "[hidden] [hidden] abc; [hidden]");
    }
}
