//! The real tree over a real filesystem, which the rigs of the drivers serve.

use std::sync::Arc;

use backend::host::os::{Os, Resolving};
use backend::{Agents, Limits, Tree};
use engine::port::Backend;

use crate::disk::Disk;

/// The agents tree of a world, which may keep so many descriptors.
pub(super) fn tree(disk: &Disk, pinned_descriptors: usize) -> Arc<dyn Backend<Tree>> {
    let host = Os::new(disk.roots(), disk.proc(), Resolving::Probed);
    Arc::new(Agents::new(Arc::new(host), Limits { pinned_descriptors }))
}

/// Descriptors for a tree that shares those of the test process with many.
pub(super) const PINNED: usize = 32;
