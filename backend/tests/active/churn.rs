//! Processes that come and go while they are asked about: random machines, events between any two calls of the host,
//! records half written, and calls that fail.
//!
//! Every process that ever lives has a serial number, and everything about it holds that number: its start, its directory,
//! its session, title and model. So whatever is read tells whose it is. It must hold, at every step of every run, that
//!
//! - what lists was alive and of that harness at some time during the request, and all of it lists when nothing fails;
//! - all that is read through one directory is about one process;
//! - `via` is `none` if and only if `session` is empty.
//!
//! `NINEAGENTS_CHURN_RUNS` says how many runs; a run that fails names its seed, and `NINEAGENTS_CHURN_SEED` repeats it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backend::host::fixture::{Edit, Fixture, Process, State};
use backend::host::wrap::{Faulty, Hooked, Weights};
use backend::{Agents, Limits};
use proto::Refusal;

use crate::client::Client;
use crate::world::memory;

#[test]
fn processes_come_and_go() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seeds = match number("NINEAGENTS_CHURN_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("NINEAGENTS_CHURN_RUNS").unwrap_or(1500),
    };
    let mut seen = Seen::default();
    for seed in seeds.clone() {
        let run = std::panic::AssertUnwindSafe(|| run(seed, &mut seen));
        if std::panic::catch_unwind(run).is_err() {
            panic!("seed {seed}");
        }
    }
    println!("{} runs: {seen:?}", seeds.count());
    if number("NINEAGENTS_CHURN_SEED").is_none() {
        let Seen { listed, values, found, refused, waits } = seen;
        assert!([listed, values, found, refused, waits].iter().all(|count| *count > 20), "all of it happens");
    }
}

/// What the runs have met.
#[derive(Debug, Default)]
struct Seen {
    listed: usize,
    values: usize,
    found: usize,
    refused: usize,
    waits: usize,
}

/// What is known of the machine.
#[derive(Default)]
struct Truth {
    next: u64,
    living: BTreeMap<u32, Life>,
}

#[derive(Copy, Clone, Debug)]
struct Life {
    serial: u64,
    harness: &'static str,
    /// It could not always be looked at: whether it lists is left open.
    shy: bool,
    corpse: bool,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

const PIDS: [u32; 4] = [50, 51, 52, 53];
const HARNESSES: [&str; 5] = ["claude", "codex", "omp", "hermes", "dsh"];

fn run(seed: u64, seen: &mut Seen) {
    let dice = Arc::new(Mutex::new(Dice(seed.wrapping_mul(0x1234_5678_9abc_def1))));
    let roll = |bound| dice.lock().unwrap().below(bound);
    let fixture = memory();
    let truth = Arc::new(Mutex::new(Truth { next: 1, ..Truth::default() }));
    let faulty = Arc::new({
        let dice = Arc::clone(&dice);
        let weights = Weights([4, 12, 6, 2, 4, 12, 0]);
        Faulty::new(Arc::new(fixture.clone()), move |_, call| {
            let dice = &mut *dice.lock().unwrap();
            weights.draw(call, &mut |bound| dice.below(u64::from(bound)) as u32)
        })
    });
    faulty.turn(false);
    let hooked = Arc::new(Hooked::new(Arc::clone(&faulty) as _));
    let mut client = Client::new(Agents::new(Arc::clone(&hooked) as _, Limits { pinned_descriptors: 8 }));
    for _ in 0..14 {
        if roll(3) == 0 {
            happen(&fixture, &mut truth.lock().unwrap(), &mut dice.lock().unwrap());
            continue;
        }
        let before = truth.lock().unwrap().living.clone();
        let (with_event, with_faults) = (roll(2) == 0, roll(3) == 0);
        if with_event {
            let (fixture, truth, dice) = (fixture.clone(), Arc::clone(&truth), Arc::clone(&dice));
            let number = hooked.calls() + roll(60);
            hooked
                .at(number, move || happen(&fixture, &mut truth.lock().unwrap(), &mut dice.lock().unwrap()));
        }
        faulty.turn(with_faults);
        let waits = client.waits;
        let pid = PIDS[roll(4) as usize];
        let any = HARNESSES[roll(5) as usize];
        // Mostly what there is.
        let harness = before.get(&pid).map(|life| life.harness).filter(|_| roll(4) > 0).unwrap_or(any);
        let harness = if harness == "bash" { any } else { harness };
        // An event may wait for a call that the last request did not come to.
        let quiet = hooked.waiting() == 0 && !with_faults;
        match roll(3) {
            0 => {
                let listed = list(&mut client, &format!("active/{harness}"));
                let after = &truth.lock().unwrap().living;
                check_listing(listed, harness, &before, after, quiet, seen);
            }
            1 => {
                let is_there = before.get(&pid).is_some_and(|life| life.harness == harness && !life.corpse);
                let resolves = check_agent(&mut client, harness, pid, quiet, seen);
                assert!(!quiet || is_there || !resolves, "{harness} {pid} resolves: {before:?}");
            }
            _ => check_directory(&mut client, harness, pid, seen),
        }
        seen.waits += (client.waits - waits) as usize;
        faulty.turn(false);
    }
}

fn list(client: &mut Client, path: &str) -> Result<Vec<String>, Refusal> {
    Ok(client.list(path)?.into_iter().map(|record| record.name).collect())
}

/// What listed was there, and all that was there listed.
fn check_listing(
    listed: Result<Vec<String>, Refusal>,
    harness: &str,
    before: &BTreeMap<u32, Life>,
    after: &BTreeMap<u32, Life>,
    quiet: bool,
    seen: &mut Seen,
) {
    let Ok(listed) = listed else {
        assert!(!quiet, "a listing is refused for nothing");
        seen.refused += 1;
        return;
    };
    let is_one = |living: &BTreeMap<u32, Life>, pid: u32| {
        living.get(&pid).is_some_and(|life| life.harness == harness && !life.corpse)
    };
    for pid in &listed {
        let pid = pid.parse().unwrap();
        assert!(is_one(before, pid) || is_one(after, pid), "{pid} lists: {before:?} {after:?}");
        seen.listed += 1;
    }
    if quiet {
        for (pid, life) in before {
            let lists = listed.contains(&pid.to_string());
            assert!(life.shy || lists == is_one(before, *pid), "{pid} {life:?} lists: {lists}");
        }
    }
}

/// All values of one agent, through its directory. Answers whether there is one.
fn check_agent(client: &mut Client, harness: &str, pid: u32, quiet: bool, seen: &mut Seen) -> bool {
    let Ok(dir) = client.node(&format!("active/{harness}/{pid}")) else {
        seen.refused += 1;
        return false;
    };
    let mut read = |name: &str| {
        let node = client.walk(&dir, name)?;
        let (_, open) = client.open(&node)?;
        client.read(&open)
    };
    let Ok(started) = read("started") else { return true };
    // A fault may have kept the time of boot from us.
    let Some(serial) = started.trim().parse::<u64>().ok().map(|started| started - boot_s()) else {
        return true;
    };
    let values: BTreeMap<&str, String> =
        ["cwd", "name", "zmx", "session", "via", "title", "model", "transcript", "status"]
            .into_iter()
            .filter_map(|name| Some((name, read(name).ok()?)))
            .collect();
    for (name, value) in values.iter().filter(|(name, value)| **name != "via" && !value.is_empty()) {
        // `s7`, and not `s77`.
        let whose = format!("s{serial}s");
        let of_id = format!("{serial:012x}");
        assert!(
            value.contains(&whose) || value.contains(&of_id),
            "{harness} {pid} {serial}: {name} is {value}"
        );
        seen.values += 1;
    }
    if let (true, Some(via), Some(session)) = (quiet, values.get("via"), values.get("session")) {
        assert_eq!(via == "none\n", session.is_empty(), "{harness} {pid}");
        seen.found += usize::from(!session.is_empty());
    }
    true
}

/// A listing of one agent tells one session or none.
fn check_directory(client: &mut Client, harness: &str, pid: u32, seen: &mut Seen) {
    let Ok(listed) = client.list(&format!("active/{harness}/{pid}")) else {
        seen.refused += 1;
        return;
    };
    let length = |name: &str| listed.iter().find(|record| record.name == name).map(|record| record.length);
    if let (Some(via), Some(session)) = (length("via"), length("session")) {
        // Taken in several reads, between which an event may stand; but never an answer of no length.
        assert!(via > 0 && (session == 0 || session > 2));
    }
    let names: Vec<&str> = listed.iter().map(|record| record.name.as_str()).collect();
    assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

fn boot_s() -> u64 {
    let now = Fixture::default().with(|world| world.now());
    (now.wall_ns as u64 - now.mono_ns) / 1_000_000_000
}

/// One event.
fn happen(fixture: &Fixture, truth: &mut Truth, dice: &mut Dice) {
    let pid = dice.one_of(&PIDS);
    let apply = |edit: Edit| _ = fixture.apply(&edit);
    match (dice.below(10), truth.living.get(&pid).copied()) {
        (0, Some(_)) => {
            apply(Edit::Exit { pid });
            truth.living.remove(&pid);
        }
        (1, Some(life)) if !life.corpse => {
            apply(Edit::Zombie { pid });
            truth.living.insert(pid, Life { corpse: true, ..life });
        }
        (2, Some(life)) if !life.corpse => {
            let state = dice.one_of(&[State::DiskSleep, State::Sleeping, State::Running]);
            apply(Edit::State { pid, state });
            truth.living.insert(pid, Life { shy: life.shy || state == State::DiskSleep, ..life });
        }
        (3, Some(life)) if life.harness == "claude" => {
            // Torn for now, or for good.
            let whole = registry(pid, life.serial);
            let bytes = if dice.below(2) == 0 { whole.as_str() } else { &whole[..whole.len() / 2] };
            write(fixture, &format!("/w/claude/sessions/{pid}.json"), bytes);
        }
        (4, Some(life)) => {
            let half = format!("{{\"type\":\"ai-title\",\"aiTitle\":\"s{}s", life.serial);
            let path = format!("/w/claude/projects/-home-s{0}s/{1}.jsonl", life.serial, id(life.serial));
            if life.harness == "claude" {
                apply(Edit::Append { path: path.into(), bytes: half.into() });
            }
        }
        (_, life) => {
            let serial = truth.next;
            truth.next += 1;
            let harness = dice.one_of(&["claude", "codex", "omp", "hermes", "dsh", "bash"]);
            if life.is_some() {
                apply(Edit::Exit { pid });
            }
            begin(fixture, dice, pid, serial, harness);
            truth.living.insert(pid, Life { serial, harness, shy: false, corpse: false });
        }
    }
}

fn write(fixture: &Fixture, path: &str, content: &str) {
    let dir = path.rsplit_once('/').unwrap().0.into();
    fixture.apply(&Edit::MkdirAll { path: dir }).unwrap();
    fixture.apply(&Edit::Write { path: path.into(), bytes: content.into() }).unwrap();
}

fn id(serial: u64) -> String {
    format!("019f624a-cc95-7c50-b9fa-{serial:012x}")
}

fn registry(pid: u32, serial: u64) -> String {
    let (start, id) = (serial * 100, id(serial));
    format!(
        "{{\"pid\":{pid},\"procStart\":\"{start}\",\"sessionId\":\"{id}\",\"cwd\":\"/home/s{serial}s\",\"status\":\"s{serial}s\"}}"
    )
}

/// Starts a process of a harness, with what it leaves on disk.
fn begin(fixture: &Fixture, dice: &mut Dice, pid: u32, serial: u64, harness: &'static str) {
    let mark = format!("s{serial}s");
    let id = id(serial);
    let args = if harness == "dsh" { "node /usr/bin/dsh --profile tui" } else { harness };
    let process = Process {
        start_ticks: Some(serial * 100),
        args: args.split(' ').map(Into::into).collect(),
        cwd: format!("/home/{mark}").into(),
        env: vec![format!("ZMX_SESSION={mark}").into()],
        ..Process::new(pid, harness)
    };
    fixture.apply(&Edit::Start(Box::new(process))).unwrap();
    let open = |path: &str| _ = fixture.apply(&Edit::OpenFd { pid, fd: 9, path: path.into(), says: None });
    match harness {
        "claude" => {
            let said = format!(
                "{{\"type\":\"ai-title\",\"aiTitle\":\"{mark}\"}}\n{{\"type\":\"assistant\",\"message\":{{\"model\":\"{mark}\"}}}}\n"
            );
            write(fixture, &format!("/w/claude/projects/-home-{mark}/{id}.jsonl"), &said);
            if dice.below(3) > 0 {
                write(fixture, &format!("/w/claude/sessions/{pid}.json"), &registry(pid, serial));
            }
        }
        "codex" => {
            let path = format!("/w/codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-{id}.jsonl");
            let said = format!(
                "{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\"}}}}\n{{\"type\":\"turn_context\",\"payload\":{{\"model\":\"{mark}\"}}}}\n\
                 {{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"text\":\"{mark}\"}}]}}}}\n"
            );
            write(fixture, &path, &said);
            match dice.below(3) {
                0 => open(&path),
                1 => {
                    let lock = format!("/w/codex/thread-writer-locks/{id}.lock");
                    write(fixture, &lock, "");
                    let kind = backend::host::fixture::LockKind::Flock;
                    fixture.apply(&Edit::HoldLock { pid, path: lock.into(), kind, exclusive: true }).unwrap();
                }
                _ => {}
            }
        }
        "omp" => {
            let path = format!("/w/omp/sessions/-{mark}/2026-11-02T10-00-00-000Z_{serial:012x}.jsonl");
            let said = format!(
                "{{\"type\":\"session\",\"cwd\":\"/home/{mark}\",\"title\":\"{mark}\"}}\n\
                 {{\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"model\":\"{mark}\"}}}}\n"
            );
            write(fixture, &path, &said);
            if dice.below(2) == 0 {
                open(&path);
            }
        }
        "hermes" => {
            let began = boot_s() + serial;
            let entry =
                format!("{{\"session_id\":\"{serial:012x}\",\"pid\":{pid},\"process_start_time\":{began}}}");
            write(fixture, "/w/hermes/runtime/active_sessions.json", &format!("{{\"entries\":[{entry}]}}"));
        }
        "dsh" => {
            let said = format!(
                "{{\"type\":\"session\",\"cwd\":\"/home/{mark}\"}}\n\
                 {{\"type\":\"user/message\",\"data\":{{\"content\":\"{mark}\",\"source\":{{\"kind\":\"user\"}}}}}}\n\
                 {{\"type\":\"assistant/message\",\"data\":{{\"message\":{{\"source\":{{\"model\":\"{mark}\"}}}}}}}}\n"
            );
            write(fixture, &format!("/w/dsh/sessions/--home-{mark}--/session-{id}/session.jsonl"), &said);
        }
        _ => {}
    }
}
