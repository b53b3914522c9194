//! One attempt to send one message.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use super::reach::reach;
use crate::clock::Clock;
use crate::config::NotifySettings;
use crate::event::input::printable;
use crate::run::redact::Redactor;
use crate::trigger::webhook::Key;
use crate::workflow::notify::{Address, Notify};

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// The HTTP status, when there was an answer.
    pub(super) status: Option<u16>,
    /// The beginning of the answer's body, without secrets.
    pub(super) answer: Option<String>,
    /// `Retry-After`, as it was written.
    pub(super) retry_after: Option<String>,
    /// Why there was no answer.
    pub(super) error: Option<String>,
}

/// Sends messages.
pub(super) struct Sender<'a> {
    pub(super) settings: &'a NotifySettings,
    pub(super) env: &'a (dyn Fn(&str) -> Option<String> + Send + Sync),
    pub(super) clock: &'a dyn Clock,
}

impl Sender<'_> {
    /// A server that has not answered by then is not there.
    const PATIENCE: Duration = Duration::from_secs(15);
    /// Bytes of an answer that are kept.
    const ANSWER: usize = 1_000;

    /// Sends `body` under the message id `id`.
    pub(super) async fn send(&self, target: &Notify, id: &str, body: String) -> Sent {
        // What a server says, or an error, may hold what it was sent.
        let redactor = Redactor::new(target.secrets(), &self.env);
        let sent = tokio::select! {
            sent = self.attempt(target, id, body) => sent,
            () = self.clock.sleep(Self::PATIENCE) => Err("it did not answer within 15 seconds".to_owned()),
        };
        let clean = |text: String| redactor.clean(&text);
        match sent {
            Ok(sent) => Sent { answer: sent.answer.map(clean), ..sent },
            Err(error) => Sent { error: Some(clean(error)), ..Sent::default() },
        }
    }

    async fn attempt(&self, target: &Notify, id: &str, body: String) -> Result<Sent, String> {
        let secret = |name: &str| {
            (self.env)(name).ok_or_else(|| format!("the variable {name} of its secret is not set"))
        };
        let address = match &target.url {
            Address::Url(url) => url.clone(),
            Address::Secret(name) => secret(name)?.trim().to_owned(),
        };
        let url = Url::parse(&address).map_err(|_| "its secret holds no address".to_owned())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("its address is neither http nor https".to_owned());
        }
        let reached = reach(&url, self.settings).await?;
        let client = Client::builder()
            // A proxy would resolve the name anew, and reach what was not looked at.
            .no_proxy()
            .redirect(Policy::none())
            .dns_resolver(reached)
            .user_agent(concat!("tidemill/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| reason(&error))?;
        let mut request =
            client.post(url.clone()).header(CONTENT_TYPE, "application/cloudevents+json; charset=utf-8");
        if let Some(name) = &target.secret {
            let key = Key::standard(&secret(name)?)
                .map_err(|why| format!("its secret {name} cannot be used: {why}"))?;
            let at = self.clock.now().as_second();
            request = request
                .header("webhook-id", id)
                .header("webhook-timestamp", at)
                .header("webhook-signature", key.sign_standard(id, at, body.as_bytes()));
        }
        let response = request.body(body).send().await.map_err(|error| reason(&error))?;
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(Sent {
            status: Some(response.status().as_u16()),
            retry_after: retry_after.map(str::to_owned),
            answer: Self::beginning(response).await.map(|text| without_path(&text, &url)),
            error: None,
        })
    }

    /// The beginning of an answer's body, made printable; whatever is wrong with the rest does not matter.
    async fn beginning(mut response: Response) -> Option<String> {
        let mut bytes = Vec::new();
        while bytes.len() < Self::ANSWER
            && let Ok(Some(chunk)) = response.chunk().await
        {
            bytes.extend_from_slice(&chunk);
        }
        bytes.truncate(Self::ANSWER);
        let text = String::from_utf8_lossy(&bytes);
        (!bytes.is_empty()).then(|| printable(text.trim().as_ref()))
    }
}

/// A text without the path and the query of `url`, and without the parts of them that are long enough for a key: pages
/// of errors repeat them, as they are written or decoded.
fn without_path(text: &str, url: &Url) -> String {
    const KEY: usize = 8;
    let (query, path) = (url.query().unwrap_or_default(), url.path().trim_start_matches('/'));
    let values = query.split('&').map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    let parts = path.split('/').chain(values).filter(|part| part.len() >= KEY);
    let decoded = url.query_pairs().map(|(_, value)| value.into_owned()).filter(|value| value.len() >= KEY);
    let written = [query, path].into_iter().filter(|part| !part.is_empty()).chain(parts);
    let mut hidden: Vec<String> = written.map(str::to_owned).chain(decoded).collect();
    // The longest first: one may hold another.
    hidden.sort_by_key(|part| std::cmp::Reverse(part.len()));
    hidden.into_iter().fold(text.to_owned(), |text, part| text.replace(&part, "..."))
}

/// The innermost reason: the outer ones hold the address.
fn reason(error: &reqwest::Error) -> String {
    let mut reason = error.source();
    while let Some(inner) = reason.and_then(|error| error.source()) {
        reason = Some(inner);
    }
    reason.map_or_else(|| "no answer".to_owned(), |error| printable(error.to_string().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_an_address_that_may_be_a_key_is_kept() {
        let url = Url::parse("https://hooks.example/bot/T0KEN-12345?k=a%2Fb%2Fcdefgh&v=1").unwrap();
        for (said, kept) in [
            ("no POST /bot/T0KEN-12345?k=a%2Fb%2Fcdefgh&v=1", "no POST /...?..."),
            ("token T0KEN-12345 is unknown to the bot, v=1", "token ... is unknown to the bot, v=1"),
            ("k is a%2Fb%2Fcdefgh, or a/b/cdefgh", "k is ..., or ..."),
        ] {
            assert_eq!(without_path(said, &url), kept);
        }
        assert_eq!(
            without_path("not / found", &Url::parse("https://hooks.example/").unwrap()),
            "not / found"
        );
    }
}
