//! Every simple command in a piece of shell code, however deep it stands.

use brush_parser::ast::{
    AndOr, AndOrList, ArithmeticForClauseCommand, Assignment, AssignmentName, AssignmentValue, Command,
    CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectTarget,
    IoRedirect, Pipeline, Program, RedirectList, SimpleCommand, SubshellCommand, UnexpandedArithmeticExpr,
    Word as Written,
};
use brush_parser::{ParseError, Parser, ParserOptions};

use crate::guard::commands::interpreter::{self, Code};
use crate::guard::commands::word::{self, Word};
use crate::guard::commands::wrapper::{self, Wrapped};

/// What stands in a piece of shell code.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The simple commands, program first. A command that runs another one is there, and so is the other one.
    pub commands: Vec<Vec<Word>>,
    /// What cannot be judged by reading, and why.
    pub unclear: Vec<String>,
}

/// Code in code in code: nobody writes more, and each level is parsed anew.
const DEEPEST: usize = 16;

/// Finds the commands in `code`.
pub(super) fn walk(code: &str) -> Found {
    let mut walker = Walker::default();
    walker.code(code);
    walker.found
}

fn parse(code: &str) -> Result<Program, ParseError> {
    Parser::new(code.as_bytes(), &ParserOptions::default()).parse_program()
}

#[derive(Debug, Default)]
struct Walker {
    found: Found,
    depth: usize,
    /// Subshells around this place; a process substitution counts as two.
    subshells: usize,
}

impl Walker {
    fn code(&mut self, code: &str) {
        if self.depth == DEEPEST {
            self.unclear(format!("commands nested deeper than {DEEPEST} levels"));
            return;
        }
        self.depth += 1;
        match parse(code) {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list)),
            Err(error) => self.unclear(format!("shell code that cannot be parsed ({error})")),
        }
        self.depth -= 1;
    }

    fn unclear(&mut self, what: String) {
        self.found.unclear.push(what);
    }

    fn list(&mut self, list: &CompoundList) {
        for item in &list.0 {
            self.and_or(&item.0);
        }
    }

    fn and_or(&mut self, list: &AndOrList) {
        self.pipeline(&list.first);
        for next in &list.additional {
            let (AndOr::And(pipeline) | AndOr::Or(pipeline)) = next;
            self.pipeline(pipeline);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for command in &pipeline.seq {
            self.command(command);
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound, redirects) => {
                self.compound(compound);
                self.redirects(redirects.as_ref());
            }
            Command::Function(function) => {
                self.compound(&function.body.0);
                self.redirects(function.body.1.as_ref());
            }
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                self.redirects(redirects.as_ref());
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand) {
        match compound {
            CompoundCommand::Arithmetic(arithmetic) => {
                // `((a))` is arithmetic for bash, and a subshell in a subshell for sh and when blanks stand between
                // the brackets.
                let text = &arithmetic.expr.value;
                if text.contains("<<") {
                    self.unclear("a here-document or a shift inside `((...))`".to_owned());
                } else if parse(text).is_ok() {
                    self.code(text);
                } else {
                    self.arithmetic(&arithmetic.expr);
                }
            }
            CompoundCommand::ArithmeticForClause(clause) => self.arithmetic_for(clause),
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(subshell) => self.subshell(subshell, 1),
            CompoundCommand::ForClause(clause) => {
                clause.values.iter().flatten().for_each(|value| {
                    self.word(value);
                });
                self.list(&clause.body.list);
            }
            CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value);
                for case in &clause.cases {
                    case.patterns.iter().for_each(|pattern| {
                        self.word(pattern);
                    });
                    case.cmd.iter().for_each(|list| self.list(list));
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition);
                self.list(&clause.then);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list));
                    self.list(&other.body);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0);
                self.list(&clause.1.list);
            }
            CompoundCommand::Coprocess(coprocess) => self.command(&coprocess.body),
        }
    }

    fn arithmetic_for(&mut self, clause: &ArithmeticForClauseCommand) {
        let parts = [&clause.initializer, &clause.condition, &clause.updater];
        for expression in parts.into_iter().flatten() {
            self.arithmetic(expression);
        }
        self.list(&clause.body.list);
    }

    fn arithmetic(&mut self, expression: &UnexpandedArithmeticExpr) {
        match word::code_in_arithmetic(&expression.value) {
            Ok(code) => code.iter().for_each(|code| self.code(code)),
            Err(error) => self.unclear(format!("`(({}))`, which cannot be read ({error})", expression.value)),
        }
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(_, word) => {
                self.word(word);
            }
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.word(left);
                self.word(right);
            }
        }
    }

    fn redirects(&mut self, redirects: Option<&RedirectList>) {
        for redirect in redirects.iter().flat_map(|list| &list.0) {
            self.redirect(redirect);
        }
    }

    /// The parser and the shells do not agree where a here-document ends behind `((` and `<(`.
    fn subshell(&mut self, subshell: &SubshellCommand, levels: usize) {
        self.subshells += levels;
        self.list(&subshell.list);
        self.subshells -= levels;
    }

    /// Walks a redirect; gives back the text that it makes the standard input.
    fn redirect(&mut self, redirect: &IoRedirect) -> Option<String> {
        match redirect {
            IoRedirect::File(_, _, target) => match target {
                IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                    self.word(word);
                }
                IoFileRedirectTarget::ProcessSubstitution(_, subshell) => self.subshell(subshell, 2),
                IoFileRedirectTarget::Fd(_) => {}
            },
            IoRedirect::HereDocument(_, document) => {
                if self.subshells > 1 {
                    self.unclear("a here-document inside `((...))` or `<(...)`".to_owned());
                }
                if document.requires_expansion {
                    match word::code_in_document(&document.doc.value) {
                        Ok(code) => code.iter().for_each(|code| self.code(code)),
                        Err(error) => {
                            self.unclear(format!("a here-document that cannot be parsed ({error})"));
                        }
                    }
                }
                return Some(document.doc.value.clone());
            }
            IoRedirect::HereString(_, word) => return self.word(word).value,
            IoRedirect::OutputAndError(word, _) => {
                self.word(word);
            }
        }
        None
    }

    /// Reads a word and walks the code in it.
    fn word(&mut self, written: &Written) -> Word {
        self.text(&written.value)
    }

    fn text(&mut self, text: &str) -> Word {
        match word::read(text) {
            Ok(read) => {
                read.code.iter().for_each(|code| self.code(code));
                read.word
            }
            Err(error) => {
                self.unclear(format!("`{text}`, which cannot be parsed ({error})"));
                Word::unknown(text)
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
            self.text(index);
        }
        match &assignment.value {
            AssignmentValue::Scalar(word) => {
                self.word(word);
            }
            AssignmentValue::Array(elements) => {
                for (key, value) in elements {
                    if let Some(key) = key {
                        self.word(key);
                    }
                    self.word(value);
                }
            }
        }
    }

    fn simple(&mut self, simple: &SimpleCommand) {
        let mut words = Vec::new();
        let mut input = None;
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let mut item = |walker: &mut Self, item: &CommandPrefixOrSuffixItem, words: &mut Vec<Word>| match item
        {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                if let Some(text) = walker.redirect(redirect) {
                    input = Some(text);
                }
            }
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = walker.word(word);
                words.push(word);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                walker.assignment(assignment);
                // After the program it is an argument like any other.
                if !words.is_empty() {
                    let word = walker.word(word);
                    words.push(word);
                }
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                walker.subshell(subshell, 2);
                words.push(Word::unknown("<(...)"));
            }
        };
        prefix.for_each(|prefix| item(self, prefix, &mut words));
        if let Some(program) = &simple.word_or_name {
            words.push(self.word(program));
        }
        suffix.for_each(|suffix| item(self, suffix, &mut words));
        self.run(&words, input.as_deref());
    }

    /// A simple command, and what it runs in turn.
    fn run(&mut self, words: &[Word], input: Option<&str>) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        let Some(path) = program.value.as_deref().filter(|_| !program.globs) else {
            self.unclear(format!("`{}`, whose program is known only when it runs", show(words)));
            return;
        };
        self.found.commands.push(words.to_vec());
        let name = base_name(path);
        match wrapper::unwrap(name, arguments) {
            Wrapped::No | Wrapped::Nothing => {}
            Wrapped::Command(inner) if wrapper::joins(name) => {
                self.joined(words, &inner.iter().collect::<Vec<_>>());
            }
            Wrapped::Command(inner) => self.run(inner, input),
            Wrapped::Completed(inner) => self.run(&inner, input),
            Wrapped::Shell => self.unclear(format!("`{}`, which starts a shell", show(words))),
            Wrapped::Unclear(word) => {
                self.unclear(format!("`{}`, where `{}` hides which program runs", show(words), word.text));
            }
        }
        match interpreter::code(name, arguments) {
            Code::None => {}
            Code::Words(code) => self.joined(words, &code),
            Code::Definitions(definitions) => {
                for definition in definitions {
                    match &definition.value {
                        Some(text) => {
                            text.split_once('=').into_iter().for_each(|(_, code)| self.code(code));
                        }
                        None => self.hidden(words, definition),
                    }
                }
            }
            Code::Commands(commands) => {
                for inner in commands {
                    self.run(&inner, None);
                }
            }
            Code::Input => match input {
                Some(code) => self.code(code),
                None => {
                    self.unclear(format!("`{}`, which reads commands from its standard input", show(words)));
                }
            },
            Code::Unclear(word) => self.hidden(words, word),
        }
    }

    fn joined(&mut self, words: &[Word], code: &[&Word]) {
        let mut text = Vec::new();
        for word in code {
            match &word.value {
                Some(value) => text.push(value.as_str()),
                None => return self.hidden(words, word),
            }
        }
        self.code(&text.join(" "));
    }

    fn hidden(&mut self, words: &[Word], word: &Word) {
        self.unclear(format!(
            "`{}`, where the code in `{}` is known only when it runs",
            show(words),
            word.text
        ));
    }
}

/// The command as written.
pub(super) fn show(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// A program's name without its folder.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
