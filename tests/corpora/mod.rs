//! The fuzz targets, and how their corpora are replayed.

use std::fs;
use std::path::{Path, PathBuf};

use tests::sim::shrink::quietly;

/// The body of a target: it panics if a law is broken.
pub(crate) type Body = fn(&[u8]);

/// Every target. A test holds this to the files of `fuzz/`.
pub(crate) const TARGETS: &[(&str, Body)] = &[
    ("frame", engine::fuzz::frame),
    ("message", proto::fuzz::message),
    ("session", engine::fuzz::session),
    ("world", tests::fuzz::world),
    ("host_text", drivers::fuzz::host_text),
    ("transcript", backend::fuzz::transcript),
];

/// Where the corpus of a target is.
pub(crate) fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target)
}

/// Hands every input of a corpus to a body: how many there were, or the first that it panicked on, and why. None at all is a
/// failure too.
pub(crate) fn replay(corpus: &Path, body: Body) -> Result<usize, String> {
    let entries = fs::read_dir(corpus).map_err(|error| format!("{}: {error}", corpus.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in &paths {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        quietly(|| body(&bytes)).map_err(|words| format!("{}: {words}", path.display()))?;
    }
    if paths.is_empty() { Err(format!("{}: it is empty", corpus.display())) } else { Ok(paths.len()) }
}
