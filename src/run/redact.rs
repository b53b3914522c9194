//! Keeps secret values out of everything that is stored.

use std::fmt;

/// Knows the secret values of this process and writes their names instead.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<(String, String)>,
}

impl Redactor {
    /// Shorter values are words that occur by chance.
    const SHORTEST: usize = 8;

    /// Knows the values of these environment variables, as `env` gives them.
    pub fn new(names: impl IntoIterator<Item = String>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut secrets: Vec<_> = names
            .into_iter()
            .filter_map(|name| env(&name).map(|value| (name, value.trim().to_owned())))
            .filter(|(_, value)| value.len() >= Self::SHORTEST)
            .flat_map(|(name, value)| {
                // As it stands in JSON, where that differs.
                let quoted = serde_json::to_string(&value).unwrap_or_default();
                let quoted = quoted.trim_matches('"').to_owned();
                [(name.clone(), quoted), (name, value)]
            })
            .collect();
        secrets.dedup();
        // The longest first: a secret may contain another.
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Self { secrets }
    }

    /// Knows these as well.
    #[must_use]
    pub fn and(&self, names: impl IntoIterator<Item = String>, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut secrets = self.secrets.clone();
        secrets.extend(Self::new(names, env).secrets);
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Self { secrets }
    }

    /// Whether a secret occurs in `text`.
    pub fn finds(&self, text: &str) -> bool {
        self.secrets.iter().any(|(_, value)| text.contains(value.as_str()))
    }

    /// `text` with every secret replaced by its name.
    pub fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.secrets {
            text = text.replace(value.as_str(), &format!("[secret {name}]"));
        }
        text
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Redactor of {} secrets", self.secrets.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_replaced_by_its_name() {
        let env = |name: &str| (name == "KEY").then(|| "sk-123456789".to_owned());
        let redactor = Redactor::new(["KEY".to_owned(), "OTHER".to_owned()], &env);
        assert_eq!(redactor.clean("wrong key sk-123456789!"), "wrong key [secret KEY]!");
        assert!(!redactor.finds("nothing here") && !format!("{redactor:?}").contains("sk-"));
    }
}
