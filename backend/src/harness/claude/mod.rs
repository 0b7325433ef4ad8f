//! Claude Code: `~/.claude`.
//!
//! Owns: which programs are its agents, and the pieces that answer for it: the registry of live processes
//! ([`registry`]), where a session's transcript lies ([`project`]), what a transcript says of its session ([`transcript`])
//! and as a conversation ([`records`]), and its subagents ([`subagent`]).

mod project;
pub(crate) mod records;
mod registry;
mod subagent;
mod transcript;

use super::program::{Program, Runs, basename, ends_with, front_options, is_below, is_service};
use super::{Harness, Resolved, Role, Scene, Session, Subagent, Torn};
use crate::chat::Format;
use crate::name::Rel;
use crate::process::Process;
use crate::tree::halt::Halt;

/// The harness.
pub(super) struct Claude;

impl Harness for Claude {
    fn role(&self, program: &Program<'_>) -> Option<Role> {
        let args = arguments(program)?;
        let helper = OTHER_TRADES.contains(&program.name())
            || is_service(args, SWITCHES, MAINTENANCE)
            || front_options(args, SWITCHES).any(|option| WORKER_OPTIONS.contains(&option));
        Some(if helper { Role::Helper } else { Role::Agent })
    }

    fn home_variable(&self) -> &'static str {
        "CLAUDE_CONFIG_DIR"
    }

    fn vouched(
        &self,
        scene: &Scene<'_>,
        candidates: &dyn Fn(u32) -> Option<Process>,
    ) -> Result<Vec<(Process, Role)>, Torn> {
        registry::vouched(scene, candidates)
    }

    fn resolve(&self, scene: &Scene<'_>, process: Process) -> Result<Resolved, Torn> {
        let Some(record) = registry::record(scene, process)? else { return Ok(Resolved::default()) };
        let session = registry::session(scene, process, &record)?;
        Ok(Resolved { session, registered: Some(record.registered) })
    }

    fn resume(&self, _: &Scene<'_>, _: Process, session: &Session) -> Option<Vec<Vec<u8>>> {
        Some(super::arguments(&["--resume", &session.id]))
    }

    fn title(&self, scene: &Scene<'_>, session: &Session) -> Option<String> {
        transcript::title(scene, session.transcript.as_ref()?)
    }

    fn model(&self, scene: &Scene<'_>, transcript: &Rel) -> Option<String> {
        transcript::model(scene, transcript)
    }

    fn format(&self) -> Option<Format> {
        Some(Format::Claude)
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
        session.transcript.as_ref().map_or_else(|| Ok(Vec::new()), |rel| subagent::list(scene, rel, only))
    }
}

/// The arguments of a program that is Claude Code.
fn arguments<'p, 'a>(program: &'p Program<'a>) -> Option<&'p [&'a str]> {
    let named = |name: &str| matches!(name, "claude" | "claude.exe");
    // The native build is one file named by its version, and calls itself by that when it starts itself.
    let versioned = |path: &str| is_below(path, &["claude", "versions"]);
    if named(program.name())
        || named(program.exe_name())
        || versioned(program.called())
        || versioned(program.exe())
    {
        return Some(program.args());
    }
    let interpreted = program.interpreted().filter(|it| it.by.is_javascript())?;
    match interpreted.runs {
        Runs::Script(path)
            if ends_with(path, &["claude-code", "cli.js"])
                || (basename(path) == "claude" && ends_with(path, &["bin", "claude"])) =>
        {
            Some(interpreted.args)
        }
        _ => None,
    }
}

/// Programs that the one executable contains and runs as, by the name it is called by.
const OTHER_TRADES: &[&str] = &["rg", "ugrep", "bfs", "grep", "find"];
const MAINTENANCE: &[&str] =
    &["update", "doctor", "install", "setup-token", "plugin", "agents", "logs", "config"];
const WORKER_OPTIONS: &[&str] = &["--bg-spare", "--bg-pty-host"];
/// Options without a value.
const SWITCHES: &[&str] = &[
    "--verbose",
    "--debug",
    "-d",
    "--ide",
    "--chrome",
    "--no-chrome",
    "--bare",
    "-c",
    "--continue",
    "--fork-session",
    "--strict-mcp-config",
    "--disable-slash-commands",
    "--no-session-persistence",
    "--dangerously-skip-permissions",
    "--allow-dangerously-skip-permissions",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn role(exe: &str, cmdline: &str) -> Option<Role> {
        Claude.role(&Program::new(&cmdline.replace(' ', "\0"), exe))
    }

    #[test]
    fn its_forms_are_agents() {
        let versions = "/home/u/.local/share/claude/versions/2.1.332";
        for (exe, cmdline) in [
            ("", "claude"),
            ("/x/sleep", "claude --resume 1"),
            ("", "/usr/local/bin/claude -c"),
            (versions, "claude"),
            (versions, versions),
            ("", versions),
            (versions, "2.1.332"),
            (versions, "cc"),
            ("", "/home/u/.local/share/claude/versions/2.1.332/bin/cli"),
            ("/opt/claude", "whatever"),
            ("/p/claude-code/bin/claude.exe", "/p/claude-code/bin/claude.exe"),
            ("/usr/bin/node", "node /p/node_modules/@anthropic-ai/claude-code/cli.js"),
            ("/usr/bin/node", "node --max-old-space-size=4096 /usr/local/bin/claude -p hi"),
            ("/usr/bin/node", "claude"),
            ("", "claude -p export"),
            ("", "claude --name daemon"),
            ("", "claude --append-system-prompt mcp"),
            ("", "claude hello mcp serve"),
            ("", "claude -- mcp"),
            ("", "claude --print --bg-spare-not"),
            ("", "claude explain --bg-spare"),
            ("", "claude --verbose -- --bg-spare"),
        ] {
            assert_eq!(role(exe, cmdline), Some(Role::Agent), "{exe} {cmdline}");
        }
    }

    #[test]
    fn its_other_work_is_no_session() {
        let versions = "/home/u/.local/share/claude/versions/2.1.332";
        for (exe, cmdline) in [
            ("", "claude mcp serve"),
            ("", "claude --verbose --model opus mcp serve"),
            ("", "claude update"),
            ("", "claude doctor"),
            ("", "claude daemon run"),
            (versions, "/home/u/.local/share/claude/versions/2.1.332 --bg-spare /tmp/s"),
            (versions, "/home/u/.local/share/claude/versions/2.1.332 --bg-pty-host x"),
            (versions, "/home/u/.local/share/claude/versions/2.1.332 --model opus --bg-spare /tmp/s"),
            (versions, "rg -n pattern"),
            (versions, "ugrep x"),
            (versions, "bfs ."),
            ("/usr/bin/node", "node /usr/bin/claude agents"),
        ] {
            assert_eq!(role(exe, cmdline), Some(Role::Helper), "{exe} {cmdline}");
        }
    }

    #[test]
    fn its_neighbours_are_not_its_own() {
        for (exe, cmdline) in [
            ("/usr/bin/bash", "sh -c claude"),
            ("/usr/bin/vim", "vim claude"),
            ("/usr/bin/node", "node /x/claude.js"),
            ("/usr/bin/node", "node -e claude"),
            ("/usr/bin/node", "node /x/claude-code/other.js"),
            ("/usr/bin/claudette", "claudette"),
            ("/x/claude/versions/", "x"),
            ("/x/my-claude/versions/1", "x"),
            ("/usr/bin/sleep", ""),
        ] {
            assert_eq!(role(exe, cmdline), None, "{exe} {cmdline}");
        }
    }
}
