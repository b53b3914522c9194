//! Commands through the helper: fast, exact, followed while they run, and not to be tricked.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use tidemill::sandbox::docker::Docker;
use tidemill::sandbox::helper::{Next, Process};
use tidemill::sandbox::{Command, Engine as _, Executed, Sandbox, SandboxError, Stdio};

use crate::support::engine::{engine, everywhere, run_id, small_image, small_limits, spec};

const LONG: Duration = Duration::from_secs(60);

fn command(argv: &[&str]) -> Command {
    Command { argv: argv.iter().map(|word| (*word).to_owned()).collect(), timeout: LONG }
}

async fn python(sandbox: &Arc<dyn Sandbox>, program: &str) -> Executed {
    sandbox.exec(&command(&["python3", "-c", program])).await.unwrap()
}

fn text(done: &Executed) -> String {
    String::from_utf8_lossy(&done.output.head).into_owned() + &String::from_utf8_lossy(&done.output.tail)
}

/// Reads until `wanted` has been printed.
async fn until(process: &mut Process, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        match process.next().await.unwrap() {
            Next::Output(bytes) => seen.push_str(&String::from_utf8_lossy(&bytes)),
            other => panic!("{other:?} after {seen:?}"),
        }
    }
    seen
}

#[tokio::test]
async fn arguments_arrive_as_they_are_and_codes_are_true() {
    everywhere(small_limits(), |sandbox| async move {
        let words =
            ["python3", "-c", "import sys; print(sys.argv[1:])", "a b", "$HOME", "*", "\"'\\", "", "\n"];
        let done = sandbox.exec(&command(&words)).await.unwrap();
        assert_eq!(text(&done), "['a b', '$HOME', '*', '\"\\'\\\\', '', '\\n']\n");
        for (program, code) in [
            ("raise SystemExit(0)", 0),
            ("raise SystemExit(77)", 77),
            ("import os; os._exit(255)", 255),
            ("import os; os.kill(os.getpid(), 15)", 128 + 15),
            ("import os; os.abort()", 128 + 6),
        ] {
            assert_eq!(python(&sandbox, program).await.exit, Some(code), "{program}");
        }
        let missing = sandbox.exec(&command(&["no-such-program"])).await.unwrap();
        assert_eq!((missing.exit, text(&missing).as_str()), (Some(127), "no-such-program: not found"));
        let folder = sandbox.exec(&command(&["/tmp"])).await.unwrap();
        assert_eq!(folder.exit, Some(126), "{}", text(&folder));
        let endless = "x".repeat(2 << 20);
        let refused = sandbox.exec(&command(&["echo", &endless])).await;
        assert!(matches!(refused, Err(SandboxError::Unfit(_))), "{refused:?}");
    })
    .await;
}

#[tokio::test]
async fn input_and_output_flow_while_it_runs() {
    everywhere(small_limits(), |sandbox| async move {
        let program =
            "import sys\nfor line in sys.stdin: print('got', line.strip(), flush=True)\nprint('end')";
        let mut process =
            sandbox.start(&command(&["python3", "-c", program]), Stdio::OpenPipes).await.unwrap();
        process.write(b"one\n").await.unwrap();
        assert_eq!(until(&mut process, "\n").await, "got one\n");
        // Another command meanwhile.
        assert_eq!(text(&python(&sandbox, "print('beside')").await), "beside\n");
        process.write(b"two\n").await.unwrap();
        process.close_input().await.unwrap();
        let done = process.finish().await.unwrap();
        assert_eq!((text(&done).as_str(), done.exit), ("got two\nend\n", Some(0)));
        // More than a pipe or a frame holds, both ways.
        let program = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data[::-1])";
        let process = sandbox.start(&command(&["python3", "-c", program]), Stdio::OpenPipes).await.unwrap();
        let data: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        process.write(&data).await.unwrap();
        process.close_input().await.unwrap();
        let done = process.finish().await.unwrap();
        let mut back = std::fs::read(done.output.whole.unwrap().path()).unwrap();
        back.reverse();
        assert!(back == data && done.exit == Some(0));
    })
    .await;
}

#[tokio::test]
async fn a_terminal_has_a_size_and_interrupts() {
    everywhere(small_limits(), |sandbox| async move {
        let stdio = Stdio::Terminal { rows: 30, columns: 100 };
        let mut shell = sandbox.start(&command(&["sh", "-i"]), stdio).await.unwrap();
        shell.write(b"tty; stty size; echo rea''dy\n").await.unwrap();
        let seen = until(&mut shell, "ready").await;
        assert!(seen.contains("/dev/pts/") && seen.contains("30 100"), "{seen}");
        shell.resize(50, 120).await.unwrap();
        // A handler of Python's forgets what comes just before it falls asleep; one that waits for it does not.
        let waiting = "import signal; stop = {signal.SIGINT}; signal.pthread_sigmask(signal.SIG_BLOCK, stop); \
                       print(\"wait\" + \"ing\"); signal.sigwait(stop); print(\"interrupt\" + \"ed\")";
        shell.write(format!("stty size; python3 -c '{waiting}'\n").as_bytes()).await.unwrap();
        let seen = until(&mut shell, "waiting").await;
        assert!(seen.contains("50 120"), "{seen}");
        shell.write(b"\x03").await.unwrap();
        until(&mut shell, "interrupted").await;
        shell.write(b"echo af''ter; exit 5\n").await.unwrap();
        until(&mut shell, "after").await;
        assert_eq!(shell.finish().await.unwrap().exit, Some(5));
    })
    .await;
}

#[tokio::test]
async fn a_signal_reaches_the_whole_tree() {
    everywhere(small_limits(), |sandbox| async move {
        // One that got away by a double fork and a session of its own still belongs to its command.
        let program = "import os, signal\n\
            read, write = os.pipe()\n\
            if os.fork() == 0:\n\
            \x20 os.setsid()\n\
            \x20 if os.fork(): os._exit(0)\n\
            \x20 signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})\n\
            \x20 os.write(1, b'away\\n')\n\
            \x20 signal.sigwait({signal.SIGTERM})\n\
            \x20 os.write(1, b'stopped\\n')\n\
            \x20 os._exit(0)\n\
            signal.signal(signal.SIGTERM, lambda *_: None)\n\
            os.close(write)\n\
            os.write(1, b'here\\n')\n\
            os.read(read, 1)\n\
            os.write(1, b'all stopped\\n')";
        let mut process = sandbox.start(&command(&["python3", "-c", program]), Stdio::Pipes).await.unwrap();
        let mut seen = String::new();
        while !(seen.contains("away\n") && seen.contains("here\n")) {
            seen += &until(&mut process, "\n").await;
        }
        process.signal(15).await.unwrap();
        let done = process.finish().await.unwrap();
        assert_eq!(text(&done), "stopped\nall stopped\n");
    })
    .await;
}

#[tokio::test]
async fn what_gets_away_is_killed_with_its_command_and_no_other() {
    everywhere(small_limits(), |sandbox| async move {
        let waiting = command(&["sh", "-c", "echo here; read x; echo still"]);
        let mut other = sandbox.start(&waiting, Stdio::OpenPipes).await.unwrap();
        until(&mut other, "here").await;
        let daemon = "import os, time\n\
            if os.fork() == 0:\n\
            \x20 os.setsid()\n\
            \x20 if os.fork(): os._exit(0)\n\
            \x20 time.sleep(1000)";
        assert_eq!(python(&sandbox, daemon).await.exit, Some(0));
        let count = "import os; print(sum(b'sleep(1000)' in open(f'/proc/{p}/cmdline','rb').read() for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()))";
        assert_eq!(text(&python(&sandbox, count).await), "0\n");
        other.write(b"\n").await.unwrap();
        assert_eq!(text(&other.finish().await.unwrap()), "still\n");
    })
    .await;
}

#[tokio::test]
async fn the_helper_cannot_be_tricked_by_what_it_runs() {
    everywhere(small_limits(), |sandbox| async move {
        let attack = r"
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, attempt):
    try: print(name, attempt())
    except OSError as error: print(name, 'refused')
for number in range(1, 65):
    try: os.kill(1, number)
    except OSError: pass
for path in ['/proc/1/mem', '/proc/1/environ', '/proc/1/fd/0', '/proc/1/fd/1']:
    tried(path, lambda: open(path, 'rb').read(1))
    tried(path, lambda: open(path, 'wb').write(b'x'))
print('ptrace', libc.ptrace(16, 1, 0, 0))
print('key', any('TIDEMILL' in name for name in os.environ))
print('parent fds', sorted(os.listdir('/proc/self/fd')))
";
        let said = text(&python(&sandbox, attack).await);
        assert_eq!(said.matches("refused").count(), 8, "{said}");
        assert!(said.contains("ptrace -1") && said.contains("key False"), "{said}");
        // Standard input, output and error, and the folder being listed.
        assert!(said.contains("parent fds ['0', '1', '2', '3']"), "{said}");
        // A command that kills the process beside it is itself killed, with all it started.
        let betrayal = "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(1000)";
        assert_eq!(python(&sandbox, betrayal).await.exit, Some(128 + 9));
        let all = "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]))";
        assert_eq!(
            text(&python(&sandbox, all).await),
            "3\n",
            "the helper, one beside the command, the command"
        );
    })
    .await;
}

/// What a first host leaves behind when it ends without a word.
struct Left {
    container: String,
    ended: u32,
    alive: u32,
    loud: u32,
}

/// A host of its own, tasks and all.
fn first_host() -> Left {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sandbox, left) = runtime.block_on(async {
        let docker = engine().await;
        let sandbox = docker.start(&run_id(), &small_image().await, &spec(small_limits())).await.unwrap();
        let start = async |argv: &[&str], stdio| sandbox.start(&command(argv), stdio).await.unwrap();
        let ended = start(&["sh", "-c", "echo done; exit 3"], Stdio::Pipes).await.leave();
        let mut alive = start(&["sh", "-c", "echo first; read x; echo $x; exit 4"], Stdio::OpenPipes).await;
        until(&mut alive, "first\n").await;
        let loud = "import sys; sys.stdout.write('x' * 9_000_000); sys.stdout.write('last words')";
        let loud = start(&["python3", "-c", loud], Stdio::Pipes).await.leave();
        // What was asked for has been heard once something asked later is answered.
        python(&sandbox, "pass").await;
        let left = Left { container: sandbox.id().to_owned(), ended, alive: alive.leave(), loud };
        (sandbox, left)
    });
    drop(runtime);
    // Without a runtime it cannot be removed, as when the process is killed.
    drop(sandbox);
    left
}

#[tokio::test]
async fn a_host_that_comes_back_finds_its_commands() {
    let left = tokio::task::spawn_blocking(|| std::thread::spawn(first_host).join().unwrap()).await.unwrap();
    let sandbox = attached(&engine().await, &left.container).await;
    let done = sandbox.follow(left.ended, 0).await.unwrap().finish().await.unwrap();
    assert_eq!((text(&done).as_str(), done.exit), ("done\n", Some(3)));
    let followed = sandbox.follow(left.alive, 6).await.unwrap();
    followed.write(b"back\n").await.unwrap();
    let done = followed.finish().await.unwrap();
    assert_eq!((text(&done).as_str(), done.exit), ("back\n", Some(4)), "what was seen is not told again");
    let done = sandbox.follow(left.loud, 0).await.unwrap().finish().await.unwrap();
    assert!(text(&done).ends_with("last words"), "the end is never lost");
    assert_eq!(done.exit, Some(0));
    assert!(sandbox.follow(12345, 0).await.unwrap().finish().await.is_err(), "a command nobody started");
    sandbox.remove().await.unwrap();
}

async fn attached(docker: &Docker, id: &str) -> Arc<dyn Sandbox> {
    docker.attach(id, &spec(small_limits())).await.unwrap()
}
