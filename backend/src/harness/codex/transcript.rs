//! What rollouts say: whose thread it is, its model, its name and its subagents.

use std::ops::ControlFlow;

use memchr::memmem;
use proto::Refusal;
use serde_json::Value;

use super::super::json::{self, at, is, text};
use super::super::lines::{self, SEARCH_BYTES};
use super::super::text::{file_word, headline};
use super::super::{Scene, Session, Subagent, path};
use super::rollout::{self, Rollout};
use crate::name::Rel;
use crate::tree::halt::Halt;

/// Who began a thread.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Origin {
    /// A person, or a program that stands in for one.
    Person,
    /// Another thread.
    Thread,
    /// The rollout does not say (yet).
    Unknown,
}

/// Who began the thread of a rollout, by its first record. Forks and subagents repeat their parent's further on.
pub(super) fn origin(scene: &Scene<'_>, rollout: &Rel) -> Origin {
    match first_record(scene, rollout, None) {
        None => Origin::Unknown,
        Some(record) if is_subagent(&record) => Origin::Thread,
        Some(_) => Origin::Person,
    }
}

/// The model of the last turn.
pub(super) fn model(scene: &Scene<'_>, rollout: &Rel) -> Option<String> {
    let (file, meta) = scene.open(rollout)?;
    lines::from_end(&*file, meta.size, SEARCH_BYTES, |line| {
        if memmem::find(line, b"turn_context").is_none() {
            return ControlFlow::Continue(());
        }
        let record = json::record(line).filter(|record| is(record, "turn_context"));
        match record.as_ref().and_then(|record| text(record, &["payload", "model"])) {
            Some(model) => ControlFlow::Break(model.to_owned()),
            None => ControlFlow::Continue(()),
        }
    })
}

/// The last name a thread was given: the index is only ever appended to.
pub(super) fn thread_name(scene: &Scene<'_>, id: &str) -> Option<String> {
    let (file, meta) = scene.open(&path(&[INDEX])?)?;
    lines::from_end(&*file, meta.size, SEARCH_BYTES, |line| {
        if memmem::find(line, id.as_bytes()).is_none() {
            return ControlFlow::Continue(());
        }
        let record = json::record(line).filter(|record| text(record, &["id"]) == Some(id));
        match record.as_ref().and_then(|record| text(record, &["thread_name"])) {
            Some(name) => ControlFlow::Break(name.to_owned()),
            None => ControlFlow::Continue(()),
        }
    })
}

/// The head of what a person said first.
pub(super) fn first_prompt(scene: &Scene<'_>, rollout: &Rel) -> Option<String> {
    let (file, _) = scene.open(rollout)?;
    lines::from_start(&*file, SEARCH_BYTES, |line| {
        if memmem::find(line, b"\"user\"").is_none() {
            return ControlFlow::Continue(());
        }
        match json::record(line).as_ref().and_then(prompt) {
            Some(line) => ControlFlow::Break(line),
            None => ControlFlow::Continue(()),
        }
    })
}

/// The threads whose parent is this session, from the day it began on.
pub(super) fn subagents(
    scene: &Scene<'_>,
    session: &Session,
    only: Option<&str>,
) -> Result<Vec<Subagent>, Halt> {
    // A child is no older than its parent's id, where that tells a time.
    let since = rollout::days_of(&session.id).map(|[_, before, _]| before);
    let mut found = Vec::new();
    let mut looked_at = 0;
    let days = rollout::days(scene);
    for day in days.iter().take_while(|day| since.as_ref().is_none_or(|since| *day >= since)) {
        for rollout in rollout::of_day(scene, day) {
            let is_wanted = only.is_none_or(|name| name.ends_with(rollout.thread()));
            if rollout.thread() == session.id || !is_wanted {
                continue;
            }
            looked_at += 1;
            if looked_at > MOST_ROLLOUTS {
                return Err(Refusal::TOO_MANY_SUBAGENTS.into());
            }
            found.extend(child(scene, session, rollout));
        }
    }
    found.retain(|subagent| only.is_none_or(|name| subagent.name == name));
    found.sort();
    found.dedup_by(|a, b| a.name == b.name);
    Ok(found)
}

/// The subagent that a rollout is, if its parent is this session.
fn child(scene: &Scene<'_>, session: &Session, rollout: Rollout) -> Option<Subagent> {
    let record = first_record(scene, &rollout.rel, Some(&session.id)).filter(is_subagent)?;
    let payload = at(&record, &["payload"])?;
    let spawn = at(payload, &["source", "subagent", "thread_spawn"]);
    let parent = text(payload, &["parent_thread_id"])
        .or_else(|| text(spawn?, &["parent_thread_id"]))
        .or_else(|| text(payload, &["session_id"]));
    if parent != Some(&session.id) {
        return None;
    }
    let called = ["agent_nickname", "agent_role"]
        .iter()
        .find_map(|name| text(payload, &[name]).or_else(|| text(spawn?, &[name])))
        .or_else(|| at(payload, &["source", "subagent"]).and_then(Value::as_str))
        .unwrap_or("agent");
    Some(Subagent { name: format!("{}-{}", file_word(called), rollout.thread()), transcript: rollout.rel })
}

/// The first record of a rollout, if its line holds `word`.
fn first_record(scene: &Scene<'_>, rollout: &Rel, word: Option<&str>) -> Option<Value> {
    let (file, _) = scene.open(rollout)?;
    let line = lines::first(&*file, FIRST_BYTES)?;
    let holds = word.is_none_or(|word| memmem::find(&line, word.as_bytes()).is_some());
    if holds { json::record(&line) } else { None }
}

fn is_subagent(record: &Value) -> bool {
    let source = at(record, &["payload", "thread_source"]).and_then(Value::as_str);
    at(record, &["payload", "source", "subagent"]).is_some()
        || text(record, &["payload", "parent_thread_id"]).is_some()
        || source.is_some_and(|source| OF_THREADS.contains(&source))
}

/// The head of a prompt: a message of the role `user` with an item that a person wrote. Newer records say so of each
/// item; of older ones it is told by how an item begins.
fn prompt(record: &Value) -> Option<String> {
    // The oldest rollouts have no envelope.
    let message = at(record, &["payload"]).filter(|_| is(record, "response_item")).unwrap_or(record);
    if !is(message, "message") || text(message, &["role"]) != Some("user") {
        return None;
    }
    let items = at(message, &["content"])?.as_array()?;
    let kinds = at(message, &["internal_chat_message_metadata_passthrough", "content_item_kinds"])
        .and_then(Value::as_array)
        .filter(|kinds| kinds.len() == items.len());
    let is_person = |index: usize, said: &str| match kinds {
        Some(kinds) => kinds[index].as_str().is_some_and(|kind| kind.starts_with("user.")),
        None => !INJECTED.iter().any(|prefix| said.trim_start().starts_with(prefix)),
    };
    items.iter().enumerate().find_map(|(index, item)| {
        let said = text(item, &["text"]).filter(|said| is_person(index, said))?;
        headline(said)
    })
}

const INDEX: &str = "session_index.jsonl";
/// What `thread_source` says of threads that no person began.
const OF_THREADS: &[&str] = &["subagent", "guardian_review", "memory_consolidation"];
/// How items of the role `user` begin that no person wrote.
const INJECTED: &[&str] = &[
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<skill>",
    "<recommended_plugins>",
    "<turn_aborted>",
    "<hook_prompt",
    "<codex_internal_context",
    "<subagent_notification>",
    "<goal",
    "<user_shell_command>",
    "<collaboration_mode>",
    "<send_user_message_question_reply>",
    "<image name=",
    "</image>",
];
/// How long a first record may be: instructions and tools are in it, and the longest known have 120 KB.
const FIRST_BYTES: usize = 4 << 20;
/// How many rollouts are looked at for the subagents of one session.
const MOST_ROLLOUTS: usize = 65_536;
