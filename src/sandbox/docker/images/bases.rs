//! Bases that cannot be pulled, made by a script of the project: it writes a root file system as a tar file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio_util::io::ReaderStream;

use crate::diagnostic::{Diagnostic, Result};
use crate::event::id::Digest;
use crate::sandbox::docker::Docker;
use crate::sandbox::docker::errors::explain;
use crate::sandbox::docker::images::Base;
use crate::sandbox::docker::images::hidden::Hidden;
use crate::sandbox::docker::images::made::{IMAGE_LABEL, Made};
use crate::sandbox::docker::images::settings::{env, mirrors, passwords, proxies};
use crate::sandbox::{Progress, scratch};

/// Lines of a failed script that are shown.
const LAST_LINES: usize = 15;

impl Docker {
    /// The image a script made before, when it still stands on the engine.
    pub(super) async fn made_base(&self, script: &str) -> Result<Option<Base>> {
        let (_, tag) = self.script(script)?;
        let digest = self.inspect(&tag).await?.and_then(|image| image.id);
        Ok(digest.map(|digest| Base { digest, substitute: Some(tag), fresh: false }))
    }

    /// Runs the script and imports what it made.
    pub(super) async fn make_base(
        &self,
        reference: &str,
        script: &str,
        progress: &dyn Progress,
    ) -> Result<Base> {
        let (path, tag) = self.script(script)?;
        progress.begin(&format!("making a base in place of {reference} with {script}"));
        let folder = scratch::folder().map_err(|error| no_room(&error.to_string()))?;
        let rootfs = folder.path().join("rootfs.tar");
        run(script, &path, &rootfs, &self.reach(), progress).await?;
        progress.at("importing it");
        let file = tokio::fs::File::open(&rootfs).await.map_err(|error| {
            Diagnostic::new("image::bootstrap", format!("{script} ended well and wrote no tar file"))
                .cause(error)
                .help("it must write the root file system to the path in its first argument")
        })?;
        let (name, version) = tag.split_once(':').unwrap_or((&tag, "latest"));
        // So that it is known as ours: `tidemill images` lists and removes it.
        let made = Made { of: script.to_owned(), ..Made::default() };
        let labels = vec![format!("LABEL {IMAGE_LABEL}='{}'", made.label().replace('\'', ""))];
        let options = CreateImageOptionsBuilder::default()
            .from_src("-")
            .repo(name)
            .tag(version)
            .changes(labels)
            .build();
        let body = bollard::body_try_stream(ReaderStream::with_capacity(file, 1 << 18));
        let mut importing = self.client.create_image(Some(options), Some(body), None).boxed();
        while let Some(step) = importing.next().await {
            step.map_err(|error| explain(&format!("import the base made by {script}"), error))?;
        }
        progress.end(&format!("made {tag}"));
        let made = self.made_base(script).await?;
        made.map(|base| Base { fresh: true, ..base }).ok_or_else(|| {
            Diagnostic::new("image::vanished", format!("the image `{tag}` was made and is not there"))
                .help("did something remove it at the same time? run it again")
        })
    }

    /// How the script reaches the network: the variables that build steps have as well.
    fn reach(&self) -> Vec<(String, String)> {
        let mirrors = mirrors(&self.build).map(|(name, address)| (name.to_owned(), address.to_owned()));
        proxies(&self.build, &env).into_iter().chain(mirrors).collect()
    }

    /// The script's path and the tag of what it makes: the same script, the same image.
    fn script(&self, script: &str) -> Result<(PathBuf, String)> {
        let path = self.root.join(script);
        let text = std::fs::read(&path).map_err(|error| {
            Diagnostic::new("image::bootstrap", format!("cannot read {}", path.display()))
                .cause(error)
                .help("[bases] in tidemill.toml names it")
        })?;
        let tag = format!("tidemill/base:{}", Digest::of(text).short());
        Ok((path, tag))
    }
}

/// Ends the script with all it started when the caller goes away.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Already gone is what is wanted.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }
}

async fn run(
    script: &str,
    path: &Path,
    rootfs: &Path,
    reach: &[(String, String)],
    progress: &dyn Progress,
) -> Result<()> {
    let failed = |why: String, last: &VecDeque<String>| {
        let lines: Vec<String> = last.iter().map(|line| format!("  {line}")).collect();
        progress.end("failed");
        Diagnostic::new("image::bootstrap", format!("{script} failed: {why}"))
            .help(format!("its last lines were:\n{}", lines.join("\n")))
    };
    let mut last = VecDeque::new();
    let mut child = Command::new("bash")
        .arg(path)
        .arg(rootfs)
        .envs(reach.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string(), &last))?;
    let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
    follow(&mut child, &Hidden::new(passwords(reach)), &mut last, progress).await;
    let status = child.wait().await.map_err(|error| failed(error.to_string(), &last))?;
    group.0 = None;
    if status.success() { Ok(()) } else { Err(failed(status.to_string(), &last)) }
}

async fn follow(child: &mut Child, hidden: &Hidden, last: &mut VecDeque<String>, progress: &dyn Progress) {
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else { return };
    let (mut out, mut err) = (BufReader::new(out).lines(), BufReader::new(err).lines());
    let (mut out_open, mut err_open) = (true, true);
    while out_open || err_open {
        let line = tokio::select! {
            line = out.next_line(), if out_open => { out_open = matches!(line, Ok(Some(_))); line }
            line = err.next_line(), if err_open => { err_open = matches!(line, Ok(Some(_))); line }
        };
        if let Ok(Some(line)) = line {
            let line = hidden.hide(crate::event::input::printable(line.as_ref()));
            progress.at(&line);
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(line);
        }
    }
}

fn no_room(why: &str) -> Diagnostic {
    Diagnostic::new("image::bootstrap", format!("cannot make a temporary folder: {why}"))
        .help("a base needs about 1 GB of room where temporary files go; TMPDIR names another place")
}
