//! Agents that are moved: real processes that end and come back.

mod pids;
pub(crate) mod stage;

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use proto::{Dialect, Tmessage};
use rustix::process::{Pid, Signal, kill_process_group};
use tests::check::{Client, How, refused, why};
use tests::fitness::skip;
use tests::line::Line;

use crate::binary::{given, signalled};
use crate::daemon::{Daemon, attached};
use crate::tell;
use stage::{Agent, HARNESSES, Harness, S1, Stage, Zmx, await_until, field, open_zmx, program};

const CLAUDE: Harness = HARNESSES[0];

#[test]
fn an_agent_of_each_harness_is_moved_by_either_zmx() {
    for (zmx, driver) in [(Zmx::Upstream, "blocking"), (Zmx::Posting, "auto")] {
        let stage = Stage::new(zmx);
        let _daemon = stage.serve(&["--driver", driver]);
        let mut client = stage.client();
        for harness in HARNESSES {
            let agent = stage.start(harness);
            stage.await_session(&mut client, &agent, harness.session);
            assert_eq!(field(&mut client, &agent, "zmx").as_deref(), Some("day"));
            let name = format!("night-{}", harness.name);
            let fid = open_zmx(&mut client, &agent);
            let begun = Instant::now();
            assert_eq!(client.write(fid, 0, format!("{name}\n").as_bytes()), Ok(name.len() as u32 + 1));
            let took = begun.elapsed();
            client.clunk(fid).unwrap();
            let new = stage.await_moved(&mut client, harness.name, &name);
            assert_ne!(new, agent.pid());
            assert_eq!(field(&mut client, &agent, "zmx"), None, "the old directory is gone");
            stage.await_field(&mut client, harness.name, new, "session", harness.session);
            tell(&format!("moves: {} by {zmx:?}: {} ms", harness.name, took.as_millis()));
            // Another of that name is refused, and the agent lives on.
            let fid = client.go(format!("active/{}/{new}/zmx", harness.name));
            client.open_as(fid, How::Write).expect("zmx may be written");
            let again = client.write(fid, 0, name.as_bytes()).expect_err("the name is taken");
            assert_eq!(again.words.as_deref(), Some("a live session of that name exists"));
            client.clunk(fid).unwrap();
            assert_eq!(stage.await_moved(&mut client, harness.name, &name), new);
        }
        assert_eq!(stage.runs().len(), HARNESSES.len());
        await_until("nobody is left to wait for", || !has_corpses(_daemon.pid()));
    }
}

/// Whether a process has children that nobody has waited for.
fn has_corpses(pid: u32) -> bool {
    let tasks = format!("/proc/{pid}/task");
    let children = fs::read_dir(tasks)
        .into_iter()
        .flatten()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    children.flat_map(|list| list.split(' ').map(str::to_owned).collect::<Vec<_>>()).any(|child| {
        fs::read_to_string(format!("/proc/{}/stat", child.trim())).is_ok_and(|stat| stat.contains(") Z "))
    })
}

#[test]
fn what_is_started_has_what_the_server_was_given_and_nothing_of_the_server() {
    let stage = Stage::new(Zmx::Upstream);
    let mut command = stage.command(&[]);
    command.env("ZMX_SESSION", "outer").env("ZMX_SESSION_PREFIX", "x-").env("KEPT", "yes");
    command.env("LISTEN_FDNAMES", "a").env("LISTEN_FDS", "1").env("LISTEN_PID", "1");
    let status = stage.path("status");
    // A descriptor of the shell's, a signal that is ignored and one that is blocked, and a limit that the server raises for
    // itself. All without a process to wait for: a shell may have another mask after that.
    let first = format!(
        "exec 7</dev/zero; trap '' INT; ulimit -S -n 99; for file in status limits; do while IFS= read -r line; do \
         echo \"$line\"; done </proc/$$/$file >{}.$file; done; ",
        status.display()
    );
    let shell = given(&command, &first);
    let daemon = Daemon::start(&mut signalled(&shell, "--block-signal=USR1"));
    let mut client = stage.client();
    let agent = stage.start(CLAUDE);
    stage.await_session(&mut client, &agent, S1);
    let fid = open_zmx(&mut client, &agent);
    assert_eq!(client.write(fid, 0, b"night"), Ok(5));

    let own = fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
    let session =
        |stat: &str| stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(3).unwrap().to_owned();
    let stat = stage.given("stat");
    let pid = stat.split(' ').next().unwrap().to_owned();
    assert_eq!(session(&stat), pid, "it leads a session");
    assert_ne!(session(&stat), session(&own));
    let tty = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(4).unwrap().to_owned();
    assert_eq!(tty, "0", "it has no terminal");

    let given = stage.given("status");
    let line = |text: &str, key: &str| text.lines().find(|line| line.starts_with(key)).map(str::to_owned);
    let before = fs::read_to_string(status.with_extension("status")).unwrap();
    for key in ["SigBlk:", "SigIgn:"] {
        assert_eq!(line(&given, key), line(&before, key), "{key}");
        assert!(!line(&before, key).unwrap().ends_with(&"0".repeat(16)), "{key} shows nothing");
    }
    assert_eq!(stage.given("limits"), fs::read_to_string(status.with_extension("limits")).unwrap());
    assert_ne!(
        fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap(),
        stage.given("limits"),
        "the server has more descriptors"
    );

    let fds = stage.given("fds");
    let links: Vec<&str> = fds.lines().filter_map(|line| line.split_once(" -> ").map(|(_, to)| to)).collect();
    // Three streams, what the shell reads the script from, and what this list is written to.
    let is_own = |to: &str| to.ends_with("/bin/zmx") || to.ends_with("/given.fds");
    let odd: Vec<_> = links.iter().filter(|to| **to != "/dev/null" && !is_own(to)).collect();
    assert!(odd.is_empty() && links.iter().filter(|to| **to == "/dev/null").count() >= 2, "{links:?}");

    let env = stage.given("env");
    assert!(env.lines().any(|line| line == "KEPT=yes"));
    for forbidden in ["ZMX_SESSION", "LISTEN_"] {
        assert!(!env.lines().any(|line| line.starts_with(forbidden)), "{env}");
    }
    assert_eq!(stage.given("cwd").trim(), stage.work().display().to_string());
}

/// No shell stands between where no signal was ignored, though the server has raised its limit.
#[test]
fn what_is_started_has_variables_that_no_shell_could_spell() {
    let stage = Stage::new(Zmx::Upstream);
    let mut command = stage.command(&[]);
    command.env("odd.name", "kept").env("PWD", "/elsewhere");
    // Whatever the tests themselves were started with: a job in the background ignores an interrupt.
    let _daemon = Daemon::start(&mut signalled(&command, "--default-signal=INT,TERM"));
    let mut client = stage.client();
    let agent = stage.start(CLAUDE);
    stage.await_session(&mut client, &agent, S1);
    let fid = open_zmx(&mut client, &agent);
    assert_eq!(client.write(fid, 0, b"night"), Ok(5));
    let env = stage.given("env");
    assert!(env.lines().any(|line| line == "odd.name=kept"), "{env}");
    assert!(!env.contains("/elsewhere"), "{env}");
    let soft =
        |limits: &str| limits.lines().find(|line| line.starts_with("Max open files")).map(str::to_owned);
    assert_eq!(soft(&stage.given("limits")), soft(&fs::read_to_string("/proc/self/limits").unwrap()));
}

#[test]
fn a_zmx_that_is_none_is_told_at_the_start() {
    let stage = Stage::new(Zmx::Upstream);
    let none = stage.path("work").display().to_string();
    let mut daemon = Daemon::spawn(&mut stage.command(&["--zmx", &none]));
    assert_eq!(daemon.wait().code(), Some(1));
    assert!(
        daemon.log().ends_with(&format!("--zmx {none}: not a file that may be executed")),
        "{}",
        daemon.log()
    );
    // Without one, everything but moves is served, and the log says so.
    let daemon = Daemon::start(stage.command(&[]).env("PATH", "relative"));
    daemon.await_line("no zmx was found");
    let mut client = stage.client();
    let agent = stage.start(CLAUDE);
    stage.await_session(&mut client, &agent, S1);
    let fid = open_zmx(&mut client, &agent);
    let refused = client.write(fid, 0, b"night").expect_err("there is nothing to move it with");
    assert_eq!(
        refused.words.as_deref(),
        Some("no zmx executable was found at start: moving is not permitted")
    );
}

#[test]
fn the_client_verb_moves_and_every_refusal_has_its_words() {
    let stage = Stage::new(Zmx::Posting);
    let _daemon = stage.serve(&["--tcp", "127.0.0.1:0"]);
    let mut client = stage.client();
    let agent = stage.start(CLAUDE);
    stage.await_session(&mut client, &agent, S1);
    let zmx = format!("/active/claude/{}/zmx", agent.pid());
    let write = |arguments: &[&str], name: &str| {
        let mut command = stage.home.command(&["write"]);
        let mut child = command
            .args(arguments)
            .arg(&zmx)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A verb that is refused before it has anything to write has not read.
        match std::io::Write::write_all(&mut child.stdin.take().unwrap(), name.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let address = _daemon.tcp("127.0.0.1");
    let tcp = format!("tcp!127.0.0.1!{}", address.port());
    for (arguments, name, words) in [
        (&[][..], "a b\n", "invalid session name"),
        (&["-a", &tcp], "night\n", "over TCP moving is not permitted"),
        (&["--demo"], "night\n", "file does not exist"),
    ] {
        let (code, said) = write(arguments, name);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(words), "{said}");
    }
    let mut far = attached(Client::new(Box::new(Line::tcp(address)), Dialect::Linux));
    let fid = far.go(&zmx[1..]);
    assert_eq!(far.stat(fid).unwrap().perm, 0o444);
    let fid = client.go(&zmx[1..]);
    assert_eq!(client.stat(fid).unwrap().perm, 0o644);
    assert!(stage.runs().is_empty());
    assert_eq!(write(&[], "night\n"), (Some(0), String::new()));
    stage.await_moved(&mut client, "claude", "night");
    // Without --allow-move the same is a file that may only be read.
    let plain = Daemon::start(&mut stage.home.command(&["--name", "plain"]));
    let mut near = crate::daemon::client(&stage.home.posted("plain"), Dialect::Unix);
    let pid = stage.await_moved(&mut near, "claude", "night");
    let fid = near.go(format!("active/claude/{pid}/zmx"));
    assert_eq!(near.stat(fid).unwrap().perm, 0o444);
    refused(near.open_as(fid, How::Write), why::DENIED);
    drop(plain);
}

/// The agent moves itself: the client is its child, at its terminal, and goes when it goes.
#[test]
fn a_move_is_finished_though_the_client_lived_in_what_is_moved() {
    if !Command::new("script").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip("there is no script(1), which makes a terminal");
    }
    let stage = Stage::new(Zmx::Upstream);
    let _daemon = stage.serve(&[]);
    let mut client = stage.client();
    fs::write(
        stage.path("errand"),
        format!(
            "rm {}\n(sleep 0.5; printf night | XDG_RUNTIME_DIR={} {} write /active/claude/$$/zmx; echo \"$?\" \
             >{})&\n",
            stage.path("errand").display(),
            stage.home.runtime().display(),
            program().display(),
            stage.path("outcome").display(),
        ),
    )
    .unwrap();
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &stage.bin().join("claude").display().to_string(), "/dev/null"]);
    terminal
        .env_clear()
        .env("HOME", stage.home.path(""))
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh");
    terminal.current_dir(stage.work()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    let new = stage.await_moved(&mut client, "claude", "night");
    stage.await_field(&mut client, "claude", new, "session", S1);
    assert_eq!(stage.runs().len(), 1);
    let _ = terminal.kill();
    let _ = terminal.wait();
}

/// The client hangs up as soon as it has written, and again while the agent takes its time to end.
#[test]
fn a_move_is_finished_though_the_client_hangs_up() {
    for driver in ["blocking", "auto"] {
        let stage = Stage::new(Zmx::Upstream);
        stage.be_stubborn();
        let daemon = stage.serve(&["--driver", driver]);
        let mut watcher = stage.client();
        let agent = stage.start(CLAUDE);
        stage.await_session(&mut watcher, &agent, S1);
        let mut client = stage.client();
        let fid = open_zmx(&mut client, &agent);
        let tag = client.fresh_tag();
        client.send(tag, &Tmessage::Write { fid, offset: 0, data: b"night" });
        sleep(Duration::from_millis(300));
        drop(client);
        stage.await_moved(&mut watcher, "claude", "night");
        drop(daemon);
    }
}

/// The server is told to stop while an agent does not want to end: it stops when the agent is back, and the write is answered.
#[test]
fn a_server_that_is_told_to_stop_finishes_the_move_first() {
    for driver in ["blocking", "auto"] {
        let stage = Stage::new(Zmx::Posting);
        stage.be_stubborn();
        let mut daemon = stage.serve(&["--driver", driver]);
        let mut client = stage.client();
        let mut idle = stage.client();
        let agent = stage.start(CLAUDE);
        stage.await_session(&mut client, &agent, S1);
        let fid = open_zmx(&mut client, &agent);
        let tag = client.fresh_tag();
        client.send(tag, &Tmessage::Write { fid, offset: 0, data: b"night" });
        sleep(Duration::from_millis(500));
        let asked = Instant::now();
        daemon.signal(Signal::TERM);
        let answer = client.receive();
        assert_eq!((answer.tag(), answer.refused()), (tag, None));
        assert_eq!(daemon.wait().code(), Some(0));
        let took = asked.elapsed();
        assert!((3..12).contains(&took.as_secs()), "{took:?}");
        tell(&format!("moves: {driver} stopped {} ms after it was told to", took.as_millis()));
        assert_eq!(stage.runs().len(), 1);
        idle.expect_closed();
    }
}

/// Somebody leans on Ctrl-C at the server's terminal, which tells its whole group: also what is to become zmx, until that has a
/// session of its own.
#[test]
fn a_move_is_finished_though_the_group_of_the_server_is_interrupted() {
    let stage = Stage::new(Zmx::Upstream);
    let mut command = signalled(&stage.command(&[]), "--default-signal=INT,TERM");
    let mut daemon = Daemon::start(command.process_group(0));
    let mut client = stage.client();
    let agent = stage.start(CLAUDE);
    stage.await_session(&mut client, &agent, S1);
    let fid = open_zmx(&mut client, &agent);
    let tag = client.fresh_tag();
    client.send(tag, &Tmessage::Write { fid, offset: 0, data: b"night" });
    let group = Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    for _ in 0..300 {
        sleep(Duration::from_millis(1));
        // It may have ended by then.
        let _ = kill_process_group(group, Signal::INT);
    }
    let answer = client.receive();
    assert_eq!((answer.tag(), answer.refused()), (tag, None));
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(stage.runs().len(), 1);
}

/// Others are served while an agent takes its five seconds to end. A machine that is busy with other things makes either half
/// slow, so the best of a few attempts counts.
#[test]
fn reads_take_no_longer_while_an_agent_is_moved() {
    let stage = Stage::new(Zmx::Upstream);
    stage.be_stubborn();
    stage.home.write(".hermes/notes.txt", &[b'x'; 4096]);
    let _daemon = stage.serve(&[]);
    let bystander = stage.start(HARNESSES[4]);
    let mut reader = Reader::new(&stage, &bystander);
    let mut best = [f64::INFINITY; 2];
    for attempt in 0..4 {
        for (best, ratio) in best.iter_mut().zip(reader.compare(&stage, &format!("night-{attempt}"))) {
            *best = best.min(ratio);
        }
        if best.iter().all(|ratio| *ratio <= 3.0) {
            return;
        }
    }
    panic!("reads take {best:?} times as long while an agent is moved");
}

/// Reads the same two things over and over.
struct Reader {
    client: Client,
    file: u32,
    field: u32,
}

impl Reader {
    fn new(stage: &Stage, agent: &Agent) -> Self {
        let mut client = stage.client();
        await_until("the bystander is there", || field(&mut client, agent, "cwd").is_some());
        let file = client.open_path("hermes/notes.txt");
        let field = client.open_path(format!("active/{}/{}/cwd", agent.harness, agent.pid()));
        Self { client, file, field }
    }

    /// How much longer reads take during a move than alone, at the 99th percentile: before and after it, so that what the
    /// machine does otherwise is in both.
    fn compare(&mut self, stage: &Stage, name: &str) -> [f64; 2] {
        let mut client = stage.client();
        let agent = stage.start(CLAUDE);
        stage.await_session(&mut client, &agent, S1);
        let before = self.read_for(Duration::from_secs(2));
        let fid = open_zmx(&mut client, &agent);
        let tag = client.fresh_tag();
        client.send(tag, &Tmessage::Write { fid, offset: 0, data: name.as_bytes() });
        let during = self.read_for(Duration::from_millis(4500));
        let answer = client.receive();
        assert_eq!((answer.tag(), answer.refused()), (tag, None));
        let after = self.read_for(Duration::from_secs(2));
        let kinds = ["a file", "a field of another agent"];
        [0, 1].map(|kind| {
            let alone = p99(before[kind].iter().chain(&after[kind]));
            let beside = p99(&during[kind]);
            let ratio = beside.as_secs_f64() / alone.as_secs_f64();
            tell(&format!(
                "moves: p99 of reading {}: {} us alone ({} reads), {} us during a move ({} reads), {ratio:.2} times",
                kinds[kind],
                alone.as_micros(),
                before[kind].len() + after[kind].len(),
                beside.as_micros(),
                during[kind].len()
            ));
            ratio
        })
    }

    fn read_for(&mut self, time: Duration) -> [Vec<Duration>; 2] {
        let (start, mut took) = (Instant::now(), [Vec::new(), Vec::new()]);
        while start.elapsed() < time {
            for (kind, fid) in [self.file, self.field].into_iter().enumerate() {
                let begun = Instant::now();
                assert!(!self.client.read(fid, 0, 4096).expect("a read").is_empty());
                took[kind].push(begun.elapsed());
            }
        }
        took
    }
}

fn p99<'a>(took: impl IntoIterator<Item = &'a Duration>) -> Duration {
    let mut took: Vec<Duration> = took.into_iter().copied().collect();
    took.sort_unstable();
    took[took.len() * 99 / 100]
}
