//! What scripts declare, and what a daemon needs for it.

use tidemill::run::deliveries::check;
use tidemill::script;
use tidemill::workflow::notify::{Address, Moment, Notify};

use crate::support::project::Project;

async fn declared(fields: &str) -> Vec<Notify> {
    let script = format!(
        r#"local mill = require "tidemill"
return mill.workflow {{
  name = "w", sandbox = "none", agent = {{ model = "gpt-5.4" }}, prompt = "Work.",
  {fields}
}}
"#
    );
    let project = Project::new().workflow("w.lua", &script);
    let loaded = script::find(&project.open(), "w").await.unwrap_or_else(|error| panic!("{error:?}"));
    loaded.workflow.notify
}

#[tokio::test]
async fn where_it_stands_says_which_ends_are_told() {
    let targets = declared(
        r#"on_success = mill.notify { url = mill.secret "URL" },
           on_failure = { mill.notify { url = "https://pager.example.org/x" } },
           notify = {
             mill.notify { url = "https://all.example.org" },
             mill.notify { url = "https://few.example.org", secret = mill.secret "KEY", events = { "run.queued" } },
           },"#,
    );
    let [all, few, success, failure]: [Notify; 4] = targets.await.try_into().unwrap();
    assert_eq!(success.url, Address::Secret("URL".to_owned()));
    assert_eq!(success.events, [Moment::Succeeded]);
    assert_eq!(failure.events, Moment::BAD_ENDS);
    assert_eq!(all.events.len(), 6);
    assert_eq!((few.secret.as_deref(), few.events.as_slice()), (Some("KEY"), &[Moment::Queued][..]));
}

#[tokio::test]
async fn secrets_that_are_missing_or_none_are_told_before_the_first_run() {
    let env = |name: &str| (name == "URL").then(|| "https://hooks.example.org/key".to_owned());
    let target = |url: &str, secret: Option<&str>| Notify {
        url: Address::Secret(url.to_owned()),
        secret: secret.map(str::to_owned),
        events: vec![Moment::Failed],
    };
    assert!(check("refunds", &[target("URL", None)], &env).is_ok());
    let missing = check("refunds", &[target("NOWHERE", None)], &env).unwrap_err();
    assert_eq!(missing.code(), "deliveries::no_secret");
    assert!(missing.message().contains("refunds") && missing.message().contains("NOWHERE"));
    let wrong = check("refunds", &[target("URL", Some("URL"))], &env).unwrap_err();
    assert_eq!(wrong.code(), "deliveries::bad_secret");
    assert!(!format!("{:?}", wrong.report()).contains("hooks.example.org"));
}
