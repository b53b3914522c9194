//! The name a TLS client asks for, read from its first message and from nothing else.

/// Bytes a first message may have; what browsers send has about 2,000.
const LONGEST: usize = 64 * 1024;
/// Bytes of a record.
const LONGEST_RECORD: usize = 16 * 1024 + 256;

/// What a client's first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// They are not all there yet.
    More,
    /// The name it asks for, as it was written.
    Name(String),
    /// Nothing that is let through.
    Refused(&'static str),
}

const BROKEN: Hello = Hello::Refused("its first TLS message is malformed");

/// Reads the first bytes of a client.
pub fn read(bytes: &[u8]) -> Hello {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let Some(length) = message_length(&message) {
            if length > LONGEST {
                return Hello::Refused("its first TLS message is too long");
            }
            if let Some(body) = message.get(4..4 + length) {
                return hello(body).unwrap_or(BROKEN);
            }
        }
        // The message may lie in several records.
        let Some((head, after)) = rest.split_first_chunk::<5>() else {
            return if rest.first().is_none_or(|kind| *kind == 22) { Hello::More } else { BROKEN };
        };
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        if head[0] != 22 || head[1] != 3 || length == 0 || length > LONGEST_RECORD {
            return BROKEN;
        }
        let Some(record) = after.get(..length) else {
            return if bytes.len() > LONGEST { BROKEN } else { Hello::More };
        };
        message.extend_from_slice(record);
        if message.first() != Some(&1) {
            return BROKEN;
        }
        rest = &after[length..];
    }
}

fn message_length(message: &[u8]) -> Option<usize> {
    let head = message.first_chunk::<4>()?;
    Some(usize::from(head[1]) << 16 | usize::from(head[2]) << 8 | usize::from(head[3]))
}

fn hello(body: &[u8]) -> Option<Hello> {
    // The version and the client's random bytes.
    let mut rest = Bytes(body.get(34..)?);
    rest.take8()?;
    rest.take16()?;
    rest.take8()?;
    if rest.0.is_empty() {
        return Some(Hello::Refused("it names no host (no SNI)"));
    }
    let mut extensions = Bytes(rest.take16()?);
    if !rest.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.number()?, extensions.take16()?);
        match kind {
            0 if found.is_some() => return None,
            0 => found = Some(server_name(data)?),
            0xFE0D => return Some(Hello::Refused("it hides the name it is for (Encrypted Client Hello)")),
            _ => {}
        }
    }
    Some(found.map_or(Hello::Refused("it names no host (no SNI)"), Hello::Name))
}

/// One name of the one kind there is.
fn server_name(data: &[u8]) -> Option<String> {
    let mut outer = Bytes(data);
    let mut list = Bytes(outer.take16()?);
    let (kind, name) = (list.byte()?, list.take16()?);
    let alone = outer.0.is_empty() && list.0.is_empty() && kind == 0;
    (alone && name.is_ascii()).then(|| String::from_utf8_lossy(name).into_owned())
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// What a length of one byte announces.
    fn take8(&mut self) -> Option<&'a [u8]> {
        let length = self.byte()?;
        self.take(usize::from(length))
    }

    /// What a length of two bytes announces.
    fn take16(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::from(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(bytes: &[u8]) -> Vec<u8> {
        let mut sized = u16::try_from(bytes.len()).unwrap_or_default().to_be_bytes().to_vec();
        sized.extend_from_slice(bytes);
        sized
    }

    fn sni(name: &str) -> Vec<u8> {
        let mut entry = vec![0];
        entry.extend(sized(name.as_bytes()));
        let mut extension = vec![0, 0];
        extension.extend(sized(&sized(&entry)));
        extension
    }

    fn message(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(sized(extensions));
        let mut message = vec![1, 0];
        message.extend(sized(&body));
        message
    }

    /// The message in records of at most `size` bytes.
    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let records = message.chunks(size).flat_map(|piece| {
            let mut record = vec![22, 3, 1];
            record.extend(sized(piece));
            record
        });
        records.collect()
    }

    #[test]
    fn the_name_is_found_however_the_message_is_cut() {
        let message = message(&sni("api.example.com"));
        for size in [1, 2, 3, 5, 40, 1000] {
            let bytes = records(&message, size);
            for length in 0..bytes.len() {
                assert_eq!(read(&bytes[..length]), Hello::More, "records of {size}, cut at {length}");
            }
            assert_eq!(read(&bytes), Hello::Name("api.example.com".into()));
        }
    }

    #[test]
    fn what_hides_its_name_is_refused() {
        let mut hidden = sni("public.example");
        hidden.extend([0xFE, 0x0D, 0, 1, 0]);
        let mut twice = sni("a.example");
        twice.extend(sni("b.example"));
        for extensions in [Vec::new(), vec![0, 43, 0, 1, 0], hidden, twice] {
            assert!(matches!(read(&records(&message(&extensions), 1000)), Hello::Refused(_)));
        }
    }

    #[test]
    fn two_names_in_one_list_are_refused() {
        let mut entries = vec![0];
        entries.extend(sized(b"a.example"));
        entries.push(0);
        entries.extend(sized(b"b.example"));
        let mut extension = vec![0, 0];
        extension.extend(sized(&sized(&entries)));
        assert_eq!(read(&records(&message(&extension), 1000)), BROKEN);
    }

    #[test]
    fn malformed_messages_are_refused_and_never_wait_for_more_than_fits() {
        let good = records(&message(&sni("a.example")), 1000);
        for (at, byte) in [(0, 23), (1, 2), (5, 2), (43, 255), (48, 255)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert!(matches!(read(&bad), Hello::Refused(_)), "byte {at} is {byte}");
        }
        let endless = records(&[1, 255, 255, 255], 1000);
        assert!(matches!(read(&endless), Hello::Refused(_)));
        assert!(matches!(read(&[22, 3, 1, 0, 0]), Hello::Refused(_)), "an empty record");
    }
}
