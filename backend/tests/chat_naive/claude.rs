//! Claude Code's transcripts, by the contract.

use std::collections::BTreeSet;

use super::json::{self, Data, Value};
use super::{Calls, Message, elements, line, lines, time_ms, tool_kind};

pub(crate) fn messages(transcript: &[u8]) -> Vec<Message> {
    let mut all: Vec<Message> = Vec::new();
    let mut calls = Calls::default();
    let mut seen = BTreeSet::new();
    for record in lines(transcript).filter_map(json::parse) {
        if record.get("isSidechain").is_some_and(Value::is_true) {
            continue;
        }
        let uuid = record.word("uuid");
        if uuid.is_some_and(|uuid| seen.contains(uuid)) {
            continue;
        }
        let time = record.word("timestamp").and_then(time_ms);
        let time = time.or_else(|| all.last().map(|last| last.time_ms)).unwrap_or(0);
        let before = all.len();
        for (kind, text) in said(&record, &mut calls) {
            all.push(Message { kind, text, time_ms: time });
        }
        if all.len() > before
            && let Some(uuid) = uuid
        {
            seen.insert(uuid.to_string());
        }
    }
    all
}

fn said(record: &Value, calls: &mut Calls) -> Vec<(String, String)> {
    let content = record.get("message").and_then(|message| message.get("content"));
    match (record.word("type"), content) {
        (Some("user"), Some(content)) => messages_of(content, user(record, content), calls),
        (Some("assistant"), Some(content)) => messages_of(content, "assistant", calls),
        (Some("system"), _) => match record.get("content") {
            Some(content) if content.str() != Some("") => messages_of(content, "system", calls),
            _ => Vec::new(),
        },
        (Some("attachment"), _) => {
            let Some(attachment) = record.get("attachment") else { return Vec::new() };
            if attachment.word("type") != Some("queued_command") {
                return Vec::new();
            }
            let Some(prompt) = attachment.get("prompt") else { return Vec::new() };
            let meta = |of: &Value| of.get("isMeta").is_some_and(Value::is_true);
            let person = attachment.word("commandMode") == Some("prompt")
                && !meta(attachment)
                && !meta(record)
                && match origin(attachment) {
                    Some(kind) => is_person(kind),
                    None => !first_text(prompt).starts_with("<task-notification>"),
                };
            messages_of(prompt, if person { "user" } else { "system" }, calls)
        }
        _ => Vec::new(),
    }
}

fn user(record: &Value, content: &Value) -> &'static str {
    let yes = |key| record.get(key).is_some_and(Value::is_true);
    let blocks = content.array().unwrap_or_default();
    if blocks.iter().any(|block| block.word("type").is_some_and(is_result)) {
        return "system";
    }
    if yes("isMeta") || yes("isCompactSummary") {
        return "system";
    }
    if let Some(kind) = origin(record) {
        return if is_person(kind) { "user" } else { "system" };
    }
    if record.word("promptSource") == Some("system") {
        return "system";
    }
    let text = first_text(content);
    let injected = [
        "<system-reminder>",
        "<task-notification>",
        "<local-command-caveat>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<bash-stdout>",
        "<bash-stderr>",
        "Caveat: The messages below",
        "[Request interrupted by user",
        "<teammate-message",
        "<user-prompt-submit-hook>",
    ];
    if injected.iter().any(|prefix| text.starts_with(prefix)) { "system" } else { "user" }
}

fn origin(of: &Value) -> Option<&str> {
    of.get("origin")?.word("kind")
}

fn is_person(kind: &str) -> bool {
    ["human", "person", "composer", "voice-call"].contains(&kind)
}

fn is_result(kind: &str) -> bool {
    kind == "tool_result" || kind.ends_with("_tool_result")
}

fn first_text(content: &Value) -> String {
    elements(content).into_iter().find_map(text).unwrap_or_default()
}

fn text(block: &Value) -> Option<String> {
    match block.word("type") {
        Some("text") => block.text("text").map(str::to_string),
        _ => block.str().map(str::to_string),
    }
}

fn messages_of(content: &Value, speaker: &str, calls: &mut Calls) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    if !matches!(content.data, Data::Array(_) | Data::String(_)) {
        return all;
    }
    let mut joins = false;
    for block in elements(content) {
        let part = match block.word("type") {
            Some("image") => Some("[image]\n".to_string()),
            _ => text(block).map(|text| line(&text)),
        };
        if let Some(part) = part {
            match all.last_mut().filter(|_| joins) {
                Some((_, open)) => open.push_str(&part),
                None => all.push((speaker.into(), part)),
            }
            joins = true;
            continue;
        }
        joins = false;
        match block.word("type").unwrap_or("") {
            "thinking" => {
                let thought = block.text("thinking").unwrap_or("");
                if !thought.is_empty() {
                    all.push(("thinking".into(), line(thought)));
                }
            }
            "redacted_thinking" => {}
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let kind = tool_kind(block.text("name").unwrap_or(""));
                calls.add(block.word("id"), &kind);
                let name = block.text("name").map(line).unwrap_or_default();
                let input = block.get("input").map(|input| line(&input.json())).unwrap_or_default();
                all.push((kind, name + &input));
            }
            kind if is_result(kind) => {
                let parts = block.get("content").map(elements).unwrap_or_default();
                let text = parts.into_iter().map(|part| match part.word("type") {
                    Some("image") => "[image]\n".into(),
                    _ => text(part).map_or_else(|| line(&part.json()), |text| line(&text)),
                });
                all.push((calls.result(block.word("tool_use_id")), text.collect()));
            }
            _ => all.push((speaker.into(), line(&block.json()))),
        }
    }
    all
}
