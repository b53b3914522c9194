//! Hostile work in a real container: whatever it does, the host stays whole and the answer is clear.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidemill::event::isolation::Execution;
use tidemill::sandbox::{
    Body, Caps, Collected, Command, Engine as _, Executed, Output, Placement, Sandbox, SandboxError, Silent,
};
use tidemill::workflow::image::Image;
use tidemill::workflow::limits::Limits;
use tidemill::workflow::manifest::Access;
use tidemill::workflow::path::WorkspacePath;

use crate::support::engine::{
    engine, engine_in, everywhere, run_id, sandboxed, small_image, small_limits, spec,
};

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

fn file(at: &str, text: &str, access: Access) -> Placement {
    Placement::new(path(at), Body::Bytes(Bytes::copy_from_slice(text.as_bytes())), access)
}

async fn argv(sandbox: &Arc<dyn Sandbox>, argv: &[&str], timeout: Duration) -> Executed {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    sandbox.exec(&Command { argv, timeout }).await.unwrap()
}

async fn shell(sandbox: &Arc<dyn Sandbox>, script: &str) -> Executed {
    argv(sandbox, &["sh", "-c", script], Duration::from_secs(60)).await
}

/// What a command that must succeed prints.
async fn says(sandbox: &Arc<dyn Sandbox>, script: &str) -> String {
    let done = shell(sandbox, script).await;
    let text = text(&done.output);
    assert_eq!(done.exit, Some(0), "{script}: {text}");
    text
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.head).into_owned() + &String::from_utf8_lossy(&output.tail)
}

async fn collect(sandbox: &Arc<dyn Sandbox>, paths: &[&str]) -> (Collected, tempfile::TempDir) {
    let into = tempfile::tempdir().unwrap();
    let paths: Vec<WorkspacePath> = paths.iter().map(|text| path(text)).collect();
    let caps = Caps { file: 1 << 20, total: 2 << 20 };
    (sandbox.collect(&paths, &caps, into.path()).await.unwrap(), into)
}

/// What was refused, as `path: why`.
fn refusals(collected: &Collected) -> Vec<String> {
    assert!(collected.artifacts.is_empty(), "{collected:?}");
    collected.refused.iter().map(|(path, why)| format!("{path}: {why}")).collect()
}

fn raw() -> bollard::Docker {
    bollard::Docker::connect_with_defaults().unwrap()
}

/// The command lines in a container, as the engine sees them.
async fn processes(id: &str) -> Vec<String> {
    let top = raw().top_processes(id, None).await.unwrap();
    top.processes.unwrap_or_default().into_iter().filter_map(|mut columns| columns.pop()).collect()
}

async fn remove_from_outside(id: &str) {
    let options = bollard::query_parameters::RemoveContainerOptionsBuilder::default().force(true).build();
    raw().remove_container(id, Some(options)).await.unwrap();
}

#[tokio::test]
async fn isolation_is_read_back_and_is_what_was_asked_for() {
    sandboxed(small_limits(), |sandbox| async move {
        let isolation = sandbox.isolation().clone();
        assert_eq!(isolation.user, "1000:1000");
        assert_eq!(isolation.network, "none");
        assert!(isolation.read_only_root && isolation.init && !isolation.privileged);
        assert_eq!(isolation.capabilities_dropped, ["ALL"]);
        assert!(isolation.capabilities_added.is_empty());
        assert_eq!((isolation.memory_bytes, isolation.pids), (256 << 20, 64));
        assert_eq!(isolation.execution, Execution::Helper);
        assert_eq!(isolation.mounts.len(), 3, "{:?}", isolation.mounts);
        // And as seen from within.
        assert_eq!(says(&sandbox, "id -u; id -g; pwd; echo $HOME").await, "1000\n1000\n/workspace\n/tmp\n");
        let status = says(&sandbox, "cat /proc/self/status").await;
        assert!(status.contains("CapBnd:\t0000000000000000"), "{status}");
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
        assert_eq!(says(&sandbox, "ls /sys/class/net").await, "lo\n");
        assert_ne!(shell(&sandbox, "touch /etc/x || touch /usr/x || touch /x").await.exit, Some(0));
    })
    .await;
}

#[tokio::test]
async fn an_input_cannot_be_changed_renamed_or_removed() {
    everywhere(small_limits(), |sandbox| async move {
        let files = vec![
            file("input/data.csv", "a,b\n", Access::ReadOnly),
            file("shared/given.txt", "given", Access::ReadOnly),
            file("shared/mine.txt", "mine", Access::ReadWrite),
            file("top.txt", "top", Access::ReadOnly),
        ];
        let placed = sandbox.put(files).await.unwrap();
        assert_eq!((placed.files, placed.bytes), (4, 16));
        for attempt in [
            "echo x > input/data.csv",
            "echo x >> shared/given.txt",
            "rm -f input/data.csv",
            "rm -f shared/given.txt",
            "mv input elsewhere",
            "mv shared/given.txt other",
            "mv shared elsewhere",
            "mv top.txt other",
            "rm -f top.txt",
            "chmod u+w input/data.csv",
            "touch input/new",
            "ln -sf /etc/passwd top.txt",
            "ln -sf /etc/passwd shared/given.txt",
        ] {
            assert_ne!(shell(&sandbox, attempt).await.exit, Some(0), "`{attempt}` worked");
        }
        assert_eq!(says(&sandbox, "cat input/data.csv shared/given.txt top.txt").await, "a,b\ngiventop");
        // What can be read can be copied; where a move is one, it leaves a copy behind when it fails.
        says(
            &sandbox,
            "rm -f other && echo more >> shared/mine.txt && mkdir output && echo new > shared/new && rm shared/mine.txt",
        )
        .await;
        // Writing a file for the agent has no more rights than the agent.
        for place in ["input/data.csv", "shared/given.txt", "top.txt", "input/new.txt"] {
            let refused = sandbox.put(vec![file(place, "changed", Access::ReadWrite)]).await;
            assert!(matches!(refused, Err(SandboxError::Refused(..))), "{place}: {refused:?}");
        }
        assert_eq!(
            says(&sandbox, "cat input/data.csv shared/given.txt top.txt; ls -A").await,
            "a,b\ngiventopinput\noutput\nshared\ntop.txt\n"
        );
    })
    .await;
}

#[tokio::test]
async fn a_written_file_replaces_a_link_and_stays_in_the_workspace() {
    everywhere(small_limits(), |sandbox| async move {
        // Commands first: a workspace that nothing was placed in is just as much the agent's.
        says(&sandbox, "ln -s /etc/passwd note.txt; ln -s /usr/local/bin tools; ln -s /etc deep; echo old > plain.txt; mkdir folder").await;
        sandbox.put(vec![file("note.txt", "new", Access::ReadWrite)]).await.unwrap();
        assert_eq!(says(&sandbox, "cat note.txt; test ! -L note.txt").await.as_str().trim(), "new");
    })
    .await;
}

#[tokio::test]
async fn a_planted_folder_link_leads_nowhere() {
    everywhere(small_limits(), |sandbox| async move {
        says(&sandbox, "ln -s /usr/local/bin tools; ln -s /etc deep; echo old > plain.txt; mkdir folder")
            .await;
        for place in ["tools/evil", "deep/new/evil", "plain.txt/under", "folder"] {
            let refused = sandbox.put(vec![file(place, "x", Access::ReadWrite)]).await;
            assert!(matches!(refused, Err(SandboxError::Refused(..))), "{place}: {refused:?}");
        }
        says(&sandbox, "test ! -e /usr/local/bin/evil && test ! -e /etc/new").await;
        sandbox
            .put(vec![
                file("plain.txt", "new", Access::ReadWrite),
                file("a/b/c.txt", "deep", Access::ReadWrite),
            ])
            .await
            .unwrap();
        assert_eq!(
            says(&sandbox, "cat plain.txt a/b/c.txt; echo more >> plain.txt; rm a/b/c.txt; ls -A").await,
            "newdeepa\ndeep\nfolder\nplain.txt\ntools\n"
        );
    })
    .await;
}

#[tokio::test]
async fn odd_names_stay_names() {
    everywhere(small_limits(), |sandbox| async move {
        let names = ["-rf", "a b/it's \"x\".txt", "$(touch pwned)", "*", "żółw 🐢.txt", "--help/-n"];
        let files = names.iter().map(|name| file(name, name, Access::ReadWrite)).collect();
        sandbox.put(files).await.unwrap();
        for name in names {
            sandbox.put(vec![file(name, "again", Access::ReadWrite)]).await.unwrap();
            assert_eq!(sandbox.read(&path(name), 100).await.unwrap().as_ref(), b"again", "{name}");
        }
        let (collected, into) = collect(&sandbox, &names).await;
        assert_eq!((collected.artifacts.len(), collected.refused.len()), (6, 0), "{collected:?}");
        assert!(!into.path().join("pwned").exists());
        let listed = says(&sandbox, "ls -A | wc -l").await;
        assert_eq!(listed.trim(), "6");
    })
    .await;
}

#[tokio::test]
async fn a_large_file_goes_in_as_a_stream() {
    everywhere(small_limits(), |sandbox| async move {
        let host = tempfile::tempdir().unwrap();
        let big = host.path().join("big");
        std::fs::File::create(&big).unwrap().set_len(100 << 20).unwrap();
        let body = Body::File(big);
        sandbox.put(vec![Placement::new(path("input/big"), body, Access::ReadOnly)]).await.unwrap();
        assert_eq!(says(&sandbox, "stat -c %s input/big").await, "104857600\n");
    })
    .await;
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_what_to_do() {
    everywhere(small_limits(), |sandbox| async move {
        let host = tempfile::tempdir().unwrap();
        let big = host.path().join("big");
        std::fs::File::create(&big).unwrap().set_len(200 << 20).unwrap();
        let body = Body::File(big);
        let full = sandbox.put(vec![Placement::new(path("input/big"), body, Access::ReadOnly)]).await;
        match full {
            Err(SandboxError::Engine(diagnostic)) => assert_eq!(diagnostic.code(), "sandbox::workspace_full"),
            other => panic!("{other:?}"),
        }
    })
    .await;
}

#[tokio::test]
async fn commands_end_with_their_code_and_their_output_in_order() {
    everywhere(small_limits(), |sandbox| async move {
        let done = shell(&sandbox, "echo one; echo two >&2; sleep 0.1; echo three; exit 7").await;
        assert_eq!((done.exit, done.timed_out), (Some(7), false));
        let mut lines: Vec<String> = text(&done.output).lines().map(str::to_owned).collect();
        assert_eq!(lines.pop().as_deref(), Some("three"));
        assert_eq!(done.output.lines, 3);
        assert_eq!(shell(&sandbox, "kill -9 $$").await.exit, Some(137));
        // Nothing is quoted by us, and standard input is at its end.
        let done = argv(&sandbox, &["printf", "%s|", "a b", "$HOME", "'"], Duration::from_secs(10)).await;
        assert_eq!(text(&done.output), "a b|$HOME|'|");
        assert_eq!(says(&sandbox, "cat; echo end").await, "end\n");
    })
    .await;
}

#[tokio::test]
async fn a_missing_program_is_the_commands_failure() {
    everywhere(small_limits(), |sandbox| async move {
        let done = argv(&sandbox, &["no-such-program", "x"], Duration::from_secs(10)).await;
        assert_eq!(done.exit, Some(127), "{}", text(&done.output));
        assert!(text(&done.output).contains("no-such-program"), "{}", text(&done.output));
        let done = argv(&sandbox, &["/proc/version"], Duration::from_secs(10)).await;
        assert_eq!(done.exit, Some(126), "{}", text(&done.output));
        says(&sandbox, "true").await;
    })
    .await;
}

#[tokio::test]
async fn fifty_megabytes_of_output_are_counted_and_cut() {
    everywhere(small_limits(), |sandbox| async move {
        let done = shell(&sandbox, "echo first; yes 0123456789 | head -c 52428800; echo; echo last").await;
        assert_eq!(done.exit, Some(0));
        assert_eq!(done.output.total, 52_428_800 + 12);
        assert!(done.output.head.starts_with(b"first\n") && done.output.tail.ends_with(b"\nlast\n"));
        assert_eq!(done.output.head.len() + done.output.tail.len(), 2 * Output::PART);
        let whole = done.output.whole.expect("the whole");
        assert_eq!(whole.as_file().metadata().unwrap().len(), done.output.total);
    })
    .await;
}

#[tokio::test]
async fn an_endless_command_is_killed_with_all_it_started() {
    everywhere(small_limits(), |sandbox| async move {
        for endless in [
            "sleep 1000 & trap '' TERM INT; echo begun; while :; do :; done",
            "yes",
            "setsid sleep 1000 & wait",
        ] {
            let done = argv(&sandbox, &["sh", "-c", endless], Duration::from_secs(1)).await;
            assert_eq!((done.exit, done.timed_out), (None, true), "{endless}");
            assert_eq!(agents_processes(&sandbox).await, 0, "{endless}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_is_gone() {
    everywhere(small_limits(), |sandbox| async move {
        // One holds the command's output open, one does not, one left its session.
        for left in [
            "sleep 1000 & echo done",
            "sleep 1000 >/dev/null 2>&1 & echo done",
            "setsid sh -c 'sleep 1000 & sleep 1000' & echo done",
        ] {
            let done = shell(&sandbox, left).await;
            assert_eq!((done.exit, done.timed_out), (Some(0), false), "{left}");
            assert_eq!(text(&done.output), "done\n", "{left}");
            assert_eq!(agents_processes(&sandbox).await, 0, "{left}");
        }
    })
    .await;
}

/// Processes of the agent's user other than the one that asks, as the kernel counts them.
async fn agents_processes(sandbox: &Arc<dyn Sandbox>) -> usize {
    let script = "for p in /proc/[0-9]*; do \
                  read -r name < $p/comm && [ \"$(stat -c %u $p 2>/dev/null)\" = 1000 ] && [ ${p#/proc/} != $$ ] && \
                  grep -qE '^PPid:\\s*[0-9]+' $p/status && echo $name; done 2>/dev/null; true";
    says(sandbox, script).await.lines().filter(|name| matches!(*name, "sleep" | "yes")).count()
}

#[tokio::test]
async fn killing_everything_does_not_end_the_sandbox() {
    everywhere(small_limits(), |sandbox| async move {
        for attempt in
            ["kill -9 1; kill -TERM 1; kill -9 7 8 9 10", "kill -9 -1", "pkill -9 sleep; pkill -9 init"]
        {
            shell(&sandbox, attempt).await;
            assert_eq!(says(&sandbox, "echo alive").await, "alive\n", "{attempt}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_fork_bomb_hits_its_limit_and_is_cleaned_up() {
    everywhere(small_limits(), |sandbox| async move {
        let bomb = "bomb() { bomb | bomb & }; bomb; sleep 2; echo over";
        argv(&sandbox, &["bash", "-c", bomb], Duration::from_secs(5)).await;
        assert_eq!(says(&sandbox, "echo alive").await, "alive\n");
    })
    .await;
}

#[tokio::test]
async fn a_memory_hog_is_killed_and_the_next_command_runs() {
    everywhere(small_limits(), |sandbox| async move {
        let done = shell(&sandbox, "python3 -c 'x = bytearray(1 << 30); print(len(x))'").await;
        assert!(matches!(done.exit, Some(137 | 1)), "{done:?}");
        assert_eq!(says(&sandbox, "echo alive").await, "alive\n");
    })
    .await;
}

#[tokio::test]
async fn the_disk_limit_is_real() {
    everywhere(small_limits(), |sandbox| async move {
        let done = shell(&sandbox, "head -c 150000000 /dev/zero > full").await;
        assert_ne!(done.exit, Some(0));
        assert!(text(&done.output).contains("No space left"), "{}", text(&done.output));
    })
    .await;
}

#[tokio::test]
async fn links_are_refused_by_name() {
    everywhere(small_limits(), |sandbox| async move {
        says(
            &sandbox,
            "mkdir output && ln -s /etc/passwd output/a.csv && ln -s /etc etc && ln -s output/a.csv b",
        )
        .await;
        let (collected, into) = collect(&sandbox, &["output/a.csv", "etc/passwd", "b"]).await;
        assert_eq!(
            refusals(&collected),
            [
                "b: is a link, and links are not followed",
                "etc/passwd: lies behind the link `etc`, and links are not followed",
                "output/a.csv: is a link, and links are not followed",
            ]
        );
        assert_eq!(std::fs::read_dir(into.path()).unwrap().count(), 0);
        let read = sandbox.read(&path("output/a.csv"), 1000).await;
        assert!(matches!(read, Err(SandboxError::Refused(..))), "{read:?}");
    })
    .await;
}

#[tokio::test]
async fn devices_pipes_and_folders_are_refused_by_name() {
    everywhere(small_limits(), |sandbox| async move {
        assert_ne!(shell(&sandbox, "mknod null c 1 3").await.exit, Some(0), "the agent made a device");
        says(&sandbox, "mkfifo pipe && mkdir folder && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'").await;
        let (collected, _into) = collect(&sandbox, &["folder", "pipe", "sock"]).await;
        assert_eq!(
            refusals(&collected),
            ["folder: is a folder", "pipe: is not a regular file", "sock: is not a regular file"]
        );
    })
    .await;
}

#[tokio::test]
async fn a_sparse_giant_is_refused_without_being_read() {
    everywhere(small_limits(), |sandbox| async move {
        says(&sandbox, "mkdir output && truncate -s 10G output/giant.csv").await;
        let (collected, _into) = collect(&sandbox, &["output/giant.csv"]).await;
        assert_eq!(refusals(&collected), ["output/giant.csv: has 10.7 GB, and at most 1.0 MB are taken"]);
    })
    .await;
}

#[tokio::test]
async fn all_outputs_together_have_a_cap() {
    everywhere(small_limits(), |sandbox| async move {
        says(&sandbox, "for n in a b c; do head -c 1000000 /dev/zero > $n; done").await;
        let (collected, _into) = collect(&sandbox, &["a", "b", "c"]).await;
        assert_eq!((collected.artifacts.len(), collected.refused.len()), (2, 1), "{collected:?}");
        assert!(collected.refused[0].1.contains("all outputs together"), "{collected:?}");
    })
    .await;
}

#[tokio::test]
async fn a_hundred_thousand_files_do_not_come_along() {
    everywhere(Limits { disk: 256 << 20, memory: 512 << 20, ..small_limits() }, |sandbox| async move {
        let make = "import os\nos.mkdir('output')\nfor n in range(100000): os.close(os.open(f'output/{n}', os.O_CREAT))";
        let done = argv(&sandbox, &["python3", "-c", make], Duration::from_secs(120)).await;
        assert_eq!(done.exit, Some(0), "{}", text(&done.output));
        let (collected, into) = collect(&sandbox, &["output/99999", "output/missing"]).await;
        assert_eq!((collected.artifacts.len(), collected.refused.len()), (1, 0), "{collected:?}");
        assert_eq!(std::fs::read_dir(into.path().join("output")).unwrap().count(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_comes_out_is_whole_hashed_and_ours() {
    use std::os::unix::fs::MetadataExt as _;
    everywhere(small_limits(), |sandbox| async move {
        says(&sandbox, "mkdir output && printf hello > output/a.txt && chmod 000 output/a.txt && : > empty")
            .await;
        let (collected, into) = collect(&sandbox, &["output/a.txt", "empty", "missing/x"]).await;
        assert_eq!((collected.artifacts.len(), collected.refused.len()), (2, 0), "{collected:?}");
        let artifact = &collected.artifacts[1];
        assert_eq!(artifact.file, into.path().join("output/a.txt"));
        assert_eq!(artifact.digest, tidemill::event::id::Digest::of("hello"));
        let data = std::fs::metadata(&artifact.file).unwrap();
        assert_eq!((data.uid(), data.mode() & 0o7000), (std::fs::metadata(into.path()).unwrap().uid(), 0));
        assert_eq!(sandbox.read(&path("output/a.txt"), 5).await.unwrap().as_ref(), b"hello");
        assert!(matches!(sandbox.read(&path("output/a.txt"), 4).await, Err(SandboxError::Refused(..))));
        assert!(matches!(sandbox.read(&path("missing"), 4).await, Err(SandboxError::NotFound(..))));
        assert!(matches!(sandbox.read(&path("output"), 4).await, Err(SandboxError::Refused(..))));
    })
    .await;
}

#[tokio::test]
async fn a_container_removed_from_outside_is_gone_for_every_call() {
    sandboxed(small_limits(), |sandbox| async move {
        let id = sandbox.id().to_owned();
        let running = {
            let sandbox = sandbox.clone();
            tokio::spawn(async move {
                let argv = ["sh", "-c", "sleep 1000"].map(str::to_owned).to_vec();
                sandbox.exec(&Command { argv, timeout: Duration::from_secs(60) }).await
            })
        };
        while !processes(&id).await.iter().any(|line| line.contains("sleep 1000")) {
            tokio::task::yield_now().await;
        }
        remove_from_outside(&id).await;
        let reason = |outcome: Result<(), SandboxError>| match outcome {
            Err(SandboxError::Gone(reason)) => assert_eq!(reason, "its container was removed"),
            other => panic!("{other:?}"),
        };
        reason(running.await.unwrap().map(drop));
        reason(
            sandbox
                .exec(&Command { argv: vec!["true".into()], timeout: Duration::from_secs(5) })
                .await
                .map(drop),
        );
        reason(sandbox.put(vec![file("x", "x", Access::ReadWrite)]).await.map(drop));
        reason(sandbox.read(&path("x"), 1).await.map(drop));
        let into = tempfile::tempdir().unwrap();
        reason(sandbox.collect(&[path("x")], &Caps::default(), into.path()).await.map(drop));
        sandbox.remove().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn removing_takes_container_and_volume_and_can_be_repeated() {
    let docker = engine().await;
    let image = small_image().await;
    let run = run_id();
    let sandbox = docker.start(&run, &image, &spec(small_limits())).await.unwrap();
    assert_eq!(of_run(run.as_str()).await, (1, 1));
    sandbox.remove().await.unwrap();
    sandbox.remove().await.unwrap();
    assert_eq!(of_run(run.as_str()).await, (0, 0));
}

/// Containers and volumes of a run.
async fn of_run(run: &str) -> (usize, usize) {
    use bollard::query_parameters::{ListContainersOptionsBuilder, ListVolumesOptionsBuilder};
    let filters = [("label".to_owned(), vec![format!("tidemill.run={run}")])].into();
    let containers = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let volumes = ListVolumesOptionsBuilder::default().filters(&filters).build();
    (
        raw().list_containers(Some(containers)).await.unwrap().len(),
        raw().list_volumes(Some(volumes)).await.unwrap().volumes.unwrap_or_default().len(),
    )
}

#[tokio::test]
async fn a_start_that_is_dropped_half_way_leaves_nothing() {
    let docker = engine().await;
    let image = small_image().await;
    let run = run_id();
    let spec = spec(small_limits());
    {
        let mut starting = Box::pin(docker.start(&run, &image, &spec));
        while of_run(run.as_str()).await.1 == 0 {
            tokio::select! {
                biased;
                _ = &mut starting => panic!("it was ready before its volume was seen"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    while of_run(run.as_str()).await != (0, 0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_container_that_cannot_start_leaves_nothing() {
    let docker = engine().await;
    let mut image = small_image().await;
    image.digest = format!("sha256:{}", "0".repeat(64));
    let run = run_id();
    let failed = docker.start(&run, &image, &spec(small_limits())).await.unwrap_err();
    assert!(failed.code().starts_with("sandbox::"), "{failed:?}");
    assert_eq!(of_run(run.as_str()).await, (0, 0));
}

#[tokio::test]
async fn the_sweep_takes_what_the_dead_left_and_nothing_else() {
    use bollard::models::{ContainerCreateBody, VolumeCreateRequest};
    let docker = engine().await;
    let image = small_image().await;
    let run = run_id();
    let live = docker.start(&run, &image, &spec(small_limits())).await.unwrap();
    let labels = raw().inspect_container(live.id(), None).await.unwrap().config.unwrap().labels.unwrap();
    let owner = labels["tidemill.owner"].clone();
    let (before, start) = owner.rsplit_once('/').unwrap();
    let dead = format!("{before}/{}", start.parse::<u64>().unwrap() + 1);
    let (_, rest) = owner.split_once('/').unwrap();
    let elsewhere = format!("another-machine/{rest}");
    let mut foreign = None;
    for (owner, name) in [(dead, "dead"), (elsewhere, "elsewhere")] {
        let mut labels = labels.clone();
        labels.insert("tidemill.owner".to_owned(), owner);
        labels.insert("tidemill.run".to_owned(), format!("{run}-{name}"));
        let volume = VolumeCreateRequest { labels: Some(labels.clone()), ..VolumeCreateRequest::default() };
        let volume = raw().create_volume(volume).await.unwrap().name;
        let body = ContainerCreateBody {
            image: Some(image.digest.clone()),
            cmd: Some(vec!["true".into()]),
            labels: Some(labels),
            ..ContainerCreateBody::default()
        };
        let container = raw().create_container(None, body).await.unwrap().id;
        foreign = Some((container, volume));
    }
    docker.sweep().await.unwrap();
    let found = (
        of_run(&format!("{run}-dead")).await,
        of_run(&format!("{run}-elsewhere")).await,
        of_run(run.as_str()).await,
    );
    let (container, volume) = foreign.unwrap();
    remove_from_outside(&container).await;
    raw().remove_volume(&volume, None::<bollard::query_parameters::RemoveVolumeOptions>).await.unwrap();
    live.remove().await.unwrap();
    assert_eq!(found, ((0, 0), (1, 1), (1, 1)));
}

#[tokio::test]
async fn an_image_is_built_once_for_each_content() {
    let project = tempfile::tempdir().unwrap();
    let folder = project.path().join("images/once");
    std::fs::create_dir_all(&folder).unwrap();
    let salt = fastrand::u64(..);
    let write = |text: &str| std::fs::write(folder.join("data.txt"), text).unwrap();
    std::fs::write(folder.join("Dockerfile"), "FROM python:3.12-slim\nCOPY data.txt /data.txt\n").unwrap();
    write(&salt.to_string());
    let docker = engine_in(project.path()).await;
    let image = Image::folder("images/once");
    let (one, two) = tokio::join!(docker.prepare(&image, &Silent), docker.prepare(&image, &Silent));
    let (one, two) = (one.unwrap(), two.unwrap());
    write("other");
    let other = docker.prepare(&image, &Silent).await.unwrap();
    for digest in [&one.digest, &other.digest] {
        let options = bollard::query_parameters::RemoveImageOptionsBuilder::default().force(true).build();
        raw().remove_image(digest, Some(options), None).await.unwrap();
    }
    assert_eq!(one.digest, two.digest);
    assert!(one.fresh != two.fresh, "one of the two waits for the other");
    assert_ne!(one.digest, other.digest);
    assert!(one.digest.starts_with("sha256:"));
}

#[tokio::test]
async fn a_failing_build_step_is_shown_with_its_last_lines() {
    let project = tempfile::tempdir().unwrap();
    let folder = project.path().join("images/broken");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("Dockerfile"), "FROM python:3.12-slim\nRUN echo a clue && exit 3\n").unwrap();
    let docker = engine_in(project.path()).await;
    let failed = docker.prepare(&Image::folder("images/broken"), &Silent).await.unwrap_err();
    assert_eq!(failed.code(), "image::build_failed");
    assert!(failed.message().contains("RUN echo a clue"), "{}", failed.message());
    assert!(failed.advice().unwrap_or_default().contains("a clue"), "{failed:?}");
}

#[tokio::test]
async fn an_image_that_is_nowhere_says_what_to_do() {
    let docker = engine().await;
    let image = Image::tag("localhost:1/no/such/image:1");
    let refused = docker.prepare(&image, &Silent).await.unwrap_err();
    assert_eq!(refused.code(), "image::pull_refused");
    assert!(refused.advice().unwrap_or_default().contains("[bases]"), "{refused:?}");
    let missing = docker.prepare(&Image::folder("images/none"), &Silent).await.unwrap_err();
    assert_eq!(missing.code(), "image::context");
}
