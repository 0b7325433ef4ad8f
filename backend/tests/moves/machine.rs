//! A machine in memory with an agent of each harness, and the tree over it that may move them.

#[path = "../../../tests/src/moves/agents.rs"]
mod agents;

use std::sync::Arc;

use backend::host::Host;
use backend::host::fixture::{Edit, Fixture, Script, Signal, Spawned};
use backend::{Agents, Limits, Moving, Node, Open, Tree};
use engine::port::{Answer, Ask, Backend, Change, Effort, Job, Mode, Outcome, Path, Progress, Room, Step};
use proto::{Dialect, Names, Refusal};

pub(crate) use agents::{AGENTS, ENVIRONMENT, PLACES, life};

pub(crate) type BoxedJob = Box<dyn Job<Tree>>;

/// The machine, and what of it a test looks at.
pub(crate) struct Machine {
    pub(crate) fixture: Fixture,
    pub(crate) tree: Agents,
}

impl Machine {
    /// With more to happen at its beginning.
    pub(crate) fn new(more: &str) -> Self {
        Self::behind(more, |fixture| Arc::new(fixture.clone()))
    }

    /// The same, with a server that was started with another environment.
    pub(crate) fn with_environment(self, environment: &[&str]) -> Self {
        let tree = tree(Arc::new(self.fixture.clone()), &self.fixture, environment);
        Self { tree, ..self }
    }

    /// The same, with something between the machine and the tree.
    pub(crate) fn behind(more: &str, host: impl FnOnce(&Fixture) -> Arc<dyn Host>) -> Self {
        let starts: String = AGENTS.iter().map(|(_, pid, _)| agents::start(*pid, "")).collect();
        let script = Script::parse(&format!("{PLACES}{starts}{more}")).unwrap();
        let fixture = Fixture::new(script.world().unwrap());
        let tree = tree(host(&fixture), &fixture, &ENVIRONMENT);
        Self { fixture, tree }
    }

    pub(crate) fn happens(&self, script: &str) {
        for edit in Script::parse(script).unwrap().edits() {
            self.fixture.apply(edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
        }
    }

    pub(crate) fn perform(&self, ask: Ask<Tree>, mut room: Room<'_>) -> Outcome<Tree> {
        match self.tree.perform(ask, room.reborrow(), Effort::Full, self.fixture.now()) {
            Progress::Done(outcome) => outcome,
            Progress::Later(mut job) => loop {
                match job.step(room.reborrow(), self.fixture.now()) {
                    Step::Done(outcome) => return outcome,
                    Step::At(at_ns) => self.reach(at_ns),
                    Step::Again => {}
                    Step::WhenRung(_) => panic!("nobody rings"),
                }
            },
            Progress::Cold(_) => panic!("full effort is not enough"),
        }
    }

    pub(crate) fn node(&self, path: &str, local: bool) -> Result<Node, Refusal> {
        let ask = Ask::Attach { uname: Box::default(), aname: Box::default(), local };
        let Answer::Attached { root, .. } = self.perform(ask, Room::of_bytes(&mut []))? else { panic!() };
        let mut wire = [0; 512];
        let names = Names::pack(path.split('/').map(str::as_bytes), &mut wire).unwrap();
        match self.perform(Ask::Walk { from: root, names: Path::copy(names) }, Room::of_bytes(&mut []))? {
            Answer::Walked { end, .. } => end.ok_or(Refusal::NOT_FOUND),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn open(&self, node: &Node, mode: Mode) -> Result<Open, Refusal> {
        match self.perform(Ask::Open { node: node.clone(), mode }, Room::of_bytes(&mut []))? {
            Answer::Opened { open, .. } => Ok(open),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn change(&self, node: &Node, change: Change) -> Result<(), Refusal> {
        self.perform(Ask::Change { node: node.clone(), change }, Room::of_bytes(&mut [])).map(drop)
    }

    /// The permission bits that a stat of a node tells.
    pub(crate) fn mode(&self, node: &Node) -> u32 {
        let mut wire = [0; 512];
        let ask = Ask::Stat { node: node.clone() };
        self.perform(ask, Room::of_stat(Dialect::Plain, &mut wire)).unwrap();
        u32::from_le_bytes(wire[21..25].try_into().unwrap())
    }

    /// Begins a move, or says why it does not.
    pub(crate) fn begin(&self, harness: &str, pid: u32, name: &str) -> Result<BoxedJob, Refusal> {
        let node = self.node(&format!("active/{harness}/{pid}/zmx"), true)?;
        self.write(&self.open(&node, WRITE)?, 0, name.as_bytes())
    }

    pub(crate) fn write(&self, open: &Open, offset: u64, data: &[u8]) -> Result<BoxedJob, Refusal> {
        let ask = Ask::Write { open: open.clone(), offset, data: data.into() };
        match self.tree.perform(ask, Room::of_bytes(&mut []), Effort::Cached, self.fixture.now()) {
            Progress::Later(job) => Ok(job),
            Progress::Done(outcome) => Err(outcome.unwrap_err()),
            Progress::Cold(_) => panic!("a write is begun at once"),
        }
    }

    /// Steps a move until it is answered, letting time pass. Yields the answer, and how long it took in milliseconds.
    pub(crate) fn finish(&self, job: &mut BoxedJob) -> (Result<u32, Refusal>, u64) {
        let since_ns = self.fixture.now().mono_ns;
        for _ in 0..1_000 {
            match self.step(job) {
                Step::Done(outcome) => {
                    let ms = (self.fixture.now().mono_ns - since_ns) / 1_000_000;
                    return (outcome.map(wrote), ms);
                }
                Step::At(at_ns) => self.reach(at_ns),
                Step::Again => {}
                Step::WhenRung(_) => panic!("nobody rings"),
            }
        }
        panic!("a move does not come to its end");
    }

    pub(crate) fn step(&self, job: &mut BoxedJob) -> Step<Tree> {
        job.step(Room::of_bytes(&mut []), self.fixture.now())
    }

    /// Moves an agent.
    pub(crate) fn moved(&self, harness: &str, pid: u32, name: &str) -> (Result<u32, Refusal>, u64) {
        match self.begin(harness, pid, name) {
            Ok(mut job) => self.finish(&mut job),
            Err(refusal) => (Err(refusal), 0),
        }
    }

    pub(crate) fn reach(&self, at_ns: u64) {
        let ns = at_ns.saturating_sub(self.fixture.now().mono_ns);
        self.fixture.apply(&Edit::Advance { ns }).unwrap();
    }

    pub(crate) fn signals(&self) -> Vec<(u32, Signal)> {
        self.fixture.with(|world| world.signals().iter().map(|sent| (sent.pid, sent.signal)).collect())
    }

    pub(crate) fn spawns(&self) -> Vec<Spawned> {
        self.fixture.with(|world| world.spawns().to_vec())
    }

    /// Nothing has been done to anybody.
    #[track_caller]
    pub(crate) fn is_untouched(&self) {
        assert_eq!((self.signals(), self.spawns()), (Vec::new(), Vec::new()));
        assert!(!self.tree.must_finish());
    }
}

fn tree(host: Arc<dyn Host>, fixture: &Fixture, environment: &[&str]) -> Agents {
    let environment: Vec<_> = environment.iter().map(|variable| variable.as_bytes().to_vec()).collect();
    let moving = Moving::find(fixture, &environment, None, []);
    Agents::moving(host, Limits { pinned_descriptors: 64 }, moving)
}

pub(crate) fn wrote(answer: Answer<Tree>) -> u32 {
    match answer {
        Answer::Wrote(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

pub(crate) const WRITE: Mode = Mode { read: false, write: true, truncate: false };
