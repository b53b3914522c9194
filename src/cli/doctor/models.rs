//! The models: is what each of them needs there? Keys are looked for and never shown.

use crate::cli::doctor::finding::Finding;
use crate::config::{ModelConfig, Project, Provider};

/// One finding for each model of `tidemill.toml`.
pub(super) fn examine(project: &Project) -> Vec<Finding> {
    if project.config.models.is_empty() {
        return vec![Finding::warn(
            "models",
            "none in tidemill.toml",
            "add [models.NAME]; docs/configuration.md lists the settings",
        )];
    }
    let has = |variable: &str| std::env::var_os(variable).is_some_and(|key| !key.is_empty());
    project.config.models.iter().map(|(name, model)| judge(project, name, model, has)).collect()
}

fn judge(project: &Project, name: &str, model: &ModelConfig, has: impl Fn(&str) -> bool) -> Finding {
    let what = format!("model {name}");
    if model.provider == Provider::Scripted {
        let script = model.script.as_deref().unwrap_or_default();
        return if project.root.join(script).is_file() {
            Finding::ok(what, format!("scripted by {script}"))
        } else {
            Finding::fail(
                what,
                format!("its script {script} is not there"),
                "`script` in tidemill.toml names it",
            )
        };
    }
    match &model.api_key_env {
        Some(variable) if has(variable) => Finding::ok(what, format!("{variable} is set")),
        Some(variable) => Finding::warn(
            what,
            format!("{variable} is not set"),
            format!("export {variable}=... before it is used"),
        ),
        None if model.base_url.is_none() => Finding::warn(
            what,
            "it has neither `api_key_env` nor `base_url`",
            "OpenAI needs a key: api_key_env = \"OPENAI_API_KEY\"",
        ),
        None => Finding::ok(what, "its server needs no key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;
    use crate::config::Config;

    #[test]
    fn a_missing_key_is_named_and_a_present_one_not_shown() {
        let config =
            Config::parse("[models.m]\nprovider = \"openai\"\napi_key_env = \"SOME_KEY\"\n").unwrap();
        let project = Project { root: "/nowhere".into(), config };
        let model = &project.config.models["m"];
        let missing = judge(&project, "m", model, |_| false);
        assert!(
            missing.level == Level::Warn && missing.to_string().contains("SOME_KEY is not set"),
            "{missing}"
        );
        assert_eq!(
            judge(&project, "m", model, |name| name == "SOME_KEY").to_string(),
            "ok    model m: SOME_KEY is set"
        );
    }
}
