//! Paths below a root.

use std::sync::Arc;

use super::Name;

/// A path below a root's base directory: a list of names, joined by `/`. The empty list is the base itself.
///
/// It holds nothing but [`Name`]s, so it has no `..`, begins with no `/`, and names nothing that the boundary hides
/// (save what harness code derived). Cloning it is one reference; the base owns nothing.
#[derive(Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct Rel(Option<Arc<str>>);

impl Rel {
    /// The base directory itself.
    #[must_use]
    pub const fn base() -> Self {
        Self(None)
    }

    /// The entry `name` of this directory. One allocation.
    #[must_use]
    pub fn join(&self, name: Name<'_>) -> Self {
        Self(Some(match &self.0 {
            None => Arc::from(name.as_str()),
            Some(directory) => joined(directory, name.as_str()),
        }))
    }

    /// The directory this entry is in; `None` for the base. At most one allocation.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let path = self.0.as_deref()?;
        Some(Self(path.rsplit_once('/').map(|(directory, _)| Arc::from(directory))))
    }

    /// The last name; `None` for the base.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        let path = self.0.as_deref()?;
        Some(path.rsplit_once('/').map_or(path, |(_, name)| name))
    }

    /// The names from the base down. None for the base.
    pub fn components(&self) -> impl Iterator<Item = Name<'_>> {
        self.0.iter().flat_map(|path| path.split('/')).map(Name)
    }

    /// The names joined by `/`; empty for the base. It is ready for `openat2` beneath the base, which wants `.` in
    /// place of the empty path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// How many names the path holds; 0 for the base.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.components().count()
    }

    /// The path that harness code derived, `/` between its names. `None` if it holds no name or a malformed one, so
    /// that no absolute path and no `..` passes. See [`Name::of_harness`]: no byte of a client may reach this.
    #[must_use]
    pub fn from_harness(path: &str) -> Option<Self> {
        path.split('/').all(|name| Name::of_harness(name).is_some()).then(|| Self(Some(Arc::from(path))))
    }
}

/// `directory/name`. Usual lengths are put together on the stack, because a `String` on the way to an `Arc` would be a
/// second allocation.
fn joined(directory: &str, name: &str) -> Arc<str> {
    let mut scratch = [0; SCRATCH_BYTES];
    if let Some(path) = scratch.get_mut(..directory.len() + 1 + name.len()) {
        let (head, tail) = path.split_at_mut(directory.len());
        head.copy_from_slice(directory.as_bytes());
        tail[0] = b'/';
        tail[1..].copy_from_slice(name.as_bytes());
        if let Ok(path) = str::from_utf8(path) {
            return Arc::from(path);
        }
    }
    Arc::from([directory, "/", name].concat())
}

/// A project directory, a session directory and a file name fit several times over.
const SCRATCH_BYTES: usize = 512;
