//! Codex: `~/.codex`.
//!
//! Owns: which programs are its agents, and the routes from a process to its thread: the rollout it holds open, then the
//! lock it holds. What a rollout is called and where it lies is [`rollout`]'s; what it says of its thread is [`transcript`]'s,
//! what it says as a conversation [`records`]', and which others it continues [`bases`]'.

pub(crate) mod bases;
pub(crate) mod records;
mod rollout;
mod transcript;

use super::program::{Program, Runs, basename, is_service};
use super::{Harness, Resolved, Role, Scene, Session, Subagent, Torn, Via, is_uuid, path};
use crate::chat::Format;
use crate::host::Time;
use crate::name::Rel;
use crate::process::{self, Process};
use crate::tree::halt::Halt;
use rollout::Rollout;
use transcript::Origin;

/// The harness.
pub(super) struct Codex;

impl Harness for Codex {
    fn role(&self, program: &Program<'_>) -> Option<Role> {
        let name = program.name();
        if HELPERS.contains(&name) || HELPERS.contains(&program.exe_name()) {
            return Some(Role::Helper);
        }
        if is_binary(name) || (is_binary(program.exe_name()) && program.interpreted().is_none()) {
            let service = is_service(program.args(), SWITCHES, MAINTENANCE);
            return Some(if service { Role::Helper } else { Role::Agent });
        }
        let interpreted = program.interpreted().filter(|it| it.by.is_javascript())?;
        match interpreted.runs {
            Runs::Script(path) if matches!(basename(path), "codex" | "codex.js") => {
                let service = is_service(interpreted.args, SWITCHES, MAINTENANCE);
                Some(if service { Role::Helper } else { Role::Wrapper })
            }
            _ => None,
        }
    }

    fn home_variable(&self) -> &'static str {
        "CODEX_HOME"
    }

    fn resolve(&self, scene: &Scene<'_>, process: Process) -> Result<Resolved, Torn> {
        let session = by_descriptor(scene, process).or_else(|| by_lock(scene, process));
        Ok(Resolved { session, registered: None })
    }

    fn resume(&self, _: &Scene<'_>, _: Process, session: &Session) -> Option<Vec<Vec<u8>>> {
        Some(super::arguments(&["resume", &session.id]))
    }

    fn title(&self, scene: &Scene<'_>, session: &Session) -> Option<String> {
        transcript::thread_name(scene, &session.id)
            .or_else(|| transcript::first_prompt(scene, session.transcript.as_ref()?))
    }

    fn model(&self, scene: &Scene<'_>, transcript: &Rel) -> Option<String> {
        transcript::model(scene, transcript)
    }

    fn format(&self) -> Option<Format> {
        Some(Format::Codex)
    }

    fn has_subagents(&self) -> bool {
        true
    }

    fn subagents(
        &self,
        scene: &Scene<'_>,
        session: &Session,
        only: Option<&str>,
    ) -> Result<Vec<Subagent>, Halt> {
        transcript::subagents(scene, session, only)
    }
}

/// The thread whose rollout the process holds open. Its subagents' are open in the same process.
fn by_descriptor(scene: &Scene<'_>, process: Process) -> Option<Session> {
    let mut held: Vec<(Time, Rollout)> = Vec::new();
    process.descriptors(scene.host, &mut |descriptor, text| {
        let Some(rollout) = str::from_utf8(text).ok().and_then(Rollout::by_path) else { return };
        if let Some(meta) = scene.file(&rollout.rel)
            && descriptor.is(&meta)
            && held.iter().all(|(_, other)| *other != rollout)
        {
            held.push((meta.mtime, rollout));
        }
    });
    let newest = |origin| {
        held.iter()
            .filter(|(_, rollout)| transcript::origin(scene, &rollout.rel) == origin)
            .max_by(|(a, one), (b, other)| (a, one.name()).cmp(&(b, other.name())))
    };
    let found = newest(Origin::Person).or_else(|| match &held[..] {
        // Just begun: it does not say yet what it is, and there is no other.
        [only] => {
            Some(only).filter(|(_, rollout)| transcript::origin(scene, &rollout.rel) == Origin::Unknown)
        }
        _ => None,
    });
    let (_, rollout) = found?;
    let (id, transcript) = (rollout.thread().to_owned(), Some(rollout.rel.clone()));
    Some(Session { id, via: Via::Fd, transcript })
}

/// The thread whose lock the process holds. The lock is there before the first turn, and the rollout only after it.
fn by_lock(scene: &Scene<'_>, process: Process) -> Option<Session> {
    let inodes = process::write_locks(scene.host, process.pid);
    if inodes.is_empty() {
        return None;
    }
    let dir = path(&[LOCKS])?;
    let names = scene.names(&dir, &|name| locked_thread(name).is_some());
    let mut begun = Vec::new();
    let mut empty = Vec::new();
    for id in names.iter().filter_map(|name| locked_thread(name)) {
        let lock = path(&[LOCKS, &format!("{id}.lock")]).and_then(|rel| scene.file(&rel));
        if !lock.is_some_and(|lock| inodes.contains(&lock.ino)) {
            continue;
        }
        match rollout::newest_of(scene, id) {
            Some(rollout) if transcript::origin(scene, &rollout.rel) == Origin::Person => begun.push(rollout),
            Some(_) => {}
            None => empty.push(id),
        }
    }
    begun.sort_by(|one, other| one.name().cmp(other.name()));
    match (begun.pop(), &empty[..]) {
        (Some(rollout), _) => {
            let (id, transcript) = (rollout.thread().to_owned(), Some(rollout.rel));
            Some(Session { id, via: Via::Lock, transcript })
        }
        (None, [id]) => Some(Session { id: (*id).to_owned(), via: Via::Lock, transcript: None }),
        (None, _) => None,
    }
}

/// The thread that a lock file is of; `.coordination.lock` is of none.
fn locked_thread(name: &str) -> Option<&str> {
    name.strip_suffix(".lock").filter(|id| is_uuid(id))
}

/// Whether this is what its executable is called.
fn is_binary(name: &str) -> bool {
    let released = || name.strip_prefix("codex-").is_some_and(|rest| rest.contains("-unknown-linux-"));
    matches!(name, "codex" | "codex-raw" | ".codex-wrapped") || released()
}

/// The directory of locks.
const LOCKS: &str = "thread-writer-locks";
/// What its executable is called when it works for an agent.
const HELPERS: &[&str] =
    &["codex-linux-sandbox", "codex-execve-wrapper", "codex-code-mode-host", "apply_patch", "applypatch"];
const MAINTENANCE: &[&str] = &["login", "logout", "completion", "sandbox", "debug", "apply"];
/// Options without a value.
const SWITCHES: &[&str] = &[
    "--search",
    "--oss",
    "--full-auto",
    "--dangerously-bypass-approvals-and-sandbox",
    "--yolo",
    "--no-alt-screen",
    "--skip-git-repo-check",
    "--ephemeral",
    "--json",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn role(exe: &str, cmdline: &str) -> Option<Role> {
        Codex.role(&Program::new(&cmdline.replace(' ', "\0"), exe))
    }

    #[test]
    fn its_forms_are_agents_and_wrappers() {
        let native = "/n/@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex";
        for (exe, cmdline, expected) in [
            ("", "codex", Role::Agent),
            (native, native, Role::Agent),
            ("", "codex-x86_64-unknown-linux-musl resume", Role::Agent),
            ("", "codex-aarch64-unknown-linux-gnu", Role::Agent),
            ("", "codex-raw", Role::Agent),
            ("", "/nix/store/x/bin/.codex-wrapped -m gpt", Role::Agent),
            (native, "cx", Role::Agent),
            ("", "codex exec do_it", Role::Agent),
            ("", "codex -p export", Role::Agent),
            ("", "codex hello app-server", Role::Agent),
            ("/usr/bin/node", "node /usr/bin/codex", Role::Wrapper),
            ("/usr/bin/node", "node /n/bin/codex.js resume", Role::Wrapper),
            ("/usr/bin/bun", "bun run /n/bin/codex", Role::Wrapper),
        ] {
            assert_eq!(role(exe, cmdline), Some(expected), "{exe} {cmdline}");
        }
    }

    #[test]
    fn its_other_work_is_no_session() {
        let native = "/x/bin/codex";
        for (exe, cmdline) in [
            ("", "codex app-server"),
            ("", "codex -c a=b --search app-server"),
            ("", "codex mcp-server"),
            ("", "codex exec-server"),
            ("", "codex login"),
            ("", "codex sandbox"),
            ("", "codex debug x"),
            (native, "codex-linux-sandbox --x"),
            (native, "apply_patch x"),
            ("", "codex-code-mode-host"),
            ("/x/codex-execve-wrapper", "codex-execve-wrapper"),
            ("/usr/bin/node", "node /usr/bin/codex app-server"),
        ] {
            assert_eq!(role(exe, cmdline), Some(Role::Helper), "{exe} {cmdline}");
        }
    }

    #[test]
    fn its_neighbours_are_not_its_own() {
        for (exe, cmdline) in [
            ("", "codex-trace"),
            ("", "codexd"),
            ("/usr/bin/node", "node /x/codex-companion.js"),
            ("/usr/bin/vim", "vim codex"),
            ("", "codex-unknown-linux-musl"),
        ] {
            assert_eq!(role(exe, cmdline), None, "{exe} {cmdline}");
        }
    }
}
