//! Numbers of processes that come again: in a pid namespace, where the next number can be chosen.
//!
//! The test starts itself again in a namespace of its own, with a server and its agents. Round by round an agent is moved, and at
//! some moment of that it ends and another process takes its number at once: the same program with the same arguments, that
//! only its start tells from the agent. It writes down every signal that it gets.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use backend::host::os::{Os, Resolving, Roots};
use backend::host::{Errno, Host, Signal};
use proto::Tmessage;
use tests::choices::{Choices, Seeded};
use tests::fitness::skip;

use super::stage::{HARNESSES, S1, Stage, Zmx, open_zmx};
use crate::tell;

#[test]
fn whoever_takes_the_number_of_an_agent_is_never_signalled() {
    let test = std::env::current_exe().expect("a test has a path");
    let mut command = Command::new("unshare");
    command.args(["-U", "-r", "-p", "-f", "--mount-proc", "--kill-child"]);
    let probe = "echo 300 >/proc/sys/kernel/ns_last_pid && [ $(sh -c 'echo $$') -eq 301 ]";
    let can = Command::new("unshare")
        .args(["-U", "-r", "-p", "-f", "--mount-proc", "sh", "-c", probe])
        .stderr(Stdio::null())
        .status();
    if !can.is_ok_and(|status| status.success()) {
        return skip("no pid namespace can be made in which the next number is chosen");
    }
    for inside in ["moves::pids::a_held_process_is_not_its_number", "moves::pids::moves_race_with_numbers"] {
        let mut command = Command::new("unshare");
        command.args(["-U", "-r", "-p", "-f", "--mount-proc", "--kill-child"]);
        command.arg(&test).args(["--exact", inside, "--nocapture", "--test-threads=1"]).env(INSIDE, "1");
        let output = command.output().expect("unshare");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let line = said.lines().find(|line| line.contains("rounds")).expect("it says what it did");
        tell(&format!("moves: {line}"));
    }
}

/// Inside: a process is held, ends and is waited for, and its number is taken again: what held it knows, and signals nobody.
#[test]
fn a_held_process_is_not_its_number() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let absent = || "/none/such".into();
    let roots = Roots { claude: absent(), codex: absent(), omp: absent(), hermes: absent(), dsh: absent() };
    let host = Arc::new(Os::new(roots, "/proc".into(), Resolving::Probed));
    let mut rounds = 0;
    while rounds < 200 {
        let mut first = Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, start) = (first.id(), start_of(first.id()));
        // So that the second begins in another tick.
        sleep(Duration::from_millis(11));
        let held = host.hold(pid, start).unwrap();
        first.kill().unwrap();
        first.wait().unwrap();
        let Some(mut second) = take(pid, Command::new("sleep").arg("60")) else { continue };
        assert_eq!(host.hold(pid, start).err(), Some(Errno::SRCH), "its start is another");
        assert!(held.has_ended());
        assert_eq!(held.signal(Signal::Kill), Err(Errno::SRCH));
        sleep(Duration::from_millis(1));
        assert!(second.try_wait().unwrap().is_none(), "the other was killed");
        second.kill().unwrap();
        second.wait().unwrap();
        rounds += 1;
    }
    println!(
        "{rounds} rounds of a number that was taken again, each held by its first owner: nobody else was signalled"
    );
}

/// Inside: the race itself.
#[test]
fn moves_race_with_numbers() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    let stage = Stage::new(Zmx::Upstream);
    let _daemon = stage.serve(&["--driver", "blocking"]);
    let mut client = stage.client();
    let mut choices = Seeded::new(1);
    let (mut rounds, mut taken, mut moved, mut gone) = (0, 0, 0, 0);
    // A bystander that answers every signal by writing it down. It looks like the agent in all but its start.
    fs::write(stage.path("innocent"), "").unwrap();
    while rounds < ROUNDS {
        let mut agent = stage.start(HARNESSES[0]);
        stage.await_session(&mut client, &agent, S1);
        let pid = agent.pid();
        let fid = open_zmx(&mut client, &agent);
        let name = format!("n{rounds}");
        let tag = client.fresh_tag();
        client.send(tag, &Tmessage::Write { fid, offset: 0, data: name.as_bytes() });
        // Anywhere from before the first look to after the signal.
        sleep(Duration::from_micros(u64::from(choices.below(3000))));
        let _ = agent.child.kill();
        agent.child.wait().unwrap();
        let mut other = Command::new(stage.bin().join("node"));
        other.arg0(stage.bin().join("node")).args(["-c", INNOCENT]);
        other
            .arg(stage.bin().join("claude"))
            .env_clear()
            .env("WHERE", stage.path("signalled"))
            .env("HOME", stage.home.path(""));
        let other = take(pid, other.current_dir(stage.work()).stdout(Stdio::null()).stderr(Stdio::null()));
        let answer = client.receive();
        assert_eq!(answer.tag(), tag);
        match answer.refused() {
            None => moved += 1,
            Some(_) => gone += 1,
        }
        rounds += 1;
        if let Some(mut other) = other {
            taken += 1;
            sleep(Duration::from_millis(20));
            assert!(other.try_wait().unwrap().is_none(), "the other has ended: {answer:?}");
            assert!(!stage.path("signalled").exists(), "the other was signalled: {answer:?}");
            other.kill().unwrap();
            other.wait().unwrap();
        }
        client.clunk(fid).unwrap();
    }
    assert!(taken > rounds / 2, "{taken} of {rounds} numbers were taken again");
    assert!(moved > 0 && gone > 0, "{moved} moved, {gone} gone: the race was not met from both sides");
    println!(
        "{rounds} rounds: {taken} numbers taken again, {moved} agents moved, {gone} gone before: nobody else was signalled"
    );
}

/// Starts a process under a number, if nobody else is quicker.
fn take(pid: u32, command: &mut Command) -> Option<std::process::Child> {
    fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
    let mut child = command.spawn().unwrap();
    if child.id() == pid {
        return Some(child);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

fn start_of(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(19).unwrap().parse().unwrap()
}

const INSIDE: &str = "NINEAGENTS_IN_NAMESPACE";
const ROUNDS: u32 = 100;
const INNOCENT: &str = "for signal in TERM HUP INT USR1; do trap \"echo $signal >>$WHERE\" $signal; done; while :; do sleep 0.01; done";
