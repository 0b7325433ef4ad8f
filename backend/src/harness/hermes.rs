//! hermes: `~/.hermes`.
//!
//! Owns: which programs are its agents, and its registry of live processes, `runtime/active_sessions.json`, which exists
//! only where a limit on sessions is set. Its sessions are kept in a SQLite database and nowhere else. That is not opened:
//! SQLite writes side files and drops other processes' locks even when it only reads. So a session has an id here, and
//! neither transcript, title nor model.

use serde_json::Value;

use super::json::{self, at, text};
use super::program::{Program, Runs, ends_with, is_service};
use super::{Harness, Resolved, Role, Scene, Session, Subagent, Torn, Via, is_plain_id, path};
use crate::name::Rel;
use crate::process::Process;
use crate::tree::halt::Halt;

/// The harness.
pub(super) struct Hermes;

impl Harness for Hermes {
    fn role(&self, program: &Program<'_>) -> Option<Role> {
        let args = if program.name() == "hermes" || program.exe_name() == "hermes" {
            program.args()
        } else {
            let it = program.interpreted().filter(|it| !it.by.is_javascript())?;
            match it.runs {
                Runs::Script(path) if ends_with(path, &["bin", "hermes"]) => it.args,
                Runs::Module("hermes_cli.main") => it.args,
                _ => return None,
            }
        };
        Some(if is_service(args, SWITCHES, OWN_SERVICES) { Role::Helper } else { Role::Agent })
    }

    fn home_variable(&self) -> &'static str {
        "HERMES_HOME"
    }

    fn resolve(&self, scene: &Scene<'_>, process: Process) -> Result<Resolved, Torn> {
        let rel = path(&["runtime", "active_sessions.json"]);
        let Some((content, _)) = rel.and_then(|rel| scene.read(&rel, REGISTRY_BYTES)) else {
            return Ok(Resolved::default());
        };
        let registry = match json::record(&content) {
            Some(registry) => registry,
            None if scene.last_try => return Ok(Resolved::default()),
            None => return Err(Torn),
        };
        let entries = at(&registry, &["entries"]).and_then(Value::as_array).into_iter().flatten();
        let mut ids = entries
            .filter(|entry| is_about(scene, process, entry))
            .filter_map(|entry| text(entry, &["session_id"]));
        // A process that has several sessions on record is in none of them more than in another.
        let id = match (ids.next(), ids.next()) {
            (Some(id), None) => Some(id).filter(|id| is_plain_id(id)),
            _ => None,
        };
        let session = id.map(|id| Session { id: id.to_owned(), via: Via::Registry, transcript: None });
        Ok(Resolved { session, registered: None })
    }

    fn resume(&self, _: &Scene<'_>, _: Process, session: &Session) -> Option<Vec<Vec<u8>>> {
        Some(super::arguments(&["--resume", &session.id]))
    }

    fn title(&self, _: &Scene<'_>, _: &Session) -> Option<String> {
        None
    }

    fn model(&self, _: &Scene<'_>, _: &Rel) -> Option<String> {
        None
    }

    fn has_subagents(&self) -> bool {
        false
    }

    fn subagents(&self, _: &Scene<'_>, _: &Session, _: Option<&str>) -> Result<Vec<Subagent>, Halt> {
        Ok(Vec::new())
    }
}

/// Whether an entry is about this process: the start it has on record is in seconds since 1970, reckoned from the time
/// of boot as ours is.
fn is_about(scene: &Scene<'_>, process: Process, entry: &Value) -> bool {
    let is_pid = at(entry, &["pid"]).and_then(Value::as_u64) == Some(u64::from(process.pid));
    let began_s = at(entry, &["process_start_time"]).and_then(Value::as_f64);
    let started_s = scene.started_ms(process) as f64 / 1000.0;
    is_pid && began_s.is_some_and(|began_s| (began_s - started_s).abs() <= START_ERROR_S)
}

/// An entry for each of a few live sessions.
const REGISTRY_BYTES: usize = 1 << 20;
/// The time of boot is known to the second.
const START_ERROR_S: f64 = 1.0;
/// Its services beside those that others have too.
const OWN_SERVICES: &[&str] = &["desktop", "gui", "lsp", "webhook"];
/// Options without a value.
const SWITCHES: &[&str] =
    &["--tui", "--verbose", "-v", "--yolo", "--cli", "--accept-hooks", "--safe-mode", "--ignore-user-config"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_forms_are_told_from_its_services_and_neighbours() {
        for (exe, cmdline, expected) in [
            ("/v/bin/python3.12", "/v/bin/python3 /v/bin/hermes -c", Some(Role::Agent)),
            ("", "python /v/bin/hermes chat", Some(Role::Agent)),
            ("", "hermes", Some(Role::Agent)),
            ("/usr/bin/python3.12", "hermes", Some(Role::Agent)),
            ("", "python3 -m hermes_cli.main", Some(Role::Agent)),
            ("", "python3 -m hermes_cli.main gateway run", Some(Role::Helper)),
            ("", "python3 /v/bin/hermes gateway run", Some(Role::Helper)),
            ("", "python3 /v/bin/hermes --tui", Some(Role::Agent)),
            ("", "python3 /v/bin/hermes -p export", Some(Role::Agent)),
            ("", "hermes cron", Some(Role::Helper)),
            ("", "hermes webhook list", Some(Role::Helper)),
            ("", "python3 -mhermes_cli.main", Some(Role::Agent)),
            ("", "python3 -Bum hermes_cli.main", Some(Role::Agent)),
            ("", "python3 -m tui_gateway", None),
            ("", "python3 /x/hermes.py", None),
            ("", "python3 /x/hermes", None),
            ("", "node /x/bin/hermes", None),
            ("", "hermesd", None),
        ] {
            let role = Hermes.role(&Program::new(&cmdline.replace(' ', "\0"), exe));
            assert_eq!(role, expected, "{exe} {cmdline}");
        }
    }
}
