//! `.dockerignore`, by Docker's rules: patterns in order, the last one that fits decides, `!` takes files back in.

use regex::Regex;

use crate::diagnostic::{Diagnostic, Result};

/// What is not sent.
#[derive(Debug, Default)]
pub(super) struct Ignore(Vec<Pattern>);

#[derive(Debug)]
struct Pattern {
    fits: Regex,
    /// Whether it takes back in.
    takes_in: bool,
    /// The pattern up to its first wildcard.
    plain: String,
}

impl Ignore {
    /// Reads the text of the file called `name`.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self> {
        let mut patterns = Vec::new();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            // A comment only where `#` is the first character.
            let line = if line.starts_with('#') { "" } else { line.trim() };
            let (pattern, takes_in) = match line.strip_prefix('!') {
                Some(rest) => (rest.trim(), true),
                None => (line, false),
            };
            let pattern = clean(pattern);
            if pattern.is_empty() {
                continue;
            }
            let fits = Regex::new(&expression(&pattern)).map_err(|_| {
                Diagnostic::new("image::ignore", format!("{name}, line {}: `{line}` is not a pattern", number + 1))
                    .help("a pattern is a path with `*`, `?`, `[a-z]` and `**`; `\\` takes the next character as it is")
            })?;
            let end = pattern.find(['*', '?', '[', '\\']).unwrap_or(pattern.len());
            patterns.push(Pattern { fits, takes_in, plain: pattern[..end].to_owned() });
        }
        Ok(Self(patterns))
    }

    /// Whether the file or folder at `path` stays out.
    pub(super) fn leaves_out(&self, path: &str) -> bool {
        let mut out = false;
        for pattern in &self.0 {
            // A pattern that would change nothing is not asked.
            if pattern.takes_in == out && lies_under(pattern, path) {
                out = !out;
            }
        }
        out
    }

    /// Whether nothing below the folder `path`, which stays out, can be taken back in.
    pub(super) fn is_final(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        !self.0.iter().any(|pattern| {
            pattern.takes_in && (pattern.plain.starts_with(&folder) || folder.starts_with(&pattern.plain))
        })
    }
}

/// Whether the pattern fits the path or a folder above it.
fn lies_under(pattern: &Pattern, path: &str) -> bool {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.into_iter().any(|end| pattern.fits.is_match(&path[..end]))
}

/// Without `.`, `..`, doubled and outer slashes.
fn clean(pattern: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

fn expression(pattern: &str) -> String {
    let mut text = String::from("^");
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            ']' => {
                in_class = false;
                text.push(']');
            }
            '[' if !in_class => {
                in_class = true;
                text.push('[');
            }
            '\\' => text.push_str(&regex::escape(&characters.next().unwrap_or('\\').to_string())),
            other if in_class => {
                // Go's classes know ranges and a leading `^`, and no sets within sets.
                if "[&~".contains(other) {
                    text.push('\\');
                }
                text.push(other);
            }
            '*' if characters.next_if_eq(&'*').is_some() => {
                characters.next_if_eq(&'/');
                text.push_str(if characters.peek().is_none() { ".*" } else { "(.*/)?" });
            }
            '*' => text.push_str("[^/]*"),
            '?' => text.push_str("[^/]"),
            other => text.push_str(&regex::escape(&other.to_string())),
        }
    }
    text.push('$');
    format!("(?s){text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(rules: &str, paths: &[&'static str]) -> Vec<&'static str> {
        let ignore = Ignore::parse(".dockerignore", rules).expect("valid rules");
        paths.iter().copied().filter(|path| ignore.leaves_out(path)).collect()
    }

    #[test]
    fn the_documented_rules_hold() {
        let paths = [
            "a/b",
            "temp",
            "temp.txt",
            "x/temp",
            "x/tempo",
            "x/y/tempa",
            "README.md",
            "README-secret.md",
            "docs/a.md",
        ];
        assert_eq!(left_out("# comment\n*/temp*\n", &paths), ["x/temp", "x/tempo"]);
        assert_eq!(left_out("*/*/temp*", &paths), ["x/y/tempa"]);
        assert_eq!(left_out("temp?", &["tempa", "temp", "tempab"]), ["tempa"]);
        assert_eq!(left_out("**/temp*", &paths), ["temp", "temp.txt", "x/temp", "x/tempo", "x/y/tempa"]);
        assert_eq!(left_out("*.md\n!README.md", &paths), ["README-secret.md"]);
        assert_eq!(left_out("*.md\n!README*.md\nREADME-secret.md", &paths), ["README-secret.md"]);
        assert_eq!(left_out("*.md\nREADME-secret.md\n!README*.md", &paths), Vec::<&str>::new());
        assert_eq!(left_out("/x/\n", &paths), ["x/temp", "x/tempo", "x/y/tempa"]);
        assert_eq!(left_out("**\n!docs\n", &paths).len(), paths.len() - 1);
    }

    #[test]
    fn odd_patterns_mean_what_docker_means() {
        assert_eq!(left_out("[a-c].txt\n", &["a.txt", "d.txt", "axtxt"]), ["a.txt"]);
        assert_eq!(left_out("[^a].txt\n", &["a.txt", "d.txt"]), ["d.txt"]);
        assert_eq!(left_out("\\#x\n # y\n", &["#x", "# y"]), ["#x", "# y"]);
        assert_eq!(left_out("./a/../b//c/", &["b/c", "a/c"]), ["b/c"]);
        assert_eq!(left_out("a+(b)", &["a+(b)", "aab"]), ["a+(b)"]);
        assert_eq!(left_out("!\n\n.\n", &["a"]), Vec::<&str>::new());
        let broken = Ignore::parse(".dockerignore", "ok\n[").expect_err("no pattern");
        assert!(broken.message().contains("line 2"), "{broken}");
    }

    #[test]
    fn a_folder_is_walked_only_when_something_below_may_come_back() {
        let ignore = Ignore::parse("", "node_modules\nbig\n!big/keep/*.txt\n").expect("valid");
        assert!(ignore.is_final("node_modules") && !ignore.is_final("big") && !ignore.is_final("big/keep"));
        assert!(!Ignore::parse("", "a\n!**/x").expect("valid").is_final("a"));
    }
}
