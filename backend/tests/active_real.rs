//! `/active` over the kernel's own `/proc`: processes that are started for real, with an agent's arguments, directory, open
//! files and locks.
//!
//! What stands in for a harness is a copy of a program that does nothing, or a script, under the harness's name. Other
//! agents may run on the machine: only what is started here is looked for.

#![allow(clippy::disallowed_methods, reason = "the test makes the processes that the host is asked about")]

#[path = "active/client.rs"]
mod client;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use backend::host::os::{Os, Resolving, Roots};
use backend::{Agents, Limits};

use client::Client;

const S1: &str = "11111111-1111-4111-8111-111111111111";
const S2: &str = "22222222-2222-4222-8222-222222222222";
const THREAD: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";

#[test]
fn claude_by_its_registry() {
    let machine = Machine::new();
    let claude = machine.program("bin/claude");
    let running = machine.start(Command::new(&claude).arg("600").env("ZMX_SESSION", "night"));
    let mut client = machine.client();
    let pid = running.pid();
    assert_eq!(client.found("claude", pid), ("none".into(), String::new()));
    machine.register(pid, S1, "busy");
    let name = machine.work().to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    machine.write(
        &format!("claude/projects/{name}/{S1}.jsonl"),
        "{\"type\":\"ai-title\",\"aiTitle\":\"For real\"}\n",
    );
    assert_eq!(client.found("claude", pid), ("registry".into(), S1.into()));
    for (field, value) in [
        ("pid", pid.to_string().as_str()),
        ("ppid", &std::process::id().to_string()),
        ("cwd", machine.work().to_str().unwrap()),
        ("zmx", "night"),
        ("title", "For real"),
        ("status", "busy"),
    ] {
        assert_eq!(client.field("claude", pid, field), value, "{field}");
    }
    let started: u64 = client.field("claude", pid, "started").parse().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(started) < 30, "{started} {now}");
    machine.register(pid, S1, "idle");
    assert_eq!(client.field("claude", pid, "status"), "idle");
    assert_eq!(client.stat(&format!("active/claude/{pid}/status")).unwrap().length, 5);
    let node = client.node(&format!("active/claude/{pid}/pid")).unwrap();
    drop(running);
    assert!(client.stat_node(&node).is_err());
    assert!(!client.ls("active/claude").contains(&pid.to_string()));
}

#[test]
fn claude_under_its_version_and_as_a_helper() {
    let machine = Machine::new();
    let version = machine.program("share/claude/versions/2.1.332");
    let own = machine.start(Command::new(&version).arg("600"));
    let typed = machine.start(Command::new(&version).arg0("claude").arg("600"));
    let spare = machine.start(Command::new(&version).arg0("rg").arg("600"));
    let server = machine.start(Command::new(machine.program("bin/claude")).args(["mcp", "600"]));
    let listed = machine.client().ls("active/claude");
    let lists = |running: &Running| listed.contains(&running.pid().to_string());
    assert!(lists(&own) && lists(&typed), "{listed:?}");
    assert!(!lists(&spare) && !lists(&server), "{listed:?}");
}

#[test]
fn codex_by_the_rollout_it_holds_open() {
    let machine = Machine::new();
    let path = machine.rollout();
    let codex = machine.program("bin/codex");
    let file = fs::File::options().append(true).open(&path).unwrap();
    let running = machine.start(Command::new(codex).arg("600").stdout(file));
    let mut client = machine.client();
    assert_eq!(client.found("codex", running.pid()), ("fd".into(), THREAD.into()));
    assert!(client.cat(&format!("active/codex/{}/transcript", running.pid())).unwrap().contains(THREAD));
    fs::remove_file(&path).unwrap();
    assert_eq!(client.found("codex", running.pid()).0, "none");
}

#[test]
fn codex_by_its_lock() {
    let machine = Machine::new();
    machine.rollout();
    let lock = machine.write(&format!("codex/thread-writer-locks/{THREAD}.lock"), "");
    let running = machine.start(&mut holding(&lock, &machine.program("bin/codex")));
    let mut client = machine.client();
    // What takes the lock becomes a codex only then.
    machine.wait(|| client.ls("active/codex").contains(&running.pid().to_string()));
    machine.wait(|| client.found("codex", running.pid()) == ("lock".into(), THREAD.into()));
    // Another that has the same file open, and not the lock.
    let file = fs::File::open(&lock).unwrap();
    let other = machine.start(Command::new(machine.program("bin2/codex")).arg("600").stdin(file));
    assert!(client.ls("active/codex").contains(&other.pid().to_string()));
    assert_eq!(client.found("codex", other.pid()).0, "none");
}

#[test]
fn codex_in_a_user_namespace_of_its_own() {
    let machine = Machine::new();
    machine.rollout();
    let lock = machine.write(&format!("codex/thread-writer-locks/{THREAD}.lock"), "");
    let mut command = Command::new("unshare");
    let locked = holding(&lock, &machine.program("bin/codex"));
    command.args(["-U", "-r"]).arg(locked.get_program()).args(locked.get_args());
    if !Command::new("unshare").args(["-U", "-r", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no user namespace can be made here");
        return;
    }
    let running = machine.start(&mut command);
    let mut client = machine.client();
    machine.wait(|| client.ls("active/codex").contains(&running.pid().to_string()));
    machine.wait(|| client.found("codex", running.pid()) == ("lock".into(), THREAD.into()));
}

#[test]
fn an_interpreter_and_the_native_child_it_starts() {
    let machine = Machine::new();
    let (node, codex) = (machine.program("bin/node"), machine.program("vendor/bin/codex"));
    let script = machine.script("npm/bin/codex", "sleep 600");
    // A shell under the interpreter's name, so that it runs a script and has children like it.
    let shell = machine.copy("/bin/sh", "bin2/node");
    let lone = machine.start(Command::new(node).arg(&script));
    drop(lone);
    let starting = machine.script("npm2/bin/codex", &format!("{} 600 & wait", codex.display()));
    let wrapper = machine.start(Command::new(&shell).arg(&starting));
    let alone = machine.start(Command::new(&shell).arg(&script));
    let mut client = machine.client();
    machine.wait(|| {
        client
            .ls("active/codex")
            .iter()
            .any(|pid| client.field("codex", pid.parse().unwrap(), "ppid") == wrapper.pid().to_string())
    });
    let listed = client.ls("active/codex");
    assert!(!listed.contains(&wrapper.pid().to_string()), "{listed:?}");
    assert!(listed.contains(&alone.pid().to_string()), "{listed:?}");
}

#[test]
fn omp_by_descriptor_and_by_directory() {
    let machine = Machine::new();
    let header = format!("{{\"type\":\"session\",\"id\":\"a\",\"cwd\":\"{}\"}}\n", machine.work().display());
    let directory = format!("--{}--", machine.work().to_str().unwrap()[1..].replace('/', "-"));
    let of = |id: &str| format!("omp/sessions/{directory}/2026-11-02T10-00-00-000Z_{id}.jsonl");
    let held = machine.write(&of("held"), &header);
    machine.write(&of("newest"), &header);
    let omp = machine.program("bin/omp");
    let file = fs::File::options().append(true).open(held).unwrap();
    let by_fd = machine.start(Command::new(&omp).arg("600").stdout(file));
    let by_dir = machine.start(Command::new(&omp).arg("600").stdin(Stdio::null()));
    let mut client = machine.client();
    client.ls("active/omp");
    assert_eq!(client.found("omp", by_fd.pid()), ("fd".into(), "held".into()));
    assert_eq!(client.found("omp", by_dir.pid()), ("dir".into(), "newest".into()));
}

#[test]
fn hermes_by_its_registry() {
    let machine = Machine::new();
    let python = machine.copy("/bin/sh", "venv/bin/python3");
    let script = machine.script("venv/bin/hermes", "sleep 600");
    let running = machine.start(Command::new(python).arg(script));
    let pid = running.pid();
    let mut client = machine.client();
    let started = client.field("hermes", pid, "started");
    machine.write(
        "hermes/runtime/active_sessions.json",
        &format!(
            "{{\"entries\":[{{\"session_id\":\"s1\",\"pid\":{pid},\"process_start_time\":{started}.5}}]}}"
        ),
    );
    assert_eq!(client.found("hermes", pid), ("registry".into(), "s1".into()));
}

#[test]
fn dsh_by_the_directory_it_works_in() {
    let machine = Machine::new();
    let node = machine.copy("/bin/sh", "bin/node");
    let script = machine.script("npm/bin/dsh", "sleep 600");
    let running = machine.start(Command::new(node).arg(script).args(["--profile", "tui"]));
    let project = machine.work().to_str().unwrap()[1..].replace('/', "-");
    let header = format!("{{\"type\":\"session\",\"cwd\":\"{}\"}}\n", machine.work().display());
    machine.write(&format!("dsh/sessions/--{project}--/session-{S2}/session.jsonl"), &header);
    let mut client = machine.client();
    client.ls("active/dsh");
    assert_eq!(client.found("dsh", running.pid()), ("dir".into(), S2.into()));
}

#[test]
fn a_process_that_runs_another_program_is_what_it_runs_now() {
    let machine = Machine::new();
    let claude = machine.program("bin/claude");
    let go = machine.top.join("go");
    let loop_until =
        format!("while [ ! -e {} ]; do sleep 0.05; done; exec {} 600", go.display(), claude.display());
    let running = machine.start(Command::new("/bin/sh").args(["-c", &loop_until]));
    let mut client = machine.client();
    let pid = running.pid().to_string();
    assert!(!client.ls("active/claude").contains(&pid));
    assert!(!client.ls("active/claude").contains(&pid));
    fs::write(go, "").unwrap();
    machine.wait(|| client.ls("active/claude").contains(&pid));
}

#[test]
fn one_that_was_not_waited_for_does_not_list() {
    let machine = Machine::new();
    let mut command = Command::new(machine.program("bin/claude"));
    let running = machine.start(command.arg("0.3"));
    let mut client = machine.client();
    let pid = running.pid().to_string();
    assert!(client.ls("active/claude").contains(&pid));
    machine.wait(|| !client.ls("active/claude").contains(&pid));
    assert!(Path::new(&format!("/proc/{pid}/stat")).exists(), "it is still there, as a corpse");
}

/// Takes a lock and becomes a program, which holds it on: the kernel tells the process that took it.
fn holding(lock: &Path, program: &Path) -> Command {
    let mut command = Command::new("flock");
    command.args(["--exclusive", "--no-fork"]).args([lock, program]).arg("600");
    command
}

/// Homes and programs of a test's own, and the kernel's processes.
struct Machine {
    top: PathBuf,
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it started ends with it. Nobody has waited for it yet, so its number is still its own.
        if let Some(group) = rustix::process::Pid::from_raw(self.pid() as i32) {
            _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Machine {
    fn new() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::SeqCst);
        let top = std::env::temp_dir().join(format!("active-real-{}-{serial}", std::process::id()));
        for dir in ["claude", "codex", "omp", "hermes", "dsh", "work"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        Self { top: top.canonicalize().unwrap() }
    }

    fn host(&self) -> Os {
        let roots = Roots {
            claude: self.top.join("claude"),
            codex: self.top.join("codex"),
            omp: self.top.join("omp"),
            hermes: self.top.join("hermes"),
            dsh: self.top.join("dsh"),
        };
        Os::new(roots, "/proc".into(), Resolving::Probed)
    }

    fn client(&self) -> Client {
        Client::new(Agents::new(Arc::new(self.host()), LIMITS))
    }

    fn work(&self) -> PathBuf {
        self.top.join("work")
    }

    fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn copy(&self, from: &str, to: &str) -> PathBuf {
        let to = self.top.join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let _alone = EXEC.lock().unwrap_or_else(PoisonError::into_inner);
        fs::copy(from, &to).unwrap();
        to
    }

    /// A program that does nothing for so many seconds.
    fn program(&self, path: &str) -> PathBuf {
        self.copy("/bin/sleep", path)
    }

    fn script(&self, path: &str, content: &str) -> PathBuf {
        let path = self.write(path, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn rollout(&self) -> PathBuf {
        let content =
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{THREAD}\",\"source\":\"cli\"}}}}\n");
        self.write(&format!("codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-{THREAD}.jsonl"), &content)
    }

    /// Writes the record of a process, with its start as the kernel tells it.
    fn register(&self, pid: u32, session: &str, status: &str) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let start = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let domain = format!("linux:{}:{}", machine.trim(), namespace.display());
        let record = format!(
            "{{\"pid\":{pid},\"procStart\":\"{start}\",\"pidDomain\":\"{domain}\",\"sessionId\":\"{session}\",\
             \"cwd\":\"{}\",\"status\":\"{status}\"}}",
            self.work().display()
        );
        self.write(&format!("claude/sessions/{pid}.json"), &record);
    }

    /// Starts a process in the working directory, with an environment that names no root, as the head of a group.
    fn start(&self, command: &mut Command) -> Running {
        for variable in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "HERMES_HOME", "DSH_HOME"]
        {
            command.env_remove(variable);
        }
        let alone = EXEC.lock().unwrap_or_else(PoisonError::into_inner);
        let running = Running(command.current_dir(self.work()).process_group(0).spawn().unwrap());
        drop(alone);
        // Until it sleeps it may still be this program, or have no arguments yet, or be a shell that waits for its child's exec
        // as others wait for a disk (vfork(2)): those are passed over where they were not seen before.
        self.wait(|| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", running.pid())).unwrap();
            let state = stat.rsplit_once(") ").unwrap().1;
            let exe = fs::read_link(format!("/proc/{}/exe", running.pid()));
            state.starts_with('Z')
                || (state.starts_with('S') && exe.is_ok_and(|exe| exe != std::env::current_exe().unwrap()))
        });
        running
    }

    fn wait(&self, mut until: impl FnMut() -> bool) {
        for _ in 0..500 {
            if until() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("it did not happen in ten seconds");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.top);
    }
}

/// Held while a program is written, and while a process is made: a file that a child still has open for writing cannot be
/// run (`ETXTBSY`).
static EXEC: Mutex<()> = Mutex::new(());
const LIMITS: Limits = Limits { pinned_descriptors: 64 };
