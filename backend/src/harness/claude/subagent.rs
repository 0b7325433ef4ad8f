//! Subagents: `projects/<directory>/<id>/subagents/**/agent-<id>.jsonl`, with what they are in a file beside each.

use proto::Refusal;

use super::super::json::{self, text};
use super::super::text::file_word;
use super::super::{Scene, Subagent};
use crate::host::{Errno, Kind};
use crate::name::{Name, Rel};
use crate::tree::halt::Halt;
use engine::port::Effort;

/// Those of the session with this transcript, each called by its type and id, sorted by name.
pub(super) fn list(scene: &Scene<'_>, transcript: &Rel, only: Option<&str>) -> Result<Vec<Subagent>, Halt> {
    let mut found = Vec::new();
    let session = transcript.name().and_then(|name| name.strip_suffix(".jsonl"));
    let top = transcript.parent().and_then(|project| {
        Some(project.join(Name::of_harness(session?)?).join(Name::of_harness(SUBAGENTS)?))
    });
    if let Some(top) = top {
        let is_wanted = |id: &str| only.is_none_or(|name| name.ends_with(id));
        gather(scene, &top, DEPTH, &is_wanted, &mut found)?;
    }
    found.retain(|subagent| only.is_none_or(|name| subagent.name == name));
    found.sort();
    found.dedup_by(|a, b| a.name == b.name);
    Ok(found)
}

fn gather(
    scene: &Scene<'_>,
    at: &Rel,
    depth: usize,
    is_wanted: &dyn Fn(&str) -> bool,
    found: &mut Vec<Subagent>,
) -> Result<(), Halt> {
    let dir = match scene.host.open_dir(scene.root, at) {
        Ok((dir, _)) => dir,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    if depth == 0 {
        // What is left out would not be missed: a listing is complete or an error.
        return Err(Refusal::TOO_MANY_SUBAGENTS.into());
    }
    let mut names = Vec::new();
    dir.names(&mut |bytes| {
        // Below the project directory the boundary is that of the mirrors.
        names.extend(Name::vet(bytes, scene.root).map(|name| name.as_str().to_owned()));
        names.len() + found.len() <= MOST
    })?;
    if names.len() + found.len() > MOST {
        return Err(Refusal::TOO_MANY_SUBAGENTS.into());
    }
    names.sort_unstable();
    for name in names.iter().filter_map(|name| Name::of_harness(name)) {
        let rel = at.join(name);
        if let Some(id) = id_of(name.as_str()) {
            let is_file =
                || scene.host.stat(scene.root, &rel, Effort::Full).is_ok_and(|meta| meta.kind == Kind::File);
            if is_wanted(id) && is_file() {
                let name = format!("{}-{id}", kind(scene, at, id));
                found.push(Subagent { name, transcript: rel });
            }
        } else if !name.as_str().ends_with(".json") && !name.as_str().ends_with(".jsonl") {
            gather(scene, &rel, depth - 1, is_wanted, found)?;
        }
    }
    Ok(())
}

/// What kind of agent it is, by the record beside its transcript.
fn kind(scene: &Scene<'_>, at: &Rel, id: &str) -> String {
    let beside = Name::of_harness(&format!("agent-{id}.meta.json")).map(|name| at.join(name));
    let record =
        beside.and_then(|rel| scene.read(&rel, RECORD_BYTES)).and_then(|(bytes, _)| json::record(&bytes));
    record.as_ref().and_then(|record| text(record, &["agentType"])).map_or_else(|| "agent".into(), file_word)
}

fn id_of(name: &str) -> Option<&str> {
    let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
    let formed = (1..=MOST_ID_BYTES).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    formed.then_some(id)
}

const SUBAGENTS: &str = "subagents";
/// Agents of workflows lie in `workflows/<run>/`, and theirs may lie deeper.
const DEPTH: usize = 16;
/// How many names are looked at for one session.
const MOST: usize = 65_536;
const MOST_ID_BYTES: usize = 64;
const RECORD_BYTES: usize = 64 << 10;
