//! From a name and its table in `tidemill.toml` to a model that can be asked.

use super::chat::Chat;
use super::key::Key;
use super::responses::Responses;
use super::server::{OPENAI, Settings};
use super::{Model, prices};
use crate::config::{ModelConfig, Provider};
use crate::diagnostic::{Diagnostic, Result};
use crate::event::usage::Price;

/// Where OpenAI's key is when nothing says otherwise.
const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// Opens the model `name`: as its table says, and without one as OpenAI's model of that name.
///
/// `env` gives environment variables. Nothing is sent yet. Scripted models are not opened here, since they need a
/// script: that is an error.
pub fn open(
    name: &str,
    config: Option<&ModelConfig>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Box<dyn Model>> {
    let provider = config.map_or(Provider::Openai, |config| config.provider);
    if provider == Provider::Scripted {
        let message = format!("model `{name}` is scripted, so there is no server to ask");
        return Err(Diagnostic::new("model::scripted", message)
            .help("a scripted model is played by the `script` of its [models] table"));
    }
    let settings = settings(name, config, env)?;
    Ok(match provider {
        Provider::OpenaiChat => Box::new(Chat::new(settings)?),
        Provider::Openai | Provider::Scripted => Box::new(Responses::new(settings)?),
    })
}

/// What `name` costs: as its table says, or OpenAI's list price when it is asked at OpenAI.
pub fn price(name: &str, config: Option<&ModelConfig>) -> Option<Price> {
    let Some(config) = config else {
        return prices::listed(name);
    };
    if config.price.is_some() {
        return config.price;
    }
    let at_openai = config.provider != Provider::Scripted
        && config
            .base_url
            .as_deref()
            .is_none_or(|url| url.starts_with(OPENAI));
    at_openai
        .then(|| prices::listed(config.model.as_deref().unwrap_or(name)))
        .flatten()
}

fn settings(
    name: &str,
    config: Option<&ModelConfig>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings> {
    let set = |variable: &str| env(variable).filter(|text| !text.trim().is_empty());
    let chosen = config.and_then(|config| config.base_url.clone());
    let elsewhere = chosen.is_some();
    let base_url = chosen
        .or_else(|| set("OPENAI_BASE_URL"))
        .unwrap_or_else(|| OPENAI.to_owned());
    // A server of one's own gets OpenAI's key only when its table names the variable.
    let key_env = config
        .and_then(|config| config.api_key_env.clone())
        .or_else(|| (!elsewhere).then(|| OPENAI_KEY.to_owned()));
    let key = match &key_env {
        None => Key::default(),
        Some(variable) => Key::new(&set(variable).ok_or_else(|| no_key(name, variable, config.is_some()))?),
    };
    Ok(Settings {
        model: config
            .and_then(|config| config.model.clone())
            .unwrap_or_else(|| name.to_owned()),
        key,
        key_env,
        organization: set("OPENAI_ORG_ID").filter(|_| !elsewhere),
        project: set("OPENAI_PROJECT_ID").filter(|_| !elsewhere),
        max_output_tokens: config.and_then(|config| config.max_output_tokens),
        ..Settings::new(name, base_url)
    })
}

fn no_key(name: &str, variable: &str, has_table: bool) -> Diagnostic {
    let message = format!("model `{name}` needs a key, and {variable} is not set");
    let help = if has_table {
        format!(
            "export {variable}=..., or name another variable by `api_key_env` in [models.\"{name}\"] of tidemill.toml"
        )
    } else {
        format!(
            "export {variable}=..., or write a [models.\"{name}\"] table in tidemill.toml with a `base_url` of another \
             server or `provider = \"scripted\"`; docs/models.md shows how"
        )
    };
    Diagnostic::new("model::no_key", message).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(toml: &str) -> ModelConfig {
        toml::from_str(toml).expect("a model's table")
    }

    fn code(result: Result<Box<dyn Model>>) -> &'static str {
        result.expect_err("it cannot be opened").code()
    }

    #[test]
    fn without_a_table_it_is_openai_and_needs_a_key() {
        let error = open("gpt-5", None, &|_| None).expect_err("there is no key");
        assert_eq!(error.code(), "model::no_key");
        assert!(error.advice().is_some_and(|help| help.contains("OPENAI_API_KEY")));
        let blank = open("gpt-5", None, &|_| Some(" ".into()));
        assert_eq!(code(blank), "model::no_key");
        let env = |name: &str| (name == OPENAI_KEY).then(|| "sk-test-1234567890".to_owned());
        let model = open("gpt-5", None, &env).expect("it opens");
        assert_eq!(model.name(), "gpt-5");
        assert!(!format!("{model:?}").contains("1234567890"), "the key is shown");
    }

    #[test]
    fn a_server_of_ones_own_needs_none_and_is_sent_none() {
        let table = config("provider = \"openai-chat\"\nbase_url = \"http://localhost:1/v1\"");
        let env = |_: &str| Some("sk-secret-of-openai".to_owned());
        let settings = settings("local", Some(&table), &env).expect("settings");
        assert!(settings.key.is_none());
        assert!(open("local", Some(&table), &|_| None).is_ok());
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let scripted = config("provider = \"scripted\"\nscript = \"a.lua\"");
        assert_eq!(code(open("x", Some(&scripted), &|_| None)), "model::scripted");
        let url = config("provider = \"openai\"\nbase_url = \"localhost:1\"");
        assert_eq!(code(open("x", Some(&url), &|_| None)), "model::wrong_url");
        let named = config("provider = \"openai\"\napi_key_env = \"MY_KEY\"");
        assert_eq!(code(open("x", Some(&named), &|_| None)), "model::no_key");
        let two_lines = |_: &str| Some("sk-one\nsk-two".to_owned());
        assert_eq!(code(open("x", Some(&named), &two_lines)), "model::bad_key");
    }

    #[test]
    fn a_price_is_the_tables_or_openais_at_openai() {
        let own = config("provider = \"openai\"\nprice = { input = 1, output = 2 }");
        assert_eq!(price("gpt-5", Some(&own)).map(|price| price.output), Some(2.0));
        let renamed = config("provider = \"openai\"\nmodel = \"gpt-5\"");
        assert_eq!(price("smart", Some(&renamed)), price("gpt-5", None));
        let elsewhere = config("provider = \"openai-chat\"\nbase_url = \"http://localhost:1/v1\"");
        assert_eq!(price("gpt-5", Some(&elsewhere)), None);
    }
}
