//! omp: `~/.omp/agent`.
//!
//! Owns: which programs are its agents, the routes from a process to its session (the transcript it holds open, the
//! breadcrumb of its terminal, the directory it works in), and what its transcripts say.
//!
//! A transcript is `sessions/<directory>/<time>_<id>.jsonl`; its subagents' lie in the directory that is called like it
//! without `.jsonl`. Since version 16 its first line is no record of the conversation but 256 bytes that are written over
//! whenever the title changes, with the header behind them.

use std::ops::ControlFlow;

use memchr::memmem;
use proto::Refusal;
use serde_json::Value;

use super::json::{self, at, is, text};
use super::lines::{self, SEARCH_BYTES};
use super::program::{Program, Runs, basename, is_service};
use super::text::headline;
use super::{Harness, Resolved, Role, Scene, Session, Subagent, Torn, Via, is_plain_id, path};
use crate::host::{Errno, Kind, Time};
use crate::name::{Name, Rel};
use crate::process::{Environ, Process};
use crate::tree::halt::Halt;
use engine::port::Effort;

/// The harness.
pub(super) struct Omp;

impl Harness for Omp {
    fn role(&self, program: &Program<'_>) -> Option<Role> {
        let args = if program.name() == "omp" || program.exe_name() == "omp" {
            program.args()
        } else {
            let it = program.interpreted().filter(|it| it.by.is_javascript())?;
            match it.runs {
                Runs::Script(path) if basename(path) == "omp" => it.args,
                _ => return None,
            }
        };
        let is_worker = args.iter().any(|arg| arg.starts_with("__omp_worker_"));
        Some(if is_worker || is_service(args, SWITCHES, &[]) { Role::Helper } else { Role::Agent })
    }

    fn home_variable(&self) -> &'static str {
        "PI_CODING_AGENT_DIR"
    }

    /// A profile is another root too, unless it is the pinned one.
    fn is_elsewhere(&self, scene: &Scene<'_>, environ: &Environ) -> bool {
        if let Some(root) = environ.value(self.home_variable()) {
            return !scene.host.is_base(scene.root, root);
        }
        let Some(profile) = ["OMP_PROFILE", "PI_PROFILE"].iter().find_map(|name| environ.value(name)) else {
            return false;
        };
        let home = environ.value("HOME").unwrap_or_default();
        let of_profile = [home, b"/.omp/profiles/", profile].concat();
        let may_be = [of_profile.clone(), [&of_profile[..], b"/agent"].concat()];
        profile != b"default" && !may_be.iter().any(|root| scene.host.is_base(scene.root, root))
    }

    fn resolve(&self, scene: &Scene<'_>, process: Process) -> Result<Resolved, Torn> {
        let found = certain(scene, process).or_else(|| {
            let taken = scene.rivals(self, process, &|rival| Some(certain(scene, rival)?.1))?;
            by_directory(scene, process, &taken).map(|rel| (Via::Dir, rel))
        });
        let session = found.and_then(|(via, rel)| {
            let id = id_of(rel.name()?)?.to_owned();
            Some(Session { id, via, transcript: Some(rel) })
        });
        Ok(Resolved { session, registered: None })
    }

    fn resume(&self, scene: &Scene<'_>, _: Process, session: &Session) -> Option<Vec<Vec<u8>>> {
        // By its file: an id may be in use in several directories.
        let transcript = session.transcript.as_ref()?;
        let path = [&scene.host.base(scene.root)[..], b"/", transcript.as_str().as_bytes()].concat();
        Some(vec![b"--resume".to_vec(), path])
    }

    fn title(&self, scene: &Scene<'_>, session: &Session) -> Option<String> {
        let rel = session.transcript.as_ref()?;
        let head = Head::read(scene, rel)?;
        head.title.or_else(|| first_prompt(scene, rel))
    }

    fn model(&self, scene: &Scene<'_>, transcript: &Rel) -> Option<String> {
        let (file, meta) = scene.open(transcript)?;
        lines::from_end(&*file, meta.size, SEARCH_BYTES, |line| {
            if memmem::find(line, b"odel").is_none() {
                return ControlFlow::Continue(());
            }
            match json::record(line).as_ref().and_then(model_of) {
                Some(model) => ControlFlow::Break(model),
                None => ControlFlow::Continue(()),
            }
        })
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
        let below = session.transcript.as_ref().and_then(|rel| {
            let stem = rel.name()?.strip_suffix(".jsonl")?;
            Some(rel.parent()?.join(Name::of_harness(stem)?))
        });
        below.map_or_else(|| Ok(Vec::new()), |below| subagents_in(scene, &below, only))
    }
}

/// The first lines of a transcript: what of it is no conversation.
struct Head {
    title: Option<String>,
    cwd: Option<String>,
}

impl Head {
    fn read(scene: &Scene<'_>, rel: &Rel) -> Option<Self> {
        let (file, _) = scene.open(rel)?;
        let mut title = None;
        lines::from_start(&*file, SEARCH_BYTES, |line| {
            let record = json::record(line);
            let string = |name| record.as_ref().and_then(|record| text(record, &[name])).map(str::to_owned);
            match record.as_ref().and_then(|record| text(record, &["type"])) {
                Some("title") if title.is_none() => {
                    title = string("title");
                    ControlFlow::Continue(())
                }
                Some("session") => {
                    let title = title.take().or_else(|| string("title"));
                    ControlFlow::Break(Some(Self { title, cwd: string("cwd") }))
                }
                _ => ControlFlow::Break(None),
            }
        })
        .flatten()
    }
}

/// The session of a process by what leaves no doubt.
fn certain(scene: &Scene<'_>, process: Process) -> Option<(Via, Rel)> {
    let by_descriptor = by_descriptor(scene, process).map(|rel| (Via::Fd, rel));
    by_descriptor.or_else(|| by_terminal(scene, process).map(|rel| (Via::Tty, rel)))
}

/// The newest transcript that the process holds open.
fn by_descriptor(scene: &Scene<'_>, process: Process) -> Option<Rel> {
    let mut newest: Option<(Time, Rel)> = None;
    process.descriptors(scene.host, &mut |descriptor, text| {
        let Some(rel) = str::from_utf8(text).ok().and_then(transcript) else { return };
        if let Some(meta) = scene.file(&rel)
            && newest.as_ref().is_none_or(|(mtime, other)| (*mtime, other) < (meta.mtime, &rel))
            && descriptor.is(&meta)
        {
            newest = Some((meta.mtime, rel));
        }
    });
    newest.map(|(_, rel)| rel)
}

/// The transcript that the breadcrumb of the process's terminal names: a line with the directory, one with the file.
fn by_terminal(scene: &Scene<'_>, process: Process) -> Option<Rel> {
    let tty = process.stdin(scene.host)?;
    let tty: Vec<&str> =
        words(str::from_utf8(&tty).ok()?.strip_prefix("/dev/").filter(|tty| *tty != "null")?);
    // `/dev/pts/3` is `pts-3`, with whatever between the words.
    let named = scene.names(&path(&[TERMINALS])?, &|name| words(name) == tty);
    let crumbs = named.iter().filter_map(|name| {
        let rel = path(&[TERMINALS, name])?;
        Some((scene.file(&rel)?.mtime, rel))
    });
    let (_, crumb) = crumbs.max()?;
    let (content, _) = scene.read(&crumb, BREADCRUMB_BYTES)?;
    let rel = transcript(str::from_utf8(&content).ok()?.lines().nth(1)?.trim_end())?;
    scene.file(&rel).map(|_| rel)
}

/// The words of a terminal's name, without the directory all devices are in.
fn words(tty: &str) -> Vec<&str> {
    let mut words =
        tty.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    words.next_if_eq(&"dev");
    words.collect()
}

/// The newest transcript that was begun in the directory the process works in, but for those of others.
fn by_directory(scene: &Scene<'_>, process: Process, taken: &[Rel]) -> Option<Rel> {
    let cwd = String::from_utf8(process.cwd(scene.host)?).ok()?;
    let mut directories = directory_names(&cwd);
    let hashed = |name: &str| is_hashed_name(name, basename(&cwd));
    directories.extend(scene.names(&path(&[SESSIONS])?, &hashed));
    let mut found: Vec<(Time, Rel)> = Vec::new();
    for directory in directories {
        let Some(dir) = path(&[SESSIONS, &directory]) else { continue };
        for name in scene.names(&dir, &|name| id_of(name).is_some()) {
            let Some(rel) = Name::of_harness(&name).map(|name| dir.join(name)) else { continue };
            found.extend(scene.file(&rel).map(|meta| (meta.mtime, rel)));
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    let begun_here = |rel: &Rel| Head::read(scene, rel).is_some_and(|head| head.cwd.as_deref() == Some(&cwd));
    let newest = found.into_iter().map(|(_, rel)| rel).filter(|rel| !taken.contains(rel));
    newest.take(MOST_HEADS).find(begun_here)
}

/// What the directory of a working directory may be called: by its path below the home or the temporary directory, which
/// may be any of those above it, or by its whole path.
fn directory_names(cwd: &str) -> Vec<String> {
    let flat = |path: &str| path.replace(['/', '\\', ':'], "-");
    let path = cwd.trim_matches('/');
    let mut names = vec![format!("--{}--", flat(path)), "-".into()];
    let below = std::iter::once(path).chain(path.match_indices('/').map(|(at, _)| &path[at + 1..]));
    names.extend(below.flat_map(|below| [format!("-{}", flat(below)), format!("-tmp-{}", flat(below))]));
    names
}

/// Whether a directory is called as versions 17.2.5 to 17.2.8 did: where it lies, the last part of the path, and a hash.
fn is_hashed_name(name: &str, last: &str) -> bool {
    let rest = ["home-", "tmp-", "abs-"].iter().find_map(|prefix| name.strip_prefix(prefix));
    let hash = rest.and_then(|rest| rest.strip_prefix(last)).and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|hash| {
        hash.len() >= LEAST_HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The transcript that a path leads to, if it is one directly below a directory of sessions. Nothing but the names is
/// taken from the path.
fn transcript(of: &str) -> Option<Rel> {
    let mut names = of.rsplit('/');
    let (name, directory) = (names.next()?, names.next()?);
    id_of(name)?;
    if names.next() == Some(SESSIONS) { path(&[SESSIONS, directory, name]) } else { None }
}

/// The id in a transcript's name.
fn id_of(name: &str) -> Option<&str> {
    let (time, id) = name.strip_suffix(".jsonl")?.split_once('_')?;
    let is_time = time.len() >= LEAST_TIME_BYTES
        && time.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'T' | b'Z'));
    (is_time && is_plain_id(id)).then_some(id)
}

fn subagents_in(scene: &Scene<'_>, below: &Rel, only: Option<&str>) -> Result<Vec<Subagent>, Halt> {
    let dir = match scene.host.open_dir(scene.root, below) {
        Ok((dir, _)) => dir,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
        Err(errno) => return Err(errno.into()),
    };
    let mut names = Vec::new();
    dir.names(&mut |bytes| {
        // Below the directory of a session the boundary is that of the mirrors. The advisor is no subagent.
        let name = Name::vet(bytes, scene.root).map(|name| name.as_str());
        let agent =
            name.and_then(|name| name.strip_suffix(".jsonl")).filter(|name| !name.starts_with(['_', '.']));
        let is_wanted = |name: &&str| !name.is_empty() && only.is_none_or(|only| only == *name);
        names.extend(agent.filter(is_wanted).map(str::to_owned));
        names.len() <= MOST_SUBAGENTS
    })?;
    if names.len() > MOST_SUBAGENTS {
        return Err(Refusal::TOO_MANY_SUBAGENTS.into());
    }
    names.sort_unstable();
    let subagent = |name: String| {
        let transcript = below.join(Name::of_harness(&format!("{name}.jsonl"))?);
        let meta = scene.host.stat(scene.root, &transcript, Effort::Full).ok()?;
        (meta.kind == Kind::File).then_some(Subagent { name, transcript })
    };
    Ok(names.into_iter().filter_map(subagent).collect())
}

/// The model of a record that tells which is used: a reply's, or the one that was chosen for the conversation.
fn model_of(record: &Value) -> Option<String> {
    if is(record, "message") && text(record, &["message", "role"]) == Some("assistant") {
        return text(record, &["message", "model"]).map(str::to_owned);
    }
    let is_chosen = is(record, "model_change") && matches!(text(record, &["role"]), None | Some("default"));
    if !is_chosen {
        return None;
    }
    // `provider/id`, where the id may hold slashes too.
    let chosen = text(record, &["model"]).map(|model| model.split_once('/').map_or(model, |(_, id)| id));
    chosen.or_else(|| text(record, &["modelId"])).map(str::to_owned)
}

fn first_prompt(scene: &Scene<'_>, rel: &Rel) -> Option<String> {
    let (file, _) = scene.open(rel)?;
    lines::from_start(&*file, SEARCH_BYTES, |line| {
        let record = json::record(line)
            .filter(|record| is(record, "message") && text(record, &["message", "role"]) == Some("user"));
        let content = record.as_ref().and_then(|record| at(record, &["message", "content"]));
        let whole = content.and_then(Value::as_str);
        let mut blocks = content.and_then(Value::as_array).into_iter().flatten();
        match whole.or_else(|| blocks.find_map(|block| text(block, &["text"]))).and_then(headline) {
            Some(line) => ControlFlow::Break(line),
            None => ControlFlow::Continue(()),
        }
    })
}

const SESSIONS: &str = "sessions";
const TERMINALS: &str = "terminal-sessions";
/// Two paths and a line of numbers.
const BREADCRUMB_BYTES: usize = 16 << 10;
/// Of how many transcripts the head is read to find one's directory.
const MOST_HEADS: usize = 256;
const LEAST_HASH_DIGITS: usize = 8;
/// `2026-11-02T10-00-00Z`.
const LEAST_TIME_BYTES: usize = 20;
const MOST_SUBAGENTS: usize = 65_536;
/// Options without a value.
const SWITCHES: &[&str] =
    &["--verbose", "--no-session", "--continue", "-c", "--no-tools", "--no-skills", "--no-extensions"];

#[cfg(test)]
mod tests {
    use super::*;

    fn role(exe: &str, cmdline: &str) -> Option<Role> {
        Omp.role(&Program::new(&cmdline.replace(' ', "\0"), exe))
    }

    #[test]
    fn its_forms_are_told_from_its_workers_and_neighbours() {
        for (exe, cmdline, expected) in [
            ("", "omp", Some(Role::Agent)),
            ("/usr/bin/bun", "bun /home/u/.bun/bin/omp --resume x", Some(Role::Agent)),
            ("/usr/bin/bun", "bun run /x/omp", Some(Role::Agent)),
            ("/usr/bin/node", "node /x/omp", Some(Role::Agent)),
            ("/x/omp", "other", Some(Role::Agent)),
            ("/usr/bin/node", "omp --resume x", Some(Role::Agent)),
            ("", "omp explain ps", Some(Role::Agent)),
            ("", "omp -p export", Some(Role::Agent)),
            ("", "omp ps", Some(Role::Helper)),
            ("", "omp acp", Some(Role::Helper)),
            ("", "omp __omp_worker_lsp_mux", Some(Role::Helper)),
            ("/usr/bin/bun", "bun /x/omp __omp_worker_tab 1", Some(Role::Helper)),
            ("/usr/bin/bun", "bun /x/other omp", None),
            ("/usr/bin/python3", "python3 /x/omp", None),
            ("", "comp", None),
            ("", "omp2", None),
        ] {
            assert_eq!(role(exe, cmdline), expected, "{exe} {cmdline}");
        }
    }

    #[test]
    fn a_directory_may_be_called_in_several_ways() {
        let names = directory_names("/home/me/a.b/c");
        for name in ["--home-me-a.b-c--", "-", "-home-me-a.b-c", "-me-a.b-c", "-a.b-c", "-c", "-tmp-c"] {
            assert!(names.contains(&name.into()), "{name} {names:?}");
        }
        assert!(directory_names("/").contains(&"----".into()));
        assert!(
            is_hashed_name("home-c-0123456789abcdef", "c") && is_hashed_name("abs-my-app-00ff00ff", "my-app")
        );
        for other in ["home-d-0123456789abcdef", "home-c-xyz", "home-c-", "c-0123456789abcdef", "home-c-0123"]
        {
            assert!(!is_hashed_name(other, "c"), "{other}");
        }
    }

    #[test]
    fn a_path_counts_by_its_last_names() {
        let name = "2026-11-02T10-00-00-000Z_019dc920d76e";
        let rel = transcript(&format!("/x/.omp/agent/sessions/-w/{name}.jsonl")).unwrap();
        assert_eq!(rel.as_str(), format!("sessions/-w/{name}.jsonl"));
        for other in [
            format!("/x/sessions/-w/{name}/Agent.jsonl"),
            format!("/x/sessions/-w/{name}/{name}.jsonl"),
            format!("/x/sessions/../{name}.jsonl"),
            format!("/x/sessions/{name}.jsonl"),
            format!("/x/sessions/-w/{name}.jsonl (deleted)"),
            "/x/sessions/-w/2026-11-02T10-00-00-000Z_../x.jsonl".into(),
            "/x/sessions/-w/notes_x.jsonl".into(),
        ] {
            assert_eq!(transcript(&other), None, "{other}");
        }
    }
}
