//! What holds for a whole run.

use std::fmt;

use backend::host::wrap::Weights;
use engine::limits::{DAEMON_BYTES, DAEMON_FIDS, MIN_MSIZE};
use engine::{Budget, Limits};
use proto::Dialect;

use super::{Bits, SCENES, Scene};

/// Who takes part, what they may use, and what goes wrong.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The world.
    pub scene: &'static Scene,
    /// The clients, 1 to 4: what each one speaks, and the msize it asks for.
    pub clients: Vec<(Dialect, u32)>,
    /// How often calls of the machine fail.
    pub faults: Weights,
    /// How many of 1024 asks are found cold.
    pub chill: u32,
    /// The spots that most steps are about, by number.
    pub focus: [u8; 2],
    /// How bytes come in.
    pub cut: Cut,
    /// How much is done before the next step is taken: in so many of 16 draws.
    pub pace: u32,
    /// Of each connection.
    pub limits: Limits,
    /// Descriptors that the tree may keep.
    pub pinned_descriptors: usize,
    /// Fids of all connections.
    pub fids: usize,
    /// Bytes of all connections.
    pub bytes: usize,
}

/// How bytes are cut on their way.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Cut {
    /// All that there are come at once.
    Whole,
    /// One request at a time.
    Frames,
    /// Any number.
    Anywhere,
    /// One to three at a time.
    Small,
}

impl Setup {
    /// The setup that a number stands for.
    pub fn of(number: u64) -> Self {
        let mut bits = Bits(number);
        let scene = SCENES[WHICH[(number >> Self::SCENE_SHIFT) as usize]];
        let count = 1 + bits.take(2);
        let clients = (0..count).map(|_| client(&mut bits)).collect();
        let faults = faults(&mut bits);
        let cut = bits.pick(2, &[Cut::Whole, Cut::Frames, Cut::Anywhere, Cut::Small]);
        let pace = bits.pick(2, &[12, 8, 4, 0]);
        let tight = Limits { msize: MIN_MSIZE, fids: 10, requests: 4, parked: 2, queued_bytes: 32 * 1024 };
        let narrow = Limits { msize: 8192 + 24, fids: 16, requests: 16, parked: 3, queued_bytes: 64 * 1024 };
        let limits = bits.pick(2, &[Limits::DEFAULT, Limits::DEFAULT, narrow, tight]);
        let (fids, bytes) = bits.pick(
            2,
            &[(DAEMON_FIDS, DAEMON_BYTES), (DAEMON_FIDS, DAEMON_BYTES), (24, 256 << 10), (12, 128 << 10)],
        );
        let pinned_descriptors = bits.pick(2, &[64, 4, 1, 0]);
        // Bits that say nothing, so that plans which were written down mean what they meant.
        _ = bits.take(3);
        let chill = bits.pick(2, &[0, 100, 500, 1024]);
        let focus = [bits.take(4) as u8, bits.take(4) as u8];
        Self { chill, focus, scene, clients, faults, cut, pace, limits, pinned_descriptors, fids, bytes }
    }

    /// The number that stands for the same setup in the scene of this name.
    pub(super) fn in_scene(number: u64, name: &str) -> Option<u64> {
        let which = (0..).zip(WHICH).find(|(_, scene)| SCENES[*scene].name == name)?.0;
        Some(number & !(7 << Self::SCENE_SHIFT) | which << Self::SCENE_SHIFT)
    }

    /// The three highest bits say which scene it is.
    const SCENE_SHIFT: u32 = 61;

    /// What all connections share.
    pub fn budget(&self) -> Budget {
        Budget::new(self.fids, self.bytes)
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scene, clients, chill, focus, faults, cut, pace, limits, pinned_descriptors, fids, bytes } =
            self;
        write!(
            out,
            "{}: {clients:?}, {faults:?}, {chill} of 1024 cold, spots {focus:?}, cut {cut:?}, pace {pace}, {limits:?}, ",
            scene.name
        )?;
        write!(out, "{pinned_descriptors} descriptors, {fids} fids and {bytes} bytes in all")
    }
}

/// A client takes four bits.
fn client(bits: &mut Bits) -> (Dialect, u32) {
    let dialect = bits.pick(2, &[Dialect::Plain, Dialect::Unix, Dialect::Linux, Dialect::Linux]);
    let sizes = match dialect {
        Dialect::Plain => [8192 + 24, 512, 1000, 65536],
        Dialect::Unix | Dialect::Linux => [8192 + 24, 4096, 5000, 65536],
    };
    (dialect, bits.pick(2, &sizes))
}

/// A kind of fault is off in half of the runs, and seldom in most of the rest. In a quarter all are.
fn faults(bits: &mut Bits) -> Weights {
    let any = bits.take(2) != 0;
    let mut weights = Weights::default();
    for weight in &mut weights.0 {
        let drawn = bits.pick(3, &[0, 0, 0, 0, 20, 60, 100, 140]);
        *weight = if any { drawn } else { 0 };
    }
    weights
}

/// How often each scene comes, of 8.
const WHICH: [usize; 8] = [0, 0, 0, 0, 0, 0, 1, 2];

#[cfg(test)]
mod tests {
    use super::{Cut, Setup};
    use crate::choices::Seeded;

    #[test]
    fn zero_is_the_simplest_setup() {
        let setup = Setup::of(0);
        assert_eq!((setup.clients.len(), setup.faults.0, setup.cut), (1, [0; 7], Cut::Whole));
    }

    #[test]
    fn faults_come_in_every_mix() {
        let mut choices = Seeded::new(1);
        let mut mixes = std::collections::BTreeSet::new();
        let mut none = 0;
        for _ in 0..2000 {
            let faults = Setup::of(choices.word()).faults.0;
            assert!(faults.iter().map(|weight| u32::from(*weight)).sum::<u32>() < 1024);
            none += u32::from(faults == [0; 7]);
            mixes.insert(faults.map(|weight| weight > 0));
        }
        assert_eq!(mixes.len(), 128, "every subset of the kinds");
        assert!((400..700).contains(&none), "{none} of 2000 without a fault");
    }
}
