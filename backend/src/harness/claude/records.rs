//! Records of a Claude Code transcript to messages.
//!
//! Owns: which record types, fields and blocks are the conversation, and who speaks in them. Must not know: JSON, or
//! where messages go.

use crate::chat::tape::{Fields, Kind as Json, Tape, Value, fields};
use crate::chat::{Error, Kind, Word, out::Out, time};

fields! { FIELDS:
    TYPE "type" Inside,
    UUID "uuid" Inside,
    TIMESTAMP "timestamp" Inside,
    SIDECHAIN "isSidechain" Inside,
    META "isMeta" Inside,
    SUMMARY "isCompactSummary" Inside,
    ORIGIN "origin" Inside,
    KIND "kind" Inside,
    PROMPT_SOURCE "promptSource" Inside,
    MESSAGE "message" Inside,
    CONTENT "content" Inside,
    ATTACHMENT "attachment" Inside,
    PROMPT "prompt" Inside,
    COMMAND_MODE "commandMode" Inside,
    TEXT "text" Inside,
    THINKING "thinking" Inside,
    ID "id" Inside,
    NAME "name" Inside,
    INPUT "input" Whole,
    TOOL_USE_ID "tool_use_id" Inside,
}

/// The fields a scanner must find.
pub(crate) fn fields() -> &'static Fields {
    &FIELDS
}

/// Whether a record of which this much has been read may give a message.
pub(crate) fn wanted(tape: &Tape) -> bool {
    let Some(kind) = tape.record().and_then(|record| record.get(TYPE)) else { return true };
    match kind.text() {
        Some(b"user" | b"assistant" | b"system") => true,
        Some(b"attachment") => {
            let attachment = tape.record().and_then(|record| record.get(ATTACHMENT)?.get(TYPE));
            attachment.is_none_or(|kind| kind.text() == Some(QUEUED))
        }
        _ => false,
    }
}

/// Puts out the messages of a record.
pub(crate) fn read(record: Value<'_>, out: &mut Out) -> Result<(), Error> {
    let id = text(record, UUID);
    if flag(record, SIDECHAIN) || id.is_some_and(|id| out.has_seen(id)) {
        return Ok(());
    }
    out.record(text(record, TIMESTAMP).and_then(time::parse));
    let said = match text(record, TYPE) {
        Some(b"user") => content_of_message(record).map(|content| (content, speaker(record, content))),
        Some(b"assistant") => content_of_message(record).map(|content| (content, Kind::Assistant)),
        Some(b"system") => {
            record.get(CONTENT).filter(|content| !is_empty(*content)).map(|content| (content, Kind::System))
        }
        Some(b"attachment") => queued_prompt(record),
        _ => None,
    };
    if let Some((content, speaker)) = said {
        blocks(content, speaker, out)?;
    }
    if let Some(id) = id {
        out.remember(id);
    }
    Ok(())
}

fn content_of_message(record: Value<'_>) -> Option<Value<'_>> {
    record.get(MESSAGE)?.get(CONTENT)
}

/// Who speaks in a user record: the first test that applies decides.
fn speaker(record: Value<'_>, content: Value<'_>) -> Kind {
    let has_result =
        content.kind() == Json::Array && content.items().any(|block| is_result(block_type(block)));
    if has_result || flag(record, META) || flag(record, SUMMARY) {
        return Kind::System;
    }
    if let Some(is_person) = is_from_person(record) {
        return if is_person { Kind::User } else { Kind::System };
    }
    if text(record, PROMPT_SOURCE) == Some(b"system") {
        return Kind::System;
    }
    let front = first_text(content);
    if INJECTED.iter().any(|prefix| front.starts_with(prefix)) { Kind::System } else { Kind::User }
}

/// The prompt that was typed, or put in, while the model was busy, and whose it is.
fn queued_prompt(record: Value<'_>) -> Option<(Value<'_>, Kind)> {
    let attachment = record.get(ATTACHMENT)?;
    if text(attachment, TYPE) != Some(QUEUED) {
        return None;
    }
    let prompt = attachment.get(PROMPT)?;
    let is_prompt = text(attachment, COMMAND_MODE) == Some(b"prompt");
    let is_person = is_prompt
        && !flag(attachment, META)
        && !flag(record, META)
        && is_from_person(attachment).unwrap_or_else(|| !first_text(prompt).starts_with(TASK_NOTIFICATION));
    Some((prompt, if is_person { Kind::User } else { Kind::System }))
}

/// What the origin of a record or attachment says, if it has one. One that is not known is no person's.
fn is_from_person(of: Value<'_>) -> Option<bool> {
    let kind = text(of.get(ORIGIN)?, KIND)?;
    Some(matches!(kind, b"human" | b"person" | b"composer" | b"voice-call"))
}

/// What the first text of a content begins with.
fn first_text(content: Value<'_>) -> &[u8] {
    let text = match content.kind() {
        Json::Array => content.items().find_map(text_of),
        _ => text_of(content),
    };
    text.map_or(&[], Value::front)
}

/// Puts out the messages of a content: texts and images that stand together are one, everything else is its own.
fn blocks(content: Value<'_>, speaker: Kind, out: &mut Out) -> Result<(), Error> {
    match content.kind() {
        Json::String => {
            out.begin(speaker);
            out.text_line(content);
            out.end();
            return Ok(());
        }
        Json::Array => {}
        _ => return Ok(()),
    }
    let mut is_open = false;
    for block in content.items().filter(|block| block.kind() != Json::Null) {
        let text = text_of(block);
        if text.is_some() || block_type(block) == b"image" {
            if !is_open {
                out.begin(speaker);
                is_open = true;
            }
            part(block, out);
            continue;
        }
        if is_open {
            out.end();
            is_open = false;
        }
        other_block(block, speaker, out)?;
    }
    if is_open {
        out.end();
    }
    Ok(())
}

/// Puts out a block that is a message of its own, or none.
fn other_block(block: Value<'_>, speaker: Kind, out: &mut Out) -> Result<(), Error> {
    match block_type(block) {
        b"thinking" => {
            if let Some(thought) = block.get(THINKING).filter(|thought| thought.node().text > 0) {
                out.begin(Kind::Thinking);
                out.text_line(thought);
                out.end();
            }
        }
        b"redacted_thinking" => {}
        b"tool_use" | b"server_tool_use" | b"mcp_tool_use" => {
            let name = block.get(NAME).filter(|name| name.kind() == Json::String);
            let kind = out.call(name.map_or(&[], Value::front), text(block, ID))?;
            out.begin(kind);
            if let Some(name) = name {
                out.text_line(name);
            }
            if let Some(input) = block.get(INPUT) {
                out.json_line(input);
            }
            out.end();
        }
        kind if is_result(kind) => {
            out.begin(out.result(text(block, TOOL_USE_ID)));
            match block.get(CONTENT) {
                Some(content) if content.kind() == Json::Array => {
                    content.items().for_each(|item| part(item, out))
                }
                Some(content) => part(content, out),
                None => {}
            }
            out.end();
        }
        _ => {
            out.begin(speaker);
            out.json_line(block);
            out.end();
        }
    }
    Ok(())
}

/// Puts out an item of a content as a line, or lines.
fn part(item: Value<'_>, out: &mut Out) {
    match text_of(item) {
        Some(text) => out.text_line(text),
        None if block_type(item) == b"image" => out.word_line(Word::Image),
        None if item.kind() == Json::Null => {}
        None => out.json_line(item),
    }
}

/// The text of a bare string, or of a text block.
fn text_of(value: Value<'_>) -> Option<Value<'_>> {
    match value.kind() {
        Json::String => Some(value),
        _ if block_type(value) == b"text" => value.get(TEXT).filter(|text| text.kind() == Json::String),
        _ => None,
    }
}

fn block_type(block: Value<'_>) -> &[u8] {
    text(block, TYPE).unwrap_or_default()
}

fn text(of: Value<'_>, key: u8) -> Option<&[u8]> {
    of.get(key)?.text()
}

fn flag(of: Value<'_>, key: u8) -> bool {
    of.get(key).is_some_and(Value::is_true)
}

fn is_empty(value: Value<'_>) -> bool {
    value.kind() == Json::String && value.node().text == 0
}

fn is_result(kind: &[u8]) -> bool {
    kind == b"tool_result" || kind.ends_with(b"_tool_result")
}

const QUEUED: &[u8] = b"queued_command";
const TASK_NOTIFICATION: &[u8] = b"<task-notification>";
/// What text begins with that nobody typed.
const INJECTED: [&[u8]; 11] = [
    b"<system-reminder>",
    TASK_NOTIFICATION,
    b"<local-command-caveat>",
    b"<local-command-stdout>",
    b"<local-command-stderr>",
    b"<bash-stdout>",
    b"<bash-stderr>",
    b"Caveat: The messages below",
    b"[Request interrupted by user",
    b"<teammate-message",
    b"<user-prompt-submit-hook>",
];
