//! The head of a plain HTTP request: for whom it is, and where its body ends.
//!
//! Each connection carries one request, and is closed behind it: nothing that follows a request is ever passed on, so
//! none can be smuggled behind one that is allowed. What two servers might read in two ways is refused.

use std::fmt::Write as _;

use super::policy;

/// Bytes a head may have.
pub const LONGEST_HEAD: usize = 64 * 1024;

/// A request that can be passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The host's name, in the form names are compared in.
    pub host: String,
    /// The port it names; the connection's own must be the same.
    pub port: Option<u16>,
    /// The head to send: as it came, but for what concerns the connection.
    pub head: Vec<u8>,
    /// What follows the head.
    pub body: Body,
    /// Bytes of the head as it came.
    pub length: usize,
}

/// What follows a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks, up to the last.
    Chunked,
}

/// What a client's first bytes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// They are not all there yet.
    More,
    /// A request.
    Request(Request),
    /// Nothing that is let through.
    Refused(&'static str),
}

/// Reads the first bytes of a client.
pub fn read(bytes: &[u8]) -> Head {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() >= LONGEST_HEAD {
            Head::Refused("the head of its request is too long")
        } else {
            Head::More
        };
    };
    match request(&bytes[..end], end + 4) {
        Ok(request) => Head::Request(request),
        Err(why) => Head::Refused(why),
    }
}

fn request(head: &[u8], length: usize) -> Result<Request, &'static str> {
    const MALFORMED: &str = "the head of its request is malformed";
    let text = std::str::from_utf8(head).map_err(|_| MALFORMED)?;
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(MALFORMED);
    };
    if !is_token(method) || target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(MALFORMED);
    }
    if method == "CONNECT" {
        return Err("it asks for a tunnel (CONNECT); connect to the host itself instead");
    }
    if version != "HTTP/1.1" && version != "HTTP/1.0" {
        return Err("its version of HTTP is none that is known");
    }
    let mut fields = Fields::default();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(MALFORMED)?;
        let value = value.trim_matches([' ', '\t']);
        if !is_token(name) || value.chars().any(|character| character.is_control() && character != '\t') {
            return Err(MALFORMED);
        }
        fields.take(name, value)?;
    }
    let host = fields.host.ok_or("it names no host")?;
    let (authority, path) = match target.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())),
        None => (host.as_str(), target),
    };
    if !authority.eq_ignore_ascii_case(&host) {
        return Err("its target and its Host name different hosts");
    }
    let path = match path.chars().next() {
        Some('/') => path.to_owned(),
        Some('*') if path == "*" && method == "OPTIONS" => path.to_owned(),
        Some('?') => format!("/{path}"),
        None => "/".to_owned(),
        Some(_) => return Err(MALFORMED),
    };
    let (name, port) = split(&host)?;
    let mut sent = format!("{method} {path} {version}\r\nHost: {host}\r\n{}", fields.kept);
    match fields.body {
        Some(Body::Chunked) if version == "HTTP/1.0" => return Err(MALFORMED),
        Some(Body::Chunked) => sent.push_str("Transfer-Encoding: chunked\r\n"),
        Some(Body::Length(length)) => {
            let _ = write!(sent, "Content-Length: {length}\r\n");
        }
        None => {}
    }
    sent.push_str("Connection: close\r\n\r\n");
    let body = fields.body.unwrap_or(Body::Length(0));
    Ok(Request { host: name, port, head: sent.into_bytes(), body, length })
}

#[derive(Default)]
struct Fields {
    host: Option<String>,
    body: Option<Body>,
    /// The lines that are passed on as they are.
    kept: String,
}

impl Fields {
    fn take(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        const TWO_WAYS: &str = "the length of its body can be read in two ways";
        match name.to_ascii_lowercase().as_str() {
            "host" if self.host.is_some() => return Err("it names more than one host"),
            "host" => self.host = Some(value.to_owned()),
            "content-length" => {
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let length = value.parse().ok().filter(|_| digits).ok_or(TWO_WAYS)?;
                if self.body.replace(Body::Length(length)).is_some() {
                    return Err(TWO_WAYS);
                }
            }
            "transfer-encoding" => {
                if !value.eq_ignore_ascii_case("chunked") || self.body.replace(Body::Chunked).is_some() {
                    return Err(TWO_WAYS);
                }
            }
            // What speaks of the connection ends here: there is one request on each.
            "connection" | "proxy-connection" | "keep-alive" | "upgrade" | "http2-settings" | "te"
            | "trailer" => {}
            _ => {
                for part in [name, ": ", value, "\r\n"] {
                    self.kept.push_str(part);
                }
            }
        }
        Ok(())
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// `name` or `name:port`.
fn split(host: &str) -> Result<(String, Option<u16>), &'static str> {
    const NO_NAME: &str = "it names its host by an address, or not at all";
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, Some(port.parse().map_err(|_| NO_NAME)?))
        }
        Some(_) => return Err(NO_NAME),
        None => (host, None),
    };
    Ok((policy::name(name).ok_or(NO_NAME)?, port))
}

/// The answer to a request that is not let through.
pub fn refusal(why: &str) -> Vec<u8> {
    let body = format!("tidemill: this request was refused: {why}\n");
    format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Request, &'static str> {
        match read(text.as_bytes()) {
            Head::Request(request) => Ok(request),
            Head::Refused(why) => Err(why),
            Head::More => Err("more"),
        }
    }

    #[test]
    fn a_request_is_passed_on_alone() {
        let text = "POST /a?b HTTP/1.1\r\nHost: API.example.com:8080\r\nAccept: */*\r\nConnection: keep-alive, x\r\n\
                    Upgrade: h2c\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n";
        let request = parsed(text);
        let head = "POST /a?b HTTP/1.1\r\nHost: API.example.com:8080\r\nAccept: */*\r\nContent-Length: 3\r\n\
                    Connection: close\r\n\r\n";
        let length = text.find("abc").unwrap_or_default();
        let wanted = Request {
            host: "api.example.com".into(),
            port: Some(8080),
            head: head.into(),
            body: Body::Length(3),
            length,
        };
        assert_eq!(request, Ok(wanted));
        for cut in 0..length {
            assert_eq!(read(&text.as_bytes()[..cut]), Head::More, "cut at {cut}");
        }
    }

    #[test]
    fn an_absolute_target_becomes_a_path() {
        let request = parsed("GET http://a.example?x HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let head = request.map(|request| String::from_utf8_lossy(&request.head).into_owned());
        assert!(head.is_ok_and(|head| head.starts_with("GET /?x HTTP/1.1\r\nHost: a.example\r\n")));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for text in [
            "GET http://evil.example/ HTTP/1.1\r\nHost: a.example",
            "GET http://a.example@evil.example/ HTTP/1.1\r\nHost: a.example",
            "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example",
            "GET / HTTP/1.1\r\nHost: a.example\r\nhost : b.example",
            "GET / HTTP/1.1\r\nHost: a.example\r\n Host: b.example",
            "GET / HTTP/1.1\r\nHost: a.example, b.example",
            "GET / HTTP/1.1\r\nHost: a.example@b.example",
            "GET / HTTP/1.1\r\nHost: 10.0.0.1",
            "GET / HTTP/1.1\r\nHost: [::1]:80",
            "GET / HTTP/1.1",
            "GET / HTTP/1.1\r\nHost:",
            "GET / HTTP/1.1\r\nHost: a.example\nX: y",
            "GET / HTTP/1.1\r\nHost: a.example\r\nX: a\rb",
            "GET / HTTP/1.1\r\nHost: a.example\r\nX: a\0b",
            "GET  / HTTP/1.1\r\nHost: a.example",
            "GET / HTTP/2.0\r\nHost: a.example",
            "GET a.example HTTP/1.1\r\nHost: a.example",
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nContent-Length: 2",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: +1",
            "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1, 1",
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: xchunked",
            "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked",
            "POST / HTTP/1.0\r\nHost: a.example\r\nTransfer-Encoding: chunked",
        ] {
            assert!(parsed(&format!("{text}\r\n\r\n")).is_err(), "{text}");
        }
        let endless = vec![b'a'; LONGEST_HEAD];
        assert!(matches!(read(&endless), Head::Refused(_)));
    }
}
