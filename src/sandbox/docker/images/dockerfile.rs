//! Reading a Dockerfile as far as needed: what it starts from, and where a line of ours goes.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A Dockerfile's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dockerfile(pub(super) String);

/// An instruction: the number of its first line, and that line's words.
struct Instruction<'a> {
    line: usize,
    words: Vec<&'a str>,
}

impl Instruction<'_> {
    fn is(&self, name: &str) -> bool {
        self.words.first().is_some_and(|word| word.eq_ignore_ascii_case(name))
    }

    /// The image of a `FROM`: the first word after it that is not a flag.
    fn image(&self) -> Option<&str> {
        self.words.iter().skip(1).find(|word| !word.starts_with("--")).copied()
    }

    /// The name behind `AS`.
    fn stage(&self) -> Option<String> {
        let place = self.words.iter().position(|word| word.eq_ignore_ascii_case("as"))?;
        self.words.get(place + 1).map(|name| name.to_lowercase())
    }

    /// What stands between the instruction and the rest: `--from=...`.
    fn flags(&self) -> impl Iterator<Item = &str> {
        self.words.iter().skip(1).copied().take_while(|word| word.starts_with("--"))
    }

    /// The value of a flag.
    fn flag(&self, name: &str) -> Option<&str> {
        self.flags().find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
    }
}

/// What is put behind every `FROM`.
#[derive(Debug, Clone, Default)]
pub(super) struct Additions {
    /// Bases that are replaced: as written, arguments filled in = what to build from.
    pub(super) substitutes: BTreeMap<String, String>,
    /// A file of the context to copy, and where to.
    pub(super) copy: Option<(&'static str, &'static str)>,
    /// Arguments with their values: `RUN` sees them, and the image does not keep them.
    pub(super) arguments: Vec<(String, String)>,
}

impl Dockerfile {
    /// The images it starts from or copies out of, in order, arguments filled in; its own stages are not among them.
    /// With a `target`, what comes after that stage does not matter.
    pub(super) fn bases(&self, args: &BTreeMap<String, String>, target: Option<&str>) -> Vec<String> {
        let known = self.known(args);
        let (mut stages, mut count, mut bases): (Vec<String>, usize, Vec<String>) =
            (Vec::new(), 0, Vec::new());
        let mut is_target = false;
        for instruction in self.instructions() {
            if instruction.is("FROM") {
                if is_target {
                    break;
                }
                let name = instruction.stage();
                is_target = target.is_some_and(|target| {
                    name.as_deref() == Some(&target.to_lowercase()) || target == count.to_string()
                });
                let image = fill(instruction.image().unwrap_or_default(), &known);
                note(image, &stages, 0, &mut bases);
                stages.extend(name);
                count += 1;
            } else if instruction.is("COPY")
                && let Some(image) = instruction.flag("from")
            {
                note(fill(image, &known), &stages, count, &mut bases);
            }
        }
        bases
    }

    /// The text with `additions` made.
    pub(super) fn adapted(&self, args: &BTreeMap<String, String>, additions: &Additions) -> String {
        let known = self.known(args);
        let mut adapted = String::new();
        let mut instructions = self.instructions().into_iter().peekable();
        for (number, line) in self.0.lines().enumerate() {
            let Some(instruction) = instructions.next_if(|instruction| instruction.line == number) else {
                adapted.extend([line, "\n"]);
                continue;
            };
            let is_from = instruction.is("FROM");
            let image = if is_from { instruction.image() } else { instruction.flag("from") };
            let substitute = image
                .filter(|_| is_from || instruction.is("COPY"))
                .and_then(|image| Some((image, additions.substitutes.get(&fill(image, &known))?)));
            match substitute {
                Some((image, substitute)) => adapted.push_str(&line.replacen(image, substitute, 1)),
                None => adapted.push_str(line),
            }
            adapted.push('\n');
            if is_from {
                behind_from(&mut adapted, additions);
            }
        }
        adapted
    }

    /// Whether it uses what only BuildKit understands.
    pub(super) fn needs_buildkit(&self) -> bool {
        self.instructions().iter().any(|instruction| {
            let has = |start: &str| instruction.flags().any(|flag| flag.starts_with(start));
            let is_heredoc = || instruction.words.iter().any(|word| heredoc(word).is_some());
            let (is_run, is_copy) = (instruction.is("RUN"), instruction.is("COPY"));
            is_run && (has("--mount") || has("--network") || has("--security"))
                || is_copy && (has("--link") || has("--chmod") || has("--exclude"))
                || (is_run || is_copy) && is_heredoc()
        })
    }

    /// The arguments a `FROM` may use: those before the first one.
    fn known(&self, args: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut known = BTreeMap::new();
        for instruction in self.instructions().iter().take_while(|instruction| !instruction.is("FROM")) {
            if !instruction.is("ARG") {
                continue;
            }
            for word in &instruction.words[1..] {
                let (name, usual) = word.split_once('=').unwrap_or((word, ""));
                let value = args.get(name).map_or(usual.trim_matches(['"', '\'']), String::as_str);
                known.insert(name.to_owned(), value.to_owned());
            }
        }
        known
    }

    /// The instructions: not comments, not lines that go on, not the text of a here-document.
    fn instructions(&self) -> Vec<Instruction<'_>> {
        let mut found = Vec::new();
        let mut goes_on = false;
        let mut until: Vec<String> = Vec::new();
        for (line, text) in self.0.lines().enumerate() {
            let trimmed = text.trim();
            if let Some(end) = until.first() {
                if trimmed == end {
                    until.remove(0);
                }
                continue;
            }
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            if !goes_on {
                let words: Vec<&str> = trimmed.split_whitespace().collect();
                let is_code = words[0].eq_ignore_ascii_case("RUN") || words[0].eq_ignore_ascii_case("COPY");
                if is_code {
                    until.extend(words.iter().filter_map(|word| heredoc(word)));
                }
                found.push(Instruction { line, words });
            }
            goes_on = trimmed.ends_with('\\');
        }
        found
    }
}

/// Notes an image that is neither there yet, nor empty, nor a stage of the file.
fn note(image: String, stages: &[String], numbered: usize, bases: &mut Vec<String>) {
    let is_stage = stages.contains(&image.to_lowercase())
        || image.parse::<usize>().is_ok_and(|number| number < numbered);
    if !image.is_empty() && image != "scratch" && !is_stage && !bases.contains(&image) {
        bases.push(image);
    }
}

/// The word that ends a here-document: `<<EOF`, `<<-"EOF"`.
fn heredoc(word: &str) -> Option<String> {
    let name = word.strip_prefix("<<")?.trim_start_matches('-').trim_matches(['"', '\'']);
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then(|| name.to_owned())
}

fn behind_from(text: &mut String, additions: &Additions) {
    if let Some((file, target)) = additions.copy {
        let _ = writeln!(text, "COPY {file} {target}");
    }
    if !additions.arguments.is_empty() {
        // One instruction for all of them: the engine makes a layer of each.
        let words: Vec<String> =
            additions.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let _ = writeln!(text, "ARG {}", words.join(" "));
    }
}

/// `$NAME`, `${NAME}` and `${NAME:-usual}` filled in; a name that is not known is empty, as the engine has it.
fn fill(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, usual, after) = if let Some((inner, after)) = braced {
            let (name, usual) = inner.split_once(":-").unwrap_or((inner, ""));
            (name, usual, after)
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (&rest[..end], "", &rest[end..])
        };
        let value = known.get(name).map(String::as_str).filter(|value| !value.is_empty());
        filled.push_str(value.unwrap_or(usual));
        rest = after;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases(text: &str, args: &[(&str, &str)], target: Option<&str>) -> Vec<String> {
        let args = args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Dockerfile(text.to_owned()).bases(&args, target)
    }

    #[test]
    fn bases_are_found_through_arguments_and_stages() {
        let text = "ARG BASE=python:3.12-slim\nFROM --platform=linux/amd64 ${BASE} AS one\nFROM scratch\nFROM one\nFROM debian:12\nCOPY --from=0 /a /a\nCOPY --from=alpine:3 /b /b\n";
        assert_eq!(bases(text, &[], None), ["python:3.12-slim", "debian:12", "alpine:3"]);
        assert_eq!(bases(text, &[], Some("one")), ["python:3.12-slim"]);
        assert_eq!(
            bases("ARG BASE=x\nARG BASE_TAG=1\nFROM $BASE:$BASE_TAG\n", &[("BASE", "a")], None),
            ["a:1"]
        );
        assert_eq!(bases("ARG V\nFROM a:${V:-7}\n", &[], None), ["a:7"]);
    }

    #[test]
    fn words_inside_of_commands_are_no_instructions() {
        let text = "FROM a\nRUN sql 'SELECT x \\\nFROM users'\nRUN <<EOF\nFROM b\nEOF\nFROM c\n";
        assert_eq!(bases(text, &[], None), ["a", "c"]);
        let needs = |text: &str| Dockerfile(text.to_owned()).needs_buildkit();
        assert!(needs(text) && needs("RUN --mount=type=secret,id=x true") && needs("COPY --chmod=755 a b"));
        assert!(!needs("FROM a\nRUN echo --mount\nCOPY --chown=1 a b\n"));
    }

    #[test]
    fn additions_come_behind_each_from() {
        let additions = Additions {
            substitutes: [("python:3".to_owned(), "tidemill/base:1".to_owned())].into(),
            copy: Some((".ca", "/etc/ca")),
            arguments: vec![("PIP_CERT".to_owned(), "/etc/ca".to_owned())],
        };
        let file =
            Dockerfile("# escape=\\\nFROM python:3\nRUN echo \\\nFROM\nCOPY --from=python:3 a b".to_owned());
        assert_eq!(
            file.adapted(&BTreeMap::new(), &additions),
            "# escape=\\\nFROM tidemill/base:1\nCOPY .ca /etc/ca\nARG PIP_CERT=/etc/ca\nRUN echo \\\nFROM\nCOPY --from=tidemill/base:1 a b\n"
        );
    }
}
