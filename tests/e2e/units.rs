//! The units of `packaging/systemd`: that systemd takes them, that what they start serves, and that what is said in them of
//! restrictions is so.
//!
//! What a filter of system calls takes away is tried elsewhere: openat2 in `hammer`, io_uring by the tests of the drivers.
//! `.ci/run package` starts the units by a real service manager.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proto::Dialect;
use rustix::process::{Signal, geteuid};
use tests::check::ROOT;
use tests::fitness::skip;

use crate::binary::path;
use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::moves::stage::{Agent, HARNESSES, Harness, Stage, Zmx, await_until};

#[test]
fn systemd_finds_no_fault_with_the_units() {
    for drop_in in ["", "tcp.conf", "move.conf"] {
        let units = Units::with(drop_in);
        let Some(complaints) = units.complaints() else {
            return skip("there is no systemd-analyze");
        };
        assert_eq!(complaints, "", "with `{drop_in}`");
    }
    let units = Units::with("tcp.conf");
    fs::write(units.path("9agents.service.d/tcp.conf"), "[Service]\nRestrictNamespces=yes\n").unwrap();
    assert!(units.complaints().is_some_and(|words| words.contains("RestrictNamespces")), "it can complain");
}

#[test]
fn what_the_units_start_serves() {
    for (name, count) in
        [("9agents.service", 0), ("9agents.service.d/tcp.conf", 2), ("9agents.service.d/move.conf", 1)]
    {
        let mut arguments = Unit::read(name).arguments();
        assert_eq!(arguments.len(), count, "{name}");
        // Somebody may have the port.
        arguments.iter_mut().for_each(|word| *word = word.replace(":5640", ":0"));
        let home = Home::furnished();
        let mut daemon = Daemon::start(home.command(&[]).args(&arguments));
        client(&home.posted("agents"), Dialect::Plain).stat(ROOT).unwrap();
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait().code(), Some(0), "{name}");
    }
}

/// systemd's own socket-activate passes a socket, and clients find it where they look for a posted server.
#[test]
fn the_socket_of_the_unit_is_where_clients_look() {
    let home = Home::furnished();
    let socket = Unit::read("9agents.socket");
    let listen = socket.one("ListenStream").replace("%t", home.runtime().to_str().unwrap());
    assert_eq!(Path::new(&listen), home.posted("agents"));
    assert_eq!(
        [socket.one("DirectoryMode"), socket.one("SocketMode")],
        ["0700", "0600"],
        "as posting has them"
    );

    fs::create_dir(home.runtime().join("9p")).unwrap();
    let mut command = Command::new("systemd-socket-activate");
    if command.arg("--version").output().is_err() {
        return skip("there is no systemd-socket-activate");
    }
    let mut command = Command::new("systemd-socket-activate");
    command.args(["-l", &listen, "-E", "HOME", "-E", "XDG_RUNTIME_DIR"]).arg(path());
    command.env("HOME", home.path("")).env("XDG_RUNTIME_DIR", home.runtime());
    let mut daemon = Daemon::spawn(&mut command);
    await_until("it listens", || home.posted("agents").exists());
    let output = home.command(&["cat", "/pid", "/codex/history"]).output().unwrap();
    // It becomes the server when somebody asks, and answers who asked.
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n{{}}\n", daemon.pid()));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(home.posted("agents").exists(), "it is systemd's");
}

#[test]
fn the_units_restrict_what_they_say_and_nothing_where_agents_are_moved() {
    let service = Unit::read("9agents.service");
    let text = source("9agents.service");
    let (_, forbidden) = text.split_once("# What must not be here:").expect("it says what must not be there");
    let forbidden: Vec<_> =
        forbidden.split([' ', '\n', ',']).filter_map(|word| word.strip_suffix('=')).collect();
    assert!(forbidden.contains(&"PrivateUsers") && forbidden.contains(&"ProcSubset"), "{forbidden:?}");
    for key in service.keys() {
        assert!(!forbidden.contains(&key), "{key} must not be here");
    }

    let moving = Unit::read("9agents.service.d/move.conf");
    let restricts = |key: &&str| !UNRESTRICTING.contains(key);
    let restrictions: Vec<_> = service.keys().filter(restricts).collect();
    assert!(restrictions.len() > 5, "{restrictions:?}");
    for key in restrictions {
        let undone = moving.values(key).last().map(String::as_str);
        assert!(matches!(undone, Some("" | "no" | "0022")), "{key} is {undone:?} where agents are moved");
    }
    assert_eq!(moving.one("KillMode"), "process", "a stop leaves moved agents alone");
}

/// Why there is no `PrivateUsers=`.
#[test]
fn what_is_in_a_user_namespace_of_its_own_cannot_look_at_agents() {
    let apart = ["--user", "--map-current-user"];
    if !Command::new("unshare").args(apart).arg("true").status().is_ok_and(|status| status.success()) {
        return skip("no user namespace can be made");
    }
    let stage = Stage::new(Zmx::Upstream);
    let agent = stage.start(CODEX);
    let look = |field: &str, apart: &[&str]| look(&stage, &agent, field, apart, "", &[]);
    await_until("the agent is in its session", || look("session", &[]) == CODEX.session);
    let work = stage.work().display().to_string();
    for (field, outside, inside) in
        [("name", "work", ""), ("via", "fd", "none"), ("zmx", "day", ""), ("cwd", &work, "")]
    {
        assert_eq!([look(field, &[]), look(field, &apart)], [outside, inside], "{field}");
    }
}

/// Why there is no `ProcSubset=`.
#[test]
fn where_proc_has_processes_alone_no_agent_has_a_start() {
    if !geteuid().is_root() {
        return skip("only root can mount a procfs");
    }
    let stage = Stage::new(Zmx::Upstream);
    let agent = stage.start(CODEX);
    let proc = stage.path("proc").display().to_string();
    fs::create_dir(&proc).unwrap();
    let look = |field: &str, options: &str| {
        let mount = format!("mount -t proc -o {options} proc {proc} &&");
        look(&stage, &agent, field, &["--mount"], &mount, &["--proc", &proc])
    };
    await_until("the agent is in its session", || look("session", "subset=pid") == CODEX.session);
    assert_eq!(look("started", "subset=pid"), "");
    let whole = look("started", "hidepid=invisible");
    assert!(whole.parse::<u64>().is_ok(), "ProtectProc= by itself would do no harm: {whole}");
}

/// Whoever restricts a service too much learns by what.
#[test]
fn what_the_machine_does_not_let_it_do_is_named() {
    if !geteuid().is_root() {
        return skip("only root can cover /proc");
    }
    let home = Home::empty();
    let mut command = Command::new("unshare");
    command.args(["--mount", "/bin/sh", "-c", "mount -t tmpfs none /proc && exec \"$0\""]).arg(path());
    command.env("HOME", home.path("")).env("XDG_RUNTIME_DIR", home.runtime());
    let mut daemon = Daemon::spawn(&mut command);
    assert_eq!(daemon.wait().code(), Some(1));
    let words = "9agents: cannot serve: /proc/self/status cannot be read: No such file or directory";
    assert_eq!(daemon.log(), words);
}

/// What a verb that was started apart, and did something first, reads of an agent.
fn look(stage: &Stage, agent: &Agent, field: &str, apart: &[&str], first: &str, flags: &[&str]) -> String {
    let verb = stage.home.command(flags);
    let mut command = Command::new("unshare");
    command.args(apart).args(["/bin/sh", "-c", &format!("{first} exec \"$0\" \"$@\"")]);
    command.arg(verb.get_program()).args(verb.get_args());
    command.arg("cat").arg(format!("/active/{}/{}/{field}", agent.harness, agent.pid()));
    command.env_clear().env("HOME", stage.home.path("")).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = command.output().expect("unshare");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Copies of the units that start the program under test.
struct Units {
    home: Home,
}

impl Units {
    /// With this drop-in, if it has a name.
    fn with(drop_in: &str) -> Self {
        let units = Self { home: Home::empty() };
        fs::create_dir_all(units.path("9agents.service.d")).expect("a directory");
        let drop_in = (!drop_in.is_empty()).then(|| format!("9agents.service.d/{drop_in}"));
        for name in ["9agents.service", "9agents.socket"].into_iter().chain(drop_in.as_deref()) {
            let text = source(name).replace(INSTALLED, path().to_str().expect("a path of text"));
            fs::write(units.path(name), text).expect("a file");
        }
        units
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.beside("units").join(name)
    }

    /// What systemd has to say of them; `None` where there is none.
    fn complaints(&self) -> Option<String> {
        let mut command = Command::new("systemd-analyze");
        command.args(["--user", "--man=no", "verify", "9agents.service", "9agents.socket"]);
        command.env("XDG_RUNTIME_DIR", self.home.runtime()).env("HOME", self.home.path(""));
        // With an end to it: system's own are searched as well.
        command.env("SYSTEMD_UNIT_PATH", format!("{}:", self.path("").display()));
        let output = command.output().ok()?;
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// What the service's unit sets in the environment of the program, so that what is freed is given back: what a test sees grow is
/// the program then, and not what the C library keeps of it.
pub(crate) fn environment() -> [(String, String); 1] {
    let unit = Unit::read("9agents.service");
    let (name, value) = unit.one("Environment").split_once('=').expect("a variable");
    [(name.to_owned(), value.to_owned())]
}

/// What a unit says, by key. A drop-in is one, too.
struct Unit(BTreeMap<String, Vec<String>>);

impl Unit {
    fn read(name: &str) -> Self {
        let mut said = BTreeMap::<_, Vec<_>>::new();
        for (key, value) in
            source(name).lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='))
        {
            said.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        Self(said)
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn values(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// The one value of a key.
    #[track_caller]
    fn one(&self, key: &str) -> &str {
        let [value] = self.values(key) else { panic!("{key} is {:?}", self.values(key)) };
        value
    }

    /// The arguments that the program is started with.
    fn arguments(&self) -> Vec<String> {
        let line = self.values("ExecStart").last().expect("something is started");
        let rest = line.strip_prefix(INSTALLED).expect("the program, where it is installed");
        rest.split_whitespace().map(str::to_owned).collect()
    }
}

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const CODEX: Harness = HARNESSES[1];
/// Where the units expect the program.
const INSTALLED: &str = "/usr/bin/9agents";
/// What the service says and need not be undone for agents that are moved.
const UNRESTRICTING: [&str; 8] = [
    "Description",
    "Documentation",
    "Type",
    "ExecStart",
    "Restart",
    "RestartPreventExitStatus",
    "WantedBy",
    "KillMode",
];
