//! What a transcript says about its session: title, model, and whether it was begun by `/clear`.

use std::borrow::Cow;
use std::ops::ControlFlow;

use memchr::memmem;
use serde_json::Value;

use super::super::Scene;
use super::super::json::{self, at, is, text};
use super::super::lines::{self, SEARCH_BYTES, TAIL_BYTES};
use super::super::text::headline;
use crate::host::File;
use crate::name::Rel;

/// The last title a person gave, else the last one the harness thought of, else the head of the first prompt. Titles
/// are written again and again, so the last ones stand near the end.
pub(super) fn title(scene: &Scene<'_>, rel: &Rel) -> Option<String> {
    let (file, meta) = scene.open(rel)?;
    let mut thought = None;
    let given = lines::from_end(&*file, meta.size, SEARCH_BYTES, |line| {
        if memmem::find(line, b"-title").is_none() {
            return ControlFlow::Continue(());
        }
        let Some(record) = json::record(line) else { return ControlFlow::Continue(()) };
        if is(&record, "custom-title")
            && let Some(title) = text(&record, &["customTitle"])
        {
            return ControlFlow::Break(title.to_owned());
        }
        if thought.is_none() && is(&record, "ai-title") {
            thought = text(&record, &["aiTitle"]).map(str::to_owned);
        }
        ControlFlow::Continue(())
    });
    if given.is_some() || thought.is_some() {
        return given.or(thought);
    }
    first_title(&*file, meta.size)
}

/// The same where the end has no title: what was written at the beginning of a long transcript and not again since.
fn first_title(file: &dyn File, size: u64) -> Option<String> {
    let (mut given, mut thought, mut said) = (None, None, None);
    lines::from_start(file, SEARCH_BYTES, |line| {
        if size > SEARCH_BYTES && memmem::find(line, b"-title").is_some() {
            let record = json::record(line);
            let title = |kind, name| {
                let record = record.as_ref().filter(|record| is(record, kind))?;
                text(record, &[name]).map(str::to_owned)
            };
            given = title("custom-title", "customTitle").or_else(|| given.take());
            thought = title("ai-title", "aiTitle").or_else(|| thought.take());
        }
        if said.is_none() && memmem::find(line, b"\"user\"").is_some() {
            said = json::record(line).as_ref().and_then(prompt);
        }
        // Of a shorter one the titles have been looked for.
        if said.is_some() && size <= SEARCH_BYTES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    given.or(thought).or(said)
}

/// The model of the last reply that a model gave.
pub(super) fn model(scene: &Scene<'_>, rel: &Rel) -> Option<String> {
    let (file, meta) = scene.open(rel)?;
    lines::from_end(&*file, meta.size, SEARCH_BYTES, |line| {
        if memmem::find(line, b"assistant").is_none() {
            return ControlFlow::Continue(());
        }
        let record = json::record(line).filter(|record| is(record, "assistant"));
        match record.as_ref().and_then(|record| text(record, &["message", "model"])) {
            Some(model) if model != SYNTHETIC => ControlFlow::Break(model.to_owned()),
            _ => ControlFlow::Continue(()),
        }
    })
}

/// Whether the first lines hold the command `/clear`.
pub(super) fn begins_with_clear(scene: &Scene<'_>, rel: &Rel) -> bool {
    let Some((file, _)) = scene.open(rel) else { return false };
    lines::from_start(&*file, TAIL_BYTES, |line| {
        if memmem::find(line, CLEAR.as_bytes()).is_none() {
            return ControlFlow::Continue(());
        }
        let record = json::record(line).filter(|record| is(record, "user") || is(record, "system"));
        let says = |record: &Value| {
            spoken(record).any(|text| text.trim_start().starts_with("<command-") && text.contains(CLEAR))
        };
        if record.as_ref().is_some_and(says) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .is_some()
}

/// The head of what a person typed; `None` for all other records, and for the command that began the session.
fn prompt(record: &Value) -> Option<String> {
    let flag = |name| at(record, &[name]) == Some(&Value::Bool(true));
    if !is(record, "user") || flag("isMeta") || flag("isCompactSummary") || flag("isSidechain") {
        return None;
    }
    let person = match text(record, &["origin", "kind"]) {
        Some(kind) => matches!(kind, "human" | "person" | "composer" | "voice-call"),
        None => text(record, &["promptSource"]) != Some("system"),
    };
    let has_result = at(record, &["message", "content"])
        .and_then(Value::as_array)
        .is_some_and(|blocks| blocks.iter().any(|block| is(block, "tool_result")));
    if !person || has_result {
        return None;
    }
    let said = spoken(record).find(|text| !text.trim().is_empty())?;
    if INJECTED.iter().any(|prefix| said.starts_with(prefix)) || said.contains(CLEAR) {
        return None;
    }
    headline(&as_typed(said))
}

/// A prompt as it was typed: commands are kept in parts, each between marks.
fn as_typed(said: &str) -> Cow<'_, str> {
    let part = |name: &str| {
        let (_, rest) = said.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(part, _)| part.trim())
    };
    if !said.starts_with('<') {
        return said.into();
    }
    match (part("command-name"), part("bash-input")) {
        (Some(command), _) => format!("{command} {}", part("command-args").unwrap_or_default()).into(),
        (None, Some(command)) => format!("!{command}").into(),
        (None, None) => said.into(),
    }
}

/// The texts of a record that has a message: its content, or each text block of it.
fn spoken(record: &Value) -> impl Iterator<Item = &str> {
    let content = at(record, &["message", "content"]).or_else(|| at(record, &["content"]));
    let whole = content.and_then(Value::as_str);
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    whole.into_iter().chain(blocks.filter_map(|block| block.as_str().or_else(|| text(block, &["text"]))))
}

/// What the harness says in a model's name.
const SYNTHETIC: &str = "<synthetic>";
const CLEAR: &str = "<command-name>/clear</command-name>";
/// How texts begin that are filed as a person's and are not a prompt.
const INJECTED: &[&str] = &[
    "<system-reminder>",
    "<task-notification>",
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<teammate-message",
    "<user-prompt-submit-hook>",
    "Caveat: The messages below",
    "[Request interrupted by user",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(record: &str) -> Option<String> {
        prompt(&json::record(record.as_bytes()).unwrap())
    }

    #[test]
    fn a_prompt_is_what_a_person_typed() {
        for (record, expected) in [
            (r#"{"type":"user","message":{"role":"user","content":"fix it\nplease"}}"#, Some("fix it")),
            (
                r#"{"type":"user","message":{"content":[{"type":"image"},{"type":"text","text":" look "}]}}"#,
                Some("look"),
            ),
            (r#"{"type":"user","origin":{"kind":"human"},"message":{"content":"hi"}}"#, Some("hi")),
            (r#"{"type":"user","origin":{"kind":"peer"},"message":{"content":"hi"}}"#, None),
            (r#"{"type":"user","promptSource":"system","message":{"content":"hi"}}"#, None),
            (r#"{"type":"user","isMeta":true,"message":{"content":"hi"}}"#, None),
            (r#"{"type":"user","isSidechain":true,"message":{"content":"hi"}}"#, None),
            (r#"{"type":"user","isCompactSummary":true,"message":{"content":"hi"}}"#, None),
            (
                r#"{"type":"user","message":{"content":[{"type":"tool_result"},{"type":"text","text":"x"}]}}"#,
                None,
            ),
            (r#"{"type":"user","message":{"content":"<command-name>/clear</command-name>"}}"#, None),
            (
                r#"{"type":"user","message":{"content":"<command-message>goal</command-message>\n<command-name>/goal</command-name>\n<command-args>mend it</command-args>"}}"#,
                Some("/goal mend it"),
            ),
            (r#"{"type":"user","message":{"content":"<bash-input>ls</bash-input>"}}"#, Some("!ls")),
            (r#"{"type":"user","message":{"content":"<bash-stdout>x</bash-stdout>"}}"#, None),
            (r#"{"type":"user","message":{"content":"<task-notification>x"}}"#, None),
            (r#"{"type":"user","message":{"content":null}}"#, None),
            (r#"{"type":"assistant","message":{"content":"hi"}}"#, None),
            (r#"{"type":"progress","data":{"message":{"type":"user","message":{"content":"hi"}}}}"#, None),
        ] {
            assert_eq!(said(record).as_deref(), expected, "{record}");
        }
    }
}
