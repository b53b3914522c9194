//! Passing a request's body on, and not one byte more.

use std::io::{self, BufRead, Read, Write};

use super::http::Body;

/// Bytes of a line between chunks.
const LONGEST_LINE: u64 = 8 * 1024;
/// Lines after the last chunk.
const MOST_TRAILERS: usize = 64;

/// Passes on what `body` says there is. Gives how many bytes were sent.
pub fn pass(from: &mut impl BufRead, to: &mut impl Write, body: Body) -> io::Result<u64> {
    match body {
        Body::Length(length) => exactly(from, to, length),
        Body::Chunked => chunks(from, to),
    }
}

fn exactly(from: &mut impl BufRead, to: &mut impl Write, length: u64) -> io::Result<u64> {
    let copied = io::copy(&mut from.take(length), to)?;
    if copied == length { Ok(copied) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Each chunk is framed anew, without extensions and trailers: what the other side reads is what was read here.
fn chunks(from: &mut impl BufRead, to: &mut impl Write) -> io::Result<u64> {
    let mut sent = 0;
    loop {
        let line = line(from)?;
        let digits = line.split(';').next().unwrap_or_default().trim_end_matches([' ', '\t']);
        let hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = u64::from_str_radix(digits, 16).ok().filter(|_| hexadecimal).ok_or_else(malformed)?;
        write!(to, "{size:x}\r\n")?;
        if size == 0 {
            break;
        }
        sent += exactly(from, to, size)?;
        if !self::line(from)?.is_empty() {
            return Err(malformed());
        }
        to.write_all(b"\r\n")?;
    }
    for _ in 0..MOST_TRAILERS {
        if line(from)?.is_empty() {
            to.write_all(b"\r\n")?;
            to.flush()?;
            return Ok(sent);
        }
    }
    Err(malformed())
}

/// A line without its end, which is CR and LF.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    let line = bytes.strip_suffix(b"\r\n").ok_or_else(malformed)?;
    if line.contains(&b'\r') || line.contains(&0) {
        return Err(malformed());
    }
    String::from_utf8(line.to_vec()).map_err(|_| malformed())
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed chunk")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(text: &str, body: Body) -> (Option<String>, String) {
        let (mut from, mut to) = (text.as_bytes(), Vec::new());
        let outcome = pass(&mut from, &mut to, body);
        let sent = outcome.ok().and_then(|_| String::from_utf8(to).ok());
        (sent, String::from_utf8_lossy(from).into_owned())
    }

    #[test]
    fn a_body_ends_where_it_says() {
        let next = "GET /admin HTTP/1.1\r\n\r\n";
        let (sent, rest) = passed(&format!("abc{next}"), Body::Length(3));
        assert_eq!((sent.as_deref(), rest.as_str()), (Some("abc"), next));
        let chunked = format!("3;x=y\r\nabc\r\n0A \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n{next}");
        let (sent, rest) = passed(&chunked, Body::Chunked);
        let framed = "3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!((sent.as_deref(), rest.as_str()), (Some(framed), next));
    }

    #[test]
    fn malformed_chunks_end_the_request() {
        for text in [
            "",
            "3\nabc\r\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "0x3\r\nabc\r\n0\r\n\r\n",
            "-1\r\n",
            "+3\r\n",
        ] {
            assert_eq!(passed(text, Body::Chunked).0, None, "{text:?}");
        }
        assert_eq!(passed("fffffffffffffffff\r\n", Body::Chunked).0, None);
        assert_eq!(passed("ab", Body::Length(3)).0, None, "cut short");
    }
}
