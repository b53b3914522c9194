//! A folder's files, without what is to be ignored and without links that lead out.

use std::fs::FileType;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::input::printable;
use crate::run::workspace::found::{Part, Rules, Tree, name_of};

/// Files a folder may hold; more is a mistake such as a home folder.
pub(super) const MOST_FILES: usize = 100_000;

/// A folder's own rules.
const RULES: &str = ".tidemillignore";

/// What a folder holds.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// Its files.
    pub(super) parts: Vec<Part>,
    /// Links that were left out: they lead out of the folder, to a folder, to what is ignored, or nowhere.
    pub(super) links: u64,
}

/// Opens a folder and those below it.
pub(super) fn open(tree: &Tree) -> Result<Opened> {
    let rules = rules(tree)?;
    let mut opened = Opened::default();
    let mut pending = vec![(tree.folder.clone(), String::new())];
    while let Some((folder, inside)) = pending.pop() {
        for path in names(&folder)? {
            let kind = path.symlink_metadata().map_err(|error| unreadable(&path, error))?.file_type();
            if rules.matched(&path, kind.is_dir()).is_ignore() || is_rules(&path, tree) {
                continue;
            }
            let name = format!("{inside}{}", name_of(&path)?);
            if kind.is_dir() {
                pending.push((path, name + "/"));
                continue;
            }
            match target(&path, kind, tree, &rules) {
                Target::File(file) => {
                    let part = Part::file(name, file).map_err(|error| unreadable(&path, error))?;
                    opened.parts.push(part);
                }
                Target::Out => opened.links += 1,
                // Pipes, sockets and devices hold nothing that could be placed.
                Target::Nothing => {}
            }
            if opened.parts.len() > MOST_FILES {
                let message =
                    format!("{} holds more than {MOST_FILES} files", printable(tree.folder.as_os_str()));
                return Err(Diagnostic::new("run::manifest", message)
                    .help("name a smaller folder, or leave files out with `ignore`"));
            }
        }
    }
    Ok(opened)
}

enum Target {
    File(PathBuf),
    Out,
    Nothing,
}

/// What a name stands for. A link to a file that is placed anyway, or that lies beside, is a copy of it.
fn target(path: &Path, kind: FileType, tree: &Tree, rules: &Gitignore) -> Target {
    if kind.is_file() {
        return Target::File(path.to_owned());
    }
    if !kind.is_symlink() {
        return Target::Nothing;
    }
    let Ok(real) = path.canonicalize() else {
        return Target::Out;
    };
    let ignored =
        real.starts_with(&tree.folder) && rules.matched_path_or_any_parents(&real, false).is_ignore();
    if real.starts_with(&tree.home) && real.is_file() && !ignored { Target::File(real) } else { Target::Out }
}

fn rules(tree: &Tree) -> Result<Gitignore> {
    let mut builder = GitignoreBuilder::new(&tree.folder);
    let own = tree.folder.join(RULES);
    if tree.rules == Rules::Own && own.symlink_metadata().is_ok_and(|data| data.is_file()) {
        let wrong = builder.add(&own);
        if let Some(wrong) = wrong {
            return Err(Diagnostic::new("manifest::rules", format!("{RULES} cannot be read: {wrong}"))
                .help("write it as a .gitignore"));
        }
    }
    let wrong = |error: ignore::Error| {
        Diagnostic::new("manifest::rules", "the rules of `ignore` cannot be used").cause(error)
    };
    for line in &tree.ignore {
        builder.add_line(None, line).map_err(wrong)?;
    }
    builder.build().map_err(wrong)
}

fn is_rules(path: &Path, tree: &Tree) -> bool {
    tree.rules == Rules::Own && path.parent() == Some(&tree.folder) && path.ends_with(RULES)
}

fn names(folder: &Path) -> Result<Vec<PathBuf>> {
    let items = std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    items.map(|item| item.map(|item| item.path()).map_err(|error| unreadable(folder, error))).collect()
}

fn unreadable(path: &Path, error: std::io::Error) -> Diagnostic {
    Diagnostic::new("run::manifest", format!("cannot read {}", printable(path.as_os_str())))
        .cause(error)
        .help("it is in a folder of the manifest; make it readable, or leave it out with `ignore`")
}
