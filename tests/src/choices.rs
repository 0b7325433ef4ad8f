//! Where decisions come from that a test leaves open.
//!
//! Owns: the [`Choices`] trait and three sources. Must not know: what is decided.

use crate::world::mix;

/// A source of decisions. The same source, asked the same, decides the same.
pub trait Choices: Send {
    /// A number below `count`, which is at least 1.
    fn below(&mut self, count: u32) -> u32;
}

/// Decisions that look like chance, from one number (SplitMix64).
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    /// A source of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Sixty-four bits.
    pub fn word(&mut self) -> u64 {
        let word = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word
    }
}

impl Choices for Seeded {
    fn below(&mut self, count: u32) -> u32 {
        // The high half of a product: nearly even, and without a division.
        (((self.word() >> 32) * u64::from(count)) >> 32) as u32
    }
}

/// Decisions that a fuzzer spells out, two bytes each. Past their end everything is decided for the first.
#[derive(Clone, Debug)]
pub struct Spelt {
    bytes: Vec<u8>,
    at: usize,
}

impl Spelt {
    /// These decisions.
    pub fn new(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), at: 0 }
    }
}

impl Choices for Spelt {
    fn below(&mut self, count: u32) -> u32 {
        if count <= 1 {
            return 0;
        }
        let byte = |at: usize| u32::from(self.bytes.get(at).copied().unwrap_or(0));
        let number = byte(self.at) | byte(self.at + 1) << 8;
        self.at += 2;
        number % count
    }
}

/// All decisions there are, one way through them at a time.
///
/// ```
/// use tests::choices::{Choices, Exhaustive};
/// let mut all = Exhaustive::default();
/// let mut seen = Vec::new();
/// loop {
///     seen.push((all.below(2), all.below(2)));
///     if !all.advance() {
///         break;
///     }
/// }
/// assert_eq!(seen, [(0, 0), (0, 1), (1, 0), (1, 1)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exhaustive {
    /// What was decided this time, and among how many.
    path: Vec<(u32, u32)>,
    at: usize,
}

impl Exhaustive {
    /// Goes on to the next way. `false`: there is none left.
    pub fn advance(&mut self) -> bool {
        self.path.truncate(self.at);
        self.at = 0;
        while let Some((taken, count)) = self.path.last_mut() {
            *taken += 1;
            if *taken < *count {
                return true;
            }
            self.path.pop();
        }
        false
    }
}

impl Choices for Exhaustive {
    fn below(&mut self, count: u32) -> u32 {
        if self.at == self.path.len() {
            self.path.push((0, count));
        }
        let (taken, among) = self.path[self.at];
        assert_eq!(among, count, "the same decisions led to another question");
        self.at += 1;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::{Choices, Exhaustive, Seeded, Spelt};

    #[test]
    fn a_seed_decides_evenly_and_always_the_same() {
        let draw = |seed| {
            let mut choices = Seeded::new(seed);
            (0..1000).map(|_| choices.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        for number in 0..10 {
            let count = draw(3).iter().filter(|drawn| **drawn == number).count();
            assert!((60..140).contains(&count), "{number} was drawn {count} times of 1000");
        }
    }

    #[test]
    fn what_is_spelt_is_decided_and_then_the_first() {
        let mut choices = Spelt::new(&[3, 0, 9, 1, 5]);
        assert_eq!([choices.below(10), choices.below(1000), choices.below(1)], [3, 265, 0]);
        assert_eq!([choices.below(10), choices.below(10)], [5, 0]);
    }

    #[test]
    fn every_way_is_gone_once_though_questions_depend_on_answers() {
        let mut all = Exhaustive::default();
        let mut ways = Vec::new();
        loop {
            let first = all.below(3);
            let second = if first == 1 { all.below(2) } else { 0 };
            ways.push((first, second));
            if !all.advance() {
                break;
            }
        }
        assert_eq!(ways, [(0, 0), (1, 0), (1, 1), (2, 0)]);
    }
}
