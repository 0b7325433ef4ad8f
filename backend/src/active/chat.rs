//! `chat/`: the messages of an agent's conversation.
//!
//! Owns: what a request for a chat does with the file, the index of it and the reader of an open message. Must not know:
//! what a record says, or which session an agent is in.
//!
//! The transcript is indexed in steps, so a request may stop half-way ([`Halt::Unfinished`]); asked again, it goes on
//! there. A message is read through its transcript's descriptor, which is kept while it is open if there is one to spare;
//! what it holds is checked as a plain file's is: when the last check is older than [`FRESH_NS`], and before a read that
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
    /// Taken out while it is read: no lock is held while the host is asked, and who finds nothing makes another.
    state: Mutex<Option<State>>,
}

struct State {
    reader: Reader,
    /// The file's identity when the reader was made.
    file: u64,
    source: Option<Held>,
    fresh_until_ns: u64,
}

/// Open files, and their share of the bound, if it has room for them.
struct Held {
    chain: Chain,
    charge: Option<Charge>,
}

impl Talks {
    pub(super) fn new(host: Arc<dyn Host>, descriptors: Arc<Budget>) -> Self {
        Self { host, chats: Arc::new(Chats::new()), descriptors }
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
        let message = Message { script, id, name: name.into(), state: Mutex::new(None) };
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
        let kept = message.take();
        let mut is_checked = kept.as_ref().is_none_or(|state| state.fresh_until_ns <= turn.now.mono_ns);
        let mut state = match kept {
            Some(state) if !is_checked => state,
            kept => self.checked(message, kept, turn)?.0,
        };
        loop {
            let held = match state.source.take() {
                Some(held) => held,
                None => self.source(message, &state)?,
            };
            let read = state.reader.read(&held.chain, offset, buf, STEP);
            state.source = Some(held).filter(|held| held.charge.is_some());
            match read {
                Ok(Read::Done(got)) if got == buf.len() || is_checked => {
                    message.put(state);
                    return Ok(got);
                }
                // It may be short because the file is another one by now. If it is not, what was read stands: to read it
                // again would mean to begin at the front.
                Ok(Read::Done(got)) => {
                    is_checked = true;
                    let (now, is_same) = self.checked(message, Some(state), turn)?;
                    if is_same {
                        message.put(now);
                        return Ok(got);
                    }
                    state = now;
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
        let looked = self.look(script, &meta, turn, |index| {
            let entry = index.entry(message.id).filter(|entry| entry.name() == *message.name);
            entry.map(|entry| (version != Some(entry.version())).then(|| Reader::new(&entry)))
        });
        let fresh_until_ns = turn.now.mono_ns.saturating_add(FRESH_NS);
        match (looked, kept) {
            (Ok(Some(None)), Some(state)) => Ok((State { fresh_until_ns, ..state }, true)),
            (Ok(Some(Some(reader))), _) => Ok((State { reader, file, source: None, fresh_until_ns }, false)),
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
        Ok(Held { charge: self.descriptors.take(1 + bases.len()), chain })
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
    fn take(&self) -> Option<State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, state: State) {
        let replaced = self.state.lock().unwrap_or_else(PoisonError::into_inner).replace(state);
        // Its files are closed only here, when the lock is free again.
        drop(replaced);
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
/// How long a check holds (contract 9).
const FRESH_NS: u64 = 100_000_000;
