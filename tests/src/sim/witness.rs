//! Who was there when, and what was said by then: what replies are held to however much goes on.
//!
//! Owns: the moments of a run, one for each change of its machine, and the laws about `/active` that hold in every mood and
//! under every fault. A reply tells of some moment between its request and itself. Must not know: how anything is asked for.
//!
//! # Laws
//! - What lists, or is walked to, was alive and of that harness at one of those moments; no corpse, no helper, no ancestor,
//!   and no process that has the pid of another. A qid path is of one process for ever.
//! - A field that is read is of the process whose directory it is in, which was alive; its session, title and model are of a
//!   session that this process was in.
//! - `via` is `none` if and only if `session` is empty, where nothing changes and nothing fails.
//! - While a transcript only grows its messages keep their ids, names and texts, and what is listed, walked to or read is one
//!   of them; half a line is none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend::host::Host;
use backend::host::fixture::Fixture;

use super::client::Held;
use super::truth::{Being, Message, Truth, name_of};
use crate::plan::{Life, Prepared};

/// The witness of a run. Cloning is a reference.
#[derive(Clone, Debug)]
pub(super) struct Witness(Arc<Mutex<Record>>);

/// What has been witnessed.
#[derive(Clone, Debug)]
pub(super) struct Record {
    lives: Vec<Life>,
    moments: Vec<Moment>,
    scripts: BTreeMap<u64, Script>,
    /// Whose each qid path is, as far as that was the only one there.
    qids: BTreeMap<u64, u64>,
    /// What was last read of an agent's `via` and `session`, and when: which moment, of which length.
    told: BTreeMap<u64, [Option<(usize, bool)>; 2]>,
    /// Whether calls of the machine may fail.
    rough: bool,
}

/// The machine between two changes.
#[derive(Clone, Debug, Default)]
struct Moment {
    at_ns: u64,
    beings: Vec<Being>,
    /// Whose session each of them is in, where it has a transcript.
    sessions: BTreeMap<u64, u64>,
    /// How often each transcript has become another.
    epochs: BTreeMap<u64, u32>,
}

/// A transcript as it is now.
#[derive(Clone, Debug)]
struct Script {
    file: (u64, u64, u64),
    text: String,
    epoch: u32,
    messages: Arc<[Message]>,
}

/// When a request was sent.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct When {
    moment: usize,
    at_ns: u64,
}

impl Record {
    /// Of what is there at the beginning.
    pub(super) fn new(prepared: &Prepared) -> Self {
        let mut record = Self {
            lives: prepared.lives.clone(),
            moments: Vec::new(),
            scripts: BTreeMap::new(),
            qids: BTreeMap::new(),
            told: BTreeMap::new(),
            rough: false,
        };
        record.look(&Fixture::new(prepared.world.clone()));
        record
    }

    fn look(&mut self, machine: &Fixture) {
        if self.lives.is_empty() {
            return;
        }
        let truth = Truth::new(machine, &self.lives);
        let beings = truth.beings();
        let mut moment = Moment { at_ns: machine.now().mono_ns, ..Moment::default() };
        for being in &beings {
            let whose = truth.found(&being.life).map(|found| found.whose);
            moment.sessions.extend(whose.map(|whose| (being.life.serial, whose.serial)));
        }
        for whose in self.lives.iter().filter(|life| matches!(life.harness, "claude" | "codex")) {
            let before = self.scripts.remove(&whose.serial);
            let epoch = before.as_ref().map_or(0, |script| script.epoch);
            let now = truth.file_of(whose).map(|file| (file, truth.script(whose).unwrap_or_default()));
            let script = match (before, now) {
                (Some(before), Some((file, text))) if before.file == file && before.text == text => {
                    Some(before)
                }
                (before, Some((file, text))) => {
                    let messages = Truth::messages(whose, &text).into();
                    let next = Script { file, text, epoch, messages };
                    Some(next.after(before))
                }
                (_, None) => None,
            };
            // What is gone may come again, as another.
            moment.epochs.insert(whose.serial, script.as_ref().map_or(epoch + 1, |script| script.epoch));
            let gone = || Script {
                file: (0, 0, 0),
                text: String::new(),
                epoch: epoch + 1,
                messages: Arc::default(),
            };
            self.scripts.insert(whose.serial, script.unwrap_or_else(gone));
        }
        moment.beings = beings;
        self.moments.push(moment);
    }
}

impl Script {
    /// It follows the one before: the same that has grown, or another.
    fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        if before.file != self.file || !self.text.starts_with(&before.text) {
            return Self { epoch: before.epoch + 1, ..self };
        }
        assert!(self.messages.starts_with(&before.messages), "the oracle itself moves an id");
        self
    }
}

impl Witness {
    /// From what was there at the beginning on; whether calls of the machine fail now and then.
    pub(super) fn new(record: &Record, rough: bool) -> Self {
        Self(Arc::new(Mutex::new(Record { rough, ..record.clone() })))
    }

    /// The machine has changed.
    pub(super) fn look(&self, machine: &Fixture) {
        self.record().look(machine);
    }

    /// A request is sent.
    pub(super) fn now(&self, at_ns: u64) -> When {
        When { moment: self.record().moments.len().saturating_sub(1), at_ns }
    }

    /// A path was walked to, which has this qid path; its agent's is known if it was walked through.
    pub(super) fn walked(&self, since: When, path: &[String], qid: u64, agent: Option<u64>) {
        match path {
            [active, harness, pid] if active == "active" => self.shown(since, harness, pid, qid),
            [active, _, _, chat, name] if active == "active" && chat == "chat" => {
                self.named(since, agent, name)
            }
            _ => {}
        }
    }

    /// A directory was read, and this name is in it.
    pub(super) fn listed(&self, since: When, held: &Held, name: &[u8], qid: u64) {
        let path = [&held.path[..], &[String::from_utf8_lossy(name).into_owned()]].concat();
        self.walked(since, &path, qid, held.agent);
    }

    /// An agent was shown.
    fn shown(&self, since: When, harness: &str, pid: &str, qid: u64) {
        let mut record = self.record();
        if record.lives.is_empty() {
            return;
        }
        let there: Vec<u64> =
            record.there(since, |life| life.harness == harness && life.pid.to_string() == pid);
        assert!(!there.is_empty(), "active/{harness}/{pid} is shown, and is no living agent: {since:?}");
        match (record.qids.get(&qid), &there[..]) {
            (Some(known), _) => {
                assert!(
                    there.contains(known),
                    "active/{harness}/{pid} is shown as life {known}, of {there:?}"
                );
            }
            (None, [only]) => {
                let other = record.qids.iter().find(|(_, life)| *life == only);
                assert!(other.is_none(), "life {only} has two qid paths");
                record.qids.insert(qid, *only);
            }
            (None, _) => {}
        }
    }

    /// A message was shown in an agent's `chat`.
    fn named(&self, since: When, agent: Option<u64>, name: &str) {
        let record = self.record();
        let Some((_, messages)) = record.chat(since, agent) else { return };
        let id = name.split('-').next().and_then(|id| id.parse::<usize>().ok());
        let told = id.and_then(|id| Some(name_of(id, messages.get(id)?)));
        assert!(told.as_deref() == Some(name), "{name} is shown, and message {id:?} is {told:?}");
    }

    /// Something that is open was read.
    pub(super) fn read(&self, since: When, held: &Held, offset: u64, count: u32, data: &[u8]) {
        let mut record = self.record();
        let [active, harness, pid, below @ ..] = &held.path[..] else { return };
        if active != "active" || record.lives.is_empty() || count == 0 || data.is_empty() && below.len() != 1
        {
            return;
        }
        match below {
            [chat, name] if chat == "chat" => record.hold_message(since, held, name, offset, data),
            [field] if offset == 0 && field != "transcript" => {
                let is_of = |life: &Life| life.harness == *harness && life.pid.to_string() == *pid;
                let there = record.there(since, is_of);
                assert!(!there.is_empty(), "{} is read, and is of no living agent", held.path.join("/"));
                let Some(whose) = held.agent.and_then(|agent| record.qids.get(&agent).copied()) else {
                    return;
                };
                assert!(there.contains(&whose), "{} of life {whose} is read: {there:?}", held.path.join("/"));
                record.hold_field(since, whose, field, count, data);
            }
            _ => {}
        }
    }

    /// Whose session an agent was in all the while since a request was sent.
    pub(super) fn session(&self, since: When, agent: Option<u64>) -> Option<u64> {
        let record = self.record();
        let being = record.qids.get(&agent?)?;
        let whose = record.moments.last()?.sessions.get(being)?;
        let moments = &record.moments[since.moment..];
        moments.iter().all(|moment| moment.sessions.get(being) == Some(whose)).then_some(*whose)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// The lives of some sort that there were since a request was sent.
    fn there(&self, since: When, is_one: impl Fn(&Life) -> bool) -> Vec<u64> {
        let beings = self.moments[since.moment..].iter().flat_map(|moment| &moment.beings);
        let mut there: Vec<u64> =
            beings.map(|being| being.life).filter(is_one).map(|life| life.serial).collect();
        there.sort_unstable();
        there.dedup();
        there
    }

    /// The conversation of an agent: whose session it is and its messages, if all the while since a request was sent it was
    /// in that session, and the transcript of it only grew.
    fn chat(&self, since: When, agent: Option<u64>) -> Option<(u64, &[Message])> {
        let being = self.qids.get(&agent?)?;
        let now = self.moments.last()?;
        let whose = now.sessions.get(being)?;
        let epoch = now.epochs.get(whose)?;
        let is_same = |moment: &Moment| {
            moment.sessions.get(being) == Some(whose) && moment.epochs.get(whose) == Some(epoch)
        };
        self.moments[since.moment..].iter().all(is_same).then_some(())?;
        Some((*whose, &self.scripts.get(whose)?.messages))
    }

    fn hold_message(&self, since: When, held: &Held, name: &str, offset: u64, data: &[u8]) {
        // What was last seen of an open file may be believed for 100 ms.
        let believed_ns = since.at_ns.saturating_sub(FRESH_NS);
        let first = self.moments.iter().rposition(|moment| moment.at_ns <= believed_ns).unwrap_or(0);
        let Some(whose) = held.open.and_then(|open| open.session) else { return };
        let epoch = |moment: &Moment| moment.epochs.get(&whose).copied();
        let now = self.moments.last().and_then(epoch);
        if !self.moments[first.min(since.moment)..].iter().all(|moment| epoch(moment) == now) {
            return;
        }
        let Some(script) = self.scripts.get(&whose) else { return };
        let id = name.split('-').next().and_then(|id| id.parse::<usize>().ok());
        let message = id.and_then(|id| Some((id, script.messages.get(id)?)));
        let message =
            message.filter(|(id, message)| name_of(*id, message) == name).map(|(_, message)| message);
        let Some(message) = message else { panic!("{name} is read, and is no message of life {whose}") };
        let rest = usize::try_from(offset).ok().and_then(|offset| message.text.as_bytes().get(offset..));
        assert!(
            rest.unwrap_or_default().starts_with(data),
            "{name} of life {whose} reads {:?} at {offset}, but is {:?}",
            data.escape_ascii().to_string(),
            message.text
        );
    }

    fn hold_field(&mut self, since: When, whose: u64, field: &str, count: u32, data: &[u8]) {
        let text = String::from_utf8_lossy(data).into_owned();
        let is_whole = data.len() < count as usize && (data.is_empty() || data.ends_with(b"\n"));
        let of_session = self.moments[since.moment..].iter().filter_map(|moment| moment.sessions.get(&whose));
        let is_marked =
            |whose: u64| text.contains(&format!("s{whose}s")) || text.contains(&format!("{whose:012x}"));
        let is_one = match field {
            "pid" | "ppid" | "started" | "via" => true,
            // Of a name that was nobody's, a word was written into the middle.
            "model" if text.to_ascii_lowercase().contains(" asks") && !text.contains("model") => true,
            "session" | "title" | "model" => of_session.clone().any(|whose| is_marked(*whose)),
            _ => is_marked(whose),
        };
        assert!(is_one || data.is_empty() || !is_whole, "{field} of life {whose} is {text:?}");
        let none = match field {
            "via" => text == "none\n",
            "session" => text.is_empty(),
            _ => return,
        };
        let now = self.moments.len() - 1;
        if !is_whole || self.rough || since.moment != now {
            return;
        }
        let told = self.told.entry(whose).or_default();
        told[usize::from(field == "via")] = Some((now, none));
        if let [Some((one, session)), Some((other, via))] = *told {
            assert!(one != other || session == via, "life {whose} has no session, or no route to it");
        }
    }
}

/// How long a check of an open file holds (contract 9), and a little.
const FRESH_NS: u64 = 101_000_000;
