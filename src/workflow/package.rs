//! Names and versions of packages: what may stand in one, so that it can be nothing else.

/// The operators of a Python version, the longer ones first.
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];

/// Whether `text` names a Debian package: `jq`, `libc6:amd64`, `jq=1.6-2.1`.
pub fn is_apt(text: &str) -> bool {
    let (name, version) = match text.split_once('=') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let (name, architecture) = match name.split_once(':') {
        Some((name, architecture)) => (name, Some(architecture)),
        None => (name, None),
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(plain)
        && name.chars().all(|c| plain(c) || "+.-".contains(c))
        && architecture.is_none_or(|text| !text.is_empty() && text.chars().all(plain))
        && version.is_none_or(|text| {
            text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+:~-".contains(c))
        })
}

/// Whether `text` names a Python package: `pandas`, `pandas==2.2.3`, `uvicorn[standard]>=0.30,<1`.
pub fn is_python(text: &str) -> bool {
    let end = text.find(['[', '=', '~', '!', '<', '>']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let versions = match rest.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((extras, versions)) if extras.split(',').all(is_word) => versions,
            _ => return false,
        },
        None => rest,
    };
    is_word(name) && (versions.is_empty() || versions.split(',').all(is_version))
}

fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || "._-".contains(c))
}

fn is_version(text: &str) -> bool {
    let version = OPERATORS.iter().find_map(|operator| text.strip_prefix(operator));
    version.is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_alphanumeric())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || ".*+!_-".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_from_everything_else() {
        for good in ["jq", "g++", "libc6:amd64", "jq=1.6-2.1", "python3.11", "x=1:2.3~rc1+b1"] {
            assert!(is_apt(good), "{good}");
        }
        for good in
            ["pandas", "pandas==2.2.3", "uvicorn[standard]>=0.30,<1", "a.b_c-d~=1.0", "x==2.*", "y==1+cpu"]
        {
            assert!(is_python(good), "{good}");
        }
        let never = [
            "",
            "-y",
            "--index-url",
            "a b",
            "a;b",
            "a$(b)",
            "a`b`",
            "a'b",
            "a\nb",
            "a|b",
            "../a",
            "git+https://x",
            "a=",
            "a==",
        ];
        for bad in never {
            assert!(!is_apt(bad), "{bad:?}");
            assert!(!is_python(bad), "{bad:?}");
        }
        assert!(!is_apt("Jq") && !is_python("a[") && !is_python("a[]") && !is_python("a@https://x"));
    }
}
