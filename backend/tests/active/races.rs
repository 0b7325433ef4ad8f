//! What happens to a process between any two calls of the machine: a pid that is given to another process while a request
//! is being answered.

use std::sync::Arc;

use backend::host::Host;
use backend::host::fixture::{Edit, Fixture, Process, Refuses};
use backend::host::wrap::{Fault, FaultKind, Faulty, Hooked};
use backend::{Agents, Limits};
use proto::Refusal;

use crate::client::Client;
use crate::world::memory;

const OLD: &str = "11111111-1111-4111-8111-111111111111";
const NEW: &str = "22222222-2222-4222-8222-222222222222";

/// Something asked of agent 50.
type Request = fn(&mut Client) -> Result<String, Refusal>;

const REQUESTS: &[Request] = &[
    |client| client.cat("active/claude/50/cwd"),
    |client| client.cat("active/claude/50/zmx"),
    |client| client.cat("active/claude/50/name"),
    |client| client.cat("active/claude/50/session"),
    |client| client.cat("active/claude/50/status"),
    |client| client.cat("active/claude/50/title"),
    |client| client.cat("active/claude/50/model"),
    |client| client.cat("active/claude/50/transcript"),
    |client| client.cat("active/claude/50/started"),
    |client| Ok(client.stat("active/claude/50/cwd")?.length.to_string()),
    |client| Ok(client.stat("active/claude/50")?.qid.path.to_string()),
    |client| Ok(format!("{:?}", client.list("active/claude/50")?)),
    |client| Ok(format!("{:?}", client.list("active/claude")?)),
];

fn process(marker: &str, start: u64) -> Process {
    Process {
        start_ticks: Some(start),
        cwd: format!("/home/{marker}").into(),
        env: vec![format!("ZMX_SESSION={marker}").into()],
        ..Process::new(50, "claude")
    }
}

/// A machine with one agent, and all that another of its pid will have.
fn machine() -> Fixture {
    let fixture = memory();
    for (marker, session) in [("old", OLD), ("newer", NEW)] {
        let bytes = format!(
            "{{\"type\":\"ai-title\",\"aiTitle\":\"{marker}\"}}\n\
             {{\"type\":\"assistant\",\"message\":{{\"model\":\"{marker}\"}}}}\n"
        );
        let path = format!("/w/claude/projects/-home-{marker}/{session}.jsonl");
        let dir = path.rsplit_once('/').unwrap().0.into();
        fixture.apply(&Edit::MkdirAll { path: dir }).unwrap();
        fixture.apply(&Edit::Write { path: path.into(), bytes: bytes.into() }).unwrap();
    }
    fixture.apply(&Edit::MkdirAll { path: "/w/claude/sessions".into() }).unwrap();
    fixture.apply(&register("old", OLD, 5000)).unwrap();
    fixture.apply(&Edit::Start(Box::new(process("old", 5000)))).unwrap();
    fixture
}

fn register(marker: &str, session: &str, start: u64) -> Edit {
    let record = format!(
        "{{\"procStart\":\"{start}\",\"sessionId\":\"{session}\",\"cwd\":\"/home/{marker}\",\"status\":\"{marker}\"}}"
    );
    Edit::Write { path: "/w/claude/sessions/50.json".into(), bytes: record.into() }
}

/// What happens to the machine in the middle of a request.
#[derive(Copy, Clone, Debug)]
enum Turn {
    /// Another agent gets the pid.
    Reuse,
    /// The process ends, and another of its pid comes only later.
    End,
    /// It ends and is not waited for.
    Corpse,
}

fn happen(fixture: &Fixture, turn: Turn) {
    match turn {
        Turn::Reuse => {
            fixture.apply(&Edit::ReusePid(Box::new(process("newer", 6000)))).unwrap();
            fixture.apply(&register("newer", NEW, 6000)).unwrap();
        }
        Turn::End => fixture.apply(&Edit::Exit { pid: 50 }).unwrap(),
        Turn::Corpse => fixture.apply(&Edit::Zombie { pid: 50 }).unwrap(),
    }
}

fn client(hooked: &Arc<Hooked>) -> Client {
    Client::new(Agents::new(Arc::clone(hooked) as _, Limits { pinned_descriptors: 8 }))
}

#[test]
fn an_answer_is_about_one_process() {
    let mut mixed = 0;
    for (index, request) in REQUESTS.iter().enumerate() {
        for turn in [Turn::Reuse, Turn::End, Turn::Corpse] {
            let plain = |fixture: Fixture| {
                let hooked = Arc::new(Hooked::new(Arc::new(fixture)));
                let answer = request(&mut client(&hooked));
                (answer, hooked.calls())
            };
            let (before, calls) = plain(machine());
            let changed = machine();
            happen(&changed, turn);
            let (after, _) = plain(changed);
            for number in 0..calls {
                let fixture = machine();
                let hooked = Arc::new(Hooked::new(Arc::new(fixture.clone())));
                hooked.at(number, move || happen(&fixture, turn));
                let answer = request(&mut client(&hooked));
                // Refused is an answer too: that agent is gone.
                let is_one = answer == before || answer == after || answer == Err(Refusal::NOT_FOUND);
                let is_listing = matches!((&answer, turn), (Ok(text), _) if index == 12 && text == "[]");
                assert!(is_one || is_listing, "request {index}, {turn:?} at call {number}: {answer:?}");
                mixed += 1;
            }
        }
    }
    assert!(mixed > 500, "{mixed} races");
}

#[test]
fn an_open_transcript_reads_on_and_all_else_ends_with_the_process() {
    for turn in [Turn::Reuse, Turn::End, Turn::Corpse] {
        let fixture = machine();
        let hooked = Arc::new(Hooked::new(Arc::new(fixture.clone())));
        let mut client = client(&hooked);
        let dir = client.node("active/claude/50").unwrap();
        let names = ["transcript", "title", "session", "pid", "status"];
        let nodes = names.map(|name| client.walk(&dir, name).unwrap());
        let opens = nodes.each_ref().map(|node| client.open(node).unwrap().1);
        happen(&fixture, turn);
        assert!(client.read(&opens[0]).unwrap().contains("old"));
        for open in &opens[1..] {
            assert!(client.read(open).is_err());
        }
        for node in &nodes {
            assert!(client.stat_node(node).is_err() && client.open(node).is_err());
        }
        for name in names {
            assert!(client.walk(&dir, name).is_err(), "{name}");
        }
    }
}

/// A call of the machine that fails during the first scan is made up for by the next request, whatever call it was. Of a
/// process that is not dumpable it is asked in a call of its own whose it is.
#[test]
fn what_failed_once_is_not_remembered() {
    for refuses in [Refuses::default(), Refuses { fd: true, ..Refuses::default() }] {
        let mut failed = 0;
        for number in 0..64 {
            let machine = machine();
            machine.apply(&Edit::Refuse { pid: 50, refuses }).unwrap();
            let faulty = Arc::new(Faulty::new(Arc::new(machine), move |call, _| {
                (call == number).then_some(Fault { kind: FaultKind::ManyFiles, after: 0 })
            }));
            let agents = Agents::new(Arc::clone(&faulty) as _, Limits { pinned_descriptors: 8 });
            let mut client = Client::new(agents);
            _ = client.list("active/claude");
            // There is no such call, or it opens nothing.
            if faulty.faults().is_empty() {
                continue;
            }
            failed += 1;
            let started = client.field("claude", 50, "started");
            assert_eq!(started, (boot_s() + 50).to_string(), "{refuses:?}: call {number} failed");
            assert_eq!(client.ls("active/claude"), ["50"], "{refuses:?}: call {number} failed");
        }
        assert!(failed > 8, "only {failed} calls can fail");
    }
}

/// Who it descends from is known, or nothing is told: an ancestor is not listed because of calls that failed.
#[test]
fn no_ancestor_is_listed_whatever_fails() {
    let (mut told, mut refused) = (0, 0);
    for (first, second) in (0..32).flat_map(|first| (first..32).map(move |second| (first, second))) {
        for kind in [FaultKind::ManyFiles, FaultKind::Refused] {
            let machine = machine();
            let me = machine.me().pid;
            _ = machine.apply(&Edit::Exit { pid: me });
            let daemon = Process { ppid: 50, uid: 1000, ..Process::new(me, "9agents") };
            machine.apply(&Edit::Start(Box::new(daemon))).unwrap();
            let faulty = Faulty::new(Arc::new(machine), move |call, _| {
                (call == first || call == second).then_some(Fault { kind, after: 0 })
            });
            let agents = Agents::new(Arc::new(faulty), Limits { pinned_descriptors: 8 });
            match Client::new(agents).list("active/claude") {
                Ok(listed) => {
                    assert!(listed.is_empty(), "{kind:?}: calls {first} and {second} failed");
                    told += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(told > 100 && refused > 100, "{told} told, {refused} refused");
}

fn boot_s() -> u64 {
    let now = Fixture::default().with(|world| world.now());
    (now.wall_ns as u64 - now.mono_ns) / 1_000_000_000
}
