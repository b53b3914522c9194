//! Images on a real engine: what is built, what is sent, what is pulled, and what is said when that fails.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use bollard::query_parameters::RemoveImageOptionsBuilder;
use futures_util::StreamExt as _;
use tidemill::config::build::{Proxies, Proxy};
use tidemill::config::{Build, Registry as Account};
use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::{Engine as _, Progress, ReadyImage, Silent};
use tidemill::workflow::image::{Folder, Image, Origin, Packages, Pull};

use crate::support::engine::{connect, engine_in, repository, small_image};
use crate::support::project::Project;
use crate::support::registry::{PASSWORD, PASSWORD_VARIABLE, Registry, USER};

fn raw() -> bollard::Docker {
    bollard::Docker::connect_with_defaults().unwrap()
}

/// An engine for a project with no settings at all.
async fn plain(project: &Project) -> Docker {
    connect(project.root(), &Build::default(), &BTreeMap::new()).await
}

/// Removes images whatever became of the test before.
struct Gone(Vec<String>);

impl Drop for Gone {
    fn drop(&mut self) {
        let images = std::mem::take(&mut self.0);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                for image in images {
                    let options = RemoveImageOptionsBuilder::default().force(true).build();
                    let _ = raw().remove_image(&image, Some(options), None).await;
                }
            });
        })
        .join()
        .unwrap();
    }
}

/// The files of an image and what they hold, links as `-> target`.
async fn files(image: &ReadyImage) -> BTreeMap<String, String> {
    let body = bollard::models::ContainerCreateBody {
        image: Some(image.digest.clone()),
        cmd: Some(vec!["/none".into()]),
        ..Default::default()
    };
    let container = raw().create_container(None, body).await.unwrap().id;
    let docker = raw();
    let mut exporting = docker.export_container(&container).boxed();
    let mut bytes = Vec::new();
    while let Some(piece) = exporting.next().await {
        bytes.extend_from_slice(&piece.unwrap());
    }
    drop(exporting);
    raw().remove_container(&container, None).await.unwrap();
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_string_lossy().into_owned();
        let mut text = String::new();
        match entry.link_name().unwrap() {
            Some(target) => text = format!("-> {}", target.display()),
            None => drop(std::io::Read::read_to_string(&mut entry, &mut text)),
        }
        if name.starts_with("app/") && !name.ends_with('/') {
            found.insert(name.trim_start_matches("app/").to_owned(), text);
        }
    }
    found
}

/// Remembers what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Progress for Told {
    fn begin(&self, step: &str) {
        self.at(step);
    }
    fn at(&self, detail: &str) {
        self.0.lock().unwrap().push(detail.to_owned());
    }
    fn end(&self, outcome: &str) {
        self.at(outcome);
    }
}

/// Changes a file of the context once the first step runs.
struct Meddler<'a>(&'a Project);

impl Progress for Meddler<'_> {
    fn begin(&self, _: &str) {}
    fn at(&self, detail: &str) {
        if detail.starts_with("step 2 of ") {
            self.0.put("images/app/a.txt", "changed");
        }
    }
    fn end(&self, _: &str) {}
}

fn folder(build: Folder) -> Image {
    Image { origin: Origin::Folder(build), ..Image::default() }
}

#[tokio::test]
async fn what_is_sent_is_what_the_ignore_file_leaves() {
    let salt = fastrand::u64(..).to_string();
    let project = Project::new()
        .file("images/app/Dockerfile", "FROM scratch\nCOPY . /app\n")
        .file("images/app/.dockerignore", "**/*.log\nsecret\n!secret/public\n")
        .file("images/app/a.txt", &salt)
        .file("images/app/deep/b.log", "left out")
        .file("images/app/secret/key", "left out")
        .file("images/app/secret/public", "public")
        .file("outside", "never sent");
    std::os::unix::fs::symlink("../../outside", project.path("images/app/link")).unwrap();
    std::fs::create_dir(project.path("images/app/empty")).unwrap();
    let docker = plain(&project).await;
    let image = Image::folder("images/app");
    let first = docker.prepare(&image, &Silent).await.unwrap();
    let _gone = Gone(vec![first.digest.clone()]);
    let names: BTreeSet<String> = files(&first).await.into_keys().collect();
    let wanted = [".dockerignore", "Dockerfile", "a.txt", "link", "secret/public"];
    assert_eq!(names, wanted.map(str::to_owned).into());
    assert_eq!(files(&first).await["link"], "-> ../../outside");
    // What is left out, and what a link leads to, decides nothing.
    project.put("images/app/secret/key", "other");
    project.put("outside", "other");
    let told = Told::default();
    let again = docker.prepare(&image, &told).await.unwrap();
    assert_eq!((again.digest, again.fresh), (first.digest, false));
    assert!(told.0.into_inner().unwrap().is_empty(), "nothing is built, nothing is sent");
}

#[tokio::test]
async fn a_folder_that_changes_while_it_is_built_gives_no_image() {
    let salt = fastrand::u64(..).to_string();
    let project = Project::new()
        .file("images/app/Dockerfile", "FROM scratch\nCOPY a.txt /app/\nENV A=b\n")
        .file("images/app/a.txt", &salt);
    let docker = plain(&project).await;
    let image = Image::folder("images/app");
    let changed = docker.prepare(&image, &Meddler(&project)).await.unwrap_err();
    assert_eq!(changed.code(), "image::changed");
    project.put("images/app/a.txt", &salt);
    assert_eq!(docker.find_image(&image).await.unwrap(), None);
}

#[tokio::test]
async fn stage_and_arguments_decide_what_is_built() {
    let salt = fastrand::u64(..).to_string();
    let project = Project::new().file(
        "images/app/Dockerfile",
        format!("FROM scratch AS first\nARG FILE\nCOPY $FILE /app/\nFROM no-such-base:{salt} AS last\nRUN broken\n"),
    );
    project.put("images/app/one.txt", &salt);
    project.put("images/app/two.txt", &salt);
    let docker = plain(&project).await;
    let with = |file: &str| {
        folder(Folder {
            path: "images/app".into(),
            target: Some("first".into()),
            args: [("FILE".to_owned(), file.to_owned())].into(),
            ..Folder::default()
        })
    };
    let told = Told::default();
    let one = docker.prepare(&with("one.txt"), &told).await.unwrap();
    let _one = Gone(vec![one.digest.clone()]);
    let two = docker.prepare(&with("two.txt"), &Silent).await.unwrap();
    let _two = Gone(vec![two.digest.clone()]);
    assert_eq!(files(&one).await.into_keys().collect::<Vec<_>>(), ["one.txt"]);
    assert_eq!(files(&two).await.into_keys().collect::<Vec<_>>(), ["two.txt"]);
    let told = told.0.into_inner().unwrap();
    assert!(
        told.iter().any(|line| line.starts_with("step 3 of ") && line.ends_with(": COPY $FILE /app/")),
        "{told:?}"
    );
    let unknown =
        folder(Folder { path: "images/app".into(), target: Some("frist".into()), ..Folder::default() });
    let failed = docker.prepare(&unknown, &Silent).await.unwrap_err();
    assert!(matches!(failed.code(), "image::build_failed" | "image::pull_refused"), "{failed:?}");
}

#[tokio::test]
async fn a_build_secret_is_used_and_kept_nowhere() {
    small_image().await;
    let salt = fastrand::u64(..);
    let dockerfile = format!(
        "FROM python:3.12-slim\nRUN --mount=type=secret,id=token,required echo {salt}; wc -c < /run/secrets/token > /size\n\
         RUN --mount=type=secret,id=token cat /run/secrets/token; echo; ls /run/secrets/ > /seen\n"
    );
    let project = Project::new().file("images/app/Dockerfile", dockerfile);
    let docker = engine_in(project.root()).await;
    let with = |variable: &str| {
        let secrets = [("token".to_owned(), variable.to_owned())].into();
        folder(Folder { path: "images/app".into(), secrets, ..Folder::default() })
    };
    let unset = docker.prepare(&with("TIDEMILL_TEST_NO_SUCH_VARIABLE"), &Silent).await.unwrap_err();
    assert_eq!(unset.code(), "image::no_secret");
    // A variable that a test's process has, and a value that occurs nowhere by chance.
    let value = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let told = Told::default();
    let ready = docker.prepare(&with("CARGO_MANIFEST_DIR"), &told).await.unwrap();
    let _gone = Gone(vec![ready.digest.clone()]);
    assert!(ready.fresh);
    let told = told.0.into_inner().unwrap().join("\n");
    assert!(told.contains(" of 4: RUN --mount=type=secret"), "{told}");
    assert!(told.contains("[hidden]") && !told.contains(&value), "{told}");
    let history = format!("{:?}", raw().image_history(&ready.digest).await.unwrap());
    let image = format!("{:?}", raw().inspect_image(&ready.digest).await.unwrap());
    assert!(!history.contains(&value) && !image.contains(&value));
    let again = docker.prepare(&with("CARGO_MANIFEST_DIR"), &Silent).await.unwrap();
    assert!(!again.fresh);

    project.put(
        "images/app/Dockerfile",
        format!("FROM python:3.12-slim\nRUN --mount=type=secret,id=token echo a clue {salt} && exit 3\n"),
    );
    let failed = docker.prepare(&with("CARGO_MANIFEST_DIR"), &Silent).await.unwrap_err();
    assert_eq!(failed.code(), "image::build_failed");
    assert!(
        failed.message().contains("RUN --mount=type=secret,id=token echo a clue"),
        "{}",
        failed.message()
    );
    assert!(failed.advice().unwrap().contains(&format!("  a clue {salt}\n")), "{failed:?}");
}

#[tokio::test]
async fn settings_reach_builds_and_leave_no_trace() {
    small_image().await;
    let salt = fastrand::u64(..);
    let project = Project::new().file("ca.crt", "-----BEGIN CERTIFICATE-----\nfirst\n").file(
        "images/app/Dockerfile",
        format!(
            "FROM python:3.12-slim\nRUN echo {salt} by $http_proxy && [ \"$HTTPS_PROXY\" = \"$http_proxy\" ] && \
             [ \"$PIP_INDEX_URL\" = https://pypi.example/simple ] && [ \"$APT_MIRROR\" = http://mirror.example ] && \
             grep -q first $PIP_CERT\n"
        ),
    );
    let proxy = Some("http://me:pass-word@127.0.0.1:9".to_owned());
    let build = Build {
        proxy: Some(Proxy::Given(Proxies { http: proxy.clone(), https: proxy, no: None })),
        apt_mirror: Some("http://mirror.example".into()),
        pip_index: Some("https://pypi.example/simple".into()),
        ca_bundle: Some("ca.crt".into()),
        ..Build::default()
    };
    let repository = repository();
    let script = repository.root.join("images/base/bootstrap").to_string_lossy().into_owned();
    let bases = [("python:3.12-slim".to_owned(), script)].into();
    let docker = connect(project.root(), &build, &bases).await;
    let image = Image::folder("images/app");
    let told = Told::default();
    let ready = docker.prepare(&image, &told).await.unwrap();
    let mut gone = Gone(vec![ready.digest.clone()]);
    let told = told.0.into_inner().unwrap().join("\n");
    assert!(told.contains("by http://[hidden]@127.0.0.1:9") && !told.contains("pass-word"), "{told}");
    let history = format!("{:?}", raw().image_history(&ready.digest).await.unwrap());
    let config = format!("{:?}", raw().inspect_image(&ready.digest).await.unwrap().config);
    for trace in ["pass-word", "127.0.0.1:9"] {
        assert!(!history.contains(trace) && !config.contains(trace), "{trace} is in the image");
    }
    // By which way a file comes does not change it; which certificates are in it does.
    let plain = connect(project.root(), &Build { proxy: None, ..build.clone() }, &bases).await;
    assert_eq!(plain.find_image(&image).await.unwrap().map(|found| found.digest), Some(ready.digest.clone()));
    project.put("ca.crt", "-----BEGIN CERTIFICATE-----\nanother\n");
    assert_eq!(docker.find_image(&image).await.unwrap(), None);
    project.put("ca.crt", "-----BEGIN CERTIFICATE-----\nfirst\n");

    // Packages go on top of a folder's image as well.
    let packages = Packages { python: vec!["pip>=9".into()], apt: vec![] };
    let upper = docker.prepare(&Image { packages, ..image }, &Silent).await.unwrap();
    gone.0.insert(0, upper.digest.clone());
    assert!(upper.fresh && upper.digest != ready.digest);
    assert_eq!(upper.substituted_base, ready.substituted_base);
}

#[tokio::test]
async fn packages_need_no_dockerfile() {
    small_image().await;
    let project = Project::new();
    let docker = engine_in(project.root()).await;
    // Packages that are there already need no network.
    let image = Image {
        packages: Packages { python: vec!["pip>=9".into()], apt: vec![] },
        ..Image::tag("python:3.12-slim")
    };
    let ready = docker.prepare(&image, &Silent).await.unwrap();
    let _gone = Gone(vec![ready.digest.clone()]);
    assert_eq!(ready.reference, "python:3.12-slim");
    assert_eq!(
        docker.find_image(&image).await.unwrap().map(|found| found.digest),
        Some(ready.digest.clone())
    );
    assert!(!docker.prepare(&image, &Silent).await.unwrap().fresh);
}

#[tokio::test]
async fn a_registry_is_asked_when_the_script_says_so() {
    let registry = Registry::serve("first").await;
    let reference = format!("{}/mill/tool:1", registry.host);
    let _gone = Gone(vec![reference.clone()]);
    let with = |pull| Image { pull, ..Image::tag(&reference) };
    let project = Project::new();
    let stranger = plain(&project).await;
    let never = stranger.prepare(&with(Pull::Never), &Silent).await.unwrap_err();
    assert_eq!(never.code(), "image::not_here");
    let refused = stranger.prepare(&with(Pull::Missing), &Silent).await.unwrap_err();
    assert_eq!(refused.code(), "image::pull_refused");
    assert!(refused.advice().unwrap().contains(&format!("docker login {}", registry.host)), "{refused:?}");
    assert_eq!(registry.asked(), 0);

    let mut settings = project.open();
    let account =
        |name: &str, variable: &str| Account { username: name.into(), password_env: variable.into() };
    settings.config.registries.insert(registry.host.clone(), account(USER, "TIDEMILL_TEST_NO_SUCH_VARIABLE"));
    let docker = Docker::open(&settings).await.unwrap();
    let unset = docker.prepare(&with(Pull::Missing), &Silent).await.unwrap_err();
    assert_eq!(unset.code(), "image::no_password");

    settings.config.registries.insert(registry.host.clone(), account(USER, "CARGO_PKG_VERSION"));
    let docker = Docker::open(&settings).await.unwrap();
    let wrong = docker.prepare(&with(Pull::Missing), &Silent).await.unwrap_err();
    assert!(wrong.advice().unwrap().contains("[registries."), "{wrong:?}");
    assert!(!format!("{wrong:?}").contains(env!("CARGO_PKG_VERSION")), "{wrong:?}");
    assert_eq!(registry.asked(), 0);

    settings.config.registries.insert(registry.host.clone(), account(USER, PASSWORD_VARIABLE));
    let docker = Docker::open(&settings).await.unwrap();
    let first = docker.prepare(&with(Pull::Missing), &Silent).await.unwrap();
    assert!(first.fresh);
    registry.push("second");
    let asked = registry.asked();
    for pull in [Pull::Missing, Pull::Never] {
        let still = docker.prepare(&with(pull), &Silent).await.unwrap();
        assert_eq!((still.digest.as_str(), still.fresh), (first.digest.as_str(), false));
    }
    assert_eq!(registry.asked(), asked, "what is there is not asked for");
    let second = docker.prepare(&with(Pull::Always), &Silent).await.unwrap();
    let _first = Gone(vec![first.digest.clone()]);
    assert!(second.fresh && second.digest != first.digest);
    assert!(!docker.prepare(&with(Pull::Always), &Silent).await.unwrap().fresh);

    // An image is never taken for another platform's.
    let elsewhere =
        Image { platform: Some("linux/s390x".into()), pull: Pull::Missing, ..Image::tag(&reference) };
    let refused = docker.prepare(&elsewhere, &Silent).await.unwrap_err();
    assert!(matches!(refused.code(), "image::wrong_platform" | "image::pull_refused"), "{refused:?}");
    assert!(
        refused.message().contains("linux/s390x") || refused.advice().unwrap().contains("linux/s390x"),
        "{refused:?}"
    );
}

/// A call of the built binary in the project, as `docker login` with a helper left it.
fn tidemill(project: &Project, args: &[&str]) -> (Option<i32>, String, String) {
    let path = std::env::var("PATH").unwrap_or_default();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tidemill"))
        .args(args)
        .current_dir(project.root())
        .env("CI", "1")
        .env("DOCKER_CONFIG", project.path("docker"))
        .env("PATH", format!("{}:{path}", project.path("bin").display()))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn workflow(name: &str, image: &str) -> String {
    format!(
        "local mill = require 'tidemill'\nreturn mill.workflow {{ name = '{name}', image = {image}, \
         agent = {{ model = 'tide' }}, prompt = 'x' }}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_listed_built_and_pruned() {
    use std::os::unix::fs::PermissionsExt as _;
    let registry = Registry::serve("pulled").await;
    let reference = format!("{}/mill/tool:2", registry.host);
    let helper = format!(
        "#!/bin/sh\nread host\n[ \"$1 $host\" = 'get {}' ] || exit 1\n\
         echo '{{\"ServerURL\":\"x\",\"Username\":\"{USER}\",\"Secret\":\"{PASSWORD}\"}}'\n",
        registry.host
    );
    let project = Project::new()
        .file("docker/config.json", format!("{{\"credHelpers\":{{\"{}\":\"mill\"}}}}", registry.host))
        .file("bin/docker-credential-mill", helper)
        .file("images/own/Dockerfile", "FROM scratch\nCOPY salt /salt\n")
        .file("images/own/salt", fastrand::u64(..).to_string())
        .workflow("own.lua", &workflow("own", "mill.image { build = 'images/own' }"))
        .workflow("pulled.lua", &workflow("pulled", &format!("mill.image '{reference}'")));
    let helper = project.path("bin/docker-credential-mill");
    std::fs::set_permissions(helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut gone = Gone(vec![reference.clone()]);
    let ls = || -> Vec<serde_json::Value> {
        let (code, out, err) = tidemill(&project, &["images", "ls", "--json"]);
        assert_eq!(code, Some(0), "{err}");
        let rows: Vec<serde_json::Value> = serde_json::from_str(&out).unwrap();
        rows.into_iter().filter(|row| row["state"] != "others" && row["state"] != "base").collect()
    };
    let states = |rows: &[serde_json::Value]| {
        rows.iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(&ls()), ["missing", "missing"]);
    let (code, out, err) = tidemill(&project, &["images", "build"]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out.lines().filter(|line| line.ends_with("  made")).count(), 2, "{out}");
    assert!(!format!("{out}{err}").contains(&format!("\"{PASSWORD}\"")), "{err}");
    let rows = ls();
    assert_eq!(states(&rows), ["current", "current"]);
    assert_eq!(rows[0]["workflows"], serde_json::json!(["own"]));
    let old = rows[0]["digest"].as_str().unwrap().to_owned();
    gone.0.push(old.clone());

    project.put("images/own/salt", fastrand::u64(..).to_string());
    assert_eq!(states(&ls()), ["missing", "current", "old"]);
    assert_eq!(tidemill(&project, &["images", "build", "own"]).0, Some(0));
    let rows = ls();
    gone.0.push(rows[0]["digest"].as_str().unwrap().to_owned());
    let removed = |args: &[&str]| -> Vec<serde_json::Value> {
        let (code, out, err) = tidemill(&project, args);
        assert_eq!(code, Some(0), "{err}");
        let mut done: serde_json::Value = serde_json::from_str(&out).unwrap();
        serde_json::from_value(done["removed"].take()).unwrap()
    };
    let would = removed(&["images", "prune", "--dry-run", "--json"]);
    assert_eq!(states(&ls()), ["current", "current", "old"], "a dry run removes nothing");
    let done = removed(&["images", "prune", "--json"]);
    assert_eq!((would.len(), done.len()), (1, 1));
    assert_eq!(done[0]["digest"].as_str(), Some(old.as_str()));
    assert_eq!(states(&ls()), ["current", "current"]);

    project.put("workflows/broken.lua", "return mill.workflow {");
    let (code, _, err) = tidemill(&project, &["images", "prune"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("nothing was removed"), "{err}");
    let (code, _, err) = tidemill(&project, &["images", "build", "owwn"]);
    assert!(code == Some(2) && err.contains("did you mean `own`?"), "{err}");
}
