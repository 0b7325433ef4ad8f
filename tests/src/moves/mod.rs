//! A simulation of moves: everything that can go wrong, at every state of a move, in any order.
//!
//! Owns: one run, drawn from [`Choices`], and what must hold in it. The server is the real one without its threads; machine and
//! time are in memory. Must not know: how a move is made; it looks at what happened to the processes, at what was started, and at what
//! clients were told.
//!
//! # Invariants
//! - A process is signalled only if a write asked for it that was not refused, by the start that was seen, SIGTERM once, SIGKILL once and
//!   five seconds later at the earliest; from afar or without leave, never.
//! - A program is started once, only after its agent has ended, with the words of its harness and the name that was written.
//! - A write has one answer, or none and an Rflush, and then nothing happened to its agent. After the first signal its answer comes
//!   before the Rflush, and says what became of the agent.
//! - A move past its first signal comes to its end within 24 s, whoever waits and even if the server is told to stop.
//! - Others are answered meanwhile. Of two moves of one agent or to one name at once, one at most is made.
//! - At the end nothing is left: no session, no fid, no claim.

mod agents;
mod scene;
mod seat;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use backend::host::Host;
use backend::host::fixture::{Edit, Fixture, Signal, Special};
use backend::host::wrap::{Fault, FaultKind, Faulty, Hooked};
use backend::{Agents, Limits as Machine, Moving, Tree};
use engine::Budget;
use engine::port::{Backend, Now};
use proto::{OREAD, OTRUNC, OWRITE, Refusal};

use crate::choices::Choices;
use agents::ENVIRONMENT;
use scene::{Happening, NAMES, Scene};
use seat::{Seat, Written};

/// How often something was seen, by what it is.
pub type Seen = BTreeMap<String, u64>;

/// Carries out a run, and counts what was seen in it.
///
/// # Panics
/// If an invariant is broken.
pub fn run(mut dice: Box<dyn Choices>) -> Seen {
    let scene = Scene::draw(&mut *dice);
    let mut run = Run::new(scene, dice);
    run.go();
    run.end();
    run.seen
}

struct Run {
    scene: Scene,
    dice: Arc<Mutex<Box<dyn Choices>>>,
    machine: Fixture,
    faulty: Arc<Faulty>,
    hooked: Arc<Hooked>,
    tree: Arc<dyn Backend<Tree>>,
    budget: Budget,
    /// Two that write, and one that reads something else.
    seats: Vec<Seat>,
    is_allowed: bool,
    /// What the clients may still do, and once in how many events they do something.
    actions: u32,
    pace: u32,
    stopped_ns: Option<u64>,
    /// Programs started, so far as they were looked at.
    spawned: usize,
    read_waits: u32,
    seen: Seen,
}

/// How far the move of an agent is, as anybody can see it.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum State {
    Check,
    Term,
    Kill,
    Spawn,
    Await,
}

impl Run {
    fn new(scene: Scene, dice: Box<dyn Choices>) -> Self {
        let machine = scene.machine();
        let dice = Arc::new(Mutex::new(dice));
        let (drawn, share) = (Arc::clone(&dice), u32::from(scene.faults));
        let faulty = Arc::new(Faulty::new(Arc::new(machine.clone()), move |_, _| {
            let mut dice = drawn.lock().unwrap_or_else(PoisonError::into_inner);
            let fails = share > 0 && dice.below(1024) < share;
            let kind = FaultKind::ALL[if fails { dice.below(6) as usize } else { 0 }];
            fails.then_some(Fault { kind, after: 0 })
        }));
        faulty.turn(false);
        let hooked = Arc::new(Hooked::new(Arc::clone(&faulty) as Arc<dyn Host>));
        let host = Arc::clone(&hooked) as Arc<dyn Host>;
        let environment = ENVIRONMENT.map(|variable| variable.as_bytes().to_vec());
        let limits = Machine { pinned_descriptors: 8 };
        let is_allowed = dice.lock().unwrap_or_else(PoisonError::into_inner).below(16) > 0;
        let tree: Arc<dyn Backend<Tree>> = if is_allowed {
            Arc::new(Agents::moving(host, limits, Moving::find(&machine, &environment, None, [])))
        } else {
            Arc::new(Agents::new(host, limits))
        };
        Self {
            scene,
            dice,
            machine,
            faulty,
            hooked,
            tree,
            budget: Budget::default(),
            seats: Vec::new(),
            is_allowed,
            actions: 0,
            pace: 1,
            stopped_ns: None,
            spawned: 0,
            read_waits: 0,
            seen: Seen::new(),
        }
    }

    fn below(&self, count: u32) -> u32 {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner).below(count)
    }

    fn now(&self) -> Now {
        self.machine.with(|world| world.now())
    }

    fn go(&mut self) {
        let machine = self.machine.clone();
        let now = move || machine.with(|world| world.now());
        let mut writers = Vec::new();
        for number in 0..2 {
            let is_local = self.below(16) > 0;
            let mut seat = Seat::new(&self.tree, &self.budget, is_local);
            seat.greet(&now);
            let agent = self.below(self.scene.agents.len() as u32) as usize * usize::from(number == 1);
            let of = &self.scene.agents[agent];
            let mode = OWRITE | if self.below(2) == 0 { OTRUNC } else { 0 };
            let pid = of.pid.to_string();
            let is_open = seat.open(&["active", of.harness, &pid, "zmx"], mode, &now);
            assert_eq!(is_open, is_local && self.is_allowed, "who may open it");
            if is_open {
                writers.push((number, agent));
            }
            self.seats.push(seat);
        }
        let mut reader = Seat::new(&self.tree, &self.budget, true);
        reader.greet(&now);
        assert!(reader.open(&["active", "dsh", "50", "pid"], OREAD, &now));
        self.seats.push(reader);
        self.arm();
        self.actions = self.below(5);
        self.pace = [8, 40, 160][self.below(3) as usize];
        for (number, agent) in writers {
            if number == 0 || self.below(2) == 0 {
                let name = if number == 0 || self.below(2) == 0 { NAMES[0] } else { NAMES[1] };
                let now = self.now();
                self.seats[number].write(agent, name, now);
                // Sometimes one is far ahead of the other.
                for _ in 0..self.below(30) {
                    self.event();
                }
            }
        }
        let mut events = 0;
        while self.event() {
            events += 1;
            assert!(events < 20_000, "it never ends: {:?}", self.scene);
        }
    }

    /// Faults may happen, and other things, from now on.
    fn arm(&self) {
        self.faulty.turn(true);
        let sockets = self.scene.sockets;
        if let Some((after, happening)) = self.scene.race {
            let machine = self.machine.clone();
            self.hooked.at(self.hooked.calls() + after, move || happening.happen(&machine, sockets));
        }
    }

    /// One thing happens; `false` if nothing is left to.
    fn event(&mut self) -> bool {
        let now = self.now();
        let epoch = self.tree.epoch();
        let ready: Vec<usize> = self.seats.iter().map(|seat| seat.link.ready(now, epoch)).collect();
        let tasks: usize = ready.iter().sum();
        let acts = self.actions > 0 && self.below(self.pace) == 0;
        if acts {
            self.actions -= 1;
            self.act(now);
        } else if tasks > 0 {
            let mut number = self.below(tasks as u32) as usize;
            for (at, count) in ready.into_iter().enumerate() {
                if number < count {
                    self.seats[at].link.work_ready(number, now, epoch);
                    break;
                }
                number -= count;
            }
        } else if !self.advance(now) {
            if self.actions == 0 {
                return false;
            }
            self.actions -= 1;
            self.act(now);
        }
        self.look();
        true
    }

    /// Lets time pass until something is due; `false` if nothing is.
    fn advance(&mut self, now: Now) -> bool {
        let waits = self.seats.iter().filter_map(|seat| seat.link.next_ns()).min();
        let Some(mut until_ns) = waits else { return false };
        until_ns = until_ns.min(self.machine.with(|world| world.next_due_ns()).unwrap_or(u64::MAX));
        if let Some((at_ns, happening)) = self.scene.meanwhile {
            let begun = self.seats.iter().filter_map(|seat| Some(seat.write.as_ref()?.at_ns)).min();
            let due_ns = begun.map_or(u64::MAX, |begun| begun.saturating_add(at_ns));
            if due_ns <= until_ns {
                until_ns = due_ns;
                self.scene.meanwhile = None;
                self.pass(until_ns.saturating_sub(now.mono_ns));
                happening.happen(&self.machine, self.scene.sockets);
                self.count(format!("meanwhile {happening:?}"));
                return true;
            }
        }
        self.pass(until_ns.saturating_sub(now.mono_ns));
        true
    }

    fn pass(&self, ns: u64) {
        self.machine.apply(&Edit::Advance { ns }).expect("time passes");
    }

    /// A client does something, or the server is told to stop.
    fn act(&mut self, now: Now) {
        let number = self.below(2) as usize;
        let state = self.seats[number].write.as_ref().map(|write| self.state(write.agent));
        let state = state.map_or_else(|| "no move".to_owned(), |state| format!("{state:?}"));
        let seat = &mut self.seats[number];
        let what = match self.dice.lock().unwrap_or_else(PoisonError::into_inner).below(6) {
            _ if seat.is_gone => return,
            0 | 1 if seat.waits_for_write() && !seat.waits(2) => {
                seat.flush(2, now);
                "flush"
            }
            2 if seat.waits_for_write() && !seat.waits(3) => {
                seat.flush(3, now);
                "flush"
            }
            3 => {
                seat.hang_up(now);
                "hang-up"
            }
            4 if seat.waits_for_write() => {
                seat.restart(now);
                "version"
            }
            5 if self.stopped_ns.is_none() => {
                self.stopped_ns = Some(now.mono_ns);
                "stop"
            }
            _ => {
                // Somebody else asks for something else, and is answered before time passes.
                let reader = &mut self.seats[2];
                if !reader.waits(5) && !reader.is_gone {
                    reader.read(5, now);
                    self.read_waits = 0;
                }
                "read"
            }
        };
        self.count(format!("{what} at {state}"));
    }

    /// Looks at what has happened.
    fn look(&mut self) {
        let now = self.now();
        for seat in &mut self.seats {
            seat.take_in(now);
        }
        self.look_at_spawns(now);
        if self.seats[2].waits(5) {
            self.read_waits += 1;
            assert!(self.read_waits < 2_000, "somebody who reads something else is not answered");
        }
        // A server that stops waits for this, and for no more than 25 s.
        if let Some(stopped_ns) = self.stopped_ns
            && self.tree.must_finish()
        {
            assert!(now.mono_ns - stopped_ns <= 25_000_000_000, "a stop would not wait for it");
        }
    }

    fn look_at_spawns(&mut self, now: Now) {
        let spawns = self.machine.with(|world| world.spawns().to_vec());
        for spawn in &spawns[self.spawned..] {
            let said: Vec<String> =
                spawn.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            let ["/usr/bin/zmx", "run", name, "-d", resumed @ ..] =
                &said.iter().map(String::as_str).collect::<Vec<_>>()[..]
            else {
                panic!("{said:?}")
            };
            let at = self
                .scene
                .agents
                .iter()
                .position(|agent| agent.resumed == resumed)
                .expect("an agent's words");
            let agent = &self.scene.agents[at];
            let asked = self.writes().any(|write| write.agent == at && write.name == *name);
            assert!(asked, "nobody asked for {said:?}");
            assert_eq!(self.signals(at).first().map(|sent| sent.0), Some(Signal::Term), "{said:?}");
            assert!(!self.lives(at), "{} is started anew while it lives", agent.harness);
            let live = |socket: String| self.machine.is_live(socket.as_bytes());
            let is_taken =
                live(format!("/run/user/1000/zmx/{name}")) || live(format!("/run/user/1000/9p/zmx/{name}"));
            // Unless it began in between: two calls of the machine are not one.
            let is_race = matches!(self.scene.race, Some((_, Happening::NameAppears)));
            assert!(!is_taken || is_race, "{said:?} is typed into the session of somebody else");
            let env: Vec<_> = ["PATH=/usr/bin", "XDG_RUNTIME_DIR=/run/user/1000", "HOME=/home/me"]
                .map(|variable| variable.into())
                .into();
            assert_eq!(spawn.env, env);
            if let Some(after_ns) = self.scene.answers {
                let path = format!("{}/{name}", self.scene.sockets).into();
                let edit = Box::new(Edit::Special { path, kind: Special::Server });
                self.machine.apply(&Edit::Later { after_ns, edit }).expect("it may wait");
            }
            assert!(now.mono_ns >= spawn.mono_ns);
        }
        self.spawned = spawns.len();
    }

    fn writes(&self) -> impl Iterator<Item = &Written> {
        self.seats.iter().filter_map(|seat| seat.write.as_ref())
    }

    /// The signals that an agent got, and when.
    fn signals(&self, agent: usize) -> Vec<(Signal, u64)> {
        let agent = &self.scene.agents[agent];
        self.machine.with(|world| {
            let mine = world
                .signals()
                .iter()
                .filter(|sent| sent.pid == agent.pid && sent.start_ticks == agent.start);
            mine.map(|sent| (sent.signal, sent.mono_ns)).collect()
        })
    }

    /// When an agent was started anew.
    fn spawns(&self, agent: usize) -> Vec<u64> {
        let resumed = self.scene.agents[agent].resumed;
        self.machine.with(|world| {
            let mine = world.spawns().iter().filter(|spawn| {
                spawn.args.get(4..).is_some_and(|args| {
                    args.len() == resumed.len()
                        && args.iter().zip(resumed).all(|(arg, word)| **arg == *word.as_bytes())
                })
            });
            mine.map(|spawn| spawn.mono_ns).collect()
        })
    }

    fn lives(&self, agent: usize) -> bool {
        let agent = &self.scene.agents[agent];
        self.machine.hold(agent.pid, agent.start).is_ok()
    }

    fn state(&self, agent: usize) -> State {
        let signals = self.signals(agent);
        match (signals.len(), self.lives(agent), self.spawns(agent).is_empty()) {
            (0, ..) => State::Check,
            (_, _, false) => State::Await,
            (_, false, true) => State::Spawn,
            (1, true, true) => State::Term,
            _ => State::Kill,
        }
    }

    fn count(&mut self, what: String) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// Everything has come to its end.
    fn end(&mut self) {
        assert!(!self.tree.must_finish(), "a claim is left");
        for seat in &self.seats {
            assert!(seat.is_gone || !seat.has_unanswered(), "a request has no answer");
        }
        // None but the agents were ever signalled.
        let known = self.scene.agents.iter().enumerate().map(|(at, _)| self.signals(at).len()).sum::<usize>();
        assert_eq!(known, self.machine.with(|world| world.signals().len()), "somebody else was signalled");
        for at in 0..self.scene.agents.len() {
            self.judge(at);
        }
        let writes: Vec<Written> = self.writes().cloned().collect();
        for write in &writes {
            let told = match &write.answer {
                Some(Ok(_)) => "moved".to_owned(),
                Some(Err(words)) => words.clone(),
                None if write.is_flushed => "flushed".to_owned(),
                None => "nobody was told".to_owned(),
            };
            self.count(told);
        }
        self.faulty.turn(false);
        let now = self.now();
        for seat in &mut self.seats {
            if !seat.is_gone {
                seat.hang_up(now);
            }
            assert!(seat.link.session().is_drained(), "a session keeps something");
        }
        self.seats.clear();
        assert_eq!(self.budget.taken().0, 0, "fids are left");
        assert_eq!(self.machine.with(|world| world.open()), 0, "files are left open");
    }

    /// What was done to one agent, and whether it was told of.
    fn judge(&self, at: usize) {
        let (signals, spawns) = (self.signals(at), self.spawns(at));
        let writes: Vec<&Written> = self.writes().filter(|write| write.agent == at).collect();
        assert!(spawns.len() <= 1 && signals.len() <= 2, "{signals:?} {spawns:?}");
        let Some(&(first, term_ns)) = signals.first() else {
            assert!(spawns.is_empty());
            assert!(
                writes.iter().all(|write| !matches!(write.answer, Some(Ok(_)))),
                "moved without a signal"
            );
            return;
        };
        assert!(first == Signal::Term && self.is_allowed, "{signals:?}");
        if let Some((second, kill_ns)) = signals.get(1) {
            assert_eq!((*second, kill_ns - term_ns), (Signal::Kill, 5_000_000_000));
        }
        // Whoever asked for it was told before their Rflush, if they were still there to be told.
        let told: Vec<&Written> = writes.iter().copied().filter(|write| is_of_the_end(write)).collect();
        assert!(told.len() <= 1, "one move was told of twice: {told:?}");
        let owners: Vec<&Written> = writes.iter().copied().filter(|write| write.answer.is_none()).collect();
        assert!(told.len() == 1 || !owners.is_empty(), "nobody asked for what was done: {writes:?}");
        if told.is_empty() {
            // They went, or began anew. Those that flushed and stayed were owed the answer first.
            assert!(
                owners.iter().any(|write| !write.is_flushed),
                "an Rflush alone, and the agent was signalled"
            );
        }
        for write in told {
            let took_ns = write.answered_ns - term_ns;
            match &write.answer {
                Some(Ok(count)) => {
                    assert!(*count as usize == write.name.len() && spawns.len() == 1);
                    assert!(write.answered_ns - spawns[0] <= 12_000_000_000);
                }
                Some(Err(words)) if *words == Refusal::MOVE_SURVIVED.plain => {
                    assert!(spawns.is_empty() && took_ns >= 12_000_000_000);
                }
                Some(Err(words)) if *words == Refusal::MOVE_LOST.plain => {
                    assert!(write.answered_ns - spawns[0] >= 12_000_000_000);
                }
                _ => assert!(spawns.is_empty(), "{write:?}"),
            }
            assert!(took_ns <= 24_500_000_000, "{took_ns}");
        }
    }
}

/// Whether an answer is one that a move past its first signal gives.
fn is_of_the_end(write: &Written) -> bool {
    let ends =
        [Refusal::MOVE_SURVIVED, Refusal::MOVE_LOST, Refusal::MOVE_NAME_LOST, Refusal::MOVE_NOT_STARTED];
    match &write.answer {
        Some(Ok(_)) => true,
        Some(Err(words)) => ends.iter().any(|refusal| refusal.plain == words),
        None => false,
    }
}
