//! The requests in flight of one session.
//!
//! Owns: the slots, the tags, the order of arrival, and which flush waits for which request. Must not know: fids,
//! messages or replies; it only carries what completing a request will need.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::fid::Sharing;
use crate::outbox::Spec;
use crate::port::{Mode, Ticket};

/// A fid that a request holds.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) struct Key {
    pub(crate) fid: u32,
    pub(crate) sharing: Sharing,
}

/// A request in a slot.
#[derive(Debug)]
struct Request {
    serial: u64,
    tag: u16,
    keys: [Option<Key>; 2],
    state: State,
}

/// A request that will not run after all.
#[derive(Debug)]
pub(crate) struct Waited {
    pub(crate) keys: [Option<Key>; 2],
    pub(crate) frame: Box<[u8]>,
}

/// How far a request is.
#[derive(Debug)]
pub(crate) enum State {
    /// An earlier request holds a fid it needs: its frame, to be read again.
    Waiting(Box<[u8]>),
    /// The backend has it.
    Running {
        /// What completing it does.
        purpose: Purpose,
        /// The room promised to its answer.
        spec: Spec,
        /// Whether it became a job.
        parked: bool,
        /// Whether the backend has been told that nobody waits.
        abandoned: bool,
    },
    /// The backend has it, and nobody will hear of it: its tag and fids are gone.
    Orphan {
        /// The room promised to its answer.
        spec: Spec,
        /// Whether it became a job.
        parked: bool,
    },
    /// A Tflush, held until the request of that ticket has ended.
    Flushing(Ticket),
}

/// What completing a running request does to its fid, and which reply it gets.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Purpose {
    Attach { fid: u32 },
    Walk { newfid: u32, asked: usize },
    Open { fid: u32, mode: Mode },
    Read,
    List { fid: u32, offset: u64 },
    Write { asked: usize },
    Stat,
    Change,
}

/// A request that the backend had and has completed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) tag: u16,
    pub(crate) keys: [Option<Key>; 2],
    pub(crate) spec: Spec,
    pub(crate) parked: bool,
    /// What completing it does; `None` for an orphan.
    pub(crate) purpose: Option<Purpose>,
}

/// The slots: at most [`crate::limits::MAX_REQUESTS`] requests, and as many flushes.
#[derive(Debug)]
pub(crate) struct Pending {
    slots: Vec<Option<Request>>,
    limit: usize,
    /// Slots taken, by what they hold: the sum of the next four.
    used: usize,
    waiting: usize,
    flushes: usize,
    /// The backend has it, and it is a job.
    parked: usize,
    /// The backend has it, and it is none: it is completed soon.
    plain: usize,
    next_serial: u64,
}

impl Pending {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            slots: Vec::new(),
            limit,
            used: 0,
            waiting: 0,
            flushes: 0,
            parked: 0,
            plain: 0,
            next_serial: 1,
        }
    }

    /// Whether one more request may be added.
    pub(crate) fn has_room(&self) -> bool {
        self.used - self.flushes < self.limit
    }

    /// Whether one more flush may be added.
    pub(crate) fn has_flush_room(&self) -> bool {
        self.flushes < self.limit
    }

    /// Whether nothing in flight is sure to end soon: the backend has only jobs, or nothing.
    pub(crate) fn has_only_jobs(&self) -> bool {
        self.plain == 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Puts a request into a free slot; the caller has seen [`Pending::has_room`] or [`Pending::has_flush_room`].
    pub(crate) fn add(&mut self, tag: u16, keys: [Option<Key>; 2], state: State) -> Ticket {
        let serial = self.next_serial;
        self.next_serial += 1;
        self.used += 1;
        *self.count(&state) += 1;
        let request = Some(Request { serial, tag, keys, state });
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(free) => *free = request,
            None => self.slots.push(request),
        }
        Ticket { serial, slot: slot as u8 }
    }

    /// The counter in which a state is counted.
    fn count(&mut self, state: &State) -> &mut usize {
        match state {
            State::Waiting(_) => &mut self.waiting,
            State::Flushing(_) => &mut self.flushes,
            State::Running { parked, .. } | State::Orphan { parked, .. } => {
                if *parked {
                    &mut self.parked
                } else {
                    &mut self.plain
                }
            }
        }
    }

    /// The request of a ticket, if it is still the one in its slot.
    fn find(&mut self, ticket: Ticket) -> Option<&mut Request> {
        let request = self.slots.get_mut(usize::from(ticket.slot))?.as_mut()?;
        (request.serial == ticket.serial).then_some(request)
    }

    /// Whether the backend has the request of a ticket, an orphan or not.
    pub(crate) fn is_running(&self, ticket: Ticket) -> bool {
        let request = self.slots.get(usize::from(ticket.slot)).and_then(Option::as_ref);
        request.is_some_and(|request| {
            request.serial == ticket.serial
                && matches!(request.state, State::Running { .. } | State::Orphan { .. })
        })
    }

    /// Whether the backend has the request of a ticket, and has been told that nobody waits for it.
    pub(crate) fn is_given_up(&self, ticket: Ticket) -> bool {
        let request = self.slots.get(usize::from(ticket.slot)).and_then(Option::as_ref);
        request.is_some_and(|request| {
            request.serial == ticket.serial
                && matches!(request.state, State::Running { abandoned: true, .. } | State::Orphan { .. })
        })
    }

    /// The room promised to a running request's answer; none to any other's.
    pub(crate) fn spec(&mut self, ticket: Ticket) -> Spec {
        match self.find(ticket) {
            Some(Request { state: State::Running { spec, .. } | State::Orphan { spec, .. }, .. }) => *spec,
            _ => Spec::NOTHING,
        }
    }

    /// Marks a running request as one that nobody waits for; `true` the first time, when the backend is to be told.
    pub(crate) fn abandon(&mut self, ticket: Ticket) -> bool {
        match self.find(ticket) {
            Some(Request { state: State::Running { abandoned, .. }, .. }) => {
                !core::mem::replace(abandoned, true)
            }
            _ => false,
        }
    }

    /// Takes out a request that the backend had.
    pub(crate) fn end_running(&mut self, ticket: Ticket) -> Option<Ended> {
        let (spec, parked, purpose) = match self.find(ticket)?.state {
            State::Running { spec, parked, purpose, .. } => (spec, parked, Some(purpose)),
            State::Orphan { spec, parked } => (spec, parked, None),
            State::Waiting(_) | State::Flushing(_) => return None,
        };
        let request = self.remove(ticket)?;
        Some(Ended { tag: request.tag, keys: request.keys, spec, parked, purpose })
    }

    /// Takes out a request that waits (or has just been woken): its fids and its frame.
    pub(crate) fn remove_waiting(&mut self, ticket: Ticket) -> Option<Waited> {
        if !matches!(self.find(ticket)?.state, State::Waiting(_)) {
            return None;
        }
        let request = self.remove(ticket)?;
        let State::Waiting(frame) = request.state else { return None };
        Some(Waited { keys: request.keys, frame })
    }

    /// Takes out the earliest flush that waits for a request which has ended: its ticket and tag.
    pub(crate) fn end_flush_of(&mut self, ended: Ticket) -> Option<(Ticket, u16)> {
        let flush = self.flush_of(ended)?;
        self.remove(flush).map(|request| (flush, request.tag))
    }

    /// Turns the one fid that a request holds alone into a shared one, and says which it is.
    pub(crate) fn downgrade(&mut self, ticket: Ticket) -> Option<u32> {
        let key = self.find(ticket)?.keys[0].as_mut()?;
        if key.sharing == Sharing::Shared {
            return None;
        }
        key.sharing = Sharing::Shared;
        Some(key.fid)
    }

    fn remove(&mut self, ticket: Ticket) -> Option<Request> {
        let request = self.slots.get_mut(usize::from(ticket.slot))?.take()?;
        self.used -= 1;
        *self.count(&request.state) -= 1;
        Some(request)
    }

    /// How many requests are jobs.
    pub(crate) fn parked(&self) -> usize {
        self.parked
    }

    /// Marks a running request as a job, to whose answer no room above `most` bytes is promised from here on. Yields the
    /// promise before and after; `None` if it is none that runs, or a job already.
    pub(crate) fn park(&mut self, ticket: Ticket, most: u32) -> Option<(Spec, Spec)> {
        let (State::Running { spec, parked, .. } | State::Orphan { spec, parked }) =
            &mut self.find(ticket)?.state
        else {
            return None;
        };
        if core::mem::replace(parked, true) {
            return None;
        }
        let before = core::mem::replace(spec, spec.parked(most));
        let after = *spec;
        self.plain -= 1;
        self.parked += 1;
        Some((before, after))
    }

    /// The earliest request that has this tag; orphans have none. Only a flush of a request under its own tag makes two
    /// of one tag.
    pub(crate) fn tagged(&self, tag: u16) -> Option<Ticket> {
        let tagged = self.iter().filter(|(_, r)| r.tag == tag && !matches!(r.state, State::Orphan { .. }));
        tagged.min_by_key(|(_, r)| r.serial).map(|(t, _)| t)
    }

    /// The earliest flush that waits for this request to end.
    pub(crate) fn flush_of(&self, ended: Ticket) -> Option<Ticket> {
        let flushes = self.iter().filter(|(_, r)| matches!(r.state, State::Flushing(of) if of == ended));
        #[cfg(feature = "planted")]
        if crate::planted::is(crate::planted::Bug::FlushOrder) {
            return flushes.max_by_key(|(_, r)| r.serial).map(|(t, _)| t);
        }
        flushes.min_by_key(|(_, r)| r.serial).map(|(t, _)| t)
    }

    /// The earliest waiting request that no earlier request stands in the way of.
    pub(crate) fn startable(&self) -> Option<Ticket> {
        let waiting = self.iter().filter(|(_, r)| matches!(r.state, State::Waiting(_)));
        let free = waiting.filter(|(_, r)| !self.iter().any(|(_, other)| stands_before(other, r)));
        free.min_by_key(|(_, r)| r.serial).map(|(t, _)| t)
    }

    /// Gives back the tag and the frame of a waiting request that is about to start. It counts as waiting until
    /// [`Pending::run`] or [`Pending::remove_waiting`].
    pub(crate) fn wake(&mut self, ticket: Ticket) -> Option<(u16, Box<[u8]>)> {
        let request = self.find(ticket)?;
        let State::Waiting(frame) = &mut request.state else { return None };
        Some((request.tag, core::mem::take(frame)))
    }

    /// Gives a waiting request to the backend.
    pub(crate) fn run(&mut self, ticket: Ticket, purpose: Purpose, spec: Spec) {
        let Some(request) = self.find(ticket) else { return };
        request.state = State::Running { purpose, spec, parked: false, abandoned: false };
        self.waiting -= 1;
        self.plain += 1;
    }

    /// Forgets every request that the backend does not have, and makes orphans of the rest; those that the backend must
    /// be told of are handed to `each`.
    pub(crate) fn orphan_all(&mut self, mut each: impl FnMut(Ticket)) {
        for (slot, place) in self.slots.iter_mut().enumerate() {
            let Some(request) = place else { continue };
            request.keys = [None; 2];
            match request.state {
                State::Running { spec, parked, abandoned, .. } => {
                    request.state = State::Orphan { spec, parked };
                    if !abandoned {
                        each(Ticket { serial: request.serial, slot: slot as u8 });
                    }
                }
                State::Orphan { .. } => {}
                State::Waiting(_) | State::Flushing(_) => {
                    *place = None;
                    self.used -= 1;
                }
            }
        }
        self.waiting = 0;
        self.flushes = 0;
    }

    /// Gives memory back while nothing is in flight.
    pub(crate) fn trim(&mut self) {
        if self.used == 0 {
            self.slots = Vec::new();
        }
    }

    fn iter(&self) -> impl Iterator<Item = (Ticket, &Request)> {
        let ticket = |slot, request: &Request| Ticket { serial: request.serial, slot: slot as u8 };
        self.slots.iter().enumerate().filter_map(move |(slot, r)| r.as_ref().map(|r| (ticket(slot, r), r)))
    }
}

/// Whether `earlier` holds a fid that `later` may not share with it.
fn stands_before(earlier: &Request, later: &Request) -> bool {
    let conflict =
        |a: &Key, b: &Key| a.fid == b.fid && (a.sharing == Sharing::Alone || b.sharing == Sharing::Alone);
    earlier.serial < later.serial
        && earlier.keys.iter().flatten().any(|a| later.keys.iter().flatten().any(|b| conflict(a, b)))
}
