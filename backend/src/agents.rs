//! The agents tree: answers the engine's asks.
//!
//! Owns: attach, walk and which province answers what. Must not know: how a province does it (see [`crate::tree`]), or
//! how asks travel.
//!
//! Every ask is answered by one pass that changes nothing before it is sure of its answer, so under
//! [`Effort::Cached`] a pass that would have to wait stops, and the ask goes back whole.

use std::fmt;
use std::sync::Arc;

use engine::port::{Answer, Ask, Backend, Change, Effort, Job, Now, Path, Progress, Qids, Room, Step};
use proto::{Qid, Refusal};

use crate::active::{self, Active};
use crate::budget::Budget;
use crate::host::Host;
use crate::listing::{ALL_NAMES_BYTES, Listing, Listings};
use crate::mirror::Mirrors;
use crate::moves::{Move, Moves, Moving};
use crate::pins::Pins;
use crate::qid;
use crate::tree::facts::{self, Daemon, Facts};
use crate::tree::fixed::{Child, Fixed, Fixtures};
use crate::tree::halt::{Halt, Unfinished};
use crate::tree::{Node, Open, Opened, Place, TORN_NS, Text, Tree, Turn};

/// What the tree may take of the machine.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Descriptors kept by open files and directories, in all. Past it they are opened anew for each read.
    pub pinned_descriptors: usize,
}

/// The agents tree of one machine.
#[derive(Clone)]
pub struct Agents(Arc<Provinces>);

/// What the tree consists of. A job holds on to it.
struct Provinces {
    host: Arc<dyn Host>,
    daemon: Daemon,
    fixtures: Fixtures,
    mirrors: Mirrors,
    pins: Pins,
    listings: Listings,
    active: Arc<Active>,
    /// What may be changed: nothing, unless the user has said so.
    moves: Option<Arc<Moves>>,
}

impl Agents {
    /// The tree of a machine, whose start is now, as a daemon serves it: the processes it descends from are not among the
    /// agents. Nothing of the machine is looked at before somebody asks.
    pub fn new(host: Arc<dyn Host>, limits: Limits) -> Self {
        Self(Arc::new(Provinces::new(host, limits, false, None)))
    }

    /// The same, and agents may be moved: `zmx` of each may be written by local connections.
    pub fn moving(host: Arc<dyn Host>, limits: Limits, moving: Moving) -> Self {
        Self(Arc::new(Provinces::new(host, limits, false, Some(moving))))
    }

    /// The same for a command that reads the tree itself and ends: the agent that called it is one like any other.
    pub fn for_command(host: Arc<dyn Host>, limits: Limits) -> Self {
        Self(Arc::new(Provinces::new(host, limits, true, None)))
    }
}

impl Provinces {
    fn new(host: Arc<dyn Host>, limits: Limits, with_ancestors: bool, moving: Option<Moving>) -> Self {
        let daemon = Daemon { me: host.me(), start: host.now() };
        let descriptors = Budget::new(limits.pinned_descriptors);
        let names = Budget::new(ALL_NAMES_BYTES);
        let active = Active::new(
            Arc::clone(&host),
            daemon,
            Arc::clone(&descriptors),
            Arc::clone(&names),
            with_ancestors,
            moving.is_some(),
        );
        Self {
            daemon,
            fixtures: Fixtures::new(daemon),
            mirrors: Mirrors::new(Arc::clone(&host)),
            pins: Pins::new(Arc::clone(&host), Arc::clone(&descriptors)),
            active: Arc::new(active),
            moves: moving.map(|moving| Arc::new(Moves::new(Arc::clone(&host), moving))),
            listings: Listings::new(Arc::clone(&host), descriptors, names),
            host,
        }
    }

    /// How an ask is to be answered.
    fn turn(ask: &Ask<Tree>, effort: Effort, now: Now, last_try: bool) -> Turn {
        let local = match ask {
            Ask::Attach { local, .. } => *local,
            Ask::Walk { from: node, .. }
            | Ask::Stat { node }
            | Ask::Change { node, .. }
            | Ask::Open { node, .. } => node.local,
            Ask::Read { open, .. } | Ask::List { open, .. } | Ask::Write { open, .. } => open.is_local(),
        };
        #[cfg(feature = "planted")]
        let local = local || engine::planted::is(engine::planted::Bug::MoveRemote);
        Turn { effort, now, last_try, local }
    }

    fn answer(&self, ask: &Ask<Tree>, room: &mut Room<'_>, turn: Turn) -> Result<Answer<Tree>, Halt> {
        match ask {
            Ask::Attach { aname, .. } => self.attach(aname, turn),
            Ask::Walk { from, names } => self.walk(from, names, turn),
            Ask::Stat { node } => self.stat(&node.place, room, turn),
            Ask::Change { node, change } => self.change(&node.place, *change, turn),
            Ask::Write { .. } => Err(Refusal::VIEW.into()),
            Ask::Open { node, mode } => {
                if mode.write || mode.truncate {
                    self.may_write(&node.place, turn)?;
                }
                self.open(&node.place, turn)
            }
            Ask::Read { open, offset } => self.read(open, *offset, room, turn),
            Ask::List { open, from } => self.list(open, *from, room, turn),
        }
    }

    /// The root of an attach: a path in this tree, of names only. How many slashes stand between them does not matter.
    fn attach(&self, aname: &[u8], turn: Turn) -> Result<Answer<Tree>, Halt> {
        let local = turn.local;
        let root = Node { place: Place::Fixed(Fixed::Root), floor: 0, local };
        let names = aname.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        if names.clone().any(|name| name == b"..") {
            return Err(Refusal::NOT_FOUND.into());
        }
        let Node { place, .. } = self.resolve(&root, names, turn, &mut |_| {})?;
        if !place.is_dir() {
            return Err(Refusal::NOT_A_DIRECTORY.into());
        }
        let qid = self.facts(&place, turn)?.qid;
        let floor = place.depth();
        Ok(Answer::Attached { qid, root: Node { place, floor, local } })
    }

    fn walk(&self, from: &Node, names: &Path, turn: Turn) -> Result<Answer<Tree>, Halt> {
        let mut qids = Qids::new();
        match self.resolve(from, names.iter(), turn, &mut |qid| qids.push(qid)) {
            Ok(end) => Ok(Answer::Walked { qids, end: Some(end) }),
            Err(Halt::Refused(_)) if !qids.is_empty() => Ok(Answer::Walked { qids, end: None }),
            Err(halt) => Err(halt),
        }
    }

    /// Follows names from a node. `each` is given the qid of every name that resolved.
    fn resolve<'n>(
        &self,
        from: &Node,
        names: impl Iterator<Item = &'n [u8]>,
        turn: Turn,
        each: &mut dyn FnMut(Qid),
    ) -> Result<Node, Halt> {
        let mut names = names.peekable();
        let Node { mut place, floor, local } = from.clone();
        while let Some(&name) = names.peek() {
            if !place.is_dir() {
                return Err(Refusal::NOT_A_DIRECTORY.into());
            }
            let next = match &place {
                // The tree's own parent: the kernel is never asked for one. The root of an attach is its own.
                _ if name == b".." && place.depth() <= floor => place.clone(),
                _ if name == b".." => place.parent(),
                Place::Mirror(at) => {
                    // All names that follow at once: one call of the host.
                    place = Place::Mirror(self.mirrors.walk(at, &mut names, turn, each)?);
                    continue;
                }
                Place::Fixed(dir) => {
                    self.place_of(self.fixtures.child(*dir, name).ok_or(Refusal::NOT_FOUND)?)
                }
                Place::Active(dir) => {
                    // The same, with one look at an agent.
                    place = Place::Active(self.active.walk(dir, &mut names, turn, each)?);
                    continue;
                }
            };
            names.next();
            each(self.facts(&next, turn)?.qid);
            place = next;
        }
        Ok(Node { place, floor, local })
    }

    fn place_of(&self, child: Child) -> Place {
        match child {
            Child::Fixed(fixed) => Place::Fixed(fixed),
            Child::Mount(mount) => Place::Mirror(self.mirrors.place(mount)),
            Child::Active => Place::Active(active::Place::Top),
        }
    }

    /// What a stat record says of a place.
    fn facts(&self, of: &Place, turn: Turn) -> Result<Facts, Halt> {
        match of {
            Place::Fixed(fixed) => Ok(self.fixtures.facts(*fixed, turn.now)),
            Place::Mirror(at) => {
                let facts = self.mirrors.facts(at, turn)?;
                Ok(facts.unwrap_or_else(|| self.daemon.directory(at.mount().path())))
            }
            Place::Active(at) => self.active.facts(at, turn),
        }
    }

    fn stat(&self, of: &Place, room: &mut Room<'_>, turn: Turn) -> Result<Answer<Tree>, Halt> {
        let facts = self.facts(of, turn)?;
        if facts.with_record(&of.name(), &*self.host, |stat| room.stat(stat)) {
            Ok(Answer::Stat { bytes: room.used() })
        } else {
            // The record holds nothing long but names.
            Err(Refusal::NAME_TOO_LONG.into())
        }
    }

    /// Refuses to open what may not be written.
    fn may_write(&self, at: &Place, turn: Turn) -> Result<(), Refusal> {
        match self.movable(at) {
            Some(_) if turn.local => Ok(()),
            Some(_) => Err(Refusal::MOVE_REMOTE),
            None => Err(Refusal::PERMISSION_DENIED),
        }
    }

    /// A new length of 0 and new times are what precedes a write, and nothing by themselves: allowed where one is.
    fn change(&self, at: &Place, change: Change, turn: Turn) -> Result<Answer<Tree>, Halt> {
        if change.other || self.may_write(at, turn).is_err() {
            return Err(Refusal::VIEW.into());
        }
        self.facts(at, turn)?;
        Ok(Answer::Changed)
    }

    /// The agent that a write to a place would move, and who does that.
    fn movable<'p>(&'p self, at: &'p Place) -> Option<(&'p Arc<Moves>, &'p Arc<active::Agent>)> {
        let Place::Active(at) = at else { return None };
        Some((self.moves.as_ref()?, at.whose_zmx()?))
    }

    /// What a write begins.
    fn write(&self, open: &Open, offset: u64, data: &[u8]) -> Result<Move, Refusal> {
        match open.opened() {
            Opened::Text(text) if open.is_local() => {
                let (moves, agent) = self.movable(&text.place).ok_or(Refusal::VIEW)?;
                moves.begin(&self.active, agent, offset, data)
            }
            _ => Err(Refusal::VIEW),
        }
    }

    /// Opens a place.
    fn open(&self, at: &Place, turn: Turn) -> Result<Answer<Tree>, Halt> {
        if at.is_dir() {
            let qid = self.facts(at, turn)?.qid;
            let open = Open::new(Opened::Dir(at.clone()), turn.local);
            return Ok(Answer::Opened { qid, open, list: true });
        }
        let (qid, opened) = match at {
            Place::Mirror(at) => {
                let (pin, qid) = self.pins.open(at.root(), at.rel().clone(), turn)?;
                (qid, Opened::File(pin))
            }
            Place::Active(place) => {
                if let Some((root, rel)) = self.active.transcript(place, turn)? {
                    let (pin, qid) = self.pins.open(root, rel, turn)?;
                    (qid, Opened::File(pin))
                } else if let Some((qid, message)) = self.active.open_message(place, turn)? {
                    (qid, Opened::Message(message))
                } else {
                    let text = self.active.text(place, turn)?;
                    (Active::qid(place, &text), Opened::Text(Text::new(at.clone(), text)))
                }
            }
            Place::Fixed(_) => {
                let text = self.text(at, turn)?;
                let qid = Qid { version: qid::content(text.as_bytes()), ..self.facts(at, turn)?.qid };
                (qid, Opened::Text(Text::new(at.clone(), text)))
            }
        };
        Ok(Answer::Opened { qid, open: Open::new(opened, turn.local), list: false })
    }

    /// The text of a derived file, now.
    fn text(&self, of: &Place, turn: Turn) -> Result<Arc<str>, Halt> {
        match of {
            Place::Fixed(fixed) => Ok(self.fixtures.text(*fixed, turn.now).ok_or(Refusal::IS_A_DIRECTORY)?),
            Place::Active(at) => self.active.text(at, turn),
            Place::Mirror(_) => Err(Refusal::BAD_FID_USE.into()),
        }
    }

    fn read(&self, open: &Open, offset: u64, room: &mut Room<'_>, turn: Turn) -> Result<Answer<Tree>, Halt> {
        let buf = room.bytes();
        let bytes = match open.opened() {
            Opened::File(pin) => self.pins.read(pin, buf, offset, turn)?,
            Opened::Message(message) => self.active.read_message(message, buf, offset, turn)?,
            Opened::Text(open) => {
                #[cfg(feature = "planted")]
                let offset = offset.max(u64::from(engine::planted::is(engine::planted::Bug::TextStale)));
                if offset == 0 {
                    open.renew(&self.text(&open.place, turn)?);
                }
                copy_from(open.latest().as_bytes(), offset, buf)
            }
            Opened::Dir(_) | Opened::Listing(_) | Opened::Active(_) => {
                return Err(Refusal::IS_A_DIRECTORY.into());
            }
        };
        Ok(Answer::Bytes(bytes as u32))
    }

    fn list(&self, open: &Open, from: u32, room: &mut Room<'_>, turn: Turn) -> Result<Answer<Tree>, Halt> {
        let (next, open) = match open.opened() {
            Opened::Dir(Place::Fixed(dir)) => (self.list_fixed(*dir, from, room, turn)?, None),
            Opened::Active(listing) if from > 0 => (self.active.pack(listing, from, turn, room)?, None),
            Opened::Dir(Place::Active(at)) | Opened::Active(active::Listing { at, .. }) => {
                if from > 0 {
                    return Err(Refusal::BAD_OFFSET.into());
                }
                let listing = self.active.list(at, turn)?;
                let next = self.active.pack(&listing, 0, turn, room)?;
                (next, Some(Open::new(Opened::Active(listing), turn.local)))
            }
            // Nothing below waits less than a worker costs: see `listing`.
            Opened::Dir(Place::Mirror(_)) | Opened::Listing(_) if turn.effort == Effort::Cached => {
                return Err(Halt::Cold);
            }
            Opened::Listing(listing) if from > 0 => (self.listings.pack(listing, from, room)?, None),
            Opened::Dir(Place::Mirror(at)) | Opened::Listing(Listing { at, .. }) => {
                if from > 0 {
                    return Err(Refusal::BAD_OFFSET.into());
                }
                let listing = self.listings.take(at)?;
                let next = self.listings.pack(&listing, 0, room)?;
                (next, Some(Open::new(Opened::Listing(listing), turn.local)))
            }
            Opened::File(_) | Opened::Message(_) | Opened::Text(_) => {
                return Err(Refusal::NOT_A_DIRECTORY.into());
            }
        };
        Ok(Answer::Listed { bytes: room.used(), next, open })
    }

    /// The entries of a static directory are the same at every read but for targets that come and go, so it needs no
    /// snapshot: an index stays what it is, and an entry without a target is left out.
    fn list_fixed(&self, dir: Fixed, from: u32, room: &mut Room<'_>, turn: Turn) -> Result<u32, Halt> {
        let children = self.fixtures.children(dir);
        facts::pack(room, &*self.host, from, children.len(), |index| {
            let child = children[index];
            match self.facts(&self.place_of(child), turn) {
                Ok(facts) => Ok(Some((child.name().into(), facts))),
                Err(Halt::Refused(refusal)) if refusal == Refusal::NOT_FOUND => Ok(None),
                Err(halt) => Err(halt),
            }
        })
    }
}

impl Backend<Tree> for Agents {
    fn perform(&self, ask: Ask<Tree>, mut room: Room<'_>, effort: Effort, now: Now) -> Progress<Tree> {
        if let Ask::Write { open, offset, data } = &ask {
            return match self.0.write(open, *offset, data) {
                Ok(begun) => Progress::Later(Box::new(begun)),
                Err(refusal) => Progress::Done(Err(refusal)),
            };
        }
        let turn = Provinces::turn(&ask, effort, now, false);
        match self.0.answer(&ask, &mut room, turn) {
            Ok(answer) => Progress::Done(Ok(answer)),
            Err(Halt::Refused(refusal)) => Progress::Done(Err(refusal)),
            Err(Halt::Cold) if effort == Effort::Cached => Progress::Cold(ask),
            Err(Halt::Cold) => Progress::Done(Err(Refusal::AGAIN)),
            Err(Halt::Torn) => {
                let at_ns = now.mono_ns.saturating_add(TORN_NS);
                Progress::Later(Box::new(Again::new(&self.0, ask, Wait::Torn(at_ns))))
            }
            Err(Halt::Unfinished(unfinished)) => {
                Progress::Later(Box::new(Again::new(&self.0, ask, Wait::Step(unfinished))))
            }
        }
    }

    fn epoch(&self) -> u64 {
        self.0.active.epoch()
    }

    fn must_finish(&self) -> bool {
        self.0.moves.as_ref().is_some_and(|moves| moves.any_committed())
    }
}

/// A request that is asked again: when a record that was being written is done, or for as many steps as it takes.
struct Again {
    tree: Arc<Provinces>,
    ask: Ask<Tree>,
    wait: Wait,
    last_try: bool,
}

/// What a request waits for.
enum Wait {
    /// A time.
    Torn(u64),
    /// Its next step.
    Step(Unfinished),
}

impl Again {
    fn new(tree: &Arc<Provinces>, ask: Ask<Tree>, wait: Wait) -> Self {
        Self { tree: Arc::clone(tree), ask, wait, last_try: false }
    }
}

impl Job<Tree> for Again {
    fn step(&mut self, mut room: Room<'_>, now: Now) -> Step<Tree> {
        match &mut self.wait {
            Wait::Torn(at_ns) if now.mono_ns < *at_ns => return Step::At(*at_ns),
            Wait::Torn(_) => self.last_try = true,
            Wait::Step(unfinished) => {
                // It was waited for before this job was made, or since its last step.
                if let Some(epoch) = unfinished.bell.take()
                    && epoch == self.tree.active.epoch()
                {
                    unfinished.bell = Some(epoch);
                    return Step::WhenRung(epoch);
                }
            }
        }
        let turn = Provinces::turn(&self.ask, Effort::Full, now, self.last_try);
        match self.tree.answer(&self.ask, &mut room, turn) {
            Ok(answer) => Step::Done(Ok(answer)),
            Err(Halt::Refused(refusal)) => Step::Done(Err(refusal)),
            Err(Halt::Unfinished(unfinished)) => {
                let bell = unfinished.bell;
                self.wait = Wait::Step(unfinished);
                bell.map_or(Step::Again, Step::WhenRung)
            }
            Err(Halt::Torn) if !self.last_try => {
                let at_ns = now.mono_ns.saturating_add(TORN_NS);
                self.wait = Wait::Torn(at_ns);
                Step::At(at_ns)
            }
            Err(Halt::Cold | Halt::Torn) => Step::Done(Err(Refusal::AGAIN)),
        }
    }

    fn abandon(&mut self) -> bool {
        true
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents").field("daemon", &self.0.daemon).finish_non_exhaustive()
    }
}

/// Copies what `text` holds from an offset on; nothing at or past its end. Answers how much.
fn copy_from(text: &[u8], offset: u64, buf: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| text.get(offset..)).unwrap_or_default();
    let bytes = rest.len().min(buf.len());
    buf[..bytes].copy_from_slice(&rest[..bytes]);
    bytes
}
