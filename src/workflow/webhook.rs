//! What starts a workflow by a request from outside.

/// Starts a run for every request to one path that is signed with one of its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// Behind `/hooks/`: words of `a-z`, `0-9`, `-` and `_` with `/` between them.
    pub path: String,
    /// The variables with the secrets, at least one; while a secret is changed there are two.
    pub secrets: Vec<String>,
    /// How requests are signed.
    pub scheme: Scheme,
    /// Bytes of a body that are taken, [`Webhook::LARGEST_BODY`] at most.
    pub max_body: u64,
    /// Requests a second that are taken, on average. Above zero.
    pub rate: f64,
}

/// How requests are signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`.
    #[default]
    Standard,
    /// `X-Hub-Signature-256`.
    Github,
    /// `Stripe-Signature`.
    Stripe,
    /// `X-Slack-Signature`, `X-Slack-Request-Timestamp`.
    Slack,
    /// HMAC-SHA256 of the body, in hexadecimal or base64, in this header (lower case).
    Hmac(String),
}

impl Webhook {
    /// Bytes that are taken where nothing is said.
    pub const MAX_BODY: u64 = 1_000_000;
    /// A body is held in memory until its signature is known to be good.
    pub const LARGEST_BODY: u64 = 100_000_000;
    /// Requests a second that are taken where nothing is said.
    pub const RATE: f64 = 50.0;
}

impl Scheme {
    /// Those that are one word in scripts.
    pub const WORDS: [Self; 4] = [Self::Standard, Self::Github, Self::Stripe, Self::Slack];

    /// As scripts write it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Github => "github",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Hmac(_) => "hmac",
        }
    }
}
