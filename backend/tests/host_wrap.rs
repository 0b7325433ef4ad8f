//! The decorators over a machine in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backend::host::fixture::{Edit, Fixture, World};
use backend::host::wrap::{Call, Fault, FaultKind, Faulty, Hooked, Traced, Verb, Weights};
use backend::host::{Errno, Host};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::{Cached, Full};

#[test]
fn a_trace_is_the_same_for_the_same_calls_and_answers_alone() {
    let (machine, traced) = machine().traced();
    ask_all(&traced);
    let hash = traced.hash();
    assert_eq!(traced.calls(), 13);

    let (_, again) = crate::machine().traced();
    ask_all(&again);
    assert_eq!(again.hash(), hash);
    again.stat(Root::Claude, &rel("d"), Full).unwrap();
    assert_ne!(again.hash(), hash, "one call more");

    for (name, edit) in [
        ("a byte", Edit::Overwrite { path: at("d/f"), offset: 2, bytes: "L".into(), keep_mtime: true }),
        ("a time", Edit::Touch { path: at("d/f"), mtime_ns: 7 }),
        ("a name", Edit::Rename { from: at("d/g"), to: at("d/h") }),
        ("an error", Edit::Unlink { path: at("d/f") }),
    ] {
        let (other, traced) = crate::machine().traced();
        other.apply(&edit).unwrap();
        ask_all(&traced);
        assert_ne!(traced.hash(), hash, "{name}");
    }
    drop(machine);
}

#[test]
fn a_trace_keeps_a_line_for_each_call_where_asked_to() {
    let Machine(fixture) = machine();
    let traced = Traced::with_lines(Arc::new(fixture));
    traced.stat(Root::Claude, &rel("d/f"), Cached).unwrap();
    let (file, _) = traced.open(Root::Claude, &rel("d/f"), Full).unwrap();
    file.read_at(&mut [0; 9], 3, Full).unwrap();
    traced.stat(Root::Codex, &Rel::base(), Full).unwrap_err();
    assert_eq!(
        traced.take_lines(),
        [
            "Stat claude/d/f Cached: done",
            "Open claude/d/f Full: done",
            "Read { offset: 3, bytes: 9 } claude/d/f Full: done",
            "Stat codex/ Full: No such file or directory (os error 2)",
        ]
    );
    assert!(traced.take_lines().is_empty());
}

#[test]
fn every_kind_of_fault_reaches_every_call_that_it_fits() {
    let mut met = BTreeMap::new();
    for kind in FaultKind::ALL {
        for number in 0..32 {
            let plan = BTreeMap::from([(number, Fault { kind, after: 0 })]);
            let faulty = Faulty::planned(Arc::new(machine().0), plan.clone());
            let errors = ask_all(&faulty);
            if faulty.faults().is_empty() {
                assert!(errors.is_empty(), "{kind:?} {number}: {errors:?}");
            } else {
                assert_eq!(faulty.faults(), plan);
                assert_eq!(errors, [kind.errno()]);
                *met.entry(kind).or_insert(0) += 1;
            }
        }
    }
    let of = |kind| met.get(&kind).copied().unwrap_or_default();
    assert_eq!((of(FaultKind::Io), of(FaultKind::NoMemory), of(FaultKind::Interrupted)), (9, 9, 9));
    assert_eq!((of(FaultKind::ManyFiles), of(FaultKind::ManyFilesOfAll), of(FaultKind::Refused)), (7, 7, 7));
    assert_eq!(of(FaultKind::Cold), 1);
}

#[test]
fn a_listing_and_a_walk_fail_halfway() {
    for after in 0..3 {
        let fault = Fault { kind: FaultKind::Io, after };
        let faulty = Faulty::new(Arc::new(machine().0), move |_, call| {
            matches!(call.verb, Verb::Names | Verb::Walk { .. }).then_some(fault)
        });
        let (dir, _) = faulty.open_dir(Root::Claude, &rel("d")).unwrap();
        let mut seen = 0;
        let answer = dir.names(&mut |_| {
            seen += 1;
            true
        });
        assert_eq!((answer, seen), (Err(Errno::IO), after.min(2)));
        let mut seen = 0;
        let answer = faulty.walk(Root::Claude, &rel("d/f"), 0, Full, &mut |_| seen += 1);
        assert_eq!((answer, seen), (Err(Errno::IO), after.min(2)));
        assert_eq!(faulty.faults().len(), 2);
        faulty.turn(false);
        assert_eq!(dir.names(&mut |_| true), Ok(()));
        assert_eq!(faulty.faults().len(), 2);
    }
}

#[test]
fn whoever_has_seen_enough_of_a_listing_meets_no_later_fault() {
    let fault = Fault { kind: FaultKind::Io, after: 2 };
    let faulty =
        Faulty::new(Arc::new(machine().0), move |_, call| (call.verb == Verb::Names).then_some(fault));
    let (dir, _) = faulty.open_dir(Root::Claude, &rel("d")).unwrap();
    assert_eq!(dir.names(&mut |_| false), Ok(()));
}

#[test]
fn weights_draw_each_kind_as_often_as_they_say() {
    let weights = Weights([1, 2, 3, 4, 5, 6, 7]);
    let call = |verb, effort| Call { verb, root: Some(Root::Claude), path: "f", effort };
    for (call, fits) in [
        (call(Verb::Open, Cached), [1, 2, 3, 4, 5, 6, 7]),
        (call(Verb::Open, Full), [1, 2, 3, 4, 5, 6, 0]),
        (call(Verb::Names, Full), [1, 2, 0, 0, 5, 0, 0]),
        (call(Verb::Read { offset: 0, bytes: 1 }, Cached), [1, 2, 0, 0, 5, 0, 7]),
        (call(Verb::User { uid: 0 }, Full), [0; 7]),
    ] {
        let mut drawn = [0; 7];
        for number in 0..Weights::OF {
            let mut first = Some(number);
            let fault = weights.draw(&call, &mut |below| first.take().unwrap_or(below - 1));
            if let Some(fault) = fault {
                drawn[FaultKind::ALL.iter().position(|&kind| kind == fault.kind).unwrap()] += 1;
                assert_eq!(fault.after, if call.verb == Verb::Names { 7 } else { 0 });
            }
        }
        assert_eq!(drawn, fits, "{call}");
    }
}

#[test]
fn a_hook_edits_the_world_between_two_calls() {
    let Machine(fixture) = machine();
    let hooked = Hooked::new(Arc::new(fixture.clone()));
    hooked.at(1, {
        let fixture = fixture.clone();
        move || fixture.apply(&Edit::Unlink { path: at("d/f") }).unwrap()
    });
    let (file, _) = hooked.open(Root::Claude, &rel("d/f"), Full).unwrap();
    assert_eq!((hooked.waiting(), file.meta().map(|meta| meta.nlink)), (1, Ok(0)));
    assert_eq!(hooked.waiting(), 0);
    assert_eq!(hooked.stat(Root::Claude, &rel("d/f"), Full), Err(Errno::NOENT));
    assert_eq!(hooked.calls(), 3);
}

#[test]
fn a_hook_may_ask_the_same_host_again() {
    let hooked = Arc::new(Hooked::new(Arc::new(machine().0)));
    let asked = Arc::new(Mutex::new(Vec::new()));
    hooked.on(|_, call| call.verb == Verb::Names, {
        let (hooked, asked) = (Arc::clone(&hooked), Arc::clone(&asked));
        move || {
            let (dir, _) = hooked.open_dir(Root::Claude, &rel("d")).unwrap();
            dir.names(&mut |name| {
                asked.lock().unwrap().push(name.to_vec());
                true
            })
            .unwrap();
        }
    });
    let (dir, _) = hooked.open_dir(Root::Claude, &rel("d")).unwrap();
    let mut seen = Vec::new();
    dir.names(&mut |name| {
        seen.push(name.to_vec());
        true
    })
    .unwrap();
    assert_eq!(*asked.lock().unwrap(), seen);
    assert_eq!(hooked.calls(), 4);
}

#[test]
fn decorators_stack() {
    let Machine(fixture) = machine();
    let traced = Arc::new(Traced::new(Arc::new(fixture.clone())));
    let faulty = Faulty::new(traced.clone(), |number, _| {
        (number == 0).then_some(Fault { kind: FaultKind::Io, after: 0 })
    });
    let hooked = Hooked::new(Arc::new(faulty));
    assert_eq!(hooked.stat(Root::Claude, &rel("d"), Full), Err(Errno::IO));
    assert_eq!(traced.calls(), 0, "a fault stands in the place of the call");
    assert!(hooked.stat(Root::Claude, &rel("d"), Full).is_ok());
    assert_eq!((hooked.calls(), traced.calls()), (2, 1));
    assert_eq!((hooked.me(), hooked.now()), (fixture.me(), fixture.now()));
}

struct Machine(Fixture);

impl Machine {
    fn traced(self) -> (Fixture, Traced) {
        let traced = Traced::new(Arc::new(self.0.clone()));
        (self.0, traced)
    }
}

fn machine() -> Machine {
    let mut world = World::new();
    world.apply(&Edit::MkdirAll { path: at("d") }).unwrap();
    world.apply(&Edit::Write { path: at("d/f"), bytes: "hello".into() }).unwrap();
    world.apply(&Edit::Mkdir { path: at("d/g") }).unwrap();
    Machine(Fixture::new(world))
}

/// Makes each call once, and gives the errors. What depends on a call that failed is left out.
fn ask_all(host: &dyn Host) -> Vec<Errno> {
    let mut errors = Vec::new();
    let mut note = |answer: Result<(), Errno>| errors.extend(answer.err());
    note(host.stat(Root::Claude, &rel("d/f"), Cached).map(drop));
    note(host.walk(Root::Claude, &rel("d/g"), 0, Full, &mut |_| ()));
    let cwd = rel("4000/cwd");
    note(host.read_link(&cwd).map(drop));
    note(host.stat_link(&cwd).map(drop));
    host.user(1000);
    host.group(1000);
    host.is_base(Root::Claude, b"/home/me/.claude");
    host.machine_id();
    match host.open_dir(Root::Claude, &rel("d")) {
        Ok((dir, _)) => {
            note(dir.names(&mut |_| true));
            note(dir.stat(Name::of_harness("g").unwrap()).map(drop));
        }
        Err(error) => note(Err(error)),
    }
    match host.open(Root::Claude, &rel("d/f"), Full) {
        Ok((file, _)) => note(file.read_at(&mut [0; 9], 0, Full).map(drop)),
        Err(error) => note(Err(error)),
    }
    errors
}

fn at(path: &str) -> backend::host::fixture::Bytes {
    format!("/home/me/.claude/{path}").into()
}

fn rel(path: &str) -> Rel {
    Rel::from_harness(path).unwrap()
}
