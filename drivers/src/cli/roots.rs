//! Where each harness keeps its files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use backend::host::os::Roots;
use backend::name::Root;

/// The base directory of each harness: the one that is `pinned` on the command line, or the one that the harness itself would
/// use with this environment.
///
/// # Errors
/// The place of a harness cannot be told.
pub(super) fn roots(
    pinned: &[(Root, PathBuf)],
    environment: impl Fn(&str) -> Option<OsString>,
) -> Result<Roots, RootsError> {
    let absolute = |variable: &'static str| match environment(variable).map(PathBuf::from) {
        Some(path) if path.as_os_str().is_empty() => Ok(None),
        Some(path) if path.is_absolute() => Ok(Some(path)),
        Some(_) => Err(RootsError::Relative(variable)),
        None => Ok(None),
    };
    let base = |root: Root, variable: &'static str, hidden: &str, below: &str| {
        if let Some((_, path)) = pinned.iter().find(|(name, _)| *name == root) {
            return Ok(join(path, below));
        }
        if let Some(moved) = absolute(variable)? {
            return Ok(moved);
        }
        let home = absolute("HOME")?.ok_or(RootsError::Homeless(root.as_str()))?;
        Ok(join(&home.join(hidden), below))
    };
    Ok(Roots {
        claude: base(Root::Claude, "CLAUDE_CONFIG_DIR", ".claude", "")?,
        codex: base(Root::Codex, "CODEX_HOME", ".codex", "")?,
        omp: base(Root::Omp, "PI_CODING_AGENT_DIR", ".omp", "agent")?,
        hermes: base(Root::Hermes, "HERMES_HOME", ".hermes", "")?,
        dsh: base(Root::Dsh, "DSH_HOME", ".dsh", "")?,
    })
}

/// A path below another, without the slash that `Path::join` would add for nothing.
fn join(path: &Path, below: &str) -> PathBuf {
    if below.is_empty() { path.to_owned() } else { path.join(below) }
}

/// Why it is not known where a harness keeps its files.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum RootsError {
    /// A variable names a place that depends on where we were started.
    #[error("{0} is not an absolute path: correct it, or use --root")]
    Relative(&'static str),
    /// There is no home.
    #[error("HOME is not set, so there is no place to look for {0}: set it, or use --root {0}=PATH")]
    Homeless(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harness_lives_at_home() {
        let roots = roots(&[], environment(&[("HOME", "/home/me")])).unwrap();
        assert_eq!(
            [roots.claude, roots.codex, roots.omp, roots.hermes, roots.dsh],
            [".claude", ".codex", ".omp/agent", ".hermes", ".dsh"]
                .map(|place| Path::new("/home/me").join(place))
        );
    }

    #[test]
    fn the_environment_moves_a_harness_and_the_command_line_outweighs_it() {
        let environment = environment(&[
            ("HOME", "/home/me"),
            ("CLAUDE_CONFIG_DIR", "/e/claude"),
            ("CODEX_HOME", "/e/codex"),
            ("PI_CODING_AGENT_DIR", "/e/omp-agent"),
            ("HERMES_HOME", "/e/hermes"),
            ("DSH_HOME", ""),
        ]);
        let moved = roots(&[], &environment).unwrap();
        assert_eq!(
            [moved.claude, moved.codex, moved.omp, moved.hermes, moved.dsh],
            ["/e/claude", "/e/codex", "/e/omp-agent", "/e/hermes", "/home/me/.dsh"].map(PathBuf::from)
        );
        let pinned = [(Root::Omp, "/p/omp".into()), (Root::Claude, "/p/claude".into())];
        let pinned = roots(&pinned, &environment).unwrap();
        assert_eq!(
            [pinned.claude, pinned.codex, pinned.omp],
            ["/p/claude", "/e/codex", "/p/omp/agent"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_place_that_cannot_be_told_is_an_error() {
        let homeless = roots(&[], environment(&[]));
        assert_eq!(homeless.unwrap_err(), RootsError::Homeless("claude"));
        let relative = roots(&[], environment(&[("HOME", "/h"), ("DSH_HOME", "dsh")]));
        assert_eq!(relative.unwrap_err(), RootsError::Relative("DSH_HOME"));
    }

    #[test]
    fn nobody_needs_a_home_who_pins_everything() {
        let pinned = Root::HARNESSES.map(|root| (root, Path::new("/p").join(root.as_str())));
        assert_eq!(roots(&pinned, environment(&[])).unwrap().dsh, Path::new("/p/dsh"));
    }

    fn environment(variables: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    }
}
