//! Building an image from a folder, once for each content.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use bollard::query_parameters::BuildImageOptionsBuilder;
use futures_util::StreamExt as _;

use crate::diagnostic::{Diagnostic, Result};
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::archive::stream;
use crate::sandbox::docker::context::Context;
use crate::sandbox::docker::errors::{explain, status, words};
use crate::sandbox::docker::images::build_lock;
use crate::sandbox::{Progress, ReadyImage};

/// Lines of a failed step that are shown.
const LAST_LINES: usize = 20;
/// Where Linux distributions keep the certificates a machine trusts.
const CA_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];
/// The label that says which base was replaced, so that it is known without building again.
const BASE_LABEL: &str = "tidemill.substituted_base";

impl Docker {
    pub(super) async fn built_image(&self, folder: &str, progress: &dyn Progress) -> Result<ReadyImage> {
        let context = Context::read(&self.root, folder, &self.build.args)?;
        let tag = tag(folder, context.digest.short());
        if let Some(ready) = self.built_before(folder, &tag).await? {
            return Ok(ready);
        }
        let _one_at_a_time = build_lock(progress).await?;
        // Somebody else may have built it while this process waited.
        if let Some(ready) = self.built_before(folder, &tag).await? {
            return Ok(ready);
        }
        let mut substitutes = BTreeMap::new();
        for reference in context.bases(&self.build.args) {
            if let Some(substitute) = self.base(&reference, progress).await?.substitute {
                substitutes.insert(reference, substitute);
            }
        }
        self.build(folder, &tag, context, &substitutes, progress).await?;
        let digest = self.present(&tag).await?;
        let substituted_base = substitutes.into_values().next();
        Ok(ReadyImage { reference: folder.to_owned(), digest, substituted_base, fresh: true })
    }

    /// The image of the folder's present content, when it has been built.
    pub(super) async fn find_built(&self, folder: &str) -> Result<Option<ReadyImage>> {
        let context = Context::read(&self.root, folder, &self.build.args)?;
        self.built_before(folder, &tag(folder, context.digest.short())).await
    }

    async fn built_before(&self, folder: &str, tag: &str) -> Result<Option<ReadyImage>> {
        let Ok(image) = self.client.inspect_image(tag).await else {
            // Missing, or the engine fails, which building reports better.
            return Ok(None);
        };
        let labels = image.config.and_then(|config| config.labels).unwrap_or_default();
        Ok(image.id.map(|digest| ReadyImage {
            reference: folder.to_owned(),
            digest,
            substituted_base: labels.get(BASE_LABEL).filter(|base| !base.is_empty()).cloned(),
            fresh: false,
        }))
    }

    async fn build(
        &self,
        folder: &str,
        tag: &str,
        context: Context,
        substitutes: &BTreeMap<String, String>,
        progress: &dyn Progress,
    ) -> Result<()> {
        progress.begin(&format!("building {folder}"));
        let labels: HashMap<String, String> =
            [(BASE_LABEL.to_owned(), substitutes.values().next().cloned().unwrap_or_default())].into();
        let args: HashMap<String, String> = self.build.args.clone().into_iter().collect();
        let mut options = BuildImageOptionsBuilder::default()
            .t(tag)
            .rm(true)
            .forcerm(true)
            .labels(&labels)
            .buildargs(&args);
        if let Some(network) = &self.build.network {
            options = options.networkmode(network);
        }
        let members = context.members(substitutes, &self.build.args, self.ca_bundle()?);
        let body = bollard::body_try_stream(stream(members));
        let mut building = self.client.build_image(options.build(), None, Some(body));
        let mut step = String::new();
        let mut last = VecDeque::new();
        while let Some(info) = building.next().await {
            let info = info.map_err(|error| {
                progress.end("failed");
                failed(folder, &step, &last, error)
            })?;
            for line in
                info.stream.iter().flat_map(|text| text.lines()).filter(|line| !line.trim().is_empty())
            {
                if line.starts_with("Step ") {
                    line.clone_into(&mut step);
                    last.clear();
                } else if last.len() == LAST_LINES {
                    last.pop_front();
                }
                last.push_back(line.to_owned());
                progress.at(line.trim());
            }
        }
        progress.end(&format!("built {tag}"));
        Ok(())
    }

    /// The certificates build steps are to trust.
    fn ca_bundle(&self) -> Result<Option<Vec<u8>>> {
        let path = match self.build.ca_bundle.as_deref() {
            None => return Ok(None),
            Some("host") => {
                let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
                let found =
                    named.into_iter().chain(CA_BUNDLES.map(PathBuf::from)).find(|path| path.is_file());
                match found {
                    Some(path) => path,
                    None => return Ok(None),
                }
            }
            Some(path) => self.root.join(path),
        };
        std::fs::read(&path).map(Some).map_err(|error| {
            Diagnostic::new("image::ca_bundle", format!("cannot read the certificates {}", path.display()))
                .cause(error)
                .help(
                    "`ca_bundle` under [build] in tidemill.toml names them; `host` means this machine's own",
                )
        })
    }
}

fn tag(folder: &str, hash: &str) -> String {
    let name = Path::new(folder).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("tidemill/{}:{hash}", name.trim_matches('-'))
}

fn failed(folder: &str, step: &str, last: &VecDeque<String>, error: bollard::errors::Error) -> Diagnostic {
    let text = words(&error);
    if status(&error).is_none() && step.is_empty() || text.contains("no space left") {
        return explain(&format!("build {folder}"), error);
    }
    let step = if step.is_empty() { String::new() } else { format!(" at {step}") };
    let lines: Vec<String> =
        last.iter().map(|line| format!("  {}", crate::event::input::printable(line.as_ref()))).collect();
    Diagnostic::new("image::build_failed", format!("building {folder} failed{step}: {}", text.trim())).help(format!(
        "its last lines were:\n{}\nbehind a proxy or a firewall, `network`, `ca_bundle` and `args` under [build] in \
         tidemill.toml reach the build",
        lines.join("\n")
    ))
}
