//! dsh: `~/.dsh`.
//!
//! Owns: which programs are its agents, and the routes from a process to its session: the log it holds open, which it
//! does for the length of a write only, else the directory it works in. How a log is read is [`log`]'s.
//!
//! A log is `sessions/--<project>--/session-<id>/session[.v<n>].jsonl[.zstd]`.

mod log;

use super::program::{Program, Runs, ends_with, is_service};
use super::{Harness, Resolved, Role, Scene, Session, Subagent, Torn, Via, is_uuid, path};
use crate::host::Time;
use crate::name::{Name, Rel};
use crate::process::Process;
use crate::tree::halt::Halt;

/// The harness.
pub(super) struct Dsh;

impl Harness for Dsh {
    fn role(&self, program: &Program<'_>) -> Option<Role> {
        let args = if program.name() == "dsh" || program.exe_name() == "dsh" {
            program.args()
        } else {
            let it = program.interpreted().filter(|it| it.by.is_javascript())?;
            match it.runs {
                Runs::Script(path) if ends_with(path, &["bin", "dsh"]) => it.args,
                _ => return None,
            }
        };
        Some(if is_service(args, SWITCHES, &[]) { Role::Helper } else { Role::Agent })
    }

    fn home_variable(&self) -> &'static str {
        "DSH_HOME"
    }

    fn resolve(&self, scene: &Scene<'_>, process: Process) -> Result<Resolved, Torn> {
        let found = by_descriptor(scene, process).map(|rel| (Via::Fd, rel)).or_else(|| {
            let taken = scene.rivals(self, process, &|rival| by_descriptor(scene, rival))?;
            by_directory(scene, process, &taken).map(|rel| (Via::Dir, rel))
        });
        let session = found.and_then(|(via, rel)| {
            let id = rel.parent()?.name().and_then(id_of)?.to_owned();
            Some(Session { id, via, transcript: Some(rel) })
        });
        Ok(Resolved { session, registered: None })
    }

    fn resume(&self, scene: &Scene<'_>, process: Process, session: &Session) -> Option<Vec<Vec<u8>>> {
        let cmdline = process.cmdline(scene.host)?;
        is_terminal(&String::from_utf8_lossy(&cmdline))
            .then(|| super::arguments(&["--profile", "tui", "--resume", &session.id]))
    }

    fn title(&self, scene: &Scene<'_>, session: &Session) -> Option<String> {
        log::first_prompt(scene, session.transcript.as_ref()?)
    }

    fn model(&self, scene: &Scene<'_>, transcript: &Rel) -> Option<String> {
        log::model(scene, transcript)
    }

    fn has_subagents(&self) -> bool {
        false
    }

    fn subagents(&self, _: &Scene<'_>, _: &Session, _: Option<&str>) -> Result<Vec<Subagent>, Halt> {
        Ok(Vec::new())
    }
}

/// Whether the arguments of a process, each ended by NUL, say that it talks with somebody at a terminal: only that profile
/// resumes a session so.
fn is_terminal(cmdline: &str) -> bool {
    let mut args = cmdline.split('\0');
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--profile") {
            Some("") => return args.next() == Some("tui"),
            Some(value) if value.starts_with('=') => return value == "=tui",
            _ => {}
        }
    }
    false
}

/// The newest log of a top-level session that the process holds open.
fn by_descriptor(scene: &Scene<'_>, process: Process) -> Option<Rel> {
    let mut held: Vec<(Time, Rel)> = Vec::new();
    process.descriptors(scene.host, &mut |descriptor, text| {
        let Some(rel) = str::from_utf8(text).ok().and_then(by_path) else { return };
        if let Some(meta) = scene.file(&rel)
            && descriptor.is(&meta)
        {
            held.push((meta.mtime, rel));
        }
    });
    newest(scene, held, None)
}

/// The newest log that was begun in the directory the process works in, but for those of others.
fn by_directory(scene: &Scene<'_>, process: Process, taken: &[Rel]) -> Option<Rel> {
    let cwd = String::from_utf8(process.cwd(scene.host)?).ok()?;
    let project = path(&[SESSIONS, &directory_name(&cwd)?])?;
    let mut found: Vec<(Time, Rel)> = Vec::new();
    for session in scene.names(&project, &|name| id_of(name).is_some()) {
        let Some(dir) = Name::of_harness(&session).map(|name| project.join(name)) else { continue };
        for name in scene.names(&dir, &|name| generation(name).is_some()) {
            let Some(rel) = Name::of_harness(&name).map(|name| dir.join(name)) else { continue };
            found.extend(scene.file(&rel).map(|meta| (meta.mtime, rel)));
        }
    }
    found.retain(|(_, rel)| !taken.iter().any(|other| other.parent() == rel.parent()));
    newest(scene, found, Some(&cwd))
}

/// The newest of some logs that is of a session nobody delegated, begun in `cwd` if that is given. One session may have
/// logs of several generations of the format; of equal age the later generation counts.
fn newest(scene: &Scene<'_>, mut logs: Vec<(Time, Rel)>, cwd: Option<&str>) -> Option<Rel> {
    logs.sort_unstable_by_key(|(mtime, rel)| {
        std::cmp::Reverse((*mtime, rel.name().and_then(generation), rel.clone()))
    });
    let fits = |rel: &Rel| {
        log::Header::read(scene, rel).is_some_and(|header| {
            header.is_top_level && cwd.is_none_or(|cwd| header.cwd.as_deref() == Some(cwd))
        })
    };
    logs.into_iter().map(|(_, rel)| rel).take(MOST_HEADS).find(fits)
}

/// The log that a path of any process leads to, if it is one below a sessions directory. Nothing but the names is taken
/// from the path.
fn by_path(of: &str) -> Option<Rel> {
    let mut names = of.rsplit('/');
    let (name, session, project) = (names.next()?, names.next()?, names.next()?);
    generation(name)?;
    id_of(session)?;
    if names.next() == Some(SESSIONS) { path(&[SESSIONS, project, session, name]) } else { None }
}

/// The id in the name of a session's directory.
fn id_of(name: &str) -> Option<&str> {
    name.strip_prefix("session-").filter(|id| is_uuid(id))
}

/// The generation of the format in a log's name, 0 where it says none.
fn generation(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(COMPRESSED).unwrap_or(name).strip_suffix(".jsonl")?;
    match stem.strip_prefix("session")? {
        "" => Some(0),
        version => version.strip_prefix(".v").and_then(crate::process::decimal),
    }
}

/// The project directory of a working directory: what is neither an ASCII letter, a digit nor one of `. _ -` is spelt out,
/// and runs of separators are one `-`, but for those in front.
fn directory_name(cwd: &str) -> Option<String> {
    let mut name = String::new();
    let mut was_separator = false;
    for unit in cwd.encode_utf16() {
        let plain = u8::try_from(unit).ok().map(char::from);
        let is_separator = matches!(plain, Some('/' | '\\' | ':'));
        match plain {
            _ if is_separator && was_separator => {}
            Some('/' | '\\' | ':') => name.push('-'),
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') => name.push(c),
            _ => name.push_str(&format!("~{unit:04X}")),
        }
        was_separator = is_separator;
    }
    let name = name.trim_start_matches('-');
    (name.len() <= MOST_NAME_BYTES).then(|| format!("--{name}--"))
}

const SESSIONS: &str = "sessions";
/// What the name of a compressed log ends with.
const COMPRESSED: &str = ".zstd";
/// Longer ones are cut, and it is not known how.
const MOST_NAME_BYTES: usize = 251;
/// Of how many logs the header is read to find one's directory.
const MOST_HEADS: usize = 256;
/// Options without a value.
const SWITCHES: &[&str] = &["--verbose", "--continue", "-c"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_forms_are_told_from_its_services_and_neighbours() {
        for (exe, cmdline, expected) in [
            ("/usr/bin/node", "node /usr/local/bin/dsh --profile tui", Some(Role::Agent)),
            ("/usr/bin/node", "node /usr/local/bin/dsh --profile web", Some(Role::Agent)),
            ("", "dsh", Some(Role::Agent)),
            ("/usr/bin/node", "node /usr/local/bin/dsh web", Some(Role::Helper)),
            ("/usr/bin/node", "node /usr/local/bin/dsh --profile tui web", Some(Role::Helper)),
            ("", "dsh daemon", Some(Role::Helper)),
            ("/usr/bin/node", "node /usr/local/dsh", None),
            ("/usr/bin/python3", "python3 /usr/bin/dsh", None),
            ("", "dshd", None),
        ] {
            let role = Dsh.role(&Program::new(&cmdline.replace(' ', "\0"), exe));
            assert_eq!(role, expected, "{exe} {cmdline}");
        }
    }

    #[test]
    fn a_directory_is_named_by_runs() {
        for (cwd, name) in [
            ("/home/me/my.app_2", "--home-me-my.app_2--"),
            ("/home//me/-x", "--home-me--x--"),
            ("/w/a b", "--w-a~0020b--"),
            ("/w/ü\u{1f600}", "--w-~00FC~D83D~DE00--"),
            ("/", "----"),
        ] {
            assert_eq!(directory_name(cwd).as_deref(), Some(name), "{cwd}");
        }
        assert_eq!(directory_name(&"/x".repeat(200)), None);
    }

    #[test]
    fn a_log_is_known_by_its_names() {
        let id = "0f3f1a52-9f6e-4b77-8a49-0a51a2ab71b4";
        for (name, number) in [
            ("session.jsonl", 0),
            ("session.jsonl.zstd", 0),
            ("session.v4.jsonl.zstd", 4),
            ("session.v3.jsonl", 3),
        ] {
            assert_eq!(generation(name), Some(number), "{name}");
            assert!(by_path(&format!("/x/.dsh/sessions/--w--/session-{id}/{name}")).is_some());
        }
        for name in
            ["session.v.jsonl", "session.v04.jsonl", "other.jsonl", "session.zstd", "session.jsonl.zst"]
        {
            assert_eq!(generation(name), None, "{name}");
        }
        for other in [
            format!("/x/sessions/session-{id}/session.jsonl"),
            "/x/sessions/--w--/session-1/session.jsonl".into(),
            format!("/x/sessions/../session-{id}/session.jsonl"),
        ] {
            assert_eq!(by_path(&other), None, "{other}");
        }
    }
}
