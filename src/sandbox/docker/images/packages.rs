//! The Dockerfile that installs packages on top of an image, so that nobody has to write one.

use std::fmt::Write as _;

use crate::workflow::image::Packages;

/// Installs Debian packages; from a mirror where one is named, without a trace of that in the image.
const APT: &str = r#"RUN set -eu; export DEBIAN_FRONTEND=noninteractive; \
    command -v apt-get >/dev/null || { echo "this image has no apt-get: packages.apt needs a Debian or Ubuntu image" >&2; exit 127; }; \
    mirror=""; \
    if [ -n "${APT_MIRROR:-}" ]; then \
      . /etc/os-release; echo "deb $APT_MIRROR $VERSION_CODENAME main" > /tmp/tidemill-mirror.list; \
      mirror="-o Dir::Etc::sourcelist=/tmp/tidemill-mirror.list -o Dir::Etc::sourceparts=-"; \
    fi; \
    apt-get $mirror -q update; \
    apt-get $mirror -q -y --no-install-recommends install"#;
const APT_END: &str = r"; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /tmp/tidemill-mirror.list";
/// Installs Python packages. Debian's own pip wants to be told that the system's packages are meant.
const PIP: &str = r#"RUN set -eu; export PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore; \
    python=$(command -v python3 || command -v python) && "$python" -m pip --version >/dev/null 2>&1 || { echo "this image has no pip: packages.python needs an image with Python, such as python:3.12-slim, or apt = { \"python3-pip\" }" >&2; exit 127; }; \
    "$python" -m pip install --no-cache-dir --no-input --disable-pip-version-check"#;

/// The Dockerfile on top of `base`.
pub(super) fn dockerfile(base: &str, packages: &Packages) -> String {
    let mut text = format!("FROM {base}\nUSER 0\n");
    if !packages.apt.is_empty() {
        let _ = writeln!(text, "{APT}{}{APT_END}", quoted(&packages.apt));
    }
    if !packages.python.is_empty() {
        let _ = writeln!(text, "{PIP}{}", quoted(&packages.python));
    }
    text
}

/// Words for the shell. What a script may name holds no quote; one would be left out.
fn quoted(packages: &[String]) -> String {
    packages
        .iter()
        .fold(String::new(), |words, package| words + " '" + &package.replace(['\'', '\n'], "") + "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_comes_before_pip_and_every_name_is_one_word() {
        let packages =
            Packages { apt: vec!["jq".into()], python: vec!["pandas>=2,<3".into(), "a'; rm x".into()] };
        let text = dockerfile("python:3.12-slim", &packages);
        assert!(text.starts_with("FROM python:3.12-slim\n"), "{text}");
        let (apt, pip) = (
            text.find(" install 'jq';").expect("apt"),
            text.find(" 'pandas>=2,<3' 'a; rm x'\n").expect("pip"),
        );
        assert!(apt < pip, "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("RUN")).count(), 2);
        let nothing = dockerfile("a", &Packages { python: vec![], ..packages });
        assert!(!nothing.contains("pip"), "{nothing}");
    }
}
