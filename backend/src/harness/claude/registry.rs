//! The registry of live processes: `sessions/<pid>.json`.
//!
//! A record is rewritten in place, so it may be met half-written; it is left behind by a process that was killed; and one
//! home may be shared by containers and machines whose pids are not ours. What it says of a process therefore counts
//! only if it names that very process, by its start, in our pid namespace.
//!
//! It is also late: after `/clear` the process writes to a new transcript while its record may still name the old session.
//! [`session`] follows it where there is exactly one way to go, and else believes the record.

use std::ops::ControlFlow;

use serde_json::Value;

use super::super::json::{self, at, text};
use super::super::lines::{self, TAIL_BYTES};
use super::super::{Registered, Role, Scene, Session, Torn, Via, is_uuid, path};
use super::{project, transcript};
use crate::host::{Meta, Time};
use crate::name::Rel;
use crate::process::{self, Process};

/// What a record says of the process it is about.
pub(super) struct Record {
    id: Option<String>,
    pub(super) registered: Registered,
    role: Role,
}

/// The record of a process, if there is one and it is about this process.
pub(super) fn record(scene: &Scene<'_>, process: Process) -> Result<Option<Record>, Torn> {
    let Some((content, meta)) =
        path(&[SESSIONS, &format!("{}.json", process.pid)]).and_then(|rel| scene.read(&rel, RECORD_BYTES))
    else {
        return Ok(None);
    };
    match json::record(&content) {
        None if scene.last_try => Ok(None),
        None => Err(Torn),
        Some(value) => Ok(is_about(scene, process, &value).then(|| Record::new(&value, &meta))),
    }
}

/// Every process that has a valid record, of those that `candidates` knows.
pub(super) fn vouched(
    scene: &Scene<'_>,
    candidates: &dyn Fn(u32) -> Option<Process>,
) -> Result<Vec<(Process, Role)>, Torn> {
    let mut found = Vec::new();
    for process in pids(scene).into_iter().filter_map(candidates) {
        found.extend(record(scene, process)?.map(|record| (process, record.role)));
    }
    Ok(found)
}

/// The session a process is in, beginning from its record.
pub(super) fn session(scene: &Scene<'_>, process: Process, record: &Record) -> Result<Option<Session>, Torn> {
    let Some(id) = record.id.clone() else { return Ok(None) };
    let transcript = project::transcript(scene, &id, record.registered.cwd.as_deref());
    let registered = Session { id, via: Via::Registry, transcript };
    if let Some(next) = continued(scene, &registered) {
        return Ok(Some(next));
    }
    Ok(Some(match cleared(scene, process, &registered)? {
        Some(next) => next,
        None => registered,
    }))
}

impl Record {
    fn new(value: &Value, meta: &Meta) -> Self {
        let string = |name| text(value, &[name]).map(str::to_owned);
        let is_worker = at(value, &["spare"]) == Some(&Value::Bool(true))
            || text(value, &["kind"]).is_some_and(|kind| kind.starts_with("daemon"));
        Self {
            id: string("sessionId").filter(|id| is_uuid(id)),
            registered: Registered {
                name: string("name"),
                status: string("status"),
                cwd: string("cwd"),
                mtime_ns: meta.mtime.ns(),
            },
            role: if is_worker { Role::Helper } else { Role::Agent },
        }
    }
}

/// Whether a record is about this process and not about an earlier one of its pid, or one of another machine.
fn is_about(scene: &Scene<'_>, process: Process, value: &Value) -> bool {
    let said = |name| at(value, &[name]).filter(|said| !said.is_null());
    let is_pid = said("pid").is_none_or(|pid| pid.as_u64() == Some(u64::from(process.pid)));
    let is_start = match said("procStart") {
        Some(Value::String(ticks)) => ticks.parse() == Ok(process.start),
        Some(ticks) => ticks.as_u64() == Some(process.start),
        // Early versions did not say. Then the time they began must fit that of the process.
        None => said("startedAt").and_then(Value::as_i64).is_some_and(|began_ms| {
            let after_ms = began_ms.saturating_sub(scene.started_ms(process));
            (-BOOT_ERROR_MS..=START_MS).contains(&after_ms)
        }),
    };
    #[cfg(feature = "planted")]
    let is_start = is_start || engine::planted::is(engine::planted::Bug::RecordStale);
    let is_here = said("pidDomain")
        .is_none_or(|domain| domain.as_str().is_some_and(|domain| is_our_domain(scene, domain)));
    is_pid && is_start && is_here
}

/// Whether a pid domain, `linux:<machine id>:<pid namespace>`, is the one our `/proc` shows. A part that this machine does
/// not tell disqualifies nothing.
fn is_our_domain(scene: &Scene<'_>, domain: &str) -> bool {
    let mut parts = domain.splitn(3, ':');
    let (Some("linux"), Some(machine), Some(namespace)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let me = Process { pid: scene.host.me().pid, start: 0 };
    scene.host.machine_id().is_none_or(|ours| *ours == *machine)
        && me.pid_namespace(scene.host).is_none_or(|ours| ours == namespace.as_bytes())
}

/// The session that a transcript's last lines say it was continued in, and so on. Where that leads round in a ring,
/// nobody can tell which of them it is in.
fn continued(scene: &Scene<'_>, from: &Session) -> Option<Session> {
    let mut at = from.clone();
    let mut met = vec![from.id.clone()];
    while let Some((rel, id)) = at.transcript.as_ref().and_then(|rel| Some((rel, successor(scene, rel)?))) {
        if met.contains(&id) || met.len() > MOST_CONTINUATIONS {
            return None;
        }
        met.push(id.clone());
        let beside = directory(rel).and_then(|directory| project::file(directory, &id));
        let transcript =
            beside.filter(|rel| scene.file(rel).is_some()).or_else(|| project::transcript(scene, &id, None));
        at = Session { id, via: Via::Clear, transcript };
    }
    (at.via == Via::Clear).then_some(at)
}

/// What a transcript's tail says it was continued in, unless the conversation went on behind that.
fn successor(scene: &Scene<'_>, rel: &Rel) -> Option<String> {
    let (file, meta) = scene.open(rel)?;
    lines::from_end(&*file, meta.size, TAIL_BYTES, |line| {
        let Some(record) = json::record(line) else { return ControlFlow::Continue(()) };
        match text(&record, &["type"]) {
            Some("continued-in") => {
                let id = text(&record, &["continuedInSessionId"]).filter(|id| is_uuid(id));
                ControlFlow::Break(id.map(str::to_owned))
            }
            Some("user" | "assistant") => ControlFlow::Break(None),
            _ => ControlFlow::Continue(()),
        }
    })
    .flatten()
}

/// The session that was begun by `/clear` in place of the registered one: the only transcript in the same project
/// directory that was born after the registered one was last written, begins with the command, and can be no other
/// process's.
fn cleared(scene: &Scene<'_>, process: Process, from: &Session) -> Result<Option<Session>, Torn> {
    let Some(rel) = &from.transcript else { return Ok(None) };
    let (Some(written), Some(directory), Some(parent)) = (scene.file(rel), directory(rel), rel.parent())
    else {
        return Ok(None);
    };
    // Nothing was made in the directory since: the usual case, and it costs one look.
    if scene
        .host
        .stat(scene.root, &parent, engine::port::Effort::Full)
        .is_ok_and(|dir| dir.mtime < written.mtime)
    {
        return Ok(None);
    }
    let since = written.mtime.max(earliest(scene, process));
    let mut candidates: Vec<(String, Rel, Time)> = scene
        .names(&parent, &|name| project::id_of(name).is_some_and(|id| id != from.id))
        .iter()
        .filter_map(|name| {
            let id = project::id_of(name)?;
            let rel = project::file(directory, id)?;
            let born = scene.file(&rel)?.btime.filter(|born| *born >= since)?;
            transcript::begins_with_clear(scene, &rel).then(|| (id.to_owned(), rel, born))
        })
        .collect();
    if candidates.is_empty() {
        return Ok(None);
    }
    for other in pids(scene).into_iter().filter(|pid| *pid != process.pid) {
        let Some(other) = process::Stat::read(scene.host, other).ok().filter(|(stat, _)| stat.is_alive())
        else {
            continue;
        };
        let other = other.0.process;
        let Some(record) = record(scene, other)? else { continue };
        let Some(id) = record.id else { continue };
        candidates.retain(|(candidate, ..)| *candidate != id);
        // Another process that may as well have cleared its session: then nobody can tell whose the new one is.
        let theirs = project::transcript(scene, &id, record.registered.cwd.as_deref());
        let is_beside = match &theirs {
            Some(rel) => rel.parent().as_ref() == Some(&parent),
            None => record.registered.cwd.is_some_and(|cwd| project::directory_name(&cwd) == directory),
        };
        let written = theirs.and_then(|rel| scene.file(&rel)).map_or_else(Time::default, |meta| meta.mtime);
        let since = written.max(earliest(scene, other));
        if is_beside && candidates.iter().any(|(.., born)| *born >= since) {
            return Ok(None);
        }
    }
    match candidates.pop() {
        Some((id, rel, _)) if candidates.is_empty() => {
            Ok(Some(Session { id, via: Via::Clear, transcript: Some(rel) }))
        }
        _ => Ok(None),
    }
}

/// The earliest birth of a transcript that a process can have begun.
fn earliest(scene: &Scene<'_>, process: Process) -> Time {
    let ms = scene.started_ms(process).saturating_sub(CLOCK_ERROR_MS);
    Time { sec: ms.div_euclid(1000), nsec: 0 }
}

/// The project directory a transcript lies in.
fn directory(transcript: &Rel) -> Option<&str> {
    transcript.components().nth(1).map(|name| name.as_str())
}

/// The pids that have a record: files named by anything but a canonical number are of other things.
fn pids(scene: &Scene<'_>) -> Vec<u32> {
    let pid = |name: &str| process::decimal(name.strip_suffix(".json")?);
    let names = path(&[SESSIONS]).map(|dir| scene.names(&dir, &|name| pid(name).is_some()));
    names.unwrap_or_default().iter().filter_map(|name| pid(name)).collect()
}

const SESSIONS: &str = "sessions";
/// A record has some twenty short fields.
const RECORD_BYTES: usize = 64 << 10;
/// How long after its start a process without a recorded start may have begun its session.
const START_MS: i64 = 60_000;
/// The time of boot is known to the second.
const BOOT_ERROR_MS: i64 = 1_000;
/// Starts count from the time of boot, which moves when the clock is set.
const CLOCK_ERROR_MS: i64 = 60_000;
/// How many continuations of continuations are followed.
const MOST_CONTINUATIONS: usize = 16;
