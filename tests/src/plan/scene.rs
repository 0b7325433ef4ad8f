//! The world of a run, what is asked of it, and what becomes of it.
//!
//! Owns: the vocabulary: machines to begin with, paths and words for clients to speak, and changes. A scene is tables, so
//! that what is learnt of a harness can be added as lines. Must not know: how anything is served.
//!
//! What must never be sent holds [`CANARY`]: every hidden file, everything behind a link, and hidden names where the rule
//! that hides them leaves room. A name is hidden if it holds the canary or is on the scene's list; nothing here asks the
//! boundary's own code.

mod home;
mod live;

use std::collections::BTreeSet;

use backend::host::fixture::{Edit, World};

pub use live::{BOOT_S, Life};

/// What no client may ever see.
pub const CANARY: &str = "CANARY-4f1d";

/// A world, and words about it.
#[derive(Debug)]
pub struct Scene {
    /// Its name.
    pub name: &'static str,
    /// Makes the machine.
    pub build: fn() -> World,
    /// Paths in the tree, of which some lead nowhere; the first 256 are walked to.
    pub paths: fn() -> Vec<String>,
    /// Names to walk to from wherever one is.
    pub words: &'static [&'static [u8]],
    /// Hidden names that do not hold the canary.
    pub hidden: &'static [&'static str],
    /// Databases that may be served, as root and name.
    pub databases: &'static [(&'static str, &'static str)],
    /// The places where something happens.
    pub spots: fn() -> Vec<Spot>,
    /// Whether agents live there.
    pub lives: bool,
}

/// A file or directory, and what can become of it. A run looks at few of them, so that what is asked and what changes meet.
#[derive(Clone, Debug)]
pub struct Spot {
    /// Where the tree has it, and what is near it.
    pub paths: Vec<String>,
    /// What can happen there.
    pub changes: Vec<Change>,
}

/// What happens at once.
#[derive(Clone, Debug)]
pub struct Change {
    /// One after the other. One that cannot be done is passed over. In the middle of a request time does not pass: what
    /// follows an [`Edit::Advance`] is left out.
    pub edits: Vec<Edit>,
    /// Of all that have this number at most one happens in a run, and at most once.
    pub once: Option<u64>,
}

/// All scenes.
pub const SCENES: &[&Scene] = &[&home::HOME, &live::AGENTS, &live::CHATS];

impl Scene {
    /// Whether a name must not be seen.
    pub fn hides(&self, name: &str) -> bool {
        name.contains(CANARY) || self.hidden.contains(&name)
    }

    /// Makes what runs start from.
    pub fn prepare(&'static self) -> Prepared {
        let lives = if self.lives { live::lives().collect() } else { Vec::new() };
        let begun = lives.iter().filter(|life| life.is_first()).map(|life| life.serial).collect();
        Prepared {
            scene: self,
            world: (self.build)(),
            paths: (self.paths)(),
            spots: (self.spots)(),
            lives,
            begun,
        }
    }
}

/// A scene with its machine made: each run takes a copy of that.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Which.
    pub scene: &'static Scene,
    /// The machine.
    pub world: World,
    /// Paths in the tree.
    pub paths: Vec<String>,
    /// The places where something happens.
    pub spots: Vec<Spot>,
    /// Every agent there ever is.
    pub lives: Vec<Life>,
    /// Those changes that happen once, and have.
    pub begun: BTreeSet<u64>,
}
