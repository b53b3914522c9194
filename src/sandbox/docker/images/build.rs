//! Building an image, once for each content.

use std::collections::{BTreeMap, HashMap};
use std::io;

use bollard::query_parameters::BuildImageOptionsBuilder;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::sandbox::Progress;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::{explain, status, words};
use crate::sandbox::docker::images::buildkit::Order;
use crate::sandbox::docker::images::hidden::Hidden;
use crate::sandbox::docker::images::log::Log;
use crate::sandbox::docker::images::made::{IMAGE_LABEL, Made};
use crate::sandbox::docker::images::recipe::Recipe;
use crate::sandbox::docker::images::send::send;
use crate::sandbox::docker::images::settings::{CA_FILE, additions, env, passwords, proxies};
use crate::sandbox::docker::images::{Base, build_lock};
use crate::workflow::image::Pull;

/// An image that was built.
#[derive(Debug, Clone)]
pub(super) struct Built {
    /// Its tag.
    pub(super) tag: String,
    /// Its id.
    pub(super) digest: String,
    /// What its base was replaced with.
    pub(super) substitute: Option<String>,
    /// Whether this call built it.
    pub(super) fresh: bool,
}

impl Docker {
    /// Builds the recipe, unless an image of its content stands on the engine.
    pub(super) async fn built(&self, recipe: Recipe, progress: &dyn Progress) -> Result<Built> {
        if recipe.pull != Pull::Always
            && let Some(built) = self.built_before(&recipe).await?
        {
            return Ok(built);
        }
        let _one_at_a_time = build_lock(progress).await?;
        // Somebody else may have built it while this process waited.
        if recipe.pull != Pull::Always
            && let Some(built) = self.built_before(&recipe).await?
        {
            return Ok(built);
        }
        let mut bases = Vec::new();
        for reference in recipe.bases() {
            let base = self.base(&reference, recipe.pull, recipe.platform.as_deref(), progress).await?;
            bases.push((reference, base));
        }
        let tag = recipe.tag(bases.iter().map(|(_, base)| base.digest.as_str()));
        if let Some(built) = self.tagged(&tag).await? {
            return Ok(built);
        }
        self.build(&recipe, &tag, bases, progress).await?;
        if let Err(changed) = self.check_unchanged(&recipe).await {
            self.forget(&tag).await?;
            return Err(changed);
        }
        let built = self.tagged(&tag).await?;
        built.map(|built| Built { fresh: true, ..built }).ok_or_else(|| {
            Diagnostic::new("image::vanished", format!("the image `{tag}` was built and is not there"))
                .help("did something remove it at the same time? run it again")
        })
    }

    /// The image of the recipe's content on the engine. A base that is not there is no reason to build again: nothing
    /// newer is known of it.
    pub(super) async fn built_before(&self, recipe: &Recipe) -> Result<Option<Built>> {
        let mut ids = Vec::new();
        for reference in recipe.bases() {
            match self.standing(&reference, recipe.platform.as_deref()).await? {
                Some(base) => ids.push(base.digest),
                None => return self.newest_of(&recipe.content).await,
            }
        }
        self.tagged(&recipe.tag(ids.iter().map(String::as_str))).await
    }

    async fn tagged(&self, tag: &str) -> Result<Option<Built>> {
        let Some(image) = self.inspect(tag).await? else { return Ok(None) };
        let made = image.config.and_then(|config| config.labels).and_then(|labels| Made::of(&labels));
        Ok(image.id.map(|digest| Built {
            tag: tag.to_owned(),
            digest,
            substitute: made.and_then(|made| made.substitute),
            fresh: false,
        }))
    }

    async fn newest_of(&self, content: &Digest) -> Result<Option<Built>> {
        let images = self.made_images().await?.into_iter();
        let fits =
            images.filter(|(image, made)| made.content == content.as_str() && is_tagged(&image.repo_tags));
        match fits
            .max_by_key(|(image, _)| image.created)
            .and_then(|(image, _)| image.repo_tags.into_iter().next())
        {
            Some(tag) => self.tagged(&tag).await,
            None => Ok(None),
        }
    }

    async fn build(
        &self,
        recipe: &Recipe,
        tag: &str,
        bases: Vec<(String, Base)>,
        progress: &dyn Progress,
    ) -> Result<()> {
        let secrets = secrets(recipe)?;
        progress.begin(&format!("building {}", recipe.name));
        let substitutes: BTreeMap<String, String> =
            bases.iter().filter_map(|(name, base)| Some((name.clone(), base.substitute.clone()?))).collect();
        let made = Made {
            of: recipe.name.clone(),
            project: self.project_hash(),
            content: recipe.content.to_string(),
            bases: bases.into_iter().map(|(_, base)| base.digest).collect(),
            substitute: substitutes.values().next().cloned(),
        };
        let labels: HashMap<String, String> = [(IMAGE_LABEL.to_owned(), made.label())].into();
        let proxies = proxies(&self.build, &env);
        let hidden = Hidden::new(passwords(&proxies).into_iter().chain(secrets.values().cloned()));
        let mut log = Log::new(progress, hidden);
        let args: HashMap<String, String> = proxies.into_iter().chain(recipe.args.clone()).collect();
        let additions = additions(&self.build, substitutes, recipe.ca.as_deref());
        let dockerfile = recipe.context.dockerfile.adapted(&recipe.args, &additions);
        let mut own = vec![("Dockerfile", dockerfile.into_bytes())];
        own.extend(recipe.ca.clone().map(|bytes| (CA_FILE, bytes)));
        let context = send(own, recipe.context.items.clone());
        let done = if secrets.is_empty() && !recipe.context.dockerfile.needs_buildkit() {
            self.build_classic(recipe, tag, &labels, &args, context, &mut log).await
        } else {
            let order = self.order(recipe, tag, &labels, &args, secrets);
            self.build_with_buildkit(order, context, &mut log).await
        };
        progress.end(&if done.is_ok() { format!("built {tag}") } else { "failed".to_owned() });
        done
    }

    async fn build_classic(
        &self,
        recipe: &Recipe,
        tag: &str,
        labels: &HashMap<String, String>,
        args: &HashMap<String, String>,
        context: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        log: &mut Log<'_>,
    ) -> Result<()> {
        let mut options =
            BuildImageOptionsBuilder::default().t(tag).rm(true).forcerm(true).labels(labels).buildargs(args);
        if let Some(network) = &self.build.network {
            options = options.networkmode(network);
        }
        if let Some(platform) = &recipe.platform {
            options = options.platform(platform);
        }
        if let Some(target) = &recipe.target {
            options = options.target(target);
        }
        let mut building =
            self.client.build_image(options.build(), None, Some(bollard::body_try_stream(context)));
        while let Some(info) = building.next().await {
            let info = info.map_err(|error| failed(log, &recipe.name, error))?;
            log.classic(info.stream.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// The same for BuildKit.
    fn order(
        &self,
        recipe: &Recipe,
        tag: &str,
        labels: &HashMap<String, String>,
        args: &HashMap<String, String>,
        secrets: BTreeMap<String, String>,
    ) -> Order {
        let json = |map: &HashMap<String, String>| serde_json::to_string(map).unwrap_or_default();
        let mut parameters = vec![
            ("t", tag.to_owned()),
            ("rm", "1".to_owned()),
            ("labels", json(labels)),
            ("buildargs", json(args)),
        ];
        // BuildKit knows these by name; everything else is its own network.
        let network = self.build.network.as_deref().filter(|network| matches!(*network, "host" | "none"));
        for (name, value) in [
            ("networkmode", network),
            ("platform", recipe.platform.as_deref()),
            ("target", recipe.target.as_deref()),
        ] {
            parameters.extend(value.map(|value| (name, value.to_owned())));
        }
        Order { name: recipe.name.clone(), parameters, secrets }
    }
}

/// The values of the recipe's secrets: read now, handed on, kept nowhere.
fn secrets(recipe: &Recipe) -> Result<BTreeMap<String, String>> {
    let mut secrets = BTreeMap::new();
    for (id, variable) in &recipe.secrets {
        let value = env(variable).filter(|value| !value.is_empty()).ok_or_else(|| {
            let message =
                format!("building {} needs the secret `{id}`, and {variable} is not set", recipe.name);
            Diagnostic::new("image::no_secret", message).help(format!("set {variable} where tidemill runs"))
        })?;
        secrets.insert(id.clone(), value);
    }
    Ok(secrets)
}

/// Whether an image has a name of its own; one whose name moved on is listed as `<none>:<none>`.
pub(super) fn is_tagged(tags: &[String]) -> bool {
    tags.first().is_some_and(|tag| !tag.starts_with("<none>"))
}

fn failed(log: &Log<'_>, name: &str, error: bollard::errors::Error) -> Diagnostic {
    // Before the first step it was the engine that failed, unless it says what is wrong with the Dockerfile.
    if status(&error).is_none()
        && !log.has_begun()
        && !matches!(error, bollard::errors::Error::DockerStreamError { .. })
    {
        return explain(&format!("build {name}"), error);
    }
    log.failed(name, &words(&error))
}
