//! Counted use of something bounded: descriptors, or bytes.
//!
//! Owns: one number and its bound. Must not know: what is counted. A [`Charge`] gives back what it took when it is
//! dropped, so nothing that holds one can leak its share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bound on units that many hold at once.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    /// Nothing used yet of `limit` units.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Takes so many units, or none at all when fewer are left.
    pub(crate) fn take(self: &Arc<Self>, units: usize) -> Option<Charge> {
        self.add(units).then(|| Charge { budget: Arc::clone(self), units })
    }

    /// How many units are held now.
    #[cfg(test)]
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn add(&self, units: usize) -> bool {
        // Only the number is shared, nothing is published through it: relaxed order is enough.
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(units).filter(|sum| *sum <= self.limit)
            })
            .is_ok()
    }
}

/// Units taken from a [`Budget`], given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    units: usize,
}

impl Charge {
    /// Takes so many more units. `false`: fewer are left, and nothing was taken.
    pub(crate) fn grow(&mut self, units: usize) -> bool {
        let taken = self.budget.add(units);
        if taken {
            self.units += units;
        }
        taken
    }

    /// Keeps at most so many units and gives the rest back.
    pub(crate) fn shrink_to(&mut self, units: usize) {
        let spare = self.units.saturating_sub(units);
        self.units -= spare;
        self.budget.used.fetch_sub(spare, Ordering::Relaxed);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.units, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    #[test]
    fn a_charge_takes_all_or_nothing_and_gives_back_on_drop() {
        let budget = Budget::new(10);
        let six = budget.take(6).unwrap();
        assert!(budget.take(5).is_none());
        let mut four = budget.take(4).unwrap();
        assert_eq!(budget.used(), 10);
        assert!(!four.grow(1));
        drop(six);
        assert!(four.grow(6));
        assert_eq!(budget.used(), 10);
        four.shrink_to(3);
        assert_eq!(budget.used(), 3);
        four.shrink_to(7);
        assert_eq!(budget.used(), 3);
        drop(four);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_sum_past_the_word_is_past_the_limit() {
        let budget = Budget::new(usize::MAX);
        let _one = budget.take(1).unwrap();
        assert!(budget.take(usize::MAX).is_none());
    }
}
