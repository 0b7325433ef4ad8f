//! What becomes of the machine, at once or in the middle of a call of it.
//!
//! Owns: the change that waits for its call, what has happened that happens once, and the calls that fail. Must not know:
//! who calls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use backend::host::fixture::{Edit, Fixture};
use backend::host::wrap::{Fault, Faulty, Weights};

use super::witness::Witness;
use super::{Dice, holds_canary};
use crate::plan::{Happening, Near, Prepared};

/// A change that waits for a call of the machine.
#[derive(Clone)]
pub(super) struct Race {
    pub(super) armed: Arc<Mutex<Option<(u8, Happening)>>>,
    pub(super) focus: [u8; 2],
    /// What happens once, and has.
    pub(super) spent: Arc<Mutex<BTreeSet<u64>>>,
    pub(super) witness: Witness,
    pub(super) tells: bool,
}

impl Race {
    /// What is to happen just before the machine has been called so many times more, if anything.
    pub(super) fn arm(&self, race: Option<(u8, Happening)>) {
        *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = race;
    }

    /// A call of the machine is about to be made: the change that is due just before it.
    fn due(&self) -> Option<Happening> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *armed {
            Some((0, change)) => {
                let change = *change;
                *armed = None;
                Some(change)
            }
            Some((calls, _)) => {
                *calls -= 1;
                None
            }
            None => None,
        }
    }

    /// The number of a spot.
    pub(super) fn spot(&self, prepared: &Prepared, near: Near) -> usize {
        let number = match near {
            Near::Focus(which) => self.focus[usize::from(which)],
            Near::Any(number) => number,
        };
        usize::from(number) % prepared.spots.len()
    }

    /// Makes a change, of which a part that takes time is left out if it may take none.
    pub(super) fn change(
        &self,
        prepared: &Prepared,
        machine: &Fixture,
        happening: Happening,
        takes_time: bool,
    ) {
        let changes = &prepared.spots[self.spot(prepared, happening.spot)].changes;
        let change = &changes[usize::from(happening.change) % changes.len()];
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if change.once.is_some_and(|once| !spent.insert(once)) {
            return;
        }
        for edit in &change.edits {
            if matches!(edit, Edit::Advance { .. }) && !takes_time {
                break;
            }
            // A file with another path that is none to hide is innocent (contract 3): nothing to hide comes into it.
            if let Edit::Write { path, bytes } | Edit::Replace { path, bytes } | Edit::Append { path, bytes } =
                edit
                && holds_canary(bytes)
                && machine.with(|world| world.has_other_path(path)).is_ok_and(|has| has)
            {
                continue;
            }
            // What cannot be done is passed over: the change is of another state of things.
            let done = machine.apply(edit);
            if self.tells {
                println!("  {edit:?}: {done:?}");
            }
        }
        if !prepared.lives.is_empty() {
            self.witness.look(&Fixture::new(machine.snapshot()));
        }
    }
}

/// The machine whose calls fail now and then, and in the middle of whose calls it changes.
pub(super) fn faulty(
    weights: Weights,
    dice: &Dice,
    race: &Race,
    prepared: &Arc<Prepared>,
    machine: &Fixture,
) -> Faulty {
    let (dice, race, prepared, changed) = (dice.clone(), race.clone(), Arc::clone(prepared), machine.clone());
    Faulty::new(Arc::new(machine.clone()), move |_, call| -> Option<Fault> {
        if let Some(change) = race.due() {
            race.change(&prepared, &changed, change, false);
        }
        if weights == Weights::default() {
            return None;
        }
        weights.draw(call, &mut |count| dice.below(count))
    })
}
