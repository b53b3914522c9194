//! Programs that run the program named in their arguments: `env`, `timeout`, `xargs`, `sudo` and their like.

use crate::guard::commands::word::Word;

/// How a wrapper's own arguments end, so that the command after them can be found.
#[derive(Debug)]
struct Shape {
    name: &'static str,
    /// Short options without a value.
    flags: &'static str,
    /// Short options with a value, attached or next.
    values: &'static str,
    /// Short options whose value, if any, is attached.
    attached: &'static str,
    /// Long options without a value.
    long_flags: &'static [&'static str],
    /// Long options whose value is the next word (or attached with `=`).
    long_values: &'static [&'static str],
    /// Words of its own before the command.
    own_words: usize,
    /// Whether `NAME=value` may stand before the command.
    assignments: bool,
}

const PLAIN: Shape = Shape {
    name: "",
    flags: "",
    values: "",
    attached: "",
    long_flags: &[],
    long_values: &[],
    own_words: 0,
    assignments: false,
};

const SHAPES: &[Shape] = &[
    Shape {
        name: "env",
        flags: "i0v",
        values: "uC",
        long_flags: &["ignore-environment", "null", "debug"],
        long_values: &["unset", "chdir"],
        assignments: true,
        ..PLAIN
    },
    Shape {
        name: "sudo",
        flags: "AbEHiKklnPSs",
        values: "CDgpRrTtUu",
        long_flags: &[
            "preserve-env",
            "set-home",
            "login",
            "non-interactive",
            "stdin",
            "shell",
        ],
        long_values: &["user", "group", "chdir", "prompt"],
        assignments: true,
        ..PLAIN
    },
    Shape {
        name: "doas",
        flags: "nsL",
        values: "uC",
        ..PLAIN
    },
    Shape {
        name: "timeout",
        flags: "fpv",
        values: "ks",
        long_flags: &["foreground", "preserve-status", "verbose"],
        long_values: &["kill-after", "signal"],
        own_words: 1,
        ..PLAIN
    },
    Shape {
        name: "xargs",
        flags: "0oprtx",
        values: "adEILnPs",
        attached: "eil",
        long_flags: &[
            "null",
            "interactive",
            "no-run-if-empty",
            "verbose",
            "exit",
            "open-tty",
        ],
        long_values: &[
            "arg-file",
            "delimiter",
            "max-lines",
            "max-args",
            "max-procs",
            "max-chars",
        ],
        ..PLAIN
    },
    Shape {
        name: "nice",
        values: "n",
        attached: "0123456789",
        long_values: &["adjustment"],
        ..PLAIN
    },
    Shape {
        name: "ionice",
        flags: "t",
        values: "cn",
        ..PLAIN
    },
    Shape {
        name: "stdbuf",
        values: "ioe",
        long_values: &["input", "output", "error"],
        ..PLAIN
    },
    Shape {
        name: "time",
        flags: "apqv",
        values: "fo",
        ..PLAIN
    },
    Shape {
        name: "exec",
        flags: "cl",
        values: "a",
        ..PLAIN
    },
    Shape {
        name: "command",
        flags: "p",
        ..PLAIN
    },
    Shape {
        name: "setsid",
        flags: "cfw",
        long_flags: &["ctty", "fork", "wait"],
        ..PLAIN
    },
    Shape {
        name: "taskset",
        flags: "a",
        own_words: 1,
        ..PLAIN
    },
    Shape {
        name: "chrt",
        flags: "abfimor",
        own_words: 1,
        ..PLAIN
    },
    Shape {
        name: "flock",
        flags: "enosux",
        values: "wE",
        own_words: 1,
        ..PLAIN
    },
    Shape {
        name: "chroot",
        own_words: 1,
        ..PLAIN
    },
    Shape {
        name: "nohup",
        ..PLAIN
    },
    Shape {
        name: "builtin",
        ..PLAIN
    },
    Shape {
        name: "busybox",
        ..PLAIN
    },
    Shape {
        name: "toybox",
        ..PLAIN
    },
    Shape {
        name: "setarch",
        own_words: 1,
        ..PLAIN
    },
    Shape {
        name: "unshare",
        flags: "CTUcfimnpru",
        ..PLAIN
    },
    Shape {
        name: "fakeroot",
        ..PLAIN
    },
    Shape {
        name: "strace",
        flags: "cfqtvx",
        values: "eops",
        ..PLAIN
    },
    Shape {
        name: "watch",
        flags: "bcdegtx",
        values: "n",
        ..PLAIN
    },
];

/// What a wrapper runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrapped<'a> {
    /// It is no wrapper.
    No,
    /// It runs nothing this time.
    Nothing,
    /// The command in its arguments, from the program on.
    Command(&'a [Word]),
    /// The same, with words of its input put in.
    Completed(Vec<Word>),
    /// A shell of its own.
    Shell,
    /// It cannot be told; the word that is not understood.
    Unclear(&'a Word),
}

/// The command that `program` runs with `arguments`.
pub(super) fn unwrap<'a>(program: &str, arguments: &'a [Word]) -> Wrapped<'a> {
    let Some(shape) = SHAPES.iter().find(|shape| shape.name == program) else {
        return Wrapped::No;
    };
    let looks_up = program == "command"
        && arguments
            .first()
            .is_some_and(|word| word.is("-v") || word.is("-V"));
    if looks_up {
        return Wrapped::Nothing;
    }
    match shape.command(arguments) {
        Ok([]) if matches!(program, "sudo" | "doas" | "chroot" | "unshare") => Wrapped::Shell,
        Ok([]) => Wrapped::Nothing,
        Ok(command) if program == "xargs" => Wrapped::Completed(completed(arguments, command)),
        Ok(command) => Wrapped::Command(command),
        Err(word) => Wrapped::Unclear(word),
    }
}

/// Whether a wrapper joins its command with blanks and hands it to a shell.
pub(super) fn joins(program: &str) -> bool {
    program == "watch"
}

/// What `xargs` runs: words of its input stand where the placeholder was, or at the end.
fn completed(arguments: &[Word], command: &[Word]) -> Vec<Word> {
    let own = &arguments[..arguments.len() - command.len()];
    let option = own.iter().position(|word| word.text.starts_with("-I"));
    let placeholder = option.and_then(|at| {
        let attached = own[at].value.as_deref()?.strip_prefix("-I")?;
        if attached.is_empty() {
            own.get(at + 1)?.value.as_deref()
        } else {
            Some(attached)
        }
    });
    let mut words: Vec<Word> = command
        .iter()
        .map(|word| word.filled(placeholder.unwrap_or("{}")))
        .collect();
    if placeholder.is_none() {
        words.push(Word::unknown("..."));
    }
    words
}

impl Shape {
    /// The words after the wrapper's own; the word that is not understood otherwise.
    fn command<'a>(&self, arguments: &'a [Word]) -> Result<&'a [Word], &'a Word> {
        let mut rest = arguments;
        while let Some((word, after)) = rest.split_first() {
            let text = word.value.as_deref().ok_or(word)?;
            if text == "--" {
                rest = after;
                break;
            }
            if text.len() < 2 || !text.starts_with('-') {
                break;
            }
            let takes_next = match text.strip_prefix("--") {
                Some(long) => self.long(long),
                None => self.short(&text[1..]),
            };
            rest = match takes_next.ok_or(word)? {
                Value::Here => after,
                Value::Next => after.get(1..).unwrap_or_default(),
            };
        }
        let mut own_words = self.own_words;
        while let Some((word, after)) = rest.split_first() {
            let assigns =
                self.assignments && word.text.split_once('=').is_some_and(|(name, _)| is_name(name));
            if !assigns && own_words == 0 {
                break;
            }
            if !assigns {
                own_words -= 1;
            }
            rest = after;
        }
        Ok(rest)
    }

    fn long(&self, option: &str) -> Option<Value> {
        if let Some((name, _)) = option.split_once('=') {
            let known = self.long_values.contains(&name) || self.long_flags.contains(&name);
            return known.then_some(Value::Here);
        }
        if self.long_values.contains(&option) {
            return Some(Value::Next);
        }
        self.long_flags.contains(&option).then_some(Value::Here)
    }

    fn short(&self, letters: &str) -> Option<Value> {
        for (at, letter) in letters.char_indices() {
            if self.attached.contains(letter) {
                return Some(Value::Here);
            }
            if self.values.contains(letter) {
                let last = at + letter.len_utf8() == letters.len();
                return Some(if last { Value::Next } else { Value::Here });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(Value::Here)
    }
}

/// Where an option's value stands.
enum Value {
    /// In the same word, or there is none.
    Here,
    /// In the next word.
    Next,
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}
