//! A home with agents that are processes, a zmx that is a program, and a server that may move the one into the other.
//!
//! What stands in for a harness is a script under the harness's name, run by a shell under an interpreter's: it leaves behind
//! what its harness would be known by, and then waits for ever on a fifo that nobody writes to. What stands in for zmx writes
//! down what it was given, starts the program, and a process that answers at the session's socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use proto::Dialect;
use rustix::process::{Pid, Signal, kill_process};
use tests::check::{Client, How};

use crate::binary;
use crate::daemon::{Daemon, PATIENCE, client};
use crate::home::Home;

/// The two programs of that name.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Zmx {
    /// Has its sockets in a directory of its own.
    Upstream,
    /// Posts its sessions as 9P servers are posted.
    Posting,
}

/// A harness, with what it is started with, and what the session is called that it is in.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Harness {
    pub(crate) name: &'static str,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) session: &'static str,
}

pub(crate) const HARNESSES: [Harness; 5] = [
    Harness { name: "claude", arguments: &[], session: S1 },
    Harness { name: "codex", arguments: &[], session: THREAD },
    Harness { name: "omp", arguments: &[], session: "a" },
    Harness { name: "hermes", arguments: &[], session: "s1" },
    Harness { name: "dsh", arguments: &["--profile", "tui"], session: S2 },
];

pub(crate) struct Stage {
    pub(crate) home: Home,
}

/// An agent that was started here. Dropping it ends it.
pub(crate) struct Agent {
    pub(crate) harness: &'static str,
    pub(crate) child: Child,
}

impl Stage {
    pub(crate) fn new(zmx: Zmx) -> Self {
        let stage = Self { home: Home::empty() };
        let bin = stage.bin();
        fs::create_dir(&bin).expect("a directory");
        fs::create_dir(stage.work()).expect("a directory");
        for interpreter in ["node", "python3"] {
            std::os::unix::fs::symlink("/bin/sh", bin.join(interpreter)).expect("a link");
        }
        let made = Command::new("mkfifo").arg(stage.path("never")).status().expect("mkfifo");
        assert!(made.success());
        for (name, interpreter, body) in SCRIPTS {
            stage.script(name, &format!("#!{}\n{BEFORE}{body}{AFTER}", bin.join(interpreter).display()));
        }
        let sockets = match zmx {
            Zmx::Upstream => "$XDG_RUNTIME_DIR/zmx",
            Zmx::Posting => "$XDG_RUNTIME_DIR/9p/zmx",
        };
        let test = std::env::current_exe().expect("a test has a path");
        stage.script("zmx", &ZMX.replace("SOCKETS", sockets).replace("TEST", &test.display().to_string()));
        let project = stage.work().display().to_string()[1..].replace('/', "-");
        let header = format!("{{\"type\":\"session\",\"cwd\":\"{}\"}}\n", stage.work().display());
        stage.home.write(
            &format!(".codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-{THREAD}.jsonl"),
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{THREAD}\",\"source\":\"cli\"}}}}\n")
                .as_bytes(),
        );
        stage.home.write(&format!(".omp/agent/{TRANSCRIPT}"), header.as_bytes());
        stage
            .home
            .write(&format!(".dsh/sessions/--{project}--/session-{S2}/session.jsonl"), header.as_bytes());
        for directory in [".claude/sessions/x", ".hermes/runtime/x"] {
            stage.home.write(directory, b"");
        }
        stage
    }

    /// A place beside the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.beside(name)
    }

    /// Where the programs are.
    pub(crate) fn bin(&self) -> PathBuf {
        self.path("bin")
    }

    /// Where the agents work.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.bin().join(name);
        fs::write(&path, text.replace("TOP", self.path("").display().to_string().trim_end_matches('/')))
            .expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// The command that serves here, and may move.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.command(&["--allow-move"]);
        command.args(arguments).env("PATH", format!("relative:{}:/usr/bin:/bin", self.bin().display()));
        command
    }

    /// A server that may move.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Daemon {
        let daemon = Daemon::start(&mut self.command(arguments));
        let said = daemon.await_line("agents may be moved, with ");
        assert!(said.ends_with(&self.bin().join("zmx").display().to_string()), "{said}");
        daemon
    }

    /// Whatever is started does not listen to SIGTERM.
    pub(crate) fn be_stubborn(&self) {
        fs::write(self.path("stubborn"), "").expect("a file");
    }

    /// Starts an agent, whose standard input stays open.
    pub(crate) fn start(&self, harness: Harness) -> Agent {
        let mut command = Command::new(self.bin().join(harness.name));
        command.args(harness.arguments).env_clear().env("HOME", self.home.path("")).env("ZMX_SESSION", "day");
        command.env("PATH", "/usr/bin:/bin").current_dir(self.work());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Agent { harness: harness.name, child: command.spawn().expect("the agent starts") }
    }

    /// A client of the server.
    pub(crate) fn client(&self) -> Client {
        client(&self.home.posted("agents"), Dialect::Plain)
    }

    /// Waits until an agent is there, and in its session.
    pub(crate) fn await_session(&self, client: &mut Client, agent: &Agent, session: &str) {
        self.await_field(client, agent.harness, agent.pid(), "session", session);
    }

    /// Waits until a field of an agent reads like this.
    pub(crate) fn await_field(&self, client: &mut Client, harness: &str, pid: u32, name: &str, value: &str) {
        let what = format!("{name} of {harness} {pid} is {value}");
        await_until(&what, || read(client, harness, pid, name).as_deref() == Some(value));
    }

    /// The agent of a harness whose `zmx` reads like this, once there is one. Only here: others may run on the machine.
    pub(crate) fn await_moved(&self, client: &mut Client, harness: &str, name: &str) -> u32 {
        let (mut found, work) = (None, self.work());
        await_until("the agent is back", || {
            let pids = client.names(format!("active/{harness}"));
            let pids = pids.iter().filter_map(|pid| str::from_utf8(pid).ok()?.parse::<u32>().ok());
            let here = [("zmx", name), ("cwd", work.to_str().expect("a path of text"))];
            let mut is_here = |pid: u32| {
                here.iter().all(|(field, value)| read(client, harness, pid, field).as_deref() == Some(value))
            };
            found = pids.into_iter().find(|pid| is_here(*pid));
            found.is_some()
        });
        found.expect("it was found")
    }

    /// A file that the zmx left behind.
    pub(crate) fn given(&self, what: &str) -> String {
        fs::read_to_string(self.path(&format!("given.{what}"))).unwrap_or_default()
    }

    /// How often zmx was run.
    pub(crate) fn runs(&self) -> Vec<String> {
        fs::read_to_string(self.path("runs")).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Whatever runs a program of this directory is of this test, and nobody waits for its number meanwhile but init.
        let bin = self.bin().display().to_string();
        for line in fs::read_to_string(self.path("started")).unwrap_or_default().lines() {
            let ours = fs::read_to_string(format!("/proc/{line}/cmdline"))
                .is_ok_and(|cmdline| cmdline.contains(&bin));
            if let Some(pid) = line.parse().ok().and_then(Pid::from_raw).filter(|_| ours) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Agent {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A field of an agent, if it is there.
pub(crate) fn field(client: &mut Client, agent: &Agent, field: &str) -> Option<String> {
    read(client, agent.harness, agent.pid(), field)
}

fn read(client: &mut Client, harness: &str, pid: u32, field: &str) -> Option<String> {
    let fid = client.try_go(format!("active/{harness}/{pid}/{field}")).ok()?;
    let text = client.open(fid).and_then(|_| client.read(fid, 0, 999));
    client.clunk(fid).expect("a bound fid is clunked");
    text.ok().map(|text| String::from_utf8_lossy(&text).trim_end().to_owned())
}

/// The fid of an agent's `zmx`, open as `echo name > zmx` opens it.
pub(crate) fn open_zmx(client: &mut Client, agent: &Agent) -> u32 {
    let fid = client.go(format!("active/{}/{}/zmx", agent.harness, agent.pid()));
    client.open_as(fid, How::WriteTruncate).expect("zmx may be written");
    fid
}

#[track_caller]
pub(crate) fn await_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// What answers at the socket of a session, if this process was started to: until the directory of the test is gone.
#[test]
fn a_session() {
    let Some(socket) = std::env::var_os("NINEAGENTS_SESSION").map(PathBuf::from) else { return };
    fs::create_dir_all(socket.parent().expect("a socket is in a directory")).expect("a directory");
    let listener = UnixListener::bind(&socket).expect("a socket");
    listener.set_nonblocking(true).expect("a socket of ours");
    let start = Instant::now();
    while socket.exists() && start.elapsed() < 4 * PATIENCE {
        let _ = listener.accept();
        sleep(Duration::from_millis(20));
    }
}

/// The program under test, as scripts call it.
pub(crate) fn program() -> &'static Path {
    binary::path()
}

pub(crate) const S1: &str = "11111111-1111-4111-8111-111111111111";
const S2: &str = "22222222-2222-4222-8222-222222222222";
const THREAD: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
const TRANSCRIPT: &str = "sessions/--work--/2026-11-02T10-00-00-000Z_a.jsonl";

/// By harness: what runs it, and what it leaves behind. `$start` is when it began.
const SCRIPTS: [(&str, &str, &str); 5] = [
    (
        "claude",
        "node",
        "id=11111111-1111-4111-8111-111111111111; [ \"$1\" != --resume ] || id=$2\n\
         printf '{\"pid\":%s,\"procStart\":\"%s\",\"sessionId\":\"%s\",\"cwd\":\"%s\"}\\n' $$ \"$start\" \"$id\" \"$PWD\" \
         >\"$HOME/.claude/sessions/$$.json\"\n",
    ),
    (
        "codex",
        "node",
        "id=019f624a-cc95-7c50-b9fa-1db381270b73; [ \"$1\" != resume ] || id=$2\n\
         exec 9>>\"$HOME/.codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-$id.jsonl\"\n",
    ),
    (
        "omp",
        "node",
        "file=$HOME/.omp/agent/sessions/--work--/2026-11-02T10-00-00-000Z_a.jsonl; [ \"$1\" != --resume ] || file=$2\n\
         exec 9>>\"$file\"\n",
    ),
    (
        "hermes",
        "python3",
        "id=s1; [ \"$1\" != --resume ] || id=$2\n\
         while read -r key value; do [ \"$key\" != btime ] || boot=$value; done </proc/stat\n\
         printf '{\"entries\":[{\"session_id\":\"%s\",\"pid\":%s,\"process_start_time\":%s.0}]}\\n' \"$id\" $$ \
         $((boot + start / 100)) >\"$HOME/.hermes/runtime/active_sessions.json\"\n",
    ),
    ("dsh", "node", "[ \"$1 $2\" = \"--profile tui\" ] || exit 2\n"),
];

const BEFORE: &str = "echo $$ >>TOP/started\n\
    read -r stat </proc/$$/stat\n\
    start=$(set -- ${stat##*) }; shift 19; echo $1)\n\
    echo \"$0 $*\" >>TOP/called\n\
    [ ! -e TOP/stubborn ] || trap '' TERM\n";
/// A reader that nobody writes to waits without a process of its own, for as long as its place is there. `errand` is what a test has the agent do.
const AFTER: &str = "[ ! -e TOP/errand ] || . TOP/errand\n\
    while [ -e TOP/never ]; do read -r never <TOP/never || :; done\n";

/// A shell that has waited for somebody may have another mask of signals than it was given: that is looked at first.
const ZMX: &str = "#!/bin/sh\n\
    echo \"$*\" >>TOP/runs\n\
    [ \"$1\" = run ] && [ \"$3\" = -d ] || exit 2\n\
    name=$2; shift 3\n\
    while read -r line; do echo \"$line\"; done </proc/$$/status >TOP/given.status\n\
    cat /proc/$$/stat >TOP/given.stat\n\
    cat /proc/$$/limits >TOP/given.limits\n\
    ls -l /proc/$$/fd >TOP/given.fds\n\
    tr '\\0' '\\n' </proc/$$/environ >TOP/given.env\n\
    pwd >TOP/given.cwd\n\
    [ ! -e TOP/fails ] || exit 1\n\
    ZMX_SESSION=$name \"$@\" </dev/null >/dev/null 2>&1 &\n\
    NINEAGENTS_SESSION=SOCKETS/$name TEST --exact moves::stage::a_session </dev/null >/dev/null 2>&1 &\n";
