//! What an archive says about the entry that follows: GNU's long names and PAX records.

use std::io::Read;

/// Collected until the entry comes.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// The name that counts instead of the header's.
    pub(super) name: Option<Vec<u8>>,
    /// The size, where a record gives one.
    pub(super) size: Option<u64>,
    /// Whether the entry is stored with holes.
    pub(super) sparse: bool,
    /// Headers so far: who sends many wants something else.
    count: usize,
}

/// A name and its records; a link's name besides.
const MOST: usize = 4;

impl Extensions {
    /// Takes a long name.
    pub(super) fn long_name(&mut self, from: impl Read, size: u64, limit: u64) -> Result<(), String> {
        let mut name = self.bytes(from, size, limit)?;
        // It ends with a zero, as a C string does.
        while name.last() == Some(&0) {
            name.pop();
        }
        self.named(name)
    }

    /// Takes what is of no use to us: a link's long name, records for all entries.
    pub(super) fn skip(&mut self, from: impl Read, size: u64, limit: u64) -> Result<(), String> {
        self.bytes(from, size, limit).map(drop)
    }

    /// Takes PAX records: `LENGTH KEY=VALUE\n`, where the length counts itself.
    pub(super) fn records(&mut self, from: impl Read, size: u64, limit: u64) -> Result<(), String> {
        let bytes = self.bytes(from, size, limit)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (key, value, after) = record(rest).ok_or("has records that cannot be read")?;
            match key {
                b"path" => self.named(value.to_vec())?,
                b"size" => {
                    let text = std::str::from_utf8(value).ok();
                    let size =
                        text.and_then(|text| text.parse().ok()).ok_or("has a size that is no number")?;
                    self.size = Some(size);
                }
                key if key.starts_with(b"GNU.sparse.") => self.sparse = true,
                _ => {}
            }
            rest = after;
        }
        Ok(())
    }

    fn named(&mut self, name: Vec<u8>) -> Result<(), String> {
        if self.name.is_some() {
            return Err("has an entry with two names".to_owned());
        }
        self.name = Some(name);
        Ok(())
    }

    fn bytes(&mut self, from: impl Read, size: u64, limit: u64) -> Result<Vec<u8>, String> {
        self.count += 1;
        if self.count > MOST {
            return Err(format!("has more than {MOST} headers for one entry"));
        }
        if size > limit {
            return Err(format!("has a header of {size} bytes, and at most {limit} are read"));
        }
        let mut bytes = Vec::new();
        from.take(size).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 == size { Ok(bytes) } else { Err("ends in the middle of a header".to_owned()) }
    }
}

/// The first record, and what follows it. A value may hold line breaks; its length says where it ends.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let line = bytes.get(space + 1..length)?;
    let (line, after) = (line.strip_suffix(b"\n")?, &bytes[length..]);
    let equals = line.iter().position(|byte| *byte == b'=')?;
    Some((&line[..equals], &line[equals + 1..], after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Result<Extensions, String> {
        let mut extensions = Extensions::default();
        extensions.records(text.as_bytes(), text.len() as u64, 1000).map(|()| extensions)
    }

    #[test]
    fn a_value_may_hold_line_breaks() {
        let found = records("20 comment=two\nline\n12 path=a/b\n").unwrap();
        assert_eq!(found.name.as_deref(), Some(&b"a/b"[..]));
    }

    #[test]
    fn a_length_that_lies_is_refused() {
        for text in [
            "99 path=a\n",
            "3 path=a\n",
            "path=a\n",
            " ",
            "0 ",
            "11 path=abc",
            "9 path=ab\nx",
            "11 patha/b\n\n",
        ] {
            assert!(records(text).is_err(), "{text:?}");
        }
    }
}
