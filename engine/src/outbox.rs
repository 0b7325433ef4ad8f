//! Replies on their way out.
//!
//! Owns: the batch being gathered, the buffers ready to be sent, the rooms lent to answers, and how many bytes all that
//! is or may become. Must not know: requests, fids, or how bytes are sent.
//!
//! A payload is written where it will be sent from: a room is the tail of the batch behind space for a header, which is
//! filled in once the payload's length is known. A short answer costs nothing, and nothing is copied. A worker on
//! another thread fills a buffer of its own ([`Apart`]), which is copied if it is small and sent as it is otherwise.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use proto::{Dialect, Rmessage};

use crate::port::{Form, Room, Ticket};

/// A run of whole replies, ready to be sent.
#[derive(Debug)]
pub struct Buf {
    bytes: Vec<u8>,
    len: usize,
}

impl Buf {
    /// The bytes to send.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The room an answer may fill.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) form: Form,
    /// Bytes of header in front of it.
    pub(crate) head: u8,
    /// Bytes of payload, at most.
    pub(crate) limit: u32,
    /// Bytes that the ask itself carries: names, data. They count like a room while it runs.
    pub(crate) carried: u32,
}

impl Spec {
    /// For an answer without a payload.
    pub(crate) const NOTHING: Self = Self { form: Form::Nothing, head: 0, limit: 0, carried: 0 };

    /// For an answer without a payload, to an ask that carries so many bytes: never more than a frame.
    pub(crate) fn carrying(bytes: usize) -> Self {
        Self { carried: bytes as u32, ..Self::NOTHING }
    }

    /// What is promised to a job: what its ask carried is used up, and a read or a listing may be short.
    pub(crate) fn parked(self, most: u32) -> Self {
        let limit = match self.form {
            Form::Bytes | Form::Entries => self.limit.min(most.saturating_sub(u32::from(self.head))),
            Form::Nothing | Form::Stat => self.limit,
        };
        Self { limit, carried: 0, ..self }
    }

    /// Bytes of the room, its header included.
    fn bytes(self) -> usize {
        usize::from(self.head) + self.limit as usize
    }

    /// Bytes that the request counts for while it runs.
    fn weight(self) -> usize {
        self.bytes() + self.carried as usize
    }
}

/// A room with space of its own, for an answer made on another thread. It takes no memory before it is entered.
#[derive(Debug)]
pub struct Apart {
    spec: Spec,
    dialect: Dialect,
    bytes: Vec<u8>,
}

impl Apart {
    pub(crate) fn new(spec: Spec, dialect: Dialect) -> Self {
        Self { spec, dialect, bytes: Vec::new() }
    }

    /// The room. Every call gives a fresh one.
    pub fn room(&mut self) -> Room<'_> {
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.spec.bytes()];
        }
        Room::new(self.spec.form, self.dialect, &mut self.bytes[usize::from(self.spec.head)..])
    }
}

/// The outbox.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// All of it is initialised; only the first `filled` bytes are replies.
    batch: Vec<u8>,
    filled: usize,
    ready: VecDeque<Buf>,
    /// Memory of the buffers ready or taken by the driver and not yet sent: what they take, not what they say.
    queued: usize,
    /// Rooms of running requests.
    promised: usize,
    /// How much of that is promised to jobs.
    parked: usize,
    /// Whose room the batch's tail is.
    lent: Option<Ticket>,
    /// Buffers that the driver has taken and not yet sent.
    taken: usize,
    gather: usize,
    /// Length of a new batch: the largest room fits behind all that is gathered before a send is due.
    size: usize,
    /// There is no memory for a whole batch: replies take no more than they need.
    saving: bool,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            batch: Vec::new(),
            filled: 0,
            ready: VecDeque::new(),
            queued: 0,
            promised: 0,
            parked: 0,
            lent: None,
            taken: 0,
            gather: MIN_GATHER,
            size: MIN_GATHER + SMALL,
            saving: false,
        }
    }

    /// Whether replies are to take no more memory than they need, at the price of copying them.
    pub(crate) fn save(&mut self, saving: bool) {
        self.saving = saving;
    }

    /// What was last said with [`Outbox::save`].
    pub(crate) fn saves(&self) -> bool {
        self.saving
    }

    /// A new msize: batches grow to twice that, within bounds.
    pub(crate) fn resize(&mut self, msize: u32) {
        self.gather = (2 * msize as usize).clamp(MIN_GATHER, MAX_GATHER);
        self.size = self.gather + msize as usize + SMALL;
    }

    /// Length of a new batch.
    pub(crate) fn gather_bytes(&self) -> usize {
        self.size
    }

    /// Bytes of memory that replies take or are promised: gathered, ready, or handed to the driver and not yet sent.
    pub(crate) fn queued(&self) -> usize {
        let gathered = if self.filled > 0 { self.batch.len() } else { 0 };
        gathered + self.queued + self.promised
    }

    /// Whether nothing is queued, and nothing promised but to jobs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.queued() == self.parked
    }

    /// Whether enough is gathered for a send.
    pub(crate) fn is_worth_sending(&self) -> bool {
        self.filled >= self.gather || !self.ready.is_empty()
    }

    /// Whether there is anything to send.
    pub(crate) fn has_bytes(&self) -> bool {
        self.filled > 0 || !self.ready.is_empty()
    }

    pub(crate) fn promise(&mut self, spec: Spec) {
        self.promised += spec.weight();
    }

    /// A running request has become a job: `spec` is promised to it from here on.
    pub(crate) fn park(&mut self, before: Spec, spec: Spec) {
        self.promised = self.promised - before.weight() + spec.weight();
        self.parked += spec.weight();
    }

    pub(crate) fn release(&mut self, spec: Spec, parked: bool) {
        self.promised -= spec.weight();
        if parked {
            self.parked -= spec.weight();
        }
    }

    /// The batch's tail as a room, until anything else is put into the batch.
    pub(crate) fn room(&mut self, ticket: Ticket, spec: Spec, dialect: Dialect) -> Room<'_> {
        self.reserve(spec.bytes());
        self.lent = Some(ticket);
        let start = self.filled + usize::from(spec.head);
        Room::new(spec.form, dialect, &mut self.batch[start..start + spec.limit as usize])
    }

    /// Appends the reply whose payload the ticket's room holds: `header` fills in the space in front of it. `false` when
    /// the batch's tail is not this ticket's room, or the payload is longer than the room. An empty payload needs none.
    pub(crate) fn finish(
        &mut self,
        ticket: Ticket,
        spec: Spec,
        payload: u32,
        header: impl FnOnce(&mut [u8]),
    ) -> bool {
        let lent = self.lent.take() == Some(ticket);
        if payload > spec.limit || (payload > 0 && !lent) {
            return false;
        }
        let head = usize::from(spec.head);
        self.reserve(head);
        header(&mut self.batch[self.filled..self.filled + head]);
        self.filled += head + payload as usize;
        true
    }

    /// Appends the reply whose payload was made apart. `false` when that is not a room for such a reply, or the payload
    /// is longer.
    pub(crate) fn finish_apart(
        &mut self,
        apart: Apart,
        spec: Spec,
        payload: u32,
        header: impl FnOnce(&mut [u8]),
    ) -> bool {
        if payload > apart.spec.limit || apart.spec.form != spec.form || apart.spec.head != spec.head {
            return false;
        }
        let head = usize::from(apart.spec.head);
        let len = head + payload as usize;
        let mut bytes = apart.bytes;
        if bytes.len() < len {
            // Nobody entered the room, so the payload is empty; the header still needs its space.
            bytes.resize(len, 0);
        }
        header(&mut bytes[..head]);
        self.lent = None;
        if len <= SMALL {
            self.reserve(len);
            self.batch[self.filled..self.filled + len].copy_from_slice(&bytes[..len]);
            self.filled += len;
        } else {
            self.set_aside();
            if len < bytes.len() / 2 {
                bytes.truncate(len);
                bytes.shrink_to_fit();
            }
            self.queue(bytes, len);
        }
        true
    }

    /// Appends a whole reply.
    pub(crate) fn push(&mut self, message: &Rmessage<'_>, tag: u16, dialect: Dialect) {
        self.lent = None;
        self.reserve(SMALL);
        // Every message that is built here is bounded far below SMALL: texts by their table, qids by their count.
        let written = message.encode(tag, dialect, &mut self.batch[self.filled..]);
        debug_assert!(written.is_ok(), "a reply did not fit: {message:?}");
        self.filled += written.unwrap_or(0);
    }

    /// What to send next.
    pub(crate) fn take(&mut self) -> Option<Buf> {
        self.lent = None;
        if self.ready.is_empty() {
            if self.taken == 0 && !self.saving {
                self.close_batch();
            } else {
                self.set_aside();
            }
        }
        let buf = self.ready.pop_front()?;
        self.taken += 1;
        Some(buf)
    }

    /// A buffer has been sent, or never will be.
    pub(crate) fn sent(&mut self, buf: Buf) {
        self.queued -= buf.bytes.len();
        self.taken -= 1;
        self.adopt(buf.bytes);
    }

    /// Drops what has not been taken: nobody will read it.
    pub(crate) fn clear(&mut self) {
        self.lent = None;
        self.filled = 0;
        self.queued -= self.ready.iter().map(|buf| buf.bytes.len()).sum::<usize>();
        self.ready.clear();
    }

    /// Offers a buffer for batches to be gathered in.
    pub(crate) fn adopt(&mut self, mut bytes: Vec<u8>) {
        if self.batch.is_empty() && bytes.len() >= self.size {
            core::mem::swap(&mut self.batch, &mut bytes);
        }
    }

    /// Gives the buffer of an empty batch away.
    pub(crate) fn shed(&mut self) -> Vec<u8> {
        if self.filled > 0 {
            return Vec::new();
        }
        self.lent = None;
        core::mem::take(&mut self.batch)
    }

    fn reserve(&mut self, need: usize) {
        if self.batch.len() - self.filled >= need {
            return;
        }
        self.set_aside();
        if self.batch.len() < need {
            let size = if self.saving { SMALL } else { self.size };
            self.batch = vec![0; need.max(size)];
        }
    }

    /// Makes what is gathered ready, so that the batch is empty. If that is little, the batch stays and it is copied: else
    /// a few bytes would hold a large buffer each time.
    fn set_aside(&mut self) {
        if self.filled < self.batch.len() / 2 {
            let filled = core::mem::take(&mut self.filled);
            if filled > 0 {
                self.queue(self.batch[..filled].to_vec(), filled);
            }
        } else {
            self.close_batch();
        }
    }

    /// Makes the batch ready as it is.
    fn close_batch(&mut self) {
        if self.filled > 0 {
            let (bytes, len) = (core::mem::take(&mut self.batch), core::mem::take(&mut self.filled));
            self.queue(bytes, len);
        }
    }

    fn queue(&mut self, bytes: Vec<u8>, len: usize) {
        self.queued += bytes.len();
        self.ready.push_back(Buf { bytes, len });
    }
}

/// A batch is sent once it holds twice msize, within these bounds.
const MIN_GATHER: usize = 16 * 1024;
const MAX_GATHER: usize = 256 * 1024;
/// A reply made apart is copied into the batch up to this length, and every reply without a payload is shorter.
const SMALL: usize = 4 * 1024;
