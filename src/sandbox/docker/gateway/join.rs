//! How a sandbox is put on its gateway's network.

use std::collections::HashMap;

use bollard::models::ContainerCreateBody;

use super::{Gateway, trust};
use crate::diagnostic::Result;
use crate::sandbox::docker::Docker;

impl Gateway {
    /// Changes what the sandbox's container is made with: a network, and what makes use of it.
    pub(in crate::sandbox::docker) fn join(&self, body: &mut ContainerCreateBody) {
        body.network_disabled = Some(false);
        let host = body.host_config.get_or_insert_default();
        host.network_mode = Some(self.parts.inside.clone());
        host.dns = Some(vec![self.address.to_string()]);
        // The host's own search list has no business in here.
        host.dns_search = Some(vec![".".to_owned()]);
        // Some engines resolve nothing on an internal network; what stands in /etc/hosts is found even so.
        host.extra_hosts = Some(self.names.iter().map(|name| format!("{name}:{}", self.address)).collect());
        let sysctls: &mut HashMap<String, String> = host.sysctls.get_or_insert_default();
        sysctls.insert("net.ipv6.conf.all.disable_ipv6".to_owned(), "1".to_owned());
        let (Some(swapper), Some(volume)) = (&self.swapper, &self.parts.trust) else { return };
        host.mounts.get_or_insert_default().push(trust::mount(volume));
        let environment = body.env.get_or_insert_default();
        let placeholders = swapper.placeholders().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let ours: Vec<(String, String)> = placeholders.chain(trust::variables()).collect();
        for (name, value) in ours {
            let start = format!("{name}=");
            if !environment.iter().any(|known| known.starts_with(&start)) {
                environment.push(format!("{start}{value}"));
            }
        }
    }

    /// What is left to do once the sandbox runs.
    pub(in crate::sandbox::docker) async fn joined(&self, engine: &Docker, sandbox: &str) -> Result<()> {
        match &self.swapper {
            Some(swapper) => engine.write_trust(sandbox, &swapper.certificate()).await,
            None => Ok(()),
        }
    }
}
