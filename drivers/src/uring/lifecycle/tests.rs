//! Every order in which things may happen to a connection, for short scripts: what is in flight is imagined, and ends as
//! the script says.

use std::collections::VecDeque;

use super::*;
use crate::uring::slots::Slots;

/// Something that may happen.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Event {
    /// A request comes that is answered at once.
    ReadQuick,
    /// A request comes that a worker answers.
    ReadSlow,
    /// Three requests come, which is more than is answered in a turn.
    ReadMany,
    ReadEnd,
    ReadFails(Errno),
    WriteAll,
    WriteShort,
    WriteFails(Errno),
    WatchEnds,
    /// It tells that the peer says no more.
    WatchHalf,
    WatchFails(Errno),
    /// After that: a look tells that the peer has gone.
    Look,
    WorkerDone,
    /// The session takes no more bytes while something is under way; or does again.
    Stall,
    /// From now on replies are written at once; or no longer.
    Alone,
    HangUp,
    Overdue,
    Stop,
}

/// Errors that leave the connection as it is come first.
const EVENTS: &[Event] = &[
    Event::ReadFails(Errno::INTR),
    Event::WriteFails(Errno::INTR),
    Event::WatchFails(Errno::INTR),
    Event::ReadQuick,
    Event::ReadSlow,
    Event::ReadMany,
    Event::ReadEnd,
    Event::ReadFails(Errno::CANCELED),
    Event::ReadFails(Errno::NOBUFS),
    Event::ReadFails(Errno::CONNRESET),
    Event::WriteAll,
    Event::WriteShort,
    Event::WriteFails(Errno::CANCELED),
    Event::WriteFails(Errno::NOBUFS),
    Event::WriteFails(Errno::PIPE),
    Event::WatchEnds,
    Event::WatchHalf,
    Event::Look,
    Event::WatchFails(Errno::CANCELED),
    Event::WatchFails(Errno::NOBUFS),
    Event::WorkerDone,
    Event::Stall,
    Event::Alone,
    Event::HangUp,
    Event::Overdue,
    Event::Stop,
];

/// A connection with an imagined session, peer and kernel.
#[derive(Clone, Debug, Default)]
struct Sim {
    life: Life,
    /// Replies are written at once.
    alone: bool,
    reading: bool,
    /// What is left of the reply being written.
    writing: Option<usize>,
    watching: bool,
    /// Lengths of replies that wait, and of those that have not been made yet although they could be.
    replies: VecDeque<usize>,
    unmade: usize,
    busy: usize,
    stalled: bool,
    hung_up: bool,
    disconnected: bool,
    closed: Option<Ending>,
    freed: bool,
    made: usize,
    written: usize,
}

const REPLY: usize = 3;

impl Sim {
    fn new() -> Self {
        let mut sim = Self::default();
        sim.settle();
        sim
    }

    /// Lets something happen, if it can. What happened is told before anything is asked for.
    fn happen(&mut self, event: Event) -> bool {
        let reads = self.reading && !self.hung_up;
        match event {
            Event::ReadQuick if reads => self.has_read(1, 1, 0),
            Event::ReadMany if reads => self.has_read(1, 3, 0),
            Event::ReadSlow if reads => self.has_read(1, 0, 1),
            Event::ReadEnd if self.reading => self.has_read(0, 0, 0),
            Event::ReadFails(errno) if self.reading => {
                self.reading = false;
                assert_eq!(self.life.read(Err(errno)), 0);
            }
            Event::WriteAll => return self.has_written(Ok),
            Event::WriteShort => return self.has_written(|_| Ok(1)),
            Event::WriteFails(errno) => return self.has_written(|_| Err(errno)),
            Event::WatchEnds if self.watching => {
                self.watching = false;
                self.life.watched(Ok(true));
            }
            Event::WatchHalf if self.watching => {
                self.watching = false;
                self.life.watched(Ok(false));
            }
            Event::Look if self.life.is_half_closed() => self.life.has_gone(),
            Event::WatchFails(errno) if self.watching => {
                self.watching = false;
                self.life.watched(Err(errno));
            }
            Event::WorkerDone if self.busy > 0 => {
                self.busy -= 1;
                if !self.disconnected {
                    self.reply();
                }
            }
            Event::Stall if self.busy > 0 || self.writing.is_some() => self.stalled = !self.stalled,
            Event::Alone if self.closed.is_none() => self.alone = !self.alone,
            Event::HangUp if !self.disconnected => {
                self.reply();
                (self.disconnected, self.hung_up) = (true, true);
                self.unmade = 0;
                self.life.hang_up(Hangup::Framing);
            }
            Event::Overdue if self.closed.is_none() => self.life.end(Ending::Unread),
            Event::Stop => self.life.stop_reading(),
            _ => return false,
        }
        self.settle();
        true
    }

    fn has_read(&mut self, count: usize, replies: usize, slow: usize) {
        self.reading = false;
        let taken = self.life.read(Ok(count));
        assert!(taken == count || self.closed.is_some(), "bytes of an open connection are not thrown away");
        if taken > 0 {
            self.unmade += replies;
            self.busy += slow;
        }
    }

    fn has_written(&mut self, result: impl Fn(usize) -> Result<usize, Errno>) -> bool {
        let Some(asked) = self.writing else { return false };
        let result = result(asked);
        match self.life.wrote(asked, result) {
            Wrote::All => {
                self.writing = None;
                self.written += result.unwrap_or(0);
            }
            Wrote::Part(count) => {
                assert!(self.closed.is_none(), "a closed connection writes no more");
                assert_eq!(count, result.unwrap_or(0), "the rest begins behind what was written");
                self.writing = Some(asked - count);
                self.written += count;
            }
        }
        self.settle();
        true
    }

    fn reply(&mut self) {
        self.replies.push_back(REPLY);
        self.made += REPLY;
    }

    /// A turn, and further ones as long as what is written at once makes place for more.
    fn settle(&mut self) {
        while self.turn() {}
        if self.closed.is_none() {
            let waits = self.reading || self.writing.is_some() || self.watching;
            let wakes = waits || self.life.is_half_closed();
            assert!(wakes, "nothing would ever wake it: {self:?}");
            assert!(!self.life.gone || !self.life.input_over, "the workers work for nobody: {self:?}");
        }
    }

    /// Makes one reply at most, as a session that has gathered enough, and takes the steps. Whether there is to be another turn.
    fn turn(&mut self) -> bool {
        if self.unmade > 0 && self.replies.is_empty() && !self.disconnected {
            self.unmade -= 1;
            self.reply();
        }
        let more = self.unmade > 0;
        let mut again = false;
        while !self.freed {
            let wants = Wants {
                input: !self.disconnected && !(self.stalled && (self.busy > 0 || self.writing.is_some())),
                output: !self.replies.is_empty(),
                busy: self.busy > 0,
                more,
            };
            let Some(step) = self.life.next(wants) else { break };
            self.take(step);
            if step == Step::Write && self.alone {
                let asked = self.writing.take().expect("a write");
                assert_eq!(self.life.wrote(asked, Ok(asked)), Wrote::All);
                self.written += asked;
                again = true;
            }
        }
        again
    }

    fn take(&mut self, step: Step) {
        assert!(!self.freed, "it is gone: {step:?}");
        assert!(self.closed.is_none() || step == Step::Free, "it is closed: {step:?}");
        match step {
            Step::Read => assert!(!std::mem::replace(&mut self.reading, true), "two reads"),
            Step::Watch => assert!(!std::mem::replace(&mut self.watching, true), "two watches"),
            Step::Write => {
                let reply = self.replies.pop_front().expect("a reply to write");
                assert_eq!(self.writing.replace(reply), None, "two writes");
            }
            Step::Close(why) => {
                let all = self.written == self.made && self.unmade == 0;
                let polite = matches!(why, Ending::Hangup(_)) || why == Ending::Over && !self.peer_is_gone();
                assert!(all || !polite, "replies are lost: {self:?}");
                self.closed = Some(why);
                self.disconnected = true;
                self.replies.clear();
                self.unmade = 0;
            }
            Step::Free => {
                assert!(self.closed.is_some(), "not closed before");
                assert!(!self.reading && self.writing.is_none() && !self.watching, "the kernel has a buffer");
                assert_eq!(self.busy, 0, "the workers have its asks");
                self.freed = true;
            }
        }
    }

    fn peer_is_gone(&self) -> bool {
        self.life.gone
    }

    /// The peer goes away, and everything comes to its end, in one order or the other.
    fn run_down(mut self, forwards: bool, script: &[Event]) {
        let mut ends = [
            Event::ReadEnd,
            Event::WatchEnds,
            Event::Look,
            Event::WriteFails(Errno::PIPE),
            Event::WorkerDone,
        ];
        if !forwards {
            ends.reverse();
        }
        for _ in 0..8 {
            for event in ends {
                if !self.freed {
                    self.happen(event);
                }
            }
        }
        assert!(self.freed, "it never ends after {script:?}: {self:?}");
    }
}

/// Every script of so many events that can happen, each node once.
fn explore(sim: &Sim, script: &mut Vec<Event>, depth: usize, count: &mut usize) {
    *count += 1;
    for forwards in [true, false] {
        if !sim.freed {
            sim.clone().run_down(forwards, script);
        }
    }
    if depth == 0 || sim.freed {
        return;
    }
    for event in EVENTS {
        let mut next = sim.clone();
        if next.happen(*event) {
            script.push(*event);
            explore(&next, script, depth - 1, count);
            script.pop();
        }
    }
}

#[test]
fn in_every_order_of_events_nothing_is_lost_and_everything_ends() {
    let mut count = 0;
    explore(&Sim::new(), &mut Vec::new(), DEPTH, &mut count);
    println!("{count} scripts of up to {DEPTH} events");
    assert!(count > 50_000, "{count} scripts are too few to be all");
}

const DEPTH: usize = 5;

#[test]
fn a_reply_that_is_written_a_byte_at_a_time_is_written_once() {
    let mut sim = Sim::new();
    assert!(sim.happen(Event::ReadQuick));
    for _ in 0..REPLY {
        assert!(sim.happen(Event::WriteFails(Errno::INTR)));
        assert!(sim.happen(Event::WriteShort));
    }
    assert!(!sim.happen(Event::WriteAll), "nothing is left to write");
    assert_eq!((sim.written, sim.made), (REPLY, REPLY));
}

#[test]
fn a_read_that_a_stop_cancels_leaves_the_answers_to_be_written() {
    let mut sim = Sim::new();
    for event in [Event::ReadSlow, Event::Stop, Event::ReadFails(Errno::CANCELED), Event::WorkerDone] {
        assert!(sim.happen(event), "{event:?}");
        assert_eq!(sim.closed, None, "after {event:?}");
    }
    assert!(sim.happen(Event::WriteAll));
    assert_eq!((sim.closed, sim.written), (Some(Ending::Over), REPLY));
}

#[test]
fn a_peer_that_says_no_more_is_answered_all_the_same() {
    let mut sim = Sim::new();
    for event in [Event::ReadSlow, Event::ReadEnd, Event::WatchHalf] {
        assert!(sim.happen(event), "{event:?}");
        assert_eq!(sim.closed, None, "after {event:?}");
    }
    assert!(!sim.watching, "another watch would end at once");
    let mut left = sim.clone();
    assert!(left.happen(Event::Look));
    assert_eq!(left.closed, Some(Ending::Over), "there is nobody to be answered");
    assert!(sim.happen(Event::WorkerDone) && sim.happen(Event::WriteAll));
    assert_eq!((sim.closed, sim.written), (Some(Ending::Over), REPLY));
}

#[test]
fn a_write_of_nothing_is_an_end_and_not_a_loop() {
    let mut sim = Sim::new();
    sim.happen(Event::ReadQuick);
    sim.has_written(|_| Ok(0));
    assert_eq!(sim.closed, Some(Ending::Failed(Errno::PIPE)));
}

#[test]
fn what_an_older_connection_had_in_flight_does_not_reach_the_one_in_its_place() {
    let mut slots = Slots::new();
    let old = slots.insert(Sim::new());
    slots.remove(old);
    let new = slots.insert(Sim::new());
    assert!(slots.get_mut(old).is_none(), "a late completion finds nobody");
    assert!(slots.get_mut(new).is_some_and(|sim| sim.reading));
}
