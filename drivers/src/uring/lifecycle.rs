//! The life of one connection, as a table of events and what follows from them.
//!
//! Owns: what a connection has in flight, what of it is over, and which operation comes next. Must not know: rings,
//! descriptors, bytes, or time. It is told what happened and says what to do, and that is all, so that every order in
//! which a kernel may report things can be tried without one.
//!
//! # Rules
//! - At most one read, one write and one watch are in flight.
//! - Replies are written before anything is closed, unless nobody can read them.
//! - A closed connection starts nothing, and is freed once nothing of it is in flight and the session has nothing left
//!   with the workers.

#[cfg(test)]
mod tests;

use engine::Hangup;
use rustix::io::Errno;

use crate::server::Ending;

/// What is in flight of a connection, and what of it is over.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Life {
    reading: bool,
    writing: bool,
    watching: bool,
    /// Nothing more will be read: the peer has finished, or we stop.
    input_over: bool,
    /// A watch has ended because nothing more will come: another would end at once. Whether the peer is there is asked from time
    /// to time instead.
    half_closed: bool,
    /// Both directions are closed: nothing that is written will be read.
    gone: bool,
    hung_up: Option<Hangup>,
    /// It ends at once, whatever is still to be written.
    ending: Option<Ending>,
    closed: bool,
}

/// What the session says.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Wants {
    /// It takes more bytes.
    pub(super) input: bool,
    /// It has replies.
    pub(super) output: bool,
    /// It has asks with the workers.
    pub(super) busy: bool,
    /// It has not done all it can: it is to be asked again as soon as its replies are written.
    pub(super) more: bool,
}

/// What to do. The operation counts as in flight from here on.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// Read from the peer.
    Read,
    /// Write replies.
    Write,
    /// Wait until both directions are closed.
    Watch,
    /// Disconnect the session and end whatever is in flight.
    Close(Ending),
    /// Let go of everything.
    Free,
}

/// What became of a write.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Wrote {
    /// The buffer is free.
    All,
    /// So many bytes of it were written, and the rest is to be: the write is still in flight.
    Part(usize),
}

impl Life {
    /// The next thing to do; call until `None`, after anything else was called or the session has changed.
    pub(super) fn next(&mut self, wants: Wants) -> Option<Step> {
        if self.closed {
            let in_flight = self.reading || self.writing || self.watching;
            return (!in_flight && !wants.busy).then_some(Step::Free);
        }
        if let Some(ending) = self.ending {
            return Some(self.close(ending));
        }
        if wants.output && !self.writing {
            self.writing = true;
            return Some(Step::Write);
        }
        if wants.more {
            return None;
        }
        let deaf = self.input_over || !wants.input;
        if deaf && self.gone {
            return Some(self.close(Ending::Over));
        }
        let all_written = !self.writing && !wants.output;
        if let Some(why) = self.hung_up {
            return all_written.then(|| self.close(Ending::Hangup(why)));
        }
        if self.input_over && all_written && !wants.busy {
            return Some(self.close(Ending::Over));
        }
        if !deaf && !self.reading {
            self.reading = true;
            return Some(Step::Read);
        }
        if deaf && wants.busy && !self.reading && !self.watching && !self.half_closed {
            // A read would tell that the peer is gone. Without one, those who work for it would never hear of it.
            self.watching = true;
            return Some(Step::Watch);
        }
        None
    }

    /// A read has ended. Yields how many bytes are to be handed to the session.
    pub(super) fn read(&mut self, result: Result<usize, Errno>) -> usize {
        self.reading = false;
        match result {
            Ok(0) => self.input_over = true,
            Ok(count) if !self.closed && self.hung_up.is_none() => return count,
            Ok(_) | Err(Errno::INTR) => {}
            // That was us.
            Err(Errno::CANCELED) if self.input_over => {}
            Err(errno) => self.end(errno.into()),
        }
        0
    }

    /// A write of so many bytes has ended.
    pub(super) fn wrote(&mut self, asked: usize, result: Result<usize, Errno>) -> Wrote {
        let rest = match result {
            _ if self.closed || self.ending.is_some() => None,
            Ok(count) if 0 < count && count < asked => Some(count),
            Err(Errno::INTR) => Some(0),
            Ok(0) if asked > 0 => {
                self.end(Errno::PIPE.into());
                None
            }
            Ok(_) => None,
            Err(errno) => {
                self.end(errno.into());
                None
            }
        };
        self.writing = rest.is_some();
        rest.map_or(Wrote::All, Wrote::Part)
    }

    /// A watch has ended: both directions are closed (`true`) or the one from the peer alone, or watching failed.
    pub(super) fn watched(&mut self, result: Result<bool, Errno>) {
        self.watching = false;
        match result {
            Ok(true) => self.gone = true,
            Ok(false) => self.half_closed = true,
            Err(Errno::INTR) => {}
            Err(errno) => self.end(errno.into()),
        }
    }

    /// The session has hung up: what it has to say is written, then the connection ends.
    pub(super) fn hang_up(&mut self, why: Hangup) {
        self.hung_up.get_or_insert(why);
    }

    /// No further read is to begin.
    pub(super) fn stop_reading(&mut self) {
        self.input_over = true;
    }

    /// The connection is to end, whatever is still to be written.
    pub(super) fn end(&mut self, why: Ending) {
        self.ending.get_or_insert(why);
    }

    /// Whether a write is in flight.
    pub(super) fn is_writing(&self) -> bool {
        self.writing
    }

    /// Whether nobody but a look at the peer would tell that it has gone.
    pub(super) fn is_half_closed(&self) -> bool {
        self.half_closed && !self.gone && !self.closed
    }

    /// Such a look has told so.
    pub(super) fn has_gone(&mut self) {
        self.gone = true;
    }

    /// Whether it is to end, and has not been closed yet.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some() && !self.closed
    }

    /// Whether it is closed, and only waits to be freed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    fn close(&mut self, why: Ending) -> Step {
        self.closed = true;
        Step::Close(why)
    }
}
