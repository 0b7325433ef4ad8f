//! The buffers that replies are gathered in. They belong to the thread, and are lent to whichever session has its turn, so
//! that a connection which says nothing holds none.

use engine::Session;
use engine::port::Kinds;

/// Buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
    bytes: usize,
}

impl Buffers {
    /// Lends a session a buffer if there is one for it. It makes its own otherwise.
    pub(super) fn lend<K: Kinds>(&mut self, session: &mut Session<K>) {
        // Its buffer is not empty then, and no other would be taken.
        if session.has_output() {
            return;
        }
        let wanted = session.gather_bytes();
        // A much larger one would count for more than it is worth against the session's limits.
        let fits = |buffer: &Vec<u8>| (wanted..=2 * wanted).contains(&buffer.len());
        if let Some(at) = self.free.iter().rposition(fits) {
            let buffer = self.free.swap_remove(at);
            self.bytes -= buffer.len();
            session.adopt(buffer);
        }
    }

    /// Takes a session's buffer back, if nothing is in it.
    pub(super) fn reclaim<K: Kinds>(&mut self, session: &mut Session<K>) {
        let buffer = session.reclaim();
        if !buffer.is_empty() && self.bytes + buffer.len() <= KEPT {
            self.bytes += buffer.len();
            self.free.push(buffer);
        }
    }

    /// Gives all memory back.
    pub(super) fn trim(&mut self) {
        *self = Self::default();
    }
}

/// Bytes kept for the next turn: what some hundred connections that read 8 KiB at a time gather, or a few that read 1 MiB.
const KEPT: usize = 8 * 1024 * 1024;
