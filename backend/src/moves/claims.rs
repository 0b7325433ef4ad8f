//! Which moves are under way: never two of one agent, and never two to one name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::name::SessionName;
use crate::process::Process;

/// The moves that are under way.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    /// The number of the last one, which no other will have.
    last: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    process: Process,
    name: SessionName,
    is_committed: bool,
}

impl Claims {
    /// Enters a move; `None` if another of the agent or to the name is under way.
    pub(super) fn enter(self: &Arc<Self>, process: Process, name: SessionName) -> Option<Claim> {
        let mut table = self.lock();
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::MoveTwice) {
            table.entries.retain(|entry| entry.process != process);
        }
        if table.entries.iter().any(|entry| entry.process == process || entry.name == name) {
            return None;
        }
        table.last += 1;
        let number = table.last;
        table.entries.push(Entry { number, process, name: name.clone(), is_committed: false });
        Some(Claim { claims: Arc::clone(self), number, name })
    }

    /// Whether one of them must not be left as it is.
    pub(super) fn any_committed(&self) -> bool {
        self.lock().entries.iter().any(|entry| entry.is_committed)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A move's place among them, given up when it ends.
#[derive(Debug)]
pub(super) struct Claim {
    claims: Arc<Claims>,
    number: u64,
    name: SessionName,
}

impl Claim {
    /// Where the agent is to live.
    pub(super) fn name(&self) -> &SessionName {
        &self.name
    }

    /// From here on it must come to its end.
    pub(super) fn commit(&self) {
        let mut table = self.claims.lock();
        let mine = table.entries.iter_mut().filter(|entry| entry.number == self.number);
        mine.for_each(|entry| entry.is_committed = true);
    }

    /// It has come to its end.
    pub(super) fn release(&self) {
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::MoveCounted) {
            return;
        }
        self.claims.lock().entries.retain(|entry| entry.number != self.number);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_agent_and_one_name_are_moved_once_at_a_time() {
        let claims = Arc::new(Claims::default());
        let enter = |pid, name: &str| {
            claims.enter(Process { pid, start: 1 }, SessionName::parse(name.as_bytes()).unwrap())
        };
        let first = enter(1, "a").unwrap();
        assert!(enter(1, "b").is_none() && enter(2, "a").is_none());
        let other = enter(2, "b").unwrap();
        assert!(!claims.any_committed());
        other.commit();
        assert!(claims.any_committed());
        first.release();
        // What has ended gives up its own place only, though it is dropped later.
        let again = enter(1, "a").unwrap();
        drop(first);
        assert!(enter(1, "c").is_none());
        drop((again, other));
        assert!(!claims.any_committed() && enter(1, "b").is_some());
    }
}
