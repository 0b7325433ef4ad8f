//! The deterministic simulator: clients, sessions, the real tree and a machine in memory, on one thread.
//!
//! Owns: carrying out a [`Plan`], and the invariants that hold at every turn of it. Everything that could happen in any
//! order happens in an order that is drawn: which bytes come in and how they are cut, which cold ask is asked again, which
//! job takes a step, which answer is taken to its session, which replies the wire takes. Nothing else is drawn but faults,
//! and nothing comes from outside, so a plan always runs the same way.
//!
//! # Invariants
//! - What must never be seen is in no byte that is sent, and every reply keeps the laws of `client`.
//! - A session, and all of them together, stay within their limits.
//! - Left alone and without faults, everything in flight ends within a bounded number of events, and then every request has
//!   been answered or flushed, no session is busy, and only files that fids hold are open.
//! - An answer while nothing else happens is the one that the `oracle` tells, to the byte; two qids are equal if and only
//!   if they are of the same file, and a version moves with its file.
//! - When everyone has gone, every session is drained and nothing is held: no file, no fid, no byte.

mod chill;
mod client;
mod draft;
mod expect;
pub mod link;
mod oracle;
mod race;
mod seat;
pub mod shrink;
mod truth;
mod witness;

use std::sync::{Arc, Mutex, PoisonError};

use backend::host::Host;
use backend::host::fixture::{Edit, Fixture};
use backend::host::wrap::{Faulty, Traced, Weights};
use backend::{Agents, Limits as Machine, Tree};
use engine::Budget;
use engine::port::{Backend, Now};
use memchr::memmem::Finder;

use self::chill::Chill;
use self::draft::Draft;
use self::link::Link;
use self::oracle::{Oracle, Qids};
use self::race::{Race, faulty};
use self::seat::{Event, Seat};
use self::witness::{Record, Witness};
use crate::choices::{Choices, Seeded, Spelt};
use crate::plan::{CANARY, How, Mood, Plan, Prepared, Request, Route, SCENES, Setup, Step};
use crate::slow::{Gate, Slow, Slowed};

/// What runs need: the scenes with their machines made, to be copied.
pub struct Stage {
    prepared: Vec<(Arc<Prepared>, Record)>,
    tells: bool,
}

/// What came of a run that kept every invariant.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Of all that was sent, and of every call of the machine and its answer, in their order.
    pub hash: u64,
    /// Things that happened.
    pub events: u64,
    /// Calls of the machine.
    pub calls: u64,
    /// Calls that were failed.
    pub faults: u64,
    /// Answers that were compared with the oracle's.
    pub compared: u64,
}

impl Stage {
    /// Makes the machines.
    pub fn new() -> Self {
        let prepared = SCENES.iter().map(|scene| {
            let prepared = scene.prepare();
            let record = Record::new(&prepared);
            (Arc::new(prepared), record)
        });
        Self { prepared: prepared.collect(), tells: false }
    }

    /// The same, but each run tells what happens in it, on standard output.
    #[must_use]
    pub fn telling(self) -> Self {
        Self { tells: true, ..self }
    }

    /// Runs a plan; its schedule and faults are drawn from its own number.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn run(&self, plan: &Plan) -> Report {
        let choices = Box::new(Seeded::new(plan.schedule));
        self.run_with(Setup::of(plan.setup), plan.steps.iter().map(|step| Step::of(*step)), choices)
    }

    /// Runs whatever a fuzzer's bytes spell: the plan, and then its schedule and faults.
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn run_spelt(&self, bytes: &[u8]) -> Report {
        let (plan, rest) = Plan::spelt(bytes);
        let choices = Box::new(Spelt::new(rest));
        self.run_with(Setup::of(plan.setup), plan.steps.iter().map(|step| Step::of(*step)), choices)
    }

    /// Runs steps, with a schedule and faults from anywhere. (For all ways through them there should be no faults: each
    /// call of the machine would be a question.)
    ///
    /// # Panics
    /// If an invariant is broken.
    pub fn run_with(
        &self,
        setup: Setup,
        steps: impl IntoIterator<Item = Step>,
        choices: Box<dyn Choices>,
    ) -> Report {
        let at = SCENES.iter().position(|scene| scene.name == setup.scene.name).unwrap_or_default();
        let (prepared, record) = &self.prepared[at];
        let mut run = Run::new(setup, Arc::clone(prepared), record, choices, self.tells);
        for step in steps {
            run.step(step);
        }
        run.end()
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a run draws from. Cloning is a reference.
#[derive(Clone)]
pub struct Dice(Arc<Mutex<Box<dyn Choices>>>);

impl Dice {
    fn below(&self, count: u32) -> u32 {
        if count <= 1 {
            return 0;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).below(count)
    }
}

struct Run {
    setup: Setup,
    prepared: Arc<Prepared>,
    machine: Fixture,
    traced: Arc<Traced>,
    faulty: Arc<Faulty>,
    chill: Arc<Chill<Slowed<Tree>>>,
    backend: Arc<dyn Backend<Slowed<Tree>>>,
    gate: Gate,
    gate_is_open: bool,
    race: Race,
    dice: Dice,
    budget: Budget,
    start: Now,
    seats: Vec<Seat>,
    /// Connections whose client is gone.
    leaving: Vec<Link<Slowed<Tree>>>,
    qids: Qids,
    canary: Finder<'static>,
    tells: bool,
    report: Report,
}

impl Run {
    fn new(
        setup: Setup,
        prepared: Arc<Prepared>,
        record: &Record,
        choices: Box<dyn Choices>,
        tells: bool,
    ) -> Self {
        if tells {
            println!("{setup}");
        }
        let dice = Dice(Arc::new(Mutex::new(choices)));
        let machine = Fixture::new(prepared.world.clone());
        let witness = Witness::new(record, setup.faults != Weights::default());
        let race = Race {
            armed: Arc::default(),
            focus: setup.focus,
            // Who is there at first has begun.
            spent: Arc::new(Mutex::new(prepared.begun.clone())),
            witness: witness.clone(),
            tells,
        };
        let faulty = Arc::new(faulty(setup.faults, &dice, &race, &prepared, &machine));
        let traced = Arc::new(Traced::new(Arc::clone(&faulty) as Arc<dyn Host>));
        let machine_limits = Machine { pinned_descriptors: setup.pinned_descriptors };
        let tree = Agents::new(Arc::clone(&traced) as Arc<dyn Host>, machine_limits);
        let gate = Gate::default();
        let slow = Slow::new(Arc::new(tree) as Arc<dyn Backend<Tree>>, gate.clone());
        let chill = Arc::new(Chill::new(Arc::new(slow), dice.clone()));
        chill.set(setup.chill);
        Self {
            start: machine.now(),
            budget: setup.budget(),
            seats: (0..)
                .zip(&setup.clients)
                .map(|(number, client)| Seat::new(number, *client, tells, witness.clone()))
                .collect(),
            backend: Arc::clone(&chill) as Arc<dyn Backend<Slowed<Tree>>>,
            setup,
            prepared,
            machine,
            traced,
            faulty,
            chill,
            gate,
            gate_is_open: false,
            race,
            dice,
            leaving: Vec::new(),
            qids: Qids::default(),
            canary: Finder::new(CANARY).into_owned(),
            tells,
            report: Report::default(),
        }
    }

    fn step(&mut self, step: Step) {
        while self.setup.pace > 0 && self.dice.below(16) < self.setup.pace && self.go_on() {}
        if self.tells {
            println!("{step:?}");
        }
        match step {
            Step::Ask { client, mood, twice, request } => {
                let seat = usize::from(client) % self.seats.len();
                if mood != Mood::Busy {
                    self.settle();
                }
                self.connect(seat);
                self.ask(seat, request, mood);
                if twice && mood == Mood::Busy {
                    self.ask(seat, request, mood);
                }
            }
            Step::Change(change) => self.race.change(&self.prepared, &self.machine, change, true),
            Step::Race { calls, change } => self.race.arm(Some((calls, change))),
            Step::Pass { ms } => self.advance(u64::from(ms) * 1_000_000),
            Step::Gate { open } => {
                self.gate_is_open = open;
                if open { self.gate.open() } else { self.gate.shut() }
            }
            Step::HangUp { client } => self.hang_up(usize::from(client) % self.seats.len()),
            Step::Shed { client } => {
                let seat = usize::from(client) % self.seats.len();
                if let Some(link) = &mut self.seats[seat].link {
                    link.shed();
                }
            }
        }
    }

    /// A client without a connection makes one, agrees on a version and attaches.
    fn connect(&mut self, seat: usize) {
        if self.seats[seat].link.is_some() {
            return;
        }
        let (backend, budget) = (Arc::clone(&self.backend), self.budget.clone());
        self.seats[seat].link = Some(Link::new(backend, self.setup.limits, budget, seat as u64));
        let (dialect, msize) = self.setup.clients[seat];
        self.post(seat, &Draft::Version(Some(dialect), msize));
        self.post(seat, &Draft::Attach(0, Vec::new()));
    }

    fn ask(&mut self, seat: usize, request: Request, mood: Mood) {
        let linux = self.seats[seat].client.dialect == proto::Dialect::Linux;
        let drafts = match request {
            Request::Pass { route, count } => return self.pass(seat, route, count, mood),
            Request::Version { dialect } => {
                let known = [proto::Dialect::Plain, proto::Dialect::Unix, proto::Dialect::Linux];
                let offer = known.get(usize::from(dialect)).copied();
                let msize = self.setup.clients[seat].1.max(proto_floor(offer));
                let mut drafts = vec![Draft::Version(offer, msize)];
                if offer.is_none() {
                    drafts.push(Draft::Version(Some(proto::Dialect::Plain), msize));
                }
                drafts.push(Draft::Attach(0, Vec::new()));
                drafts
            }
            Request::Stat { fid } => vec![Draft::Stat(fid.into())],
            Request::Walk { fid, newfid, route } => {
                vec![Draft::Walk(fid.into(), newfid.into(), self.names(route))]
            }
            Request::Grab { fid, route } => vec![
                Draft::Clunk(fid.into()),
                Draft::Walk(0, fid.into(), self.names(route)),
                Draft::Open(fid.into(), How::Read),
            ],
            Request::Open { fid, how } => vec![Draft::Open(fid.into(), how)],
            Request::Read { fid, offset, count } => {
                vec![Draft::Read(self.seats[seat].client.open_fid(fid, false), offset, count)]
            }
            Request::List { fid, goes_on, count } => {
                let fid = self.seats[seat].client.open_fid(fid, true);
                let held = self.seats[seat].client.fids.get(&fid);
                let end = held.and_then(|held| held.open?.end).filter(|_| goes_on);
                vec![Draft::List(fid, end.unwrap_or_default(), count)]
            }
            Request::Clunk { fid } => vec![Draft::Clunk(fid.into())],
            Request::Flush(which) => vec![Draft::Flush(self.seats[seat].tag_of(which))],
            Request::Attach { fid, route } => {
                let path = self.names(route).join(&b'/');
                let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
                let names = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                vec![Draft::Attach(fid.into(), names)]
            }
            Request::Other { fid, which: 15 } if !linux => vec![Draft::Remove(fid.into())],
            Request::Other { fid, which } => vec![Draft::Other(fid.into(), which)],
            Request::SameTag { fid } => return self.seats[seat].post_same_tag(u32::from(fid)),
            Request::Noise { which } => return self.seats[seat].post_noise(which),
        };
        for draft in drafts {
            if mood == Mood::Busy {
                self.post(seat, &draft);
            } else {
                self.ask_alone(seat, &draft, mood);
            }
        }
    }

    /// Walks to something, looks at it, reads it to its end and lets it go.
    fn pass(&mut self, seat: usize, route: Route, count: u32, mood: Mood) {
        let names = self.names(route);
        let walk = Draft::Walk(0, PASS_FID, names);
        let (stat, open, clunk) =
            (Draft::Stat(PASS_FID), Draft::Open(PASS_FID, How::Read), Draft::Clunk(PASS_FID));
        if mood == Mood::Busy {
            let read = [Draft::Read(PASS_FID, 0, count), Draft::List(PASS_FID, 0, count)];
            for draft in [walk, stat, open].into_iter().chain(read).chain([clunk]) {
                self.post(seat, &draft);
            }
            return;
        }
        for draft in [walk, stat, open] {
            self.ask_alone(seat, &draft, mood);
        }
        let held = self.seats[seat].client.fids.get(&PASS_FID);
        if let Some((dir, _)) = held.and_then(|held| Some((held.dir, held.open?))) {
            let read = if dir { Draft::List(PASS_FID, 0, count) } else { Draft::Read(PASS_FID, 0, count) };
            self.ask_alone(seat, &read, mood);
        }
        self.ask_alone(seat, &clunk, mood);
    }

    /// Asks while nothing else happens, and holds the answer to what it should be.
    fn ask_alone(&mut self, seat: usize, draft: &Draft, mood: Mood) {
        self.settle();
        if self.seats[seat].link.is_none() {
            return;
        }
        if let Draft::Read(fid, ..) | Draft::List(fid, ..) = draft
            && self.seats[seat].client.fids.get(fid).is_some_and(|held| !held.dir)
        {
            // What was last seen of an open file may be believed for 100 ms.
            self.advance(101_000_000);
        }
        let prepared = Arc::clone(&self.prepared);
        let oracle = Oracle::new(&prepared, self.machine.snapshot(), self.start);
        let mut space = Vec::new();
        let client = &self.seats[seat].client;
        let dialect = client.dialect;
        let message = draft.message(dialect, &mut space);
        // What is told of an agent may lack what could not be looked at.
        let is_derived = draft
            .fid()
            .and_then(|fid| client.fids.get(&fid))
            .is_some_and(|held| held.path.first().is_some_and(|name| name == "active"));
        let expected = expect::expect(&oracle, &self.qids, client, &message);
        let full =
            self.seats[seat].fids() >= self.setup.limits.fids || self.budget.taken().0 >= self.setup.fids;
        let tag = self.post(seat, draft);
        self.seats[seat].client.caught_tag = Some(tag);
        if mood == Mood::Rough {
            self.gate.open();
            self.run_down();
        }
        self.settle();
        let client = &mut self.seats[seat].client;
        client.caught_tag = None;
        let frame = client.caught.take().expect("an answer");
        let Some(expected) = expected else { return };
        let (_, message) = proto::Rmessage::decode(&frame, dialect).expect("it was decoded before");
        let limits = [proto::Refusal::CONNECTION_FIDS, proto::Refusal::DAEMON_FIDS];
        let excused = match mood {
            // Whatever fails, what is listed, read or told of a file is the truth.
            Mood::Rough => client::is_refusal(&message) || is_derived || !expected.holds_in_rough(),
            Mood::Calm | Mood::Busy => full && limits.iter().any(|why| client::is(&message, *why)),
        };
        if !excused {
            self.report.compared += 1;
            expect::compare(&oracle, &mut self.qids, dialect, &expected, &frame);
        }
    }

    /// Sends a request; yields its tag.
    fn post(&mut self, seat: usize, draft: &Draft) -> u16 {
        self.seats[seat].client.now_ns = self.machine.now().mono_ns;
        self.seats[seat].post(draft)
    }

    fn names(&self, route: Route) -> Vec<Vec<u8>> {
        let scene = self.prepared.scene;
        let split = |path: &str| -> Vec<Vec<u8>> {
            path.split('/').filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect()
        };
        let path = |number: u8| split(&self.prepared.paths[usize::from(number) % self.prepared.paths.len()]);
        let word = |number: u8| scene.words[usize::from(number) % scene.words.len()].to_vec();
        match route {
            Route::Near(near, number) => {
                let paths = &self.prepared.spots[self.race.spot(&self.prepared, near)].paths;
                split(&paths[usize::from(number) % paths.len()])
            }
            Route::Path(number) => path(number),
            Route::Word(number) => vec![word(number)],
            Route::Around { path: number, up, word: last } => {
                let mut names = path(number);
                names.extend((0..up).map(|_| b"..".to_vec()));
                names.push(word(last));
                names
            }
            Route::Long(number) => vec![word(number); 17],
        }
    }

    fn hang_up(&mut self, seat: usize) {
        let now = self.machine.now();
        if let Some(mut link) = self.seats[seat].leave() {
            link.disconnect(now);
            self.leaving.push(link);
        }
    }

    fn advance(&self, ns: u64) {
        let _ = self.machine.apply(&Edit::Advance { ns });
    }

    /// Does one thing of those that can be done. `false`: there is none.
    fn go_on(&mut self) -> bool {
        let now = self.machine.now();
        let epoch = self.backend.epoch();
        let seats = self.seats.iter().map(|seat| seat.events(now, epoch)).sum::<usize>();
        let leaving = self.leaving.iter().map(|link| link.ready(now, epoch)).sum::<usize>();
        if seats + leaving == 0 {
            return false;
        }
        let mut at = self.dice.below((seats + leaving) as u32) as usize;
        self.report.events += 1;
        for number in 0..self.seats.len() {
            let events = self.seats[number].events(now, epoch);
            if at < events {
                self.happen(number, at, now, epoch);
                self.watch(number);
                return true;
            }
            at -= events;
        }
        for link in &mut self.leaving {
            let ready = link.ready(now, epoch);
            if at < ready {
                link.work_ready(at, now, epoch);
                break;
            }
            at -= ready;
        }
        true
    }

    fn happen(&mut self, number: usize, at: usize, now: Now, epoch: u64) {
        let seat = &mut self.seats[number];
        match seat.event(at) {
            Event::Comes => {
                let dice = &self.dice;
                seat.bytes_come(self.setup.cut, now, |count| dice.below(count));
            }
            Event::Goes => {
                let hash = seat.bytes_go(&self.canary, now);
                self.report.hash = (self.report.hash ^ hash).wrapping_mul(HASH_FACTOR).rotate_left(23);
            }
            Event::Work(task) => seat.work(task, now, epoch),
        }
        if seat.has_ended() {
            self.hang_up(number);
        }
    }

    /// Holds a connection, and all of them, to their limits.
    fn watch(&self, seat: usize) {
        if let Some(link) = &self.seats[seat].link {
            let limits = &self.setup.limits;
            let jobs = link.tasks().iter().filter(|task| task.is_job()).count();
            assert!(link.session().fids() <= limits.fids, "fids: {}", link.session().fids());
            assert!(link.tasks().len() <= limits.requests, "requests: {}", link.tasks().len());
            assert!(jobs <= limits.parked, "jobs: {jobs}");
            let most = limits.queued_bytes + 4 * (limits.msize as usize + 64 * 1024);
            assert!(link.session().queued() <= most, "queued bytes: {}", link.session().queued());
        }
        assert!(self.budget.taken().0 <= self.setup.fids, "fids in all: {}", self.budget.taken().0);
    }

    /// Lets everything that was begun come to its end, without faults.
    fn settle(&mut self) {
        self.faulty.turn(false);
        self.chill.set(0);
        self.race.arm(None);
        self.gate.open();
        self.run_down();
        for seat in &self.seats {
            seat.expect_quiet();
        }
        for link in self.leaving.drain(..) {
            assert!(link.session().is_drained(), "a session is not drained after its client has gone");
        }
        let open = self.machine.with(|world| world.open());
        assert!(open <= self.setup.pinned_descriptors, "{open} files are open");
        self.faulty.turn(true);
        self.chill.set(self.setup.chill);
        if !self.gate_is_open {
            self.gate.shut();
        }
    }

    /// Goes on until nothing can.
    fn run_down(&mut self) {
        let begun: usize = self.seats.iter().map(Seat::begun).sum();
        let mut left = 200 + 40 * begun;
        loop {
            if self.go_on() {
                left -= 1;
                assert!(left > 0, "what is in flight does not end: {begun} were begun");
            } else if !self.wait() {
                break;
            }
        }
    }

    /// Lets time pass until something can go on.
    fn wait(&self) -> bool {
        let links = self.seats.iter().filter_map(|seat| seat.link.as_ref()).chain(&self.leaving);
        let next = links.filter_map(Link::next_ns).min();
        let now_ns = self.machine.now().mono_ns;
        next.inspect(|at_ns| self.advance(at_ns.saturating_sub(now_ns))).is_some()
    }

    fn end(mut self) -> Report {
        self.settle();
        for seat in 0..self.seats.len() {
            self.hang_up(seat);
        }
        self.settle();
        assert_eq!(self.budget.taken(), (0, 0), "fids and bytes are held though everyone has gone");
        assert_eq!(self.machine.with(|world| world.open()), 0, "files are open though everyone has gone");
        assert_eq!(self.gate.held(), 0, "requests are held though everyone has gone");
        let Self { mut report, traced, faulty, .. } = self;
        report.hash ^= traced.hash();
        report.calls = traced.calls();
        report.faults = faulty.faults().len() as u64;
        report
    }
}

fn holds_canary(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, CANARY.as_bytes()).is_some()
}

/// The least msize of a dialect.
fn proto_floor(offer: Option<proto::Dialect>) -> u32 {
    match offer {
        Some(proto::Dialect::Unix | proto::Dialect::Linux) => engine::limits::MIN_MSIZE,
        Some(proto::Dialect::Plain) | None => engine::limits::MIN_MSIZE_PLAIN,
    }
}

/// A fid that only passes use.
const PASS_FID: u32 = 9;
/// Odd, so that no bit is lost.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
