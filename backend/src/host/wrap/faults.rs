//! Failing calls.
//!
//! Owns: which faults there are, which calls each fits, and how one is drawn. Must not know: where the numbers come from.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use engine::port::Effort;

use super::{Call, Faulty, Verb, Watch, lock};
use crate::host::{Errno, Host};

impl Faulty {
    /// `decide` is asked before every call that can fail, with its number from 0. What it answers is done if such a call
    /// can fail like that ([`FaultKind::fits`]).
    #[must_use]
    pub fn new(
        inner: Arc<dyn Host>,
        decide: impl Fn(u64, &Call<'_>) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        let faults = Faults {
            decide: Box::new(decide),
            calls: AtomicU64::new(0),
            is_on: AtomicBool::new(true),
            done: Mutex::new(Vec::new()),
        };
        Self::with(inner, faults)
    }

    /// Fails the calls with these numbers.
    #[must_use]
    pub fn planned(inner: Arc<dyn Host>, plan: BTreeMap<u64, Fault>) -> Self {
        Self::new(inner, move |number, _| plan.get(&number).copied())
    }

    /// Lets everything pass from now on, or no longer. Calls are counted all the same.
    pub fn turn(&self, on: bool) {
        self.watch.is_on.store(on, Relaxed);
    }

    /// The faults so far, by number of the call: a plan that does the same again.
    #[must_use]
    pub fn faults(&self) -> BTreeMap<u64, Fault> {
        lock(&self.watch.done).iter().copied().collect()
    }
}

/// A failure in the place of a call.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Fault {
    /// Which.
    pub kind: FaultKind,
    /// How many names of a listing, or metas of a walk, are handed on before it fails. Other calls fail at once.
    pub after: u32,
}

/// How a call can fail. A read is never cut short instead: no host does that.
#[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum FaultKind {
    /// `INTR`.
    Interrupted,
    /// `IO`.
    Io,
    /// `MFILE`: this process has too many files open.
    ManyFiles,
    /// `NFILE`: the machine has.
    ManyFilesOfAll,
    /// `NOMEM`.
    NoMemory,
    /// `ACCESS`.
    Refused,
    /// `AGAIN`, to a call with [`Effort::Cached`].
    Cold,
}

impl FaultKind {
    /// All, in the order of [`Weights`].
    pub const ALL: [Self; 7] = [
        Self::Interrupted,
        Self::Io,
        Self::ManyFiles,
        Self::ManyFilesOfAll,
        Self::NoMemory,
        Self::Refused,
        Self::Cold,
    ];

    /// The error.
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Interrupted => Errno::INTR,
            Self::Io => Errno::IO,
            Self::ManyFiles => Errno::MFILE,
            Self::ManyFilesOfAll => Errno::NFILE,
            Self::NoMemory => Errno::NOMEM,
            Self::Refused => Errno::ACCESS,
            Self::Cold => Errno::AGAIN,
        }
    }

    /// Whether a call can fail like that.
    #[must_use]
    pub fn fits(self, call: &Call<'_>) -> bool {
        let is_open = match call.verb {
            Verb::Stat | Verb::Walk { .. } | Verb::Open | Verb::OpenDir => true,
            Verb::ReadLink | Verb::StatLink | Verb::EntryStat => true,
            Verb::LookUp | Verb::Hold { .. } | Verb::Spawn => true,
            Verb::Read { .. } | Verb::FileMeta | Verb::Names | Verb::Signal { .. } => false,
            Verb::User { .. } | Verb::Group { .. } | Verb::IsBase | Verb::MachineId => return false,
            Verb::MayRun | Verb::IsLive | Verb::HasEnded { .. } => return false,
        };
        match self {
            Self::Interrupted | Self::Io | Self::NoMemory => true,
            Self::ManyFiles | Self::ManyFilesOfAll | Self::Refused => is_open,
            Self::Cold => call.effort == Effort::Cached,
        }
    }
}

/// How often calls fail: for each of [`FaultKind::ALL`], in how many of [`Weights::OF`] calls that can.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Weights(pub [u16; 7]);

impl Weights {
    /// What the weights are shares of. Together they should not be more.
    pub const OF: u32 = 1024;

    /// Draws the fate of a call. `choose` picks a number below the one it is given.
    pub fn draw(&self, call: &Call<'_>, choose: &mut dyn FnMut(u32) -> u32) -> Option<Fault> {
        let mut rest = choose(Self::OF);
        let kinds = FaultKind::ALL.into_iter().zip(self.0).filter(|(kind, _)| kind.fits(call));
        for (kind, weight) in kinds {
            match rest.checked_sub(u32::from(weight)) {
                Some(less) => rest = less,
                None => {
                    let after = if call.verb.is_piecemeal() { choose(MOST_BEFORE) } else { 0 };
                    return Some(Fault { kind, after });
                }
            }
        }
        None
    }
}

/// What [`Faulty`] keeps.
pub struct Faults {
    decide: Box<Decide>,
    calls: AtomicU64,
    is_on: AtomicBool,
    done: Mutex<Vec<(u64, Fault)>>,
}

type Decide = dyn Fn(u64, &Call<'_>) -> Option<Fault> + Send + Sync;

impl Watch for Faults {
    fn before(&self, call: &Call<'_>) -> Option<Fault> {
        if !FaultKind::Io.fits(call) {
            return None;
        }
        let number = self.calls.fetch_add(1, Relaxed);
        if !self.is_on.load(Relaxed) {
            return None;
        }
        let fault = (self.decide)(number, call).filter(|fault| fault.kind.fits(call))?;
        lock(&self.done).push((number, fault));
        Some(fault)
    }
}

/// How many names at most pass before a listing fails.
const MOST_BEFORE: u32 = 8;
