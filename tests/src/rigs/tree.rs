//! The real tree over a real filesystem, which the rigs of the drivers serve.

use std::sync::Arc;

use backend::host::os::{Os, Resolving};
use backend::{Agents, Limits, Moving, Tree};
use engine::port::Backend;

use crate::disk::Disk;

/// The agents tree of a world, which may keep so many descriptors.
pub(super) fn tree(disk: &Disk, pinned_descriptors: usize) -> Arc<dyn Backend<Tree>> {
    let host = Arc::new(Os::new(disk.roots(), disk.proc(), Resolving::Probed));
    // Agents may be moved, so that there is a file that may be written. Without a zmx none ever is.
    let moving = Moving::find(&*host, &[], None, []);
    assert_eq!(moving.zmx(), None, "a process of this number would be signalled");
    Arc::new(Agents::moving(host, Limits { pinned_descriptors }, moving))
}

/// Descriptors for a tree that shares those of the test process with many.
pub(super) const PINNED: usize = 32;
