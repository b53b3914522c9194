//! DNS messages: just enough to answer a question, to ask one, and to read its answer.

use std::net::Ipv4Addr;

/// The type of an IPv4 address.
pub const A: u16 = 1;
/// The class of the internet.
const IN: u16 = 1;
/// Bytes of the head.
const HEAD: usize = 12;
/// Seconds an answer may be kept.
const TTL: u32 = 30;
/// A name is made of fewer parts than this, however its pointers lead.
const MOST_PARTS: usize = 128;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Chosen by who asks.
    pub id: u16,
    /// The name, its parts joined by dots; bytes that are no plain ASCII are `?`.
    pub name: String,
    /// The type asked for.
    pub kind: u16,
    /// Where the question ends in its message.
    end: usize,
}

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// With this address.
    Address(Ipv4Addr),
    /// The name exists and has nothing of that type.
    Nothing,
    /// There is no such name.
    NoName,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Addresses, perhaps none.
    Addresses(Vec<Ipv4Addr>),
    /// The answer was cut: ask over TCP.
    Cut,
    /// The server says no.
    No(u8),
}

/// Reads a query of one question.
pub fn question(message: &[u8]) -> Option<Question> {
    let head = message.first_chunk::<HEAD>()?;
    let flags = u16_at(head, 2)?;
    // A query (not an answer) of the ordinary kind, with one question.
    if flags & 0xF800 != 0 || u16_at(head, 4)? != 1 {
        return None;
    }
    read_question(message)
}

fn read_question(message: &[u8]) -> Option<Question> {
    let (name, end) = name(message, HEAD)?;
    let (kind, class) = (u16_at(message, end)?, u16_at(message, end + 2)?);
    (class == IN).then_some(Question { id: u16_at(message, 0)?, name, kind, end: end + 4 })
}

/// The answer to the question of `message`.
pub fn answer(message: &[u8], question: &Question, reply: Reply) -> Vec<u8> {
    let code: u16 = if reply == Reply::NoName { 3 } else { 0 };
    // An answer, with the asker's wish for recursion repeated, and recursion offered.
    let flags = 0x8080 | (u16_at(message, 2).unwrap_or(0) & 0x0100) | code;
    let mut bytes = Vec::with_capacity(question.end + 16);
    bytes.extend_from_slice(&question.id.to_be_bytes());
    bytes.extend_from_slice(&flags.to_be_bytes());
    let answers = u16::from(matches!(reply, Reply::Address(_)));
    for count in [1, answers, 0, 0] {
        bytes.extend_from_slice(&count.to_be_bytes());
    }
    bytes.extend_from_slice(message.get(HEAD..question.end).unwrap_or_default());
    if let Reply::Address(address) = reply {
        bytes.extend_from_slice(&[0xC0, 12]);
        for number in [A, IN] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.extend_from_slice(&TTL.to_be_bytes());
        bytes.extend_from_slice(&4_u16.to_be_bytes());
        bytes.extend_from_slice(&address.octets());
    }
    bytes
}

/// A query for the IPv4 addresses of `name`.
pub fn query(id: u16, name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + name.len() + 6);
    for number in [id, 0x0100, 1, 0, 0, 0] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    for part in name.split('.') {
        bytes.push(u8::try_from(part.len()).unwrap_or(0));
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes.push(0);
    for number in [A, IN] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes
}

/// Reads the answer to [`query`]; nothing when it answers something else.
pub fn found(message: &[u8], id: u16, asked: &str) -> Option<Found> {
    let flags = u16_at(message, 2)?;
    let question = read_question(message)?;
    let ours = question.id == id && question.kind == A && question.name.eq_ignore_ascii_case(asked);
    if flags & 0x8000 == 0 || u16_at(message, 4)? != 1 || !ours {
        return None;
    }
    if flags & 0x0200 != 0 {
        return Some(Found::Cut);
    }
    let code = u8::try_from(flags & 0xF).unwrap_or_default();
    if code != 0 {
        return Some(Found::No(code));
    }
    let (mut at, mut addresses) = (question.end, Vec::new());
    for _ in 0..u16_at(message, 6)? {
        let (_, end) = name(message, at)?;
        let (kind, class) = (u16_at(message, end)?, u16_at(message, end + 2)?);
        let length = usize::from(u16_at(message, end + 8)?);
        let data = message.get(end + 10..end + 10 + length)?;
        if let (A, IN, Ok(octets)) = (kind, class, <[u8; 4]>::try_from(data)) {
            addresses.push(Ipv4Addr::from(octets));
        }
        at = end + 10 + length;
    }
    Some(Found::Addresses(addresses))
}

/// The name at `at`, and where what follows it begins.
fn name(message: &[u8], at: usize) -> Option<(String, usize)> {
    let (mut text, mut at, mut end) = (String::new(), at, None);
    for _ in 0..MOST_PARTS {
        let length = usize::from(*message.get(at)?);
        match length {
            0 => return Some((text, end.unwrap_or(at + 1))),
            1..=63 => {
                if !text.is_empty() {
                    text.push('.');
                }
                let part = message.get(at + 1..at + 1 + length)?;
                text.extend(part.iter().map(|byte| printable(*byte)));
                at += 1 + length;
            }
            // A pointer leads backwards only, so that it ends.
            192.. => {
                let to = (length & 63) << 8 | usize::from(*message.get(at + 1)?);
                end = end.or(Some(at + 2));
                if to >= at {
                    return None;
                }
                at = to;
            }
            _ => return None,
        }
    }
    None
}

/// A dot within a part would make another name of it.
fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() && byte != b'.' { char::from(byte) } else { '?' }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered() {
        let message = query(7, "api.example.com");
        let asked = question(&message);
        assert_eq!(asked.as_ref().map(|asked| asked.name.as_str()), Some("api.example.com"));
        let address = Ipv4Addr::new(10, 213, 0, 2);
        for (reply, wanted) in [
            (Reply::Address(address), Found::Addresses(vec![address])),
            (Reply::Nothing, Found::Addresses(vec![])),
            (Reply::NoName, Found::No(3)),
        ] {
            let answer = asked.as_ref().map(|asked| answer(&message, asked, reply)).unwrap_or_default();
            assert_eq!(found(&answer, 7, "api.example.com"), Some(wanted));
            assert_eq!(found(&answer, 8, "api.example.com"), None, "another id");
            assert_eq!(found(&answer, 7, "other.example.com"), None, "another name");
        }
    }

    #[test]
    fn aliases_are_passed_over() {
        let mut bytes = query(1, "a.example");
        bytes[2] = 0x81;
        bytes[7] = 2;
        // a.example CNAME b.example, then b.example A 1.2.3.4 with a pointer for its name.
        bytes.extend_from_slice(&[0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 9, 0, 4, 1, b'b', 0xC0, 14]);
        bytes.extend_from_slice(&[0xC0, 39, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4]);
        assert_eq!(found(&bytes, 1, "a.example"), Some(Found::Addresses(vec![Ipv4Addr::new(1, 2, 3, 4)])));
        for length in 0..bytes.len() {
            assert_eq!(found(&bytes[..length], 1, "a.example"), None, "cut at {length}");
        }
    }

    #[test]
    fn malformed_messages_are_nothing() {
        let good = query(1, "a.example");
        let mut looped = good.clone();
        looped[12] = 0xC0;
        looped[13] = 12;
        let mut two = good.clone();
        two[5] = 2;
        let mut reply = good.clone();
        reply[2] |= 0x80;
        let mut long = good.clone();
        long[12] = 64;
        for message in [&looped, &two, &reply, &long, &Vec::new(), &vec![0; 11], &vec![0xFF; 600]] {
            assert_eq!(question(message), None);
        }
        for length in 0..good.len() {
            assert_eq!(question(&good[..length]), None, "cut at {length}");
        }
        let dotted = query(1, "a\u{1}b.example");
        assert_eq!(question(&dotted).map(|asked| asked.name), Some("a?b.example".to_owned()));
    }
}
