//! The machine that is served: a home with data of its own, servers over it, and processes that pass for agents.
//!
//! Everything is made from seeds in a temporary directory, and goes with it.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proto::Dialect;

use crate::client::Client;
use crate::figures::{CLIENT, cpu_ns, kib, pin};
use crate::world;

/// A home and a runtime directory.
pub(crate) struct Machine {
    top: PathBuf,
}

impl Machine {
    /// One with nothing in it.
    pub(crate) fn new() -> Self {
        let top = std::env::temp_dir().join(format!("9bench-{}", std::process::id()));
        for directory in [".claude", ".codex", ".hermes/files", "work"] {
            fs::create_dir_all(top.join(directory)).expect("a directory");
        }
        fs::create_dir(top.join("run")).expect("a directory");
        fs::set_permissions(top.join("run"), fs::Permissions::from_mode(0o700)).expect("it is ours");
        Self { top: top.canonicalize().expect("it is there") }
    }

    /// A path below the home.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.top.join(below)
    }

    /// A file of so many bytes, as `/hermes/files/NAME`.
    pub(crate) fn file(&self, name: &str, size: u64) -> String {
        let mut out = File::create(self.path(".hermes/files").join(name)).expect("a file");
        let block = vec![b'x'; 1 << 20];
        let mut left = size as usize;
        while left > 0 {
            let part = left.min(block.len());
            out.write_all(&block[..part]).expect("place on the disk");
            left -= part;
        }
        format!("hermes/files/{name}")
    }

    /// A directory of so many small files, `f00000` and on, as `/hermes/NAME`.
    pub(crate) fn directory(&self, name: &str, files: usize) -> String {
        let path = self.path(".hermes").join(name);
        fs::create_dir_all(&path).expect("a directory");
        for number in 0..files {
            fs::write(path.join(format!("f{number:05}")), b"text\n").expect("a file");
        }
        format!("hermes/{name}")
    }

    /// The command that runs the program here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let program = std::env::var_os("NINEAGENTS_BIN");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_9agents").into()));
        command.args(arguments).env("HOME", &self.top).env("XDG_RUNTIME_DIR", self.top.join("run"));
        for variable in ROOT_VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    /// Starts the daemon, on some processors.
    pub(crate) fn serve(&self, driver: &str, processors: &[usize]) -> Server {
        self.serve_as(&mut self.command(&["--driver", driver]), processors)
    }

    /// Starts one that may move agents, to a zmx that never has the session that is asked for.
    pub(crate) fn serve_moving(&self, processors: &[usize]) -> Server {
        let bin = self.path("bin");
        fs::create_dir_all(&bin).expect("a directory");
        fs::copy("/bin/true", bin.join("zmx")).expect("a program");
        let mut command = self.command(&["--allow-move"]);
        self.serve_as(command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())), processors)
    }

    fn serve_as(&self, command: &mut Command, processors: &[usize]) -> Server {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let name = format!("bench-{}", SERIAL.fetch_add(1, Ordering::Relaxed));
        let socket = self.top.join("run/9p").join(&name);
        Server::start(command.args(["--name", &name]), socket, processors)
    }

    /// Starts the responder, on one processor.
    pub(crate) fn responder(&self, processor: usize) -> Server {
        let socket = self.top.join(format!("responder-{processor}"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        Server::start(command.env(crate::RESPONDER, &socket), socket, &[processor])
    }

    /// Starts the responder that reads a file of [`Machine::file`].
    pub(crate) fn reader(&self, path: &str, processor: usize) -> Server {
        let socket = self.top.join(format!("reader-{processor}"));
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.env(crate::RESPONDER, &socket).env(crate::READER, self.path(&format!(".{path}")));
        Server::start(&mut command, socket, &[processor])
    }

    /// Starts diod over the home, if it is installed.
    pub(crate) fn diod(&self, processor: usize) -> Option<Server> {
        let program =
            ["/usr/sbin/diod", "/usr/bin/diod"].into_iter().find(|path| Path::new(path).exists())?;
        let socket = self.top.join("diod");
        let mut command = Command::new(program);
        command.args(["--foreground", "--no-auth", "--export", self.top.to_str().expect("UTF-8")]);
        command.arg("--listen").arg(&socket);
        Some(Server::start(&mut command, socket, &[processor]))
    }

    /// A rollout of about so many bytes, and a process that has it open as a Codex has.
    pub(crate) fn codex(&self, size: u64) -> Agent {
        let below = format!(".codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-{THREAD}.jsonl");
        let (file, path) = self.transcript(&below);
        let messages = world::codex(&mut BufWriter::new(&file), size, 1).expect("place on the disk");
        let program = self.program("bin/codex");
        let process = self.start(Command::new(program).arg("100000").stdout(file));
        Agent { place: format!("active/codex/{}", process.0.id()), process, transcript: path, messages }
    }

    /// A transcript of about so many bytes, and a process that is registered as its Claude Code.
    pub(crate) fn claude(&self, size: u64) -> Agent {
        let (file, path) = self.transcript(&format!(".claude/projects/{}/{SESSION}.jsonl", self.project()));
        let messages = world::claude(&mut BufWriter::new(&file), size, 2).expect("place on the disk");
        self.claude_of(path, messages)
    }

    /// A transcript that is one message of about so many bytes, full of escapes.
    pub(crate) fn monologue(&self, size: usize) -> Agent {
        let (mut file, path) =
            self.transcript(&format!(".claude/projects/{}/{SESSION}.jsonl", self.project()));
        let text = r#"a line of text with a \"quoted\" word, \u00e9 and an end\n"#;
        let text = text.repeat(size / text.len());
        writeln!(file, r#"{{"type":"user","message":{{"content":"{text}"}}}}"#).expect("place on the disk");
        self.claude_of(path, 1)
    }

    fn claude_of(&self, transcript: PathBuf, messages: u32) -> Agent {
        let process = self.start(Command::new(self.program("bin/claude")).arg("100000"));
        self.register(process.0.id());
        Agent { place: format!("active/claude/{}", process.0.id()), process, transcript, messages }
    }

    /// So many processes, of which so many are registered as Claude Code.
    pub(crate) fn crowd(&self, processes: usize, agents: usize) -> Vec<Process> {
        let (claude, other) = (self.program("bin/claude"), self.program("bin/idler"));
        let start = |number| {
            let program = if number < agents { &claude } else { &other };
            let process = self.start(Command::new(program).arg("100000"));
            if number < agents {
                self.register(process.0.id());
            }
            process
        };
        (0..processes).map(start).collect()
    }

    fn transcript(&self, below: &str) -> (File, PathBuf) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        (File::create(&path).expect("a file"), path)
    }

    /// The name that Claude Code gives the directory of a project.
    fn project(&self) -> String {
        let work = self.path("work");
        work.to_str().expect("UTF-8").replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    }

    /// A program that does nothing for so many seconds.
    fn program(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        if !path.exists() {
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::copy("/bin/sleep", &path).expect("a program");
        }
        path
    }

    fn start(&self, command: &mut Command) -> Process {
        for variable in ROOT_VARIABLES {
            command.env_remove(variable);
        }
        command.stdin(Stdio::null()).current_dir(self.path("work")).process_group(0);
        Process(command.spawn().expect("a process"))
    }

    /// Writes the record by which a process is an agent.
    fn register(&self, pid: u32) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let start = stat.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(19));
        let record = format!(
            r#"{{"pid":{pid},"procStart":"{}","sessionId":"{SESSION}","cwd":"{}","status":"idle"}}"#,
            start.expect("a start"),
            self.path("work").display()
        );
        fs::create_dir_all(self.path(".claude/sessions")).expect("a directory");
        fs::write(self.path(&format!(".claude/sessions/{pid}.json")), record).expect("a file");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

/// A process that ends when this is dropped.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that passes for an agent, with a transcript that goes when this is dropped.
pub(crate) struct Agent {
    /// Where it is in the tree.
    pub(crate) place: String,
    /// What it says.
    pub(crate) transcript: PathBuf,
    /// How many messages that holds.
    pub(crate) messages: u32,
    process: Process,
}

impl Agent {
    /// Says one thing more.
    pub(crate) fn say(&self, line: &str) {
        let mut file = File::options().append(true).open(&self.transcript).expect("a transcript");
        file.write_all(line.as_bytes()).expect("place on the disk");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.0.kill();
        let _ = fs::remove_file(&self.transcript);
    }
}

/// A server in a process of its own, killed when this is dropped.
pub(crate) struct Server {
    process: Process,
    socket: PathBuf,
}

impl Server {
    fn start(command: &mut Command, socket: PathBuf, processors: &[usize]) -> Self {
        let _ = fs::remove_file(&socket);
        // A child runs where its parent did.
        pin(processors);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Self { process: Process(process.expect("a server")), socket };
        pin(&[CLIENT]);
        let start = Instant::now();
        // It is not connected to before somebody has something to say: a server at rest is one nobody ever spoke to.
        while !server.socket.exists() {
            assert!(start.elapsed() < PATIENCE, "{command:?} does not serve");
            thread::sleep(Duration::from_millis(1));
        }
        server
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// A client that has attached to the root.
    pub(crate) fn client(&self, msize: u32) -> Client {
        Client::attach(&self.socket, Dialect::Plain, msize, "")
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Seconds of processor time that it takes for something.
    pub(crate) fn cpu(&self, work: impl FnOnce()) -> f64 {
        let before = cpu_ns(self.pid());
        work();
        (cpu_ns(self.pid()) - before) as f64 / 1e9
    }

    /// What it has in memory, in KiB.
    pub(crate) fn resident_kib(&self) -> f64 {
        kib(self.pid(), "VmRSS")
    }
}

/// Variables that move a harness's files elsewhere.
const ROOT_VARIABLES: [&str; 5] =
    ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "HERMES_HOME", "DSH_HOME"];
const THREAD: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
const SESSION: &str = "11111111-1111-4111-8111-111111111111";
const PATIENCE: Duration = Duration::from_secs(10);
