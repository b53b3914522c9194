//! Programs and builtins that take shell code as text: `sh -c`, `eval`, `trap`, `find -exec` and their like.

use crate::guard::commands::word::Word;

/// Where a command finds further code.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Code<'a> {
    /// Nowhere.
    None,
    /// In these words, joined with blanks.
    Words(Vec<&'a Word>),
    /// In what follows the first `=` of each of these words.
    Definitions(Vec<&'a Word>),
    /// It reads its standard input.
    Input,
    /// Each of these is a command of its own.
    Commands(Vec<Vec<Word>>),
    /// It cannot be told; the word that is not understood.
    Unclear(&'a Word),
}

const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"];

/// Where `program` with `arguments` finds further code.
pub(super) fn code<'a>(program: &str, arguments: &'a [Word]) -> Code<'a> {
    match program {
        "eval" => Code::Words(arguments.iter().filter(|word| !word.is("--")).collect()),
        "trap" => match arguments.iter().find(|word| !word.is("--")) {
            Some(action) if !action.text.starts_with('-') => Code::Words(vec![action]),
            _ => Code::None,
        },
        "alias" => Code::Definitions(arguments.iter().collect()),
        "flock" => after_option(arguments).unwrap_or(Code::None),
        "su" | "script" | "runuser" => after_option(arguments).unwrap_or(Code::Input),
        "parallel" => Code::Input,
        "find" => found(arguments),
        "." | "source" => match arguments.first() {
            Some(file) if is_input(file) => Code::Input,
            _ => Code::None,
        },
        shell if SHELLS.contains(&shell) => shell_code(arguments),
        _ => Code::None,
    }
}

/// The word after `-c`, when there is that option.
fn after_option(arguments: &[Word]) -> Option<Code<'_>> {
    let at = arguments
        .iter()
        .position(|word| word.text.starts_with("-c") || word.text.starts_with("--command"))?;
    let option = &arguments[at];
    Some(if option.is("-c") || option.is("--command") {
        Code::Words(arguments.get(at + 1).into_iter().collect())
    } else {
        Code::Unclear(option)
    })
}

/// The commands of `find -exec`.
fn found(arguments: &[Word]) -> Code<'_> {
    let mut commands = Vec::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        if ["-exec", "-execdir", "-ok", "-okdir"]
            .iter()
            .any(|option| word.is(option))
        {
            let end = after
                .iter()
                .position(|word| word.is(";") || word.is("+"))
                .unwrap_or(after.len());
            commands.push(after[..end].iter().map(|word| word.filled("{}")).collect());
            rest = &after[end..];
        }
    }
    Code::Commands(commands)
}

/// What a shell runs: the text after `-c`, a file, or its standard input.
fn shell_code(arguments: &[Word]) -> Code<'_> {
    let mut wants_text = false;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.value.as_deref() else {
            return Code::Unclear(word);
        };
        rest = after;
        if text == "--" || text == "-" {
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            if matches!(long, "rcfile" | "init-file") {
                rest = rest.get(1..).unwrap_or_default();
            }
        } else if text.len() > 1 && text.starts_with(['-', '+']) {
            if text.starts_with('-') && text.contains('s') && !text.contains('c') {
                return Code::Input;
            }
            wants_text |= text.starts_with('-') && text.contains('c');
            let named = text.matches(['o', 'O']).count();
            rest = rest.get(named..).unwrap_or_default();
        } else {
            return operand(word, wants_text);
        }
    }
    rest.first().map_or(Code::Input, |word| operand(word, wants_text))
}

/// The first word that is no option: the text of `-c`, or a file.
fn operand(word: &Word, wants_text: bool) -> Code<'_> {
    if wants_text {
        Code::Words(vec![word])
    } else if is_input(word) {
        Code::Input
    } else {
        Code::None
    }
}

/// Names under which a process finds its own standard input, or an open file nobody sees.
fn is_input(word: &Word) -> bool {
    let file = word.value.as_deref().unwrap_or_default();
    file == "/dev/stdin" || file.starts_with("/dev/fd/") || file.starts_with("/proc/")
}
