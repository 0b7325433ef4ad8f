//! A table of values whose names go stale when the values go.
//!
//! Owns: which places are taken, and how often each has been. Must not know: what the values are.

/// Values by [`Id`].
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Names a value while it is in the table. A place that is taken again has another generation, so that what is told of
/// an old value never meets a new one.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) struct Id {
    index: u32,
    generation: u32,
}

impl Id {
    /// As one number, for whoever carries it.
    pub(super) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// What [`Id::to_bits`] made, or the name of nothing.
    pub(super) fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn insert(&mut self, value: T) -> Id {
        self.insert_with(|_| value)
    }

    /// Inserts a value that has to know its name.
    pub(super) fn insert_with(&mut self, value: impl FnOnce(Id) -> T) -> Id {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            // Nobody has 2^32 connections or operations: both are limited.
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let id = Id { index, generation: slot.generation };
        slot.value = Some(value(id));
        id
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index as usize)?;
        slot.value.as_mut().filter(|_| slot.generation == id.generation)
    }

    /// Takes a value out; its name is stale from here on.
    pub(super) fn remove(&mut self, id: Id) -> Option<T> {
        let slot = self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.index);
        Some(value)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Id, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let id = Id { index: index as u32, generation: slot.generation };
            slot.value.as_mut().map(|value| (id, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_goes_stale_with_its_value() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(second.index, first.index, "the place is taken again");
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut 'b'));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn a_name_survives_being_a_number() {
        let mut slots = Slots::new();
        let ids: Vec<_> = (0..3).map(|value| slots.insert(value)).collect();
        slots.remove(ids[1]);
        let again = slots.insert(9);
        assert_eq!(slots.get_mut(Id::from_bits(again.to_bits())), Some(&mut 9));
        assert_eq!(slots.get_mut(Id::from_bits(u64::MAX)), None);
        assert_eq!(slots.iter_mut().map(|(_, value)| *value).collect::<Vec<_>>(), [0, 9, 2]);
    }
}
