//! What scripts declare, and what check says of it across scripts.

use tidemill::script;
use tidemill::workflow::webhook::{Scheme, Webhook};

use crate::support::project::Project;

fn script(name: &str, triggers: &str) -> String {
    format!(
        r#"local mill = require "tidemill"
return mill.workflow {{
  name = "{name}", sandbox = "none", agent = {{ model = "gpt-5.4" }}, prompt = "Work.",
  triggers = {{ {triggers} }},
}}
"#
    )
}

async fn declared(trigger: &str) -> Webhook {
    let project = Project::new().workflow("w.lua", &script("w", trigger));
    let mut loaded = script::find(&project.open(), "w").await.unwrap_or_else(|error| panic!("{error:?}"));
    loaded.workflow.webhooks.remove(0)
}

#[tokio::test]
async fn a_webhook_is_declared_by_path_and_secret() {
    let plain = declared(r#"mill.webhook { path = "refunds", secret = mill.secret "A" }"#).await;
    let wanted = Webhook {
        path: "refunds".to_owned(),
        secrets: vec!["A".to_owned()],
        scheme: Scheme::Standard,
        max_body: 1_000_000,
        rate: 50.0,
    };
    assert_eq!(plain, wanted);
    let full = declared(
        r#"mill.webhook { path = "shop/orders", secret = { mill.secret "NEW", mill.secret "OLD" },
           scheme = { hmac = "X-Signature" }, max_body = "20MB", rate = 0.5 }"#,
    );
    let full = full.await;
    assert_eq!(full.secrets, ["NEW", "OLD"]);
    assert_eq!(full.scheme, Scheme::Hmac("x-signature".to_owned()));
    assert_eq!((full.max_body, full.rate.to_bits()), (20_000_000, 0.5_f64.to_bits()));
    for scheme in Scheme::WORDS {
        let word = scheme.as_str();
        let trigger =
            format!(r#"mill.webhook {{ path = "a", secret = mill.secret "A", scheme = "{word}" }}"#);
        assert_eq!(declared(&trigger).await.scheme, scheme);
    }
}

#[tokio::test]
async fn a_path_that_two_workflows_have_is_a_mistake() {
    let trigger = r#"mill.webhook { path = "refunds", secret = mill.secret "A" }"#;
    let project = Project::new()
        .workflow("one.lua", &script("one", trigger))
        .workflow("two.lua", &script("two", trigger))
        .workflow("three.lua", &script("three", &trigger.replace("refunds", "orders")));
    let checked = script::check(&project.open(), &[]).await;
    let [mistake] = checked.diagnostics.as_slice() else { panic!("{:?}", checked.diagnostics) };
    assert_eq!(mistake.code(), "script::duplicate_webhook");
    assert_eq!(mistake.message(), "a webhook of workflows/one.lua has the path `refunds` as well");
    assert_eq!(mistake.report().place.unwrap().file, "workflows/two.lua");
}
