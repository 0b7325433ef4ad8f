//! `/active`: what is running right now.
//!
//! Owns: every question about the places below `/active` ([`place`]), and when the process table is scanned ([`scan`]): on a
//! listing, and on a lookup that misses, never on a read. Must not know: mirrors, how a request came, or anything of one
//! harness; what is known of one is in [`crate::harness`].
//!
//! What is remembered of an agent is what identifies it: harness, pid and start. Everything else is looked up for each
//! request ([`view`]), and an answer stands only if the process is still the same when it has been made: a pid that was
//! reused meanwhile is another process. All of it asks `/proc`, where a read can wait for a dying process, so all of it runs
//! with full effort.

mod chat;
mod place;
mod scan;
mod view;

use std::iter::Peekable;
use std::mem;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine::port::{Effort, Room};
use proto::{QTFILE, Qid, Refusal};

use crate::budget::{Budget, Charge};
use crate::chat::{Entry, Index};
use crate::harness::{self, Scene};
use crate::host::{Host, Kind, Meta};
use crate::name::{Rel, Root};
use crate::process;
use crate::qid;
use crate::tree::Turn;
use crate::tree::facts::{self, Daemon, Facts};
use crate::tree::halt::Halt;

pub(crate) use chat::{Message, OnDisk};
use chat::{Script, Talks};
use place::Subagent;
pub(crate) use place::{Agent, Place};
use scan::{Pass, Table};
pub(crate) use view::WayBack;
use view::{Value, View};

/// Looks up, lists and reads what is in `/active`.
pub(crate) struct Active {
    host: Arc<dyn Host>,
    daemon: Daemon,
    talks: Talks,
    /// What all listings may take, of mirrors and of this.
    names: Arc<Budget>,
    /// Whether the ancestors of this process are listed.
    with_ancestors: bool,
    /// Whether agents may be moved, and so `zmx` be written.
    is_movable: bool,
    /// What the last scan saw. Replaced as a whole; the lock is never held across a call of the host.
    table: Mutex<Arc<Table>>,
    /// The machine's start as the last scan read it; [`UNKNOWN`] before.
    boot_s: AtomicI64,
}

/// An open directory of `/active`: its entries when it was read from the beginning.
#[derive(Debug)]
pub(crate) struct Listing {
    /// Where it is, to begin anew.
    pub(crate) at: Place,
    entries: Entries,
    /// Its share of what all listings may take.
    _charge: Charge,
}

/// What is in a directory.
#[derive(Debug)]
enum Entries {
    Places(Box<[Place]>),
    /// Messages: as many as there were. Which they are is in the index.
    Messages(u32),
}

impl Active {
    /// On one machine. A daemon lists none of the processes it descends from, so that it can neither show nor move the tree
    /// it lives in; `with_ancestors` is for a reader that ends with its command.
    pub(crate) fn new(
        host: Arc<dyn Host>,
        daemon: Daemon,
        descriptors: Arc<Budget>,
        names: Arc<Budget>,
        with_ancestors: bool,
        is_movable: bool,
    ) -> Self {
        let (table, boot_s) = (Mutex::default(), AtomicI64::new(UNKNOWN));
        let talks = Talks::new(Arc::clone(&host), descriptors);
        Self { host, daemon, talks, names, with_ancestors, is_movable, table, boot_s }
    }

    /// Moves whenever a chat is there again that a request found taken by another.
    pub(crate) fn epoch(&self) -> u64 {
        self.talks.epoch()
    }

    /// Walks down from a directory as far as there is no `..` among the names, and no file in the way. `each` is given the
    /// qid of every name that resolved.
    ///
    /// One look at an agent serves all names in its directory: they count together, if it is still there after the last.
    pub(crate) fn walk<'n>(
        &self,
        from: &Place,
        names: &mut Peekable<impl Iterator<Item = &'n [u8]>>,
        turn: Turn,
        each: &mut dyn FnMut(Qid),
    ) -> Result<Place, Halt> {
        let mut at = from.clone();
        let mut next = |at: &Place| names.next_if(|name| *name != b".." && at.is_dir());
        let mut entered = false;
        while at.agent().is_none() {
            let Some(name) = next(&at) else { return Ok(at) };
            at = self.child_above(&at, name, turn)?;
            entered = at.agent().is_some();
            if !entered {
                each(self.facts(&at, turn)?.qid);
            }
        }
        let Some(agent) = at.agent().cloned() else { return Ok(at) };
        let mut qids = Vec::new();
        let refused = self.view(&agent, turn, |view| {
            let mut step = |at: &mut Place| -> Result<bool, Halt> {
                if !mem::take(&mut entered) {
                    let Some(name) = next(at) else { return Ok(false) };
                    *at = self.child_within(view, at, name, turn)?;
                }
                qids.push(self.facts_in(view, at, turn)?.qid);
                Ok(true)
            };
            loop {
                match step(&mut at) {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    // What came before it counts, if the agent does.
                    Err(Halt::Refused(refusal)) => return Ok(Some(refusal)),
                    Err(halt) => return Err(halt),
                }
            }
        })?;
        qids.into_iter().for_each(each);
        refused.map_or(Ok(at), |refusal| Err(refusal.into()))
    }

    /// The entry of `/active` or of a harness under a name a client spelt.
    fn child_above(&self, of: &Place, name: &[u8], turn: Turn) -> Result<Place, Halt> {
        let name = str::from_utf8(name).map_err(|_| Refusal::NOT_FOUND)?;
        let found = match of {
            Place::Harness(root) => {
                let pid = process::decimal(name).ok_or(Refusal::NOT_FOUND)?;
                self.agent(*root, pid, turn)?.map(Place::Agent)
            }
            _ => HARNESSES.into_iter().map(Place::Harness).find(|child| child.name() == name),
        };
        Ok(found.ok_or(Refusal::NOT_FOUND)?)
    }

    /// The entry of a directory of an agent's under a name a client spelt.
    fn child_within(&self, view: &View<'_>, of: &Place, name: &[u8], turn: Turn) -> Result<Place, Halt> {
        let name = str::from_utf8(name).map_err(|_| Refusal::NOT_FOUND)?;
        let found = match of {
            Place::Agent(agent) => agent.children().into_iter().find(|child| child.name() == name),
            Place::Subagents(agent) => subagents_in(view, agent, Some(name))?.pop(),
            Place::Chat(agent) => {
                let id = self.in_chat(view, agent, turn, |index| index.find(name.as_bytes()))?;
                id.map(|id| {
                    let (of, name) = (Arc::clone(agent), name.into());
                    Place::Message(Arc::new(place::Message { of, id, name }))
                })
            }
            Place::Subagent(_) => files_of(of).into_iter().find(|child| child.name() == name),
            Place::Top
            | Place::Harness(_)
            | Place::Field(..)
            | Place::Transcript(_)
            | Place::Message(_)
            | Place::SubagentModel(_)
            | Place::SubagentTranscript(_) => None,
        };
        Ok(found.ok_or(Refusal::NOT_FOUND)?)
    }

    /// What a stat record says of a place; `NOT_FOUND` once it is not there.
    pub(crate) fn facts(&self, of: &Place, turn: Turn) -> Result<Facts, Halt> {
        match of.agent() {
            None => Ok(self.daemon.directory(of.qid_path())),
            Some(agent) => self.view(agent, turn, |view| self.facts_in(view, of, turn)),
        }
    }

    /// The text of a derived file, now.
    pub(crate) fn text(&self, of: &Place, turn: Turn) -> Result<Arc<str>, Halt> {
        match of.agent() {
            Some(agent) if !of.is_dir() => self.view(agent, turn, |view| Ok(text_in(view, of)?.text.into())),
            _ => Err(Refusal::IS_A_DIRECTORY.into()),
        }
    }

    /// The identity of a derived file with this text.
    pub(crate) fn qid(of: &Place, text: &str) -> Qid {
        Qid { kind: QTFILE, version: qid::content(text.as_bytes()), path: of.qid_path() }
    }

    /// The file on disk that a place shows, if that is what it does.
    pub(crate) fn transcript(&self, of: &Place, turn: Turn) -> Result<Option<(Root, Rel)>, Halt> {
        match of {
            Place::Transcript(agent) => self.view(agent, turn, |view| {
                let (rel, _) = view.transcript()?.ok_or(Refusal::NOT_FOUND)?;
                Ok(Some((agent.root, rel.clone())))
            }),
            Place::SubagentTranscript(subagent) => {
                self.view(&subagent.of, turn, |_| Ok(Some((subagent.of.root, subagent.transcript.clone()))))
            }
            _ => Ok(None),
        }
    }

    /// How an agent is brought back after it has ended, refused in words if there is no way; `NOT_FOUND` if it has ended.
    pub(crate) fn way_back(&self, agent: &Agent, turn: Turn) -> Result<WayBack, Halt> {
        self.view(agent, turn, |view| view.way_back())
    }

    /// Opens a message of a chat, if that is what a place is.
    pub(crate) fn open_message(&self, of: &Place, turn: Turn) -> Result<Option<(Qid, Message)>, Halt> {
        let Place::Message(message) = of else { return Ok(None) };
        self.view(&message.of, turn, |view| {
            let (script, _) = script(view, &message.of)?;
            self.talks.open(script, message.id, &message.name, of.qid_path(), turn).map(Some)
        })
    }

    /// Reads an open message.
    pub(crate) fn read_message(
        &self,
        message: &Message,
        buf: &mut [u8],
        offset: u64,
        turn: Turn,
    ) -> Result<usize, Halt> {
        self.talks.read(message, buf, offset, turn)
    }

    /// Takes the entries of a directory, sorted by name.
    pub(crate) fn list(&self, at: &Place, turn: Turn) -> Result<Listing, Halt> {
        let listing = |entries, bytes| {
            let _charge = self.names.take(bytes).ok_or(Refusal::LISTINGS_TOO_LARGE)?;
            Ok(Listing { at: at.clone(), entries, _charge })
        };
        let entries: Box<[Place]> = match at {
            Place::Chat(agent) => {
                let count =
                    self.view(agent, turn, |view| self.in_chat(view, agent, turn, |index| index.len()))?;
                return listing(Entries::Messages(count), 0);
            }
            Place::Top => {
                self.scan(turn)?;
                HARNESSES.into_iter().map(Place::Harness).collect()
            }
            Place::Harness(root) => {
                let mut agents: Vec<Place> =
                    self.scan(turn)?.agents(*root).cloned().map(Place::Agent).collect();
                agents.sort_by(|one, other| one.name().cmp(&other.name()));
                agents.into()
            }
            Place::Agent(agent) => agent.children().into(),
            Place::Subagents(agent) => self.view(agent, turn, |view| subagents_in(view, agent, None))?.into(),
            Place::Subagent(_) => files_of(at).into(),
            Place::Field(..)
            | Place::Transcript(_)
            | Place::Message(_)
            | Place::SubagentModel(_)
            | Place::SubagentTranscript(_) => {
                return Err(Refusal::NOT_A_DIRECTORY.into());
            }
        };
        let bytes = entries.iter().map(Place::memory).sum();
        listing(Entries::Places(entries), bytes)
    }

    /// Packs entries from index `from` on, as many as fit. Answers the index of the first that was not packed. What has
    /// gone since the listing was taken is left out.
    pub(crate) fn pack(
        &self,
        listing: &Listing,
        from: u32,
        turn: Turn,
        room: &mut Room<'_>,
    ) -> Result<u32, Halt> {
        let entries = match (&listing.entries, &listing.at) {
            (Entries::Places(entries), _) => entries,
            (Entries::Messages(count), Place::Chat(agent)) => {
                return self.pack_messages(agent, *count, from, turn, room);
            }
            (Entries::Messages(_), _) => return Err(Refusal::NOT_A_DIRECTORY.into()),
        };
        let pack = |room: &mut Room<'_>, facts: &mut dyn FnMut(&Place) -> Result<Facts, Halt>| {
            facts::pack(room, &*self.host, from, entries.len(), |index| {
                let entry = &entries[index];
                match facts(entry) {
                    Ok(facts) => Ok(Some((entry.name(), facts))),
                    Err(Halt::Refused(refusal)) if refusal == Refusal::NOT_FOUND => Ok(None),
                    Err(halt) => Err(halt),
                }
            })
        };
        match listing.at.agent() {
            None => pack(room, &mut |entry| self.facts(entry, turn)),
            // One look at the agent serves all that is in its directory.
            Some(agent) => {
                self.view(agent, turn, |view| pack(room, &mut |entry| self.facts_in(view, entry, turn)))
            }
        }
    }

    /// The same for the first `count` messages of a chat.
    fn pack_messages(
        &self,
        agent: &Arc<Agent>,
        count: u32,
        from: u32,
        turn: Turn,
        room: &mut Room<'_>,
    ) -> Result<u32, Halt> {
        let path = Place::Chat(Arc::clone(agent)).qid_path();
        self.view(agent, turn, |view| {
            let mut next = from;
            while next < count {
                // A few at a time: they are packed only when the index is free again, because the host is asked for names.
                let batch: Vec<_> = self.in_chat(view, agent, turn, |index| {
                    let entries = index.entries(next).take((count - next).min(BATCH) as usize);
                    let entry = |entry: Entry<'_>| {
                        let name = entry.name();
                        let facts = self.message_facts(&entry, place::entry_path(path, &name));
                        (name, facts)
                    };
                    entries.map(entry).collect()
                })?;
                if batch.is_empty() {
                    // It has become shorter.
                    return Ok(count);
                }
                for (name, facts) in &batch {
                    if !facts.with_record(name, &*self.host, |stat| room.pack(stat, next)) {
                        return Ok(next);
                    }
                    next += 1;
                }
            }
            Ok(next)
        })
    }

    /// Looks into the index of an agent's transcript; `NOT_FOUND` if it has none to be told.
    fn in_chat<T>(
        &self,
        view: &View<'_>,
        agent: &Agent,
        turn: Turn,
        look: impl FnOnce(&Index) -> T,
    ) -> Result<T, Halt> {
        let (script, meta) = script(view, agent)?;
        self.talks.look(&script, &meta, turn, look)
    }

    fn message_facts(&self, entry: &Entry<'_>, path: u64) -> Facts {
        let at_ns = entry.time_ns();
        let qid = Qid { kind: QTFILE, version: entry.version(), path };
        let times = Facts { mtime_ns: at_ns, atime_ns: at_ns, ctime_ns: at_ns, ..self.daemon.file(path, "") };
        Facts { qid, length: entry.length(), ..times }
    }

    /// The live agent of a harness with a pid: one that is remembered, or one that a scan finds.
    fn agent(&self, root: Root, pid: u32, turn: Turn) -> Result<Option<Arc<Agent>>, Halt> {
        if turn.effort == Effort::Cached {
            return Err(Halt::Cold);
        }
        let known = self.table().agent(root, pid);
        match known.filter(|agent| agent.process.stat(&*self.host).is_ok()) {
            Some(agent) => Ok(Some(agent)),
            None => Ok(self.scan(turn)?.agent(root, pid)),
        }
    }

    /// Scans the process table.
    fn scan(&self, turn: Turn) -> Result<Arc<Table>, Halt> {
        if turn.effort == Effort::Cached {
            return Err(Halt::Cold);
        }
        self.learn_boot();
        let last = self.table();
        let pass = Pass {
            host: &*self.host,
            last: &last,
            boot_s: self.boot_s().unwrap_or_default(),
            with_ancestors: self.with_ancestors,
            last_try: turn.last_try,
        };
        let table = pass.take()?;
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&table);
        Ok(table)
    }

    /// Looks at an agent. What `see` makes of it counts only if the process is the same before and after.
    fn view<T>(
        &self,
        agent: &Agent,
        turn: Turn,
        see: impl FnOnce(&View<'_>) -> Result<T, Halt>,
    ) -> Result<T, Halt> {
        if turn.effort == Effort::Cached {
            return Err(Halt::Cold);
        }
        let peers = self.table().processes(agent.root);
        // The scan that found the agent may not have learnt it.
        let boot_s = self.boot_s().or_else(|| self.learn_boot());
        let scene = Scene {
            host: &*self.host,
            root: agent.root,
            boot_s: boot_s.unwrap_or_default(),
            peers: &peers,
            last_try: turn.last_try,
        };
        let view = View::new(*agent, scene, boot_s)?;
        let seen = see(&view)?;
        view.close()?;
        Ok(seen)
    }

    fn facts_in(&self, view: &View<'_>, of: &Place, turn: Turn) -> Result<Facts, Halt> {
        let of_file = |meta| Ok(Facts::of_file(meta).ok_or(Refusal::NOT_FOUND)?);
        let since =
            |facts: Facts, at_ns| Facts { mtime_ns: at_ns, atime_ns: at_ns, ctime_ns: at_ns, ..facts };
        match of {
            Place::Transcript(_) => of_file(&view.transcript()?.ok_or(Refusal::NOT_FOUND)?.1),
            Place::Subagent(subagent) | Place::SubagentTranscript(subagent) => {
                let meta = self.host.stat(subagent.of.root, &subagent.transcript, Effort::Full)?;
                if meta.kind != Kind::File {
                    return Err(Refusal::NOT_FOUND.into());
                }
                if of.is_dir() {
                    return Ok(since(self.daemon.directory(of.qid_path()), meta.mtime.ns()));
                }
                of_file(&meta)
            }
            Place::Chat(agent) => {
                let (_, meta) = script(view, agent)?;
                Ok(since(self.daemon.directory(of.qid_path()), meta.mtime.ns()))
            }
            Place::Message(message) => self
                .in_chat(view, &message.of, turn, |index| {
                    let entry = index.entry(message.id).filter(|entry| entry.name() == *message.name);
                    entry.map(|entry| self.message_facts(&entry, of.qid_path()))
                })?
                .ok_or_else(|| Refusal::NOT_FOUND.into()),
            Place::Subagents(agent)
                if !harness::of(agent.root).is_some_and(|harness| harness.has_subagents()) =>
            {
                Err(Refusal::NOT_FOUND.into())
            }
            Place::Field(..) | Place::SubagentModel(_) => {
                let Value { text, mtime_ns } = text_in(view, of)?;
                let facts = since(self.daemon.file(of.qid_path(), &text), mtime_ns);
                let is_writable = self.is_movable && turn.local && of.whose_zmx().is_some();
                Ok(if is_writable { facts.writable() } else { facts })
            }
            Place::Top | Place::Harness(_) | Place::Agent(_) | Place::Subagents(_) => {
                Ok(since(self.daemon.directory(of.qid_path()), view.started_ns()))
            }
        }
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads when the machine was started, which can be set anew while it runs (the clock is).
    fn learn_boot(&self) -> Option<i64> {
        process::boot_time_s(&*self.host).inspect(|boot_s| self.boot_s.store(*boot_s, Ordering::Relaxed))
    }

    fn boot_s(&self) -> Option<i64> {
        Some(self.boot_s.load(Ordering::Relaxed)).filter(|boot_s| *boot_s != UNKNOWN)
    }
}

/// The transcript of an agent that can be told as a chat, and what is known of its file; else `NOT_FOUND`.
fn script(view: &View<'_>, agent: &Agent) -> Result<(Script, Meta), Halt> {
    let transcript = view.transcript()?.filter(|_| chat::format(agent.root).is_some());
    let (rel, meta) = transcript.ok_or(Refusal::NOT_FOUND)?;
    Ok((Script { root: agent.root, rel: rel.clone() }, *meta))
}

/// The text of a derived file, and when its source changed.
fn text_in(view: &View<'_>, of: &Place) -> Result<Value, Halt> {
    match of {
        Place::Field(_, field) => Ok(view.value(*field)?.ok_or(Refusal::NOT_FOUND)?),
        Place::SubagentModel(subagent) => view.model_of(&subagent.transcript),
        _ => Err(Refusal::BAD_FID_USE.into()),
    }
}

/// The subagents of an agent's session, or the one of a name.
fn subagents_in(view: &View<'_>, agent: &Arc<Agent>, only: Option<&str>) -> Result<Vec<Place>, Halt> {
    let place = |subagent: harness::Subagent| {
        let (name, transcript) = (subagent.name.into(), subagent.transcript);
        Place::Subagent(Arc::new(Subagent { of: Arc::clone(agent), name, transcript }))
    };
    Ok(view.subagents(only)?.into_iter().map(place).collect())
}

/// The files of a subagent, sorted by name.
fn files_of(subagent: &Place) -> Vec<Place> {
    match subagent {
        Place::Subagent(subagent) => {
            vec![Place::SubagentModel(Arc::clone(subagent)), Place::SubagentTranscript(Arc::clone(subagent))]
        }
        _ => Vec::new(),
    }
}

/// The entry in `/`.
pub(crate) const NAME: &str = "active";
/// The harnesses, in the order of their names.
const HARNESSES: [Root; 5] = [Root::Claude, Root::Codex, Root::Dsh, Root::Hermes, Root::Omp];
/// How many messages are taken from an index at once: as many as a usual directory read holds.
const BATCH: u32 = 64;
/// No time of boot.
const UNKNOWN: i64 = i64::MIN;
