//! Which model a run thinks with, what it costs, and which secrets it needs.

use crate::config::{ModelConfig, Project, Provider};
use crate::diagnostic::{Diagnostic, Result, nearest};
use crate::event::usage::Price;
use crate::model::scripted::Scripted;
use crate::model::{self, Model};
use crate::run::redact::Redactor;
use crate::workflow::limits::Limits;

/// The process's environment.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Opens the model of this name: scripted ones through the Lua host, others over HTTP.
pub async fn open(project: &Project, name: &str) -> Result<Box<dyn Model>> {
    let config = project.config.models.get(name);
    match config {
        Some(ModelConfig { provider: Provider::Scripted, script: Some(script), .. }) => {
            let play = crate::script::load_model(project, script).await?;
            Ok(Box::new(Scripted::new(name, play)))
        }
        _ => model::open(name, config, &env).map_err(|diagnostic| with_names(diagnostic, project, name)),
    }
}

/// What the model costs; nothing for a scripted one.
pub fn price(project: &Project, name: &str) -> Option<Price> {
    let config = project.config.models.get(name);
    if config.is_some_and(|config| config.provider == Provider::Scripted) {
        return Some(Price::default());
    }
    model::price(name, config)
}

/// A dollar limit needs a price: without one nothing could be reserved.
pub fn require_price(project: &Project, name: &str, limits: &Limits) -> Result<Option<Price>> {
    let price = price(project, name);
    if limits.cost.is_some() && price.is_none() {
        let message =
            format!("the price of model `{name}` is not known, and the workflow has a dollar limit");
        return Err(Diagnostic::new("config::unknown_price", message).help(format!(
            "add `price = {{ input = ..., output = ... }}` (dollars per million tokens) to [models.\"{name}\"] in tidemill.toml"
        )));
    }
    Ok(price)
}

/// Knows every secret the project's settings name.
pub fn redactor(project: &Project) -> Redactor {
    let keys = project.config.models.values().filter_map(|model| model.api_key_env.clone());
    let named = keys.chain(project.config.registries.values().map(|registry| registry.password_env.clone()));
    Redactor::new(named.chain(["OPENAI_API_KEY".to_owned()]), &env)
}

fn with_names(diagnostic: Diagnostic, project: &Project, name: &str) -> Diagnostic {
    let known = project.config.models.keys().map(String::as_str);
    match nearest(name, known) {
        Some(near) if near != name && !project.config.models.contains_key(name) => {
            let help = diagnostic.advice().unwrap_or_default().to_owned();
            Diagnostic::new(diagnostic.code(), diagnostic.message().to_owned())
                .help(format!("did you mean the model `{near}` of tidemill.toml? {help}"))
        }
        _ => diagnostic,
    }
}
