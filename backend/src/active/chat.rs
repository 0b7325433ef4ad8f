//! `chat/`: the messages of an agent's conversation.
//!
//! Owns: what a request for a chat does with the file, the index of it and the reader of an open message. Must not know:
//! what a record says, or which session an agent is in.
//!
//! The transcript is indexed in steps, so a request may stop half-way ([`Halt::Unfinished`]); asked again, it goes on
//! there. A message is read through its transcript's descriptor, which is kept while it is open if there is one to spare,
//! and by its spans, which are kept if there is room for them; they are found again for each read otherwise. What it holds is checked as a plain file's is: when the last check is older than [`FRESH_NS`], and before a read that
//! came up short is answered.

use std::sync::{Arc, Mutex, PoisonError};

use engine::port::Effort;
use proto::{QTFILE, Qid, Refusal};

use crate::budget::{Budget, Charge};
use crate::chat::pool::{Asked, Chats, Turn as Step};
use crate::chat::render::{Read, Reader};
use crate::chat::source::Chain;
use crate::chat::{Error, Format, Index, Source};
use crate::harness;
use crate::harness::codex::bases::{self, Rollouts};
use crate::host::{Errno, File, Host, Kind, Meta};
use crate::name::{DATABASE_HEAD_BYTES, Rel, Root, is_database};
use crate::pins::gone;
use crate::qid;
use crate::tree::Turn;
use crate::tree::halt::{Halt, Unfinished};

/// The chats of one machine.
pub(super) struct Talks {
    host: Arc<dyn Host>,
    chats: Arc<Chats>,
    descriptors: Arc<Budget>,
    /// Bytes of the spans of open messages.
    spans: Arc<Budget>,
    /// Decoders that are kept for open messages.
    decoders: Arc<Budget>,
}

/// A transcript that may be told as a chat.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Script {
    pub(super) root: Root,
    pub(super) rel: Rel,
}

/// An open message.
pub(crate) struct Message {
    script: Script,
    id: u32,
    name: Box<str>,
    /// Where reads have stopped, the latest one last. One is taken out while it is read: no lock is held while the host is
    /// asked. A client may have several reads on their way, and who finds none makes another.
    states: Mutex<Vec<State>>,
}

struct State {
    reader: Reader,
    /// What its spans take, if there is room for them.
    share: Option<Charge>,
    /// The file's identity when the reader was made.
    file: u64,
    source: Option<Held>,
    fresh_until_ns: u64,
    /// Whether what it is read for now came up short before, and has been checked: as it comes out this time, it is.
    is_again: bool,
}

/// Open files, and their share of the bounds on descriptors and decoders, if those have room for them.
struct Held {
    chain: Chain,
    charge: Option<(Charge, Charge)>,
}

impl Talks {
    pub(super) fn new(host: Arc<dyn Host>, descriptors: Arc<Budget>) -> Self {
        let (spans, decoders) = (Budget::new(SPANS_BYTES), Budget::new(MOST_DECODERS));
        Self { host, chats: Arc::new(Chats::new()), descriptors, spans, decoders }
    }

    /// Moves whenever a chat is there again that somebody found taken.
    pub(super) fn epoch(&self) -> u64 {
        self.chats.epoch()
    }

    /// Looks into the index of a transcript, of which `meta` is known, when it tells all there is.
    pub(super) fn look<T>(
        &self,
        script: &Script,
        meta: &Meta,
        turn: Turn,
        look: impl FnOnce(&Index) -> T,
    ) -> Result<T, Halt> {
        if turn.effort == Effort::Cached {
            return Err(Halt::Cold);
        }
        let look = match self.chats.peek(meta, look) {
            Ok(said) => return Ok(said),
            Err(look) => look,
        };
        let asked = Asked {
            meta,
            format: format(script.root).ok_or(Refusal::NOT_FOUND)?,
            open: &|| self.open_file(script, meta),
            library: &Rollouts { host: &*self.host },
            now_ns: turn.now.wall_ns,
        };
        let visit = self.chats.visit(meta);
        match visit.step(&asked, STEP, look)? {
            Step::Done(said) => Ok(said),
            Step::Again => Err(Halt::Unfinished(Unfinished { _visit: Some(visit), bell: None })),
            Step::WhenRung(epoch) => {
                Err(Halt::Unfinished(Unfinished { _visit: Some(visit), bell: Some(epoch) }))
            }
        }
    }

    /// Opens a message.
    pub(super) fn open(
        &self,
        script: Script,
        id: u32,
        name: &str,
        path: u64,
        turn: Turn,
    ) -> Result<(Qid, Message), Halt> {
        let message = Message { script, id, name: name.into(), states: Mutex::default() };
        let (state, _) = self.checked(&message, None, turn)?;
        let qid = Qid { kind: QTFILE, version: state.reader.version(), path };
        message.put(state);
        Ok((qid, message))
    }

    /// Reads at an offset until `buf` is full or the text ends.
    pub(super) fn read(
        &self,
        message: &Message,
        buf: &mut [u8],
        offset: u64,
        turn: Turn,
    ) -> Result<usize, Halt> {
        if turn.effort == Effort::Cached {
            return Err(Halt::Cold);
        }
        let kept = message.take(offset);
        let mut is_checked = kept.as_ref().is_none_or(|state| state.fresh_until_ns <= turn.now.mono_ns);
        let mut state = match kept {
            Some(state) if !is_checked && state.share.is_some() => state,
            kept => self.checked(message, kept, turn)?.0,
        };
        loop {
            let held = match state.source.take() {
                Some(held) => held,
                None => self.source(message, &state)?,
            };
            let mut read = state.reader.read(&held.chain, offset, buf, STEP);
            // Without what is kept from one step to the next, each would begin anew: then it is one step.
            while (held.charge.is_none() || state.share.is_none())
                && matches!(read, Ok(Read::Again) | Err(Errno::AGAIN))
            {
                read = state.reader.read(&held.chain, offset, buf, STEP);
            }
            state.source = Some(held).filter(|held| held.charge.is_some());
            match read {
                Ok(Read::Done(got)) if got == buf.len() || is_checked || state.is_again => {
                    state.is_again = false;
                    message.put(state);
                    return Ok(got);
                }
                // It may be short because the file is another one by now. What was read of the same to its end is not read
                // again: on the way back to where it begins, a compressed base may have to be decoded from its front.
                Ok(Read::Done(got)) => {
                    let is_whole = offset.saturating_add(got as u64) >= state.reader.length();
                    let (now, is_same) = self.checked(message, Some(state), turn)?;
                    if is_same && is_whole {
                        message.put(now);
                        return Ok(got);
                    }
                    is_checked = true;
                    state = State { is_again: true, ..now };
                }
                Ok(Read::Again) | Err(Errno::AGAIN) => {
                    message.put(state);
                    return Err(Halt::Unfinished(Unfinished { _visit: None, bell: None }));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What there is to read by, now: `kept`, if the message is still the one it was, and whether it is. Where that cannot be
    /// told yet, what was kept is there for the next try.
    fn checked(&self, message: &Message, kept: Option<State>, turn: Turn) -> Result<(State, bool), Halt> {
        let script = &message.script;
        let meta = self.host.stat(script.root, &script.rel, Effort::Full).map_err(gone)?;
        if meta.kind != Kind::File {
            return Err(Refusal::NOT_FOUND.into());
        }
        let file = qid::path(&meta);
        let version = kept.as_ref().filter(|state| state.file == file).map(|state| state.reader.version());
        let is_bare = kept.as_ref().is_some_and(|state| state.share.is_none());
        let looked = self.look(script, &meta, turn, |index| {
            let entry = index.entry(message.id).filter(|entry| entry.name() == *message.name);
            entry.map(|entry| {
                let is_same = version == Some(entry.version());
                ((!is_same || is_bare).then(|| Reader::new(&entry)), is_same)
            })
        });
        let fresh_until_ns = turn.now.mono_ns.saturating_add(FRESH_NS);
        match (looked, kept) {
            (Ok(Some((made, true))), Some(mut state)) => {
                if let Some(reader) = made {
                    state.share = self.spans.take(reader.memory());
                    state.reader = reader.at_place_of(&state.reader);
                }
                Ok((State { fresh_until_ns, ..state }, true))
            }
            (Ok(Some((Some(reader), _))), _) => {
                let (share, is_again) = (self.spans.take(reader.memory()), false);
                Ok((State { reader, share, file, source: None, fresh_until_ns, is_again }, false))
            }
            (Ok(_), _) => Err(Refusal::NOT_FOUND.into()),
            (Err(halt), kept) => {
                kept.into_iter().for_each(|state| message.put(state));
                Err(halt)
            }
        }
    }

    /// Opens the files that a message is in.
    fn source(&self, message: &Message, state: &State) -> Result<Held, Halt> {
        let (own, meta) = self.open_script(&message.script).map_err(gone)?;
        if qid::path(&meta) != state.file {
            // Replaced since it was looked at: the next step looks again.
            return Err(Halt::Unfinished(Unfinished { _visit: None, bell: None }));
        }
        let bases = state.reader.bases();
        let chain = if state.reader.is_in_base() {
            bases::chain(own, state.file, &Rollouts { host: &*self.host })?
        } else {
            Chain::behind(bases, own)
        };
        if chain.lengths() != bases {
            return Err(Refusal::NOT_FOUND.into());
        }
        // Any base may be compressed.
        let decoders = if state.reader.is_in_base() { bases.len() } else { 0 };
        let charge = self.descriptors.take(1 + bases.len()).zip(self.decoders.take(decoders));
        Ok(Held { charge, chain })
    }

    /// The file of a transcript, if it is the one that `meta` tells of.
    fn open_file(&self, script: &Script, meta: &Meta) -> Result<Box<dyn Source>, Error> {
        let (source, now) = self.open_script(script)?;
        if qid::path(&now) == qid::path(meta) { Ok(source) } else { Err(Errno::NOENT.into()) }
    }

    fn open_script(&self, script: &Script) -> Result<(Box<dyn Source>, Meta), Errno> {
        let (file, meta) = self.host.open(script.root, &script.rel, Effort::Full)?;
        // What `transcript` refuses to serve is no conversation either.
        let mut head = [0; DATABASE_HEAD_BYTES];
        let read = file.read_at(&mut head, 0, Effort::Full)?;
        if is_database(&head[..read]) {
            return Err(Errno::PERM);
        }
        Ok((Box::new(OnDisk(file)), meta))
    }
}

impl Message {
    /// The state that is the nearest before an offset; where none is, the latest, which begins at the front.
    fn take(&self, offset: u64) -> Option<State> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let near = |state: &State| Some(state.reader.place()).filter(|place| *place <= offset);
        let nearest = (0..states.len()).max_by_key(|at| near(&states[*at]))?;
        Some(states.remove(nearest))
    }

    fn put(&self, mut state: State) {
        if state.share.is_none() {
            state.reader.forget_spans();
        }
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.push(state);
        let oldest = (states.len() > MOST_STATES).then(|| states.remove(0));
        drop(states);
        // Its files are closed only here, when the lock is free again.
        drop(oldest);
    }
}

/// A file of the host, read with full effort.
pub(crate) struct OnDisk(pub(crate) Box<dyn File>);

impl Source for OnDisk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.0.read_at(buf, offset, Effort::Full)
    }
}

/// Whose records the transcripts below a root hold, where they can be told.
pub(super) fn format(root: Root) -> Option<Format> {
    harness::of(root)?.format()
}

/// Bytes of transcript that one step takes.
const STEP: usize = 4 * 1024 * 1024;
/// What the spans of all open messages may take: as much as all indexes.
const SPANS_BYTES: usize = crate::chat::build::LIMIT;
/// How many decoders are kept between two reads: each may have a window of 8 MiB.
const MOST_DECODERS: usize = 16;
/// How many states of one open message are kept: as many reads of it may be on their way without one beginning anew.
const MOST_STATES: usize = 4;
/// How long a check holds (contract 9).
const FRESH_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use engine::port::Now;

    use super::*;
    use crate::host::fixture::{Edit, Fixture};
    use crate::host::wrap::Traced;
    use crate::name::Name;

    const TURN: Turn = Turn {
        effort: Effort::Full,
        now: Now { mono_ns: 1_000_000_000, wall_ns: 1_800_000_000_000_000_000 },
        last_try: false,
        local: false,
    };

    /// Chats of a machine with these files, of which the last is the transcript.
    fn talks(root: Root, files: &[(&str, &[u8])]) -> (Talks, Script, Fixture) {
        let fixture = Fixture::default();
        fixture.apply(&Edit::MkdirAll { path: "/w".into() }).unwrap();
        fixture.apply(&Edit::Root { root, path: "/w".into() }).unwrap();
        let mut rel = Rel::base();
        for (path, bytes) in files {
            let at = format!("/w/{path}");
            fixture.apply(&Edit::MkdirAll { path: at.rsplit_once('/').unwrap().0.into() }).unwrap();
            fixture.apply(&Edit::Write { path: at.into(), bytes: (*bytes).into() }).unwrap();
            let names = path.split('/').map(|name| Name::of_harness(name).unwrap());
            rel = names.fold(Rel::base(), |dir, name| dir.join(name));
        }
        (Talks::new(Arc::new(fixture.clone()), Budget::new(8)), Script { root, rel }, fixture)
    }

    fn finished<T>(mut step: impl FnMut() -> Result<T, Halt>) -> T {
        // As a job does: what was begun is held until the next step has gone on with it.
        let mut last = None;
        for _ in 0..1000 {
            match step() {
                Ok(done) => return done,
                Err(Halt::Unfinished(unfinished)) => _ = last.replace(unfinished),
                Err(halt) => panic!("{halt:?}"),
            }
        }
        panic!("it never ends")
    }

    #[test]
    fn what_the_spans_of_open_messages_take_is_bounded() {
        let items: Vec<String> = (0..1000).map(|at| format!("\"item {at}\"")).collect();
        let block = format!("{{\"type\":\"tool_result\",\"content\":[{}]}}", items.join(","));
        let line = format!("{{\"type\":\"user\",\"message\":{{\"content\":[{block}]}}}}\n");
        let text: String = (0..1000).map(|at| format!("item {at}\n")).collect();
        let (mut talks, script, _) = talks(Root::Claude, &[("t", line.as_bytes())]);
        talks.spans = Budget::new(100_000);
        let open = || finished(|| talks.open(script.clone(), 0, "00000000-tool-result", 1, TURN)).1;
        let messages: Vec<Message> = (0..10).map(|_| open()).collect();
        let whole = |message: &Message| message.states.lock().unwrap()[0].reader.memory() > 0;
        let kept = messages.iter().filter(|message| whole(message)).count();
        assert!((1..10).contains(&kept) && talks.spans.used() <= 100_000, "{kept}");
        for message in &messages {
            // From the front, from somewhere, and on from there.
            for at in [0, 1000, 5003, 6003, 7003, 40, text.len() - 5, text.len(), text.len() + 9] {
                let mut buf = [0; 1000];
                let got = finished(|| talks.read(message, &mut buf, at as u64, TURN));
                let rest = text.as_bytes().get(at..).unwrap_or_default();
                assert_eq!(&buf[..got], &rest[..rest.len().min(1000)], "{at}");
            }
        }
        assert_eq!(messages.iter().filter(|message| whole(message)).count(), kept);
        drop(messages);
        assert_eq!(talks.spans.used(), 0);
    }

    #[test]
    fn reads_on_their_way_together_go_on_where_one_of_them_stopped() {
        let text = "0123456789abcdef".repeat(1 << 16);
        let line = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"{text}\"}}}}\n");
        let (mut talks, script, fixture) = talks(Root::Claude, &[("t", line.as_bytes())]);
        let traced = Arc::new(Traced::new(Arc::new(fixture)));
        talks.host = Arc::clone(&traced) as Arc<dyn Host>;
        let message = finished(|| talks.open(script.clone(), 0, "00000000-user", 1, TURN)).1;
        let mut buf = vec![0; 8192];
        let mut read = |at: usize| {
            let before = traced.calls();
            let got = finished(|| talks.read(&message, &mut buf, at as u64, TURN));
            assert!(buf[..got] == text.as_bytes()[at..at + got] && got == 8192);
            traced.calls() - before
        };
        // One is on its way, and another comes.
        let away = message.take(0).unwrap();
        assert!(read(500_000) > 20, "all before it is read");
        message.put(away);
        for (at, calls) in [(508_192, 3), (0, 8), (516_384, 3), (8192, 3), (524_576, 3), (16_384, 3)] {
            let taken = read(at);
            assert!(taken <= calls, "{at}: {taken}");
        }
        for at in (0..20).map(|at| at * 40_000) {
            let away: Vec<State> = std::iter::from_fn(|| message.take(0)).collect();
            read(at);
            away.into_iter().for_each(|state| message.put(state));
        }
        assert_eq!(message.states.lock().unwrap().len(), MOST_STATES);
    }

    #[test]
    fn a_read_ends_though_nothing_can_be_kept_between_its_steps() {
        const IDS: [&str; 2] =
            ["019f6249-cc95-7c50-b9fa-1db381270b74", "019f624a-cc95-7c50-b9fa-1db381270b73"];
        const DAY: &str = "sessions/2026/07/14";
        let meta = |id: &str, more: &str| {
            format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\"{more}}}}}\n")
        };
        let padding = format!("{{\"type\":\"x\",\"x\":\"{}\"}}\n", "x".repeat(3 * STEP));
        let said = "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":\"deep down\"}}\n";
        let base = meta(IDS[0], "") + &padding + said;
        let from =
            format!(",\"history_base\":{{\"thread_id\":\"{}\",\"end_byte_offset\":{}}}", IDS[0], base.len());
        let [base_path, own_path] = IDS.map(|id| format!("{DAY}/rollout-2026-07-14T20-21-37-{id}.jsonl"));
        let compressed = zstd::encode_all(base.as_bytes(), 1).unwrap();
        let (mut talks, script, fixture) = talks(
            Root::Codex,
            &[(&(base_path.clone() + ".zst"), &compressed), (&own_path, meta(IDS[1], &from).as_bytes())],
        );
        for (descriptors, spans) in [(8, 1 << 20), (0, 1 << 20), (8, 0), (0, 0)] {
            talks.descriptors = Budget::new(descriptors);
            talks.spans = Budget::new(spans);
            let message = finished(|| talks.open(script.clone(), 0, "00000000-user", 1, TURN)).1;
            for (offset, rest) in
                [(0, &b"deep down\n"[..]), (5, b"down\n"), (9, b"\n"), (10, b""), (2, b"ep down\n")]
            {
                let mut buf = [0; 100];
                let got = finished(|| talks.read(&message, &mut buf, offset, TURN));
                assert_eq!(&buf[..got], rest);
            }
        }
        let base_at = format!("/w/{base_path}.zst");
        // Nor does it go on for ever where the base has become shorter since.
        talks.descriptors = Budget::new(8);
        let message = finished(|| talks.open(script.clone(), 0, "00000000-user", 1, TURN)).1;
        let shorter = zstd::encode_all(&base.as_bytes()[..base.len() - 8], 1).unwrap();
        fixture.apply(&Edit::Write { path: base_at.into(), bytes: shorter.into() }).unwrap();
        assert_eq!(finished(|| talks.read(&message, &mut [0; 100], 0, TURN)), 5);
    }
}
