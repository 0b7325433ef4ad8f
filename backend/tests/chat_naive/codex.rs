//! Codex's rollouts, by the contract.

use super::json::{self, Data, Value};
use super::{Calls, Message, elements, line, lines, time_ms, tool_kind};

/// Which records of a subagent's rollout are its parent's.
enum Inherited {
    None,
    Below(u64),
    UntilOwnTurn,
}

/// The messages of files that continue each other, the oldest first.
pub(crate) fn messages(files: &[&[u8]]) -> Vec<Message> {
    let mut all = Vec::new();
    let mut calls = Calls::default();
    for file in files {
        messages_of(file, &mut calls, &mut all);
    }
    all
}

fn messages_of(file: &[u8], calls: &mut Calls, all: &mut Vec<Message>) {
    let mut meta: Option<Value> = None;
    let mut made = None;
    let mut inherited = Inherited::None;
    for record in lines(file).filter_map(json::parse) {
        if !matches!(record.data, Data::Object(_)) {
            continue;
        }
        let time = record.word("timestamp").and_then(time_ms);
        let bare =
            record.get("type").is_none() && record.get("payload").is_none() && record.get("id").is_some();
        let envelope = record.word("type") == Some("session_meta") && record.get("payload").is_some();
        if envelope || (bare && meta.is_none()) {
            let said = if envelope { record.get("payload").unwrap() } else { &record };
            match &meta {
                None => {
                    made = said.word("timestamp").and_then(time_ms).or(time);
                    inherited = inherited_by(said);
                    meta = Some(said.clone());
                }
                Some(first) if is_subagent(first) && matches!(inherited, Inherited::None) => {
                    inherited = Inherited::UntilOwnTurn;
                }
                Some(_) => {}
            }
            continue;
        }
        let payload = record.get("payload");
        let begins_turn = record.word("type") == Some("turn_context")
            || record.word("type") == Some("event_msg")
                && payload
                    .and_then(|payload| payload.word("type"))
                    .is_some_and(|kind| kind.ends_with("k_started") || kind.ends_with("n_started"));
        if let (Inherited::UntilOwnTurn, true, Some(turn), Some(meta)) =
            (&inherited, begins_turn, payload, &meta)
            && is_younger(turn, meta, made)
        {
            inherited = Inherited::None;
        }
        let hidden = match inherited {
            Inherited::None => false,
            Inherited::Below(own) => {
                record.get("ordinal").and_then(number).is_some_and(|ordinal| ordinal < own)
            }
            Inherited::UntilOwnTurn => true,
        };
        if hidden {
            continue;
        }
        let time = time.or_else(|| all.last().map(|last| last.time_ms)).or(made).unwrap_or(0);
        for (kind, text) in said(&record, calls) {
            all.push(Message { kind, text, time_ms: time });
        }
    }
}

fn is_subagent(meta: &Value) -> bool {
    meta.word("thread_source") == Some("subagent")
        || meta.get("source").is_some_and(|source| source.get("subagent").is_some())
}

fn inherited_by(meta: &Value) -> Inherited {
    match meta.get("subagent_history_start_ordinal").and_then(number) {
        _ if !is_subagent(meta) => Inherited::None,
        Some(own) => Inherited::Below(own),
        None if meta.word("forked_from_id").is_some() => Inherited::UntilOwnTurn,
        None => Inherited::None,
    }
}

fn is_younger(turn: &Value, meta: &Value, made: Option<i64>) -> bool {
    let made = meta.word("id").and_then(uuid_ms).or_else(|| made.map(|made| made as u64)).unwrap_or(u64::MAX);
    match turn.word("turn_id").and_then(uuid_ms) {
        Some(turn) => turn >= made,
        None => turn.get("started_at").and_then(number).is_some_and(|seconds| seconds >= made / 1000),
    }
}

fn uuid_ms(uuid: &str) -> Option<u64> {
    let digits: String = uuid.chars().filter(|char| *char != '-').collect();
    (uuid.len() == 36 && digits.len() == 32 && digits.as_bytes()[12] == b'7')
        .then(|| u64::from_str_radix(&digits[..12], 16).ok())
        .flatten()
}

fn number(value: &Value) -> Option<u64> {
    matches!(value.data, Data::Number).then(|| value.json().parse().ok()).flatten()
}

fn said(record: &Value, calls: &mut Calls) -> Vec<(String, String)> {
    let Some(payload) = record.get("payload") else { return item(record, calls) };
    match record.word("type") {
        Some("response_item") => item(payload, calls),
        Some("inter_agent_communication") => agent(payload),
        Some("event_msg") => match payload.word("type") {
            Some("item_completed") => {
                payload.get("item").map(|item| completed(item, calls)).unwrap_or_default()
            }
            Some("thread_rolled_back") => match payload.get("num_turns") {
                Some(turns) if matches!(turns.data, Data::Number) => {
                    vec![("system".into(), format!("rolled back {} turns\n", turns.json()))]
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn item(item: &Value, calls: &mut Calls) -> Vec<(String, String)> {
    match item.word("type").unwrap_or("") {
        "message" => message(item),
        "reasoning" => {
            let summary = item.get("summary").map(text_of_parts).unwrap_or_default();
            if summary.is_empty() { Vec::new() } else { vec![("thinking".into(), summary)] }
        }
        "agent_message" => agent(item),
        kind if kind.ends_with("_output") => {
            let output = item.get("output").or_else(|| item.get("tools"));
            let output = output.map(|output| output.get("content").unwrap_or(output));
            vec![(calls.result(item.word("call_id")), output.map(text_of_parts).unwrap_or_default())]
        }
        kind @ ("function_call"
        | "custom_tool_call"
        | "local_shell_call"
        | "web_search_call"
        | "tool_search_call"
        | "image_generation_call") => {
            let name = item.text("name").or_else(|| kind.strip_suffix("_call")).unwrap();
            let tool = tool_kind(name);
            calls.add(item.word("call_id"), &tool);
            if kind == "image_generation_call" {
                let prompt = item.get("revised_prompt").map(part).unwrap_or_default();
                return vec![(tool, prompt + "[image]\n")];
            }
            let arguments = ["arguments", "input", "action"].into_iter().find_map(|key| item.get(key));
            let arguments = arguments.map_or(String::new(), |value| match value.str() {
                Some(text) => line(text),
                None => line(&value.json()),
            });
            vec![(tool, line(name) + &arguments)]
        }
        _ => Vec::new(),
    }
}

fn message(message: &Value) -> Vec<(String, String)> {
    let Some(content) = message.get("content") else { return Vec::new() };
    let items: Vec<&Value> = match &content.data {
        Data::String(_) => vec![content],
        Data::Array(items) => items.iter().collect(),
        _ => return Vec::new(),
    };
    let injected = [
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
    ];
    let first = items.iter().find_map(|item| text(item)).unwrap_or_default();
    let by_prefix = if injected.iter().any(|prefix| first.starts_with(prefix)) { "system" } else { "user" };
    let passed = message.get("internal_chat_message_metadata_passthrough");
    let kinds = passed.and_then(|passed| passed.get("content_item_kinds")).and_then(Value::array);
    let kinds = kinds.filter(|kinds| content.array().is_some_and(|items| items.len() == kinds.len()));
    let mut all: Vec<(String, String)> = Vec::new();
    let mut joins = false;
    for (at, item) in items.into_iter().enumerate().filter(|(_, item)| !item.is_null()) {
        let speaker = match (message.word("role"), kinds) {
            (Some("assistant"), _) => "assistant",
            (Some("developer" | "system"), _) => "system",
            (Some("user"), None) => by_prefix,
            (Some("user"), Some(kinds)) => {
                if kinds[at].str().is_some_and(|kind| kind.starts_with("user.")) {
                    "user"
                } else {
                    "system"
                }
            }
            _ => return Vec::new(),
        };
        let is_speech = text(item).is_some() || is_image(item);
        match all.last_mut().filter(|(kind, _)| joins && is_speech && kind == speaker) {
            Some((_, open)) => open.push_str(&part(item)),
            None if part(item).is_empty() => {}
            None => all.push((speaker.into(), part(item))),
        }
        joins = is_speech;
    }
    all
}

fn agent(said: &Value) -> Vec<(String, String)> {
    let author = said.text("author").map(line).unwrap_or_default();
    match said.get("content") {
        Some(content) if content.str() != Some("") => match text_of_parts(content) {
            text if text.is_empty() => Vec::new(),
            text => vec![("agent".into(), author + &text)],
        },
        _ => Vec::new(),
    }
}

fn completed(item: &Value, calls: &Calls) -> Vec<(String, String)> {
    if item.word("id").is_some_and(|id| calls.has(id)) {
        return Vec::new();
    }
    let json = line(&item.json());
    match item.word("type") {
        Some("CommandExecution") => {
            let mut text = item.get("command").map(part).unwrap_or_default();
            text += &item.get("aggregated_output").map(part).unwrap_or_default();
            if let Some(code) = item.get("exit_code").filter(|code| matches!(code.data, Data::Number)) {
                text += &format!("exit {}\n", code.json());
            }
            vec![("command".into(), text)]
        }
        Some("FileChange") => {
            let paths: Vec<String> = match item.get("changes").map(|changes| &changes.data) {
                Some(Data::Object(changes)) => changes.iter().map(|(path, _)| line(path)).collect(),
                Some(Data::Array(changes)) => {
                    changes.iter().filter_map(|change| change.text("path").map(line)).collect()
                }
                Some(Data::String(path)) => vec![line(path)].into_iter().filter(|_| false).collect(),
                _ => Vec::new(),
            };
            vec![("file-change".into(), paths.concat() + &json)]
        }
        Some("McpToolCall") => {
            vec![("mcp-call".into(), item.text("tool").map(line).unwrap_or_default() + &json)]
        }
        _ => Vec::new(),
    }
}

fn text_of_parts(content: &Value) -> String {
    elements(content).into_iter().map(part).collect()
}

fn part(item: &Value) -> String {
    match text(item) {
        Some(text) => line(&text),
        None if is_image(item) => "[image]\n".into(),
        None if item.is_null() || item.word("type") == Some("encrypted_content") => String::new(),
        None => line(&item.json()),
    }
}

fn text(item: &Value) -> Option<String> {
    match item.word("type") {
        Some("input_text" | "output_text" | "text" | "summary_text" | "reasoning_text") => {
            item.text("text").map(str::to_string)
        }
        _ => item.str().map(str::to_string),
    }
}

fn is_image(item: &Value) -> bool {
    matches!(item.word("type"), Some("input_image" | "image"))
}
