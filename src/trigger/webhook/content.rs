//! What a request brings a run: files and params.

use bytes::Bytes;
use serde_json::Value;

use super::{Request, parts};
use crate::event::input::RawPath;
use crate::event::trigger::Params;
use crate::workflow::webhook::Scheme;

/// What a request brings.
#[derive(Debug, Default, PartialEq)]
pub struct Brings {
    /// Files in order, with the name they go by: of the sender's choosing, without folders.
    pub files: Vec<(RawPath, Bytes)>,
    /// Fields of a form, and of the query.
    pub params: Params,
}

/// What a request is made of, once it is known who sent it.
#[derive(Debug, PartialEq)]
pub enum Brought {
    /// A run is to be made of this.
    Run(Brings),
    /// The sender only asks whether somebody listens.
    Ping,
}

/// What is wrong with a request whose sender is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

/// Files of one request.
pub(super) const MOST_FILES: usize = 32;
/// Names and values of params, in bytes: each run's row and first event hold them.
const LARGEST_PARAMS: usize = 16 << 10;
/// How a sender asks for the run's end instead of its id.
const WAIT: &str = "wait";

impl Request {
    /// The seconds it wants to wait for the run's end, where it does.
    pub fn wait(&self) -> Option<u64> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(name, _)| name == WAIT).map(|(_, seconds)| seconds.parse().unwrap_or(0))
    }

    /// What it brings.
    pub async fn open(self, scheme: &Scheme) -> Result<Brought, Malformed> {
        let event = (*scheme == Scheme::Github).then(|| self.headers.get("x-github-event")).flatten();
        if event == Some("ping") {
            return Ok(Brought::Ping);
        }
        let mut brings = Brings::default();
        for (name, value) in form_urlencoded::parse(self.query.as_bytes()).filter(|(name, _)| name != WAIT) {
            brings.field(&name, &value);
        }
        let kind = self.headers.get("content-type").unwrap_or_default();
        let plain = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match plain.as_str() {
            "multipart/form-data" => {
                let boundary = multer::parse_boundary(kind)
                    .map_err(|_| Malformed("a multipart/form-data without a boundary".to_owned()))?;
                parts::read(self.body, boundary, &mut brings).await?;
            }
            "application/x-www-form-urlencoded" => {
                for (name, value) in form_urlencoded::parse(&self.body) {
                    brings.field(&name, &value);
                }
            }
            _ if self.body.is_empty() => {}
            plain => brings.files.push((RawPath::new(body_name(plain)), self.body)),
        }
        if let Some(event) = event {
            brings.params.insert("event".to_owned(), event.into());
        }
        let size: usize =
            brings.params.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
        if size > LARGEST_PARAMS {
            let why =
                "more than 16 KiB of fields; send the body as JSON or as a file, which becomes the input";
            return Err(Malformed(why.to_owned()));
        }
        Ok(Brought::Run(brings))
    }
}

impl Brings {
    /// Adds a field; one that comes again makes a list.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        match self.params.get_mut(name) {
            None => drop(self.params.insert(name.to_owned(), value.into())),
            Some(Value::Array(values)) => values.push(value.into()),
            Some(one) => *one = Value::Array(vec![one.take(), value.into()]),
        }
    }
}

/// The name of a body by its type: prompts and guardrails go by the extension.
fn body_name(kind: &str) -> &'static str {
    match kind {
        "application/json" => "body.json",
        kind if kind.ends_with("+json") => "body.json",
        "text/csv" => "body.csv",
        "text/plain" => "body.txt",
        "text/html" => "body.html",
        "text/markdown" => "body.md",
        "application/xml" | "text/xml" => "body.xml",
        "application/pdf" => "body.pdf",
        "application/zip" => "body.zip",
        "image/png" => "body.png",
        "image/jpeg" => "body.jpg",
        _ => "body",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Headers;
    use super::*;

    fn request(headers: &[(&str, &str)], query: &str, body: &str) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Request {
            path: "hook".to_owned(),
            query: query.to_owned(),
            headers: Headers::new(headers),
            body: body.to_owned().into(),
        }
    }

    async fn opened(kind: &str, query: &str, body: &str) -> Result<Brings, Malformed> {
        match request(&[("content-type", kind)], query, body).open(&Scheme::Standard).await? {
            Brought::Run(brings) => Ok(brings),
            Brought::Ping => Err(Malformed("a ping".to_owned())),
        }
    }

    fn names(brings: &Brings) -> Vec<String> {
        brings.files.iter().map(|(name, _)| name.display()).collect()
    }

    #[tokio::test]
    async fn a_body_is_one_file_named_by_its_type() {
        for (kind, name) in [
            ("application/json; charset=utf-8", "body.json"),
            ("application/cloudevents+json", "body.json"),
            ("Text/CSV", "body.csv"),
            ("", "body"),
            ("application/x-tar/../../etc", "body"),
        ] {
            assert_eq!(names(&opened(kind, "", "{}").await.unwrap()), [name], "{kind}");
        }
        assert_eq!(opened("application/json", "", "").await.unwrap(), Brings::default());
    }

    #[tokio::test]
    async fn query_and_form_become_params() {
        let brings =
            opened("application/x-www-form-urlencoded", "a=1&wait=5&b=2", "b=3&c=%C3%A9").await.unwrap();
        assert_eq!(json!(brings.params), json!({"a": "1", "b": ["2", "3"], "c": "é"}));
        assert!(brings.files.is_empty());
        assert_eq!(request(&[], "a=1&wait=5", "").wait(), Some(5));
        assert_eq!(request(&[], "a=1", "").wait(), None);
        let long = format!("a={}", "x".repeat(LARGEST_PARAMS));
        assert!(opened("", &long, "").await.unwrap_err().0.contains("16 KiB"));
    }

    #[tokio::test]
    async fn parts_with_a_name_are_files_whatever_the_name() {
        let part = |head: &str, body: &str| {
            format!("--x\r\ncontent-disposition: form-data; {head}\r\n\r\n{body}\r\n")
        };
        let body = [
            part("name=\"order\"", "77"),
            part("name=\"f\"; filename=\"../../etc/passwd\"", "one"),
            part("name=\"f\"; filename=\"C:\\\\me\\\\x.csv\"", "two"),
            part("name=\"f\"; filename=\"..\"", "three"),
            part("name=\"f\"; filename=\"\u{202e}vsc.csv\"", "four"),
            "--x--\r\n".to_owned(),
        ]
        .concat();
        let brings = opened("multipart/form-data; boundary=x", "", &body).await.unwrap();
        assert_eq!(names(&brings), ["passwd", "x.csv", "file-3", "\\u{202e}vsc.csv"]);
        assert_eq!(brings.files[1].1, "two");
        assert_eq!(json!(brings.params), json!({"order": "77"}));
        for (kind, body) in
            [("multipart/form-data", body.as_str()), ("multipart/form-data; boundary=x", "nothing")]
        {
            assert!(opened(kind, "", body).await.is_err(), "{kind}");
        }
        let many: String = (0..=MOST_FILES).map(|_| part("name=\"f\"; filename=\"a\"", "")).collect();
        let many = opened("multipart/form-data; boundary=x", "", &format!("{many}--x--\r\n")).await;
        assert_eq!(many.unwrap_err().0, "more than 32 files");
    }

    #[tokio::test]
    async fn github_says_which_event_it_is_and_its_ping_makes_no_run() {
        let event = |event: &'static str| request(&[("x-github-event", event)], "event=forged", "{}");
        assert_eq!(event("ping").open(&Scheme::Github).await, Ok(Brought::Ping));
        let Ok(Brought::Run(brings)) = event("push").open(&Scheme::Github).await else { panic!("no run") };
        assert_eq!(json!(brings.params), json!({"event": "push"}));
    }
}
