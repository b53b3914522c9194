//! From the bytes of an answer to its JSON messages: server-sent events, one message per line, or one whole document.
//!
//! Servers that say they stream do any of the three, so what arrives decides, not the content type. Bytes are only
//! read as text once a line is complete: a chunk may end inside a character.

use serde_json::Value;

/// A message that never ends must not fill the memory.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// One message of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// A JSON document.
    Json(Value),
    /// `[DONE]`: nothing comes after it.
    Done,
    /// Something that is neither.
    Nonsense(String),
}

/// Cuts bytes into [`Frame`]s.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// Lines of a message that is not complete yet.
    message: String,
}

impl Frames {
    /// Takes the next bytes and gives the messages they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take_line(&String::from_utf8_lossy(&line), &mut frames);
            }
        }
        if self.line.len() + self.message.len() > MAX_MESSAGE {
            let start = self.line.len().min(200);
            frames.push(Frame::Nonsense(
                String::from_utf8_lossy(&self.line[..start]).into_owned(),
            ));
            *self = Self::default();
        }
        frames
    }

    /// Says that no bytes follow and gives what was left.
    pub fn finish(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let line = std::mem::take(&mut self.line);
        self.take_line(&String::from_utf8_lossy(&line), &mut frames);
        self.flush(&mut frames);
        frames
    }

    fn take_line(&mut self, line: &str, frames: &mut Vec<Frame>) {
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(data) = line.strip_prefix("data:") {
            self.add(data.strip_prefix(' ').unwrap_or(data), frames);
        } else if line.is_empty() {
            // An empty line ends an event; inside a document over many lines it means nothing.
            if !self.message.starts_with(['{', '[']) || complete(&self.message).is_some() {
                self.flush(frames);
            }
        } else if !is_field(line) {
            self.add(line, frames);
        }
    }

    /// Adds a line to the message. Some servers leave out the empty line between events, so a message is also over as
    /// soon as it is a whole document.
    fn add(&mut self, text: &str, frames: &mut Vec<Frame>) {
        if text.trim() == "[DONE]" {
            self.flush(frames);
            frames.push(Frame::Done);
            return;
        }
        let first = self.message.is_empty();
        if !first {
            self.message.push('\n');
        }
        self.message.push_str(text);
        // Only a line that can be the last one of a document is worth a try.
        let may_end = (first && text.ends_with('}')) || text.starts_with(['}', ']']);
        if may_end && let Some(value) = complete(&self.message) {
            self.message.clear();
            frames.push(Frame::Json(value));
        }
    }

    fn flush(&mut self, frames: &mut Vec<Frame>) {
        let message = std::mem::take(&mut self.message);
        if message.trim().is_empty() {
            return;
        }
        frames.push(complete(&message).map_or(Frame::Nonsense(message), Frame::Json));
    }
}

fn complete(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// A comment or a field of server-sent events that says nothing we need; the type stands in the message as well.
fn is_field(line: &str) -> bool {
    [":", "event:", "id:", "retry:"]
        .iter()
        .any(|field| line.starts_with(field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut frames = Frames::default();
        let mut all: Vec<_> = chunks.iter().flat_map(|chunk| frames.push(chunk)).collect();
        all.extend(frames.finish());
        all
    }

    #[test]
    fn events_survive_a_cut_at_any_byte() {
        let text =
            ": hello\r\nevent: x\r\ndata: {\"a\":\"é🌊\"}\r\n\r\ndata: {\"b\":\ndata: 2}\n\ndata: [DONE]\n\n";
        let whole = read(&[text.as_bytes()]);
        assert_eq!(
            whole,
            [
                Frame::Json(json!({"a": "é🌊"})),
                Frame::Json(json!({"b": 2})),
                Frame::Done
            ]
        );
        for at in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(read(&[left, right]), whole, "cut at {at}");
        }
    }

    #[test]
    fn lines_and_documents_are_read_too() {
        assert_eq!(
            read(&[b"{\"a\":1}\n{\"a\":2}\n"]),
            [Frame::Json(json!({"a": 1})), Frame::Json(json!({"a": 2}))]
        );
        assert_eq!(
            read(&[b"{\n  \"a\": {\n    \"b\": 1\n  }\n\n}"]),
            [Frame::Json(json!({"a": {"b": 1}}))]
        );
        assert_eq!(
            read(&[b"data: {\"a\":1}\ndata: {\"a\":2}\n"]),
            [Frame::Json(json!({"a": 1})), Frame::Json(json!({"a": 2}))]
        );
    }

    #[test]
    fn what_is_cut_or_no_json_is_said_to_be_so() {
        assert_eq!(read(&[b"data: {\"a\":"]), [Frame::Nonsense("{\"a\":".into())]);
        assert_eq!(
            read(&[b"<html>\n<body>\n"]),
            [Frame::Nonsense("<html>\n<body>".into())]
        );
        assert_eq!(read(&[b""]), []);
    }
}
