//! What every container is held to, and what a project may change of it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

use futures_util::StreamExt as _;
use tidemill::config::{Config, Project};
use tidemill::diagnostic::Result;
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::{Command, Engine as _, Sandbox, Spec};

use crate::support::engine::{run_id, sandboxed, small_image, small_limits};

/// A sandbox of a project with these settings.
async fn started(root: &Path, settings: &str, mounts: &[&str]) -> Result<std::sync::Arc<dyn Sandbox>> {
    let image = small_image().await;
    let project = Project { root: root.to_owned(), config: Config::parse(settings)? };
    let docker = Docker::open(&project).await?;
    let mounts = mounts.iter().map(|place| (*place).to_owned()).collect();
    docker.start(&run_id(), &image, &Spec { limits: small_limits(), mounts, ..Spec::default() }).await
}

async fn exit(sandbox: &std::sync::Arc<dyn Sandbox>, script: &str) -> Option<i64> {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    sandbox.exec(&Command { argv, timeout: Duration::from_secs(60) }).await.unwrap().exit
}

/// Attacks a sandbox through the built binary; gives its exit code and what did not hold.
fn attack(which: &[&str]) -> (Option<i32>, Vec<String>, Vec<serde_json::Value>) {
    let folder = tempfile::tempdir().unwrap();
    let output = Process::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(["doctor", "--sandbox", "--json"])
        .args(which)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let probes = report["probes"].as_array().unwrap();
    assert!(probes.len() >= 90, "{}", probes.len());
    let failed = probes.iter().filter(|probe| probe["verdict"] != "pass");
    let failed = failed.map(|probe| format!("{}: {}", probe["name"], probe["found"])).collect();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left in the folder");
    (output.status.code(), failed, probes.clone())
}

#[tokio::test]
async fn every_probe_holds() {
    let (code, failed, probes) = attack(&["--image", &small_image().await.digest]);
    described(&probes);
    assert!(failed.is_empty() && code == Some(0), "{failed:#?}");
}

#[test]
fn a_local_sandbox_holds_all_but_the_number_of_files() {
    let (code, failed, _) = attack(&["--local"]);
    assert!(failed.len() == 1 && failed[0].starts_with("\"disk/entries"), "{failed:#?}");
    assert_eq!(code, Some(1));
}

/// The page's table has a row for each probe, in their order. `UPDATE_DOCS=1` writes it.
fn described(probes: &[serde_json::Value]) {
    const HEAD: &str = "| probe | what it means when it passes |\n|---|---|\n";
    let row = |probe: &serde_json::Value| {
        format!("| `{}` | {} |\n", probe["name"].as_str().unwrap(), probe["meaning"].as_str().unwrap())
    };
    let rows: String = probes.iter().map(row).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sandbox.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(HEAD).unwrap();
    let end = rest.lines().take_while(|line| line.starts_with('|')).map(|line| line.len() + 1).sum();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, [before, HEAD, &rows, &rest[end..]].concat()).unwrap();
    } else {
        assert_eq!(
            &rest[..end],
            rows,
            "write the table anew: UPDATE_DOCS=1 cargo test --test all every_probe"
        );
    }
}

#[tokio::test]
async fn limits_and_namespaces_are_read_back() {
    sandboxed(small_limits(), |sandbox| async move {
        let isolation = sandbox.isolation();
        assert_eq!(isolation.ulimits, ["core=0", "nofile=8192"]);
        assert_eq!(isolation.shared_memory_bytes, 64 << 20);
        assert!(isolation.masked_paths > 5, "{isolation:?}");
        assert!(!isolation.seccomp.is_empty() && isolation.seccomp != "unconfined", "{isolation:?}");
        assert_eq!(
            exit(&sandbox, "test \"$(ulimit -c)\" = 0 && test \"$(ulimit -n)\" = 8192").await,
            Some(0)
        );
    })
    .await;
}

#[tokio::test]
async fn a_runtime_the_engine_does_not_have_is_refused_with_those_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        started(folder.path(), "[sandbox]\nruntime = \"no-such-runtime\"\n", &[]).await.unwrap_err();
    assert_eq!(refused.code(), "sandbox::no_runtime");
    assert!(refused.message().contains("runc"), "{refused:?}");
}

#[tokio::test]
async fn a_runtime_is_taken_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = started(folder.path(), "[sandbox]\nruntime = \"runc\"\n", &[]).await.unwrap();
    let runtime = sandbox.isolation().runtime.clone();
    sandbox.remove().await.unwrap();
    assert_eq!(runtime, "runc");
}

#[tokio::test]
async fn a_listed_folder_can_be_read_and_not_written() {
    let (project, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(data.path().join("table.csv"), "a,b\n").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(data.path(), open).unwrap();
    let settings = format!(
        "[sandbox]\nmounts = [{{ host = {:?}, at = \"/ref\" }}]\n",
        data.path().display().to_string()
    );
    let sandbox = started(project.path(), &settings, &["/ref"]).await.unwrap();
    let read = exit(&sandbox, "grep -q a,b /ref/table.csv").await;
    let write = exit(&sandbox, "touch /ref/new || rm -f /ref/table.csv && test ! -e /ref/table.csv").await;
    let mounts = sandbox.isolation().mounts.clone();
    sandbox.remove().await.unwrap();
    assert_eq!(read, Some(0));
    assert_ne!(write, Some(0));
    assert!(mounts.contains(&"/ref (bind, ro)".to_owned()), "{mounts:?}");
}

#[tokio::test]
async fn what_is_not_listed_or_must_never_be_seen_is_not_mounted() {
    let project = tempfile::tempdir().unwrap();
    let link = project.path().join("data");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    let settings =
        format!("[sandbox]\nmounts = [{{ host = {:?}, at = \"/ref\" }}]\n", link.display().to_string());
    let unlisted = started(project.path(), &settings, &["/other"]).await.unwrap_err();
    assert_eq!(unlisted.code(), "sandbox::no_mount");
    let leads_to_etc = started(project.path(), &settings, &["/ref"]).await.unwrap_err();
    assert_eq!(leads_to_etc.code(), "sandbox::mount_refused", "{leads_to_etc:?}");
    let state = project.path().join(".tidemill");
    std::fs::create_dir(&state).unwrap();
    let settings = format!(
        "[sandbox]\nmounts = [{{ host = {:?}, at = \"/ref\" }}]\n",
        project.path().display().to_string()
    );
    let holds_state = started(project.path(), &settings, &["/ref"]).await.unwrap_err();
    assert_eq!(holds_state.code(), "sandbox::mount_refused", "{holds_state:?}");
}

/// The helper, as the product embeds it.
const HELPER: &[u8] = include_bytes!(env!("TIDEMILL_HELPER"));

/// What a container as an engine makes it without being asked for more lets through.
const WEAK: [&str; 14] = [
    "identity/user",
    "identity/give-away",
    "identity/setuid-program",
    "capabilities/none",
    "capabilities/no-new-privileges",
    "capabilities/seccomp",
    "namespaces/new-user",
    "filesystem/write",
    "filesystem/chroot",
    "mounts/root-read-only",
    "secrets/environment",
    "processes/fork-bomb",
    "limits/memory",
    "limits/memory-hog",
];

#[tokio::test]
async fn the_probes_notice_a_weak_container() {
    let docker = bollard::Docker::connect_with_defaults().unwrap();
    let host = bollard::models::HostConfig {
        network_mode: Some("none".into()),
        security_opt: Some(vec!["seccomp=unconfined".into()]),
        ..bollard::models::HostConfig::default()
    };
    let argv =
        ["/helper", "probe", "memory=67108864", "pids=64", "disk=1000000", "inodes=100", "tmp=1000000"];
    let body = bollard::models::ContainerCreateBody {
        image: Some(small_image().await.digest),
        user: Some("0".into()),
        entrypoint: Some(argv.map(str::to_owned).to_vec()),
        env: Some(vec!["SOME_TOKEN=x".into()]),
        host_config: Some(host),
        ..bollard::models::ContainerCreateBody::default()
    };
    let id = docker.create_container(None, body).await.unwrap().id;
    let said = attacked(&docker, &id).await;
    let options = bollard::query_parameters::RemoveContainerOptionsBuilder::default().force(true).build();
    docker.remove_container(&id, Some(options)).await.unwrap();
    let said = said.unwrap();
    let failed: Vec<&str> =
        said.lines().filter_map(|line| line.split_once("\tfailed\t")).map(|(name, _)| name).collect();
    for name in WEAK {
        assert!(failed.contains(&name), "{name} passed in a weak container:\n{said}");
    }
    assert!(said.lines().last().unwrap().starts_with("end\t"), "{said}");
}

async fn attacked(docker: &bollard::Docker, id: &str) -> std::result::Result<String, bollard::errors::Error> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(HELPER.len() as u64);
    archive.append_data(&mut header, "helper", HELPER)?;
    let options = bollard::query_parameters::UploadToContainerOptionsBuilder::default().path("/").build();
    docker.upload_to_container(id, Some(options), bollard::body_full(archive.into_inner()?.into())).await?;
    docker.start_container(id, None).await?;
    // Some of the attacks succeed, so its end is no success.
    let _ = docker.wait_container(id, None).collect::<Vec<_>>().await;
    let options = bollard::query_parameters::LogsOptionsBuilder::default().stdout(true).build();
    let mut logs = docker.logs(id, Some(options));
    let mut said = String::new();
    while let Some(piece) = logs.next().await {
        said.push_str(&String::from_utf8_lossy(&piece?.into_bytes()));
    }
    Ok(said)
}
