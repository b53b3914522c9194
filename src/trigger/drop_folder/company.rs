//! Files that go with another one: a sentinel says that it is complete, a sidecar brings its params.
//!
//! Their names follow from the other's: `{name}.done`, `{stem}.json`. Both lie in the same folder.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::event::input::RawPath;

/// How the name follows from that of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    /// As it was written.
    pub text: String,
    before: String,
    part: Part,
    after: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// `{name}`: the whole name.
    Name,
    /// `{stem}`: the name without its extension.
    Stem,
}

impl Naming {
    /// Reads it; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = [("{name}", Part::Name), ("{stem}", Part::Stem)]
            .into_iter()
            .find_map(|(word, part)| text.split_once(word).map(|(before, after)| (before, part, after)));
        let Some((before, part, after)) = found else {
            return Err(
                "it has neither `{name}` nor `{stem}`, so it would be the same for every file".to_owned()
            );
        };
        if text.contains('/') {
            return Err("it has a `/`, and the file is looked for in the same folder".to_owned());
        }
        if format!("{before}{after}").contains(['{', '}']) {
            return Err("it has more braces than those of one `{name}` or `{stem}`".to_owned());
        }
        if part == Part::Name && before.is_empty() && after.is_empty() {
            return Err("it is the file itself".to_owned());
        }
        Ok(Self { text: text.to_owned(), before: before.to_owned(), part, after: after.to_owned() })
    }

    /// The path beside `path`.
    pub fn beside(&self, path: &RawPath) -> RawPath {
        let name = match self.part {
            Part::Name => path.name(),
            Part::Stem => stem(path.name()),
        };
        let bytes = [self.before.as_bytes(), name.as_bytes(), self.after.as_bytes()].concat();
        RawPath::new(path.as_path().with_file_name(OsString::from_vec(bytes)))
    }

    /// The paths of which it may be the company: the name is the shape of one, and these are the files it could be
    /// beside, `extension` standing for what a stem does not say.
    pub fn owners<'a>(&self, path: &'a RawPath, extensions: &'a [String]) -> Vec<RawPath> {
        let name = path.name().as_bytes();
        let inner = name
            .strip_prefix(self.before.as_bytes())
            .and_then(|rest| rest.strip_suffix(self.after.as_bytes()))
            .filter(|inner| !inner.is_empty());
        let Some(inner) = inner else {
            return Vec::new();
        };
        let at = |name: &[u8]| RawPath::new(path.as_path().with_file_name(OsStr::from_bytes(name)));
        match self.part {
            Part::Name => vec![at(inner)],
            Part::Stem => {
                let plain = std::iter::once(at(inner));
                let extended = extensions.iter().map(|ext| at(&[inner, b".", ext.as_bytes()].concat()));
                plain.chain(extended).filter(|owner| owner != path).collect()
            }
        }
    }
}

/// The name without its extension; a dot in front begins none.
pub fn stem(name: &OsStr) -> &OsStr {
    Path::new(name).file_stem().unwrap_or(name)
}

/// The extensions that the last part of a glob names: `csv` of `**/*.csv`, both of `*.{png,jpg}`; `x` for any.
pub fn extensions(glob: &str) -> Vec<String> {
    let name = glob.rsplit('/').next().unwrap_or(glob);
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let Some((_, last)) = name.rsplit_once('.') else {
        return vec!["x".to_owned()];
    };
    let inside = last.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(last);
    let named: Vec<String> = inside.split(',').filter(|ext| plain(ext)).map(str::to_owned).collect();
    if named.is_empty() { vec!["x".to_owned()] } else { named }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_another_and_leads_back_to_it() {
        for (naming, file, company) in [
            ("{name}.done", "a/b.csv", "a/b.csv.done"),
            ("{stem}.json", "a/b.csv", "a/b.json"),
            ("ok-{stem}", "b.tar.gz", "ok-b.tar"),
        ] {
            let naming = Naming::parse(naming).expect("a name");
            let (file, company) = (RawPath::new(file), RawPath::new(company));
            assert_eq!(naming.beside(&file), company);
            let ext = file.name().to_str().and_then(|name| name.rsplit('.').next()).map(str::to_owned);
            assert!(
                naming.owners(&company, &ext.into_iter().collect::<Vec<_>>()).contains(&file),
                "{naming:?}"
            );
            assert!(naming.owners(&RawPath::new("a/.xyz"), &[]).is_empty());
        }
    }

    #[test]
    fn what_names_no_other_file_is_refused() {
        for naming in ["done", "{name}", "{name}/done", "{stem}.{ext}", "{name}{name}"] {
            assert!(Naming::parse(naming).is_err(), "{naming}");
        }
    }

    #[test]
    fn a_glob_names_extensions() {
        assert_eq!(extensions("**/*.csv"), ["csv"]);
        assert_eq!(extensions("a.b/*.{png,jpg}"), ["png", "jpg"]);
        assert_eq!(extensions("a.b/*"), ["x"]);
        assert_eq!(extensions("*.[ab]"), ["x"]);
    }
}
