//! The body of the fuzz target of the whole server.

use std::sync::OnceLock;

use crate::sim::Stage;

/// Runs what the bytes spell in the simulator, with all of its invariants.
///
/// # Panics
/// If one is broken.
pub fn world(bytes: &[u8]) {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(Stage::new).run_spelt(bytes);
}
