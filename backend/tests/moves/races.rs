//! The move while the machine changes between any two calls of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use backend::host::Host;
use backend::host::fixture::{Edit, Fixture, Script, Signal};
use backend::host::wrap::{Fault, FaultKind, Faulty, Hooked};
use backend::name::{Rel, Root};
use engine::port::{Effort, Step};
use proto::Refusal;

use crate::UPSTREAM;
use crate::machine::{AGENTS, Machine, life};

/// Another process takes the number just before each call that a move makes. Whatever comes of the move, the other is never
/// signalled.
#[test]
fn whoever_takes_the_number_is_never_signalled() {
    let (mut calls, mut moved) = (0, 0);
    for (harness, pid, _) in AGENTS {
        for number in 0.. {
            let (machine, hooked) = hooked();
            let fixture = machine.fixture.clone();
            let mut job = machine.begin(harness, pid, "night").unwrap();
            // The very same words, so that only its start tells it from the agent.
            let [reuse, start] = other(&fixture, pid);
            hooked.at(hooked.calls() + number, move || {
                fixture.apply(&reuse).or_else(|_| fixture.apply(&start)).unwrap();
            });
            let (answer, _) = machine.finish(&mut job);
            let signals = machine.fixture.with(|world| world.signals().to_vec());
            let is_there = is_there(&machine.fixture, pid);
            if hooked.waiting() > 0 {
                // The agent had ended before so many calls were made.
                assert_eq!(answer, Ok(5));
                break;
            }
            calls += 1;
            if answer.is_ok() {
                moved += 1;
            } else {
                assert_eq!((answer, &signals[..]), (Err(Refusal::MOVE_GONE), &[][..]), "{harness} {number}");
                assert_eq!(machine.spawns(), []);
            }
            assert!(signals.len() <= 1 && is_there, "{harness} {number}: the other is gone");
        }
    }
    println!("{calls} races, {moved} of them after the agent had been signalled");
    assert!(calls > 100);
}

/// The agent ends just before each call, and its corpse stays.
#[test]
fn one_that_ends_by_itself_is_gone_or_brought_back() {
    for number in 0.. {
        let (machine, hooked) = hooked();
        let fixture = machine.fixture.clone();
        let mut job = machine.begin("claude", 10, "night").unwrap();
        hooked.at(hooked.calls() + number, move || fixture.apply(&Edit::Zombie { pid: 10 }).unwrap_or(()));
        let (answer, _) = machine.finish(&mut job);
        if hooked.waiting() > 0 {
            break;
        }
        match answer {
            Ok(5) => assert_eq!(machine.spawns().len(), 1),
            Err(refusal) => {
                assert!(refusal == Refusal::MOVE_GONE, "{number}: {refusal}");
                machine.is_untouched();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A call hangs before each signal, for longer than a driver waits: the client has been told by then that it failed, so nothing may
/// have come of it.
#[test]
fn what_was_looked_at_for_too_long_is_not_acted_on() {
    let mut calls = 0;
    for number in 0.. {
        let (machine, hooked) = hooked();
        let fixture = machine.fixture.clone();
        let mut job = machine.begin("claude", 10, "night").unwrap();
        hooked.at(hooked.calls() + number, move || {
            fixture.apply(&Edit::Advance { ns: 6_000_000_000 }).unwrap()
        });
        let step = machine.step(&mut job);
        if hooked.waiting() > 0 {
            break;
        }
        if machine.signals().is_empty() {
            calls += 1;
            assert!(matches!(step, Step::Done(Err(Refusal::AGAIN))), "{number}");
            machine.is_untouched();
        } else {
            // It was the signal itself, which waits for nobody.
            assert!(!job.abandon());
        }
    }
    assert!(calls > 20, "{calls}");
}

/// Each call fails, in each way it can. Before the first signal nothing has happened then; after it, the agent comes back or the
/// answer says what became of it.
#[test]
fn a_call_that_fails_leaves_an_agent_untouched_or_moved_or_told_of() {
    let mut runs = 0;
    for kind in FaultKind::ALL {
        for number in 0.. {
            let fault = Fault { kind, after: 0 };
            let (fails, seen) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(0)));
            let (at, last) = (Arc::clone(&fails), Arc::clone(&seen));
            let machine = Machine::behind(UPSTREAM, |fixture| {
                Arc::new(Faulty::new(Arc::new(fixture.clone()), move |number, _| {
                    last.store(number, SeqCst);
                    (number == at.load(SeqCst)).then_some(fault)
                }))
            });
            let mut job = machine.begin("claude", 10, "night").unwrap();
            let failing = seen.load(SeqCst) + 1 + number;
            fails.store(failing, SeqCst);
            let (answer, _) = machine.finish(&mut job);
            if seen.load(SeqCst) < failing {
                assert_eq!(answer, Ok(5));
                break;
            }
            runs += 1;
            let (signals, spawns) = (machine.signals(), machine.spawns().len());
            match answer {
                Ok(_) => assert_eq!((&signals[..], spawns), (&[(10, Signal::Term)][..], 1)),
                Err(refusal) if refusal == Refusal::MOVE_NOT_STARTED => {
                    assert_eq!((signals.len(), spawns), (1, 0));
                }
                Err(_) => machine.is_untouched(),
            }
        }
    }
    assert!(runs > 50, "{runs}");
}

/// The machine, with something to be done before one of its calls.
fn hooked() -> (Machine, Arc<Hooked>) {
    let mut hooked = None;
    let machine = Machine::behind(UPSTREAM, |fixture| {
        let host = Arc::new(Hooked::new(Arc::new(fixture.clone())));
        hooked = Some(Arc::clone(&host));
        host
    });
    (machine, hooked.unwrap())
}

/// A process like the agent, which began later, in the place of the agent or after it.
fn other(fixture: &Fixture, pid: u32) -> [Edit; 2] {
    let rest =
        format!("{pid} {} cwd=/home/me/work start={}", life(pid).0, fixture.now().mono_ns / 10_000_000);
    ["reuse", "start"].map(|verb| {
        let script = Script::parse(&format!("{verb} {rest}\n")).unwrap();
        script.edits().next().unwrap().clone()
    })
}

/// Whether there is a process of this number.
fn is_there(fixture: &Fixture, pid: u32) -> bool {
    let path = Rel::from_harness(&pid.to_string()).unwrap();
    fixture.stat(Root::Proc, &path, Effort::Full).is_ok()
}
