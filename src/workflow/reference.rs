//! The name of an image: `[host[:port]/]path[:tag][@digest]`.

/// A name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The registry's host, with its port; Docker Hub's when the name says none.
    pub host: String,
    /// Everything before the tag and the digest, as it was written.
    pub name: String,
    /// The tag, when there is one.
    pub tag: Option<String>,
    /// The digest (`sha256:...`), when there is one.
    pub digest: Option<String>,
}

impl Reference {
    /// Docker Hub, by the name under which credentials for it are kept.
    pub const HUB: &'static str = "docker.io";

    /// Takes a name apart; the error is a sentence that goes on from the name ("has a capital letter ...").
    pub fn parse(text: &str) -> Result<Self, String> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        if let Some(digest) = digest
            && !is_digest(digest)
        {
            return Err("has a digest that is not `sha256:` and 64 hexadecimal digits".into());
        }
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if let Some(tag) = tag
            && !is_tag(tag)
        {
            return Err("has a tag that is not letters, digits, `_`, `.` and `-`".into());
        }
        let (host, path) = match name.split_once('/') {
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
            _ => (Self::HUB, name),
        };
        if path.is_empty() {
            return Err("has no name before its tag".into());
        }
        if path.chars().any(|c| c.is_ascii_uppercase()) {
            return Err("has a capital letter in its name; names of images are lower case".into());
        }
        if !path.split('/').all(is_part)
            || !host.chars().all(|c| c.is_ascii_alphanumeric() || ".-:[]".contains(c))
        {
            return Err("is not the name of an image".into());
        }
        Ok(Self {
            host: host.to_owned(),
            name: name.to_owned(),
            tag: tag.map(str::to_owned),
            digest: digest.map(str::to_owned),
        })
    }

    /// What the engine calls the version: the digest where there is one, else the tag, else `latest`.
    pub fn version(&self) -> &str {
        self.digest.as_deref().or(self.tag.as_deref()).unwrap_or("latest")
    }
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_tag(text: &str) -> bool {
    /// As registries have it.
    const LONGEST: usize = 128;
    (1..=LONGEST).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
        && !text.starts_with(['.', '-'])
}

fn is_part(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.ends_with(plain) && text.chars().all(|c| plain(c) || "._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, String) {
        let reference = Reference::parse(text).expect(text);
        (reference.host.clone(), reference.name.clone(), reference.version().to_owned())
    }

    #[test]
    fn a_name_has_a_host_only_when_it_looks_like_one() {
        let own =
            |host: &str, name: &str, version: &str| (host.to_owned(), name.to_owned(), version.to_owned());
        assert_eq!(parts("python:3.12-slim"), own("docker.io", "python", "3.12-slim"));
        assert_eq!(parts("team/tool"), own("docker.io", "team/tool", "latest"));
        assert_eq!(parts("localhost:5000/tool"), own("localhost:5000", "localhost:5000/tool", "latest"));
        assert_eq!(parts("ghcr.io/a/b:1"), own("ghcr.io", "ghcr.io/a/b", "1"));
        let digest = format!("sha256:{}", "a".repeat(64));
        assert_eq!(parts(&format!("tool:1@{digest}")), own("docker.io", "tool", &digest));
    }

    #[test]
    fn what_is_no_name_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "no name"),
            ("Python:3", "capital"),
            ("tool@sha256:abc", "digest"),
            ("tool:a b", "tag"),
            ("tool;rm -rf /", "not the name"),
            ("-tool", "not the name"),
            ("a//b", "not the name"),
        ] {
            let refused = Reference::parse(text).expect_err(text);
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
