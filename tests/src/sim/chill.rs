//! A decorator over a backend that finds asks cold at will.
//!
//! Owns: when. A backend may say of any ask that it takes more effort, so one that always could answer says so here, too:
//! then every ask takes the long way, those that become jobs at its end among them. Must not know: the tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::port::{Ask, Backend, Effort, Kinds, Now, Progress, Room};

use super::Dice;

/// The decorator.
pub(super) struct Chill<K: Kinds> {
    inner: Arc<dyn Backend<K>>,
    dice: Dice,
    /// In how many of [`Chill::OF`] asks.
    share: AtomicU32,
}

impl<K: Kinds> Chill<K> {
    /// What shares are of.
    pub(super) const OF: u32 = 1024;

    /// Leaves everything as it is, for now.
    pub(super) fn new(inner: Arc<dyn Backend<K>>, dice: Dice) -> Self {
        Self { inner, dice, share: AtomicU32::new(0) }
    }

    /// How many asks are found cold from now on.
    pub(super) fn set(&self, share: u32) {
        self.share.store(share, Ordering::Relaxed);
    }
}

impl<K: Kinds> Backend<K> for Chill<K> {
    fn perform(&self, ask: Ask<K>, room: Room<'_>, effort: Effort, now: Now) -> Progress<K> {
        let share = self.share.load(Ordering::Relaxed);
        if effort == Effort::Cached && share > 0 && self.dice.below(Self::OF) < share {
            return Progress::Cold(ask);
        }
        self.inner.perform(ask, room, effort, now)
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }
}
