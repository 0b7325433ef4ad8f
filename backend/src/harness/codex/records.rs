//! Records of a Codex rollout to messages.
//!
//! Owns: which envelopes, items and events are the conversation, who speaks in them, and which of them a thread has
//! from its parent. Must not know: JSON, or where messages go.

use crate::chat::tape::{Fields, Key, Kind as Json, Tape, Value, fields};
use crate::chat::{Error, Kind, Word, out::Out, time};

fields! { FIELDS:
    TYPE "type" Inside,
    TIMESTAMP "timestamp" Inside,
    ORDINAL "ordinal" Inside,
    PAYLOAD "payload" Inside,
    ROLE "role" Inside,
    CONTENT "content" Inside,
    TEXT "text" Inside,
    METADATA "internal_chat_message_metadata_passthrough" Inside,
    ITEM_KINDS "content_item_kinds" Inside,
    SUMMARY "summary" Inside,
    CALL_ID "call_id" Inside,
    NAME "name" Inside,
    ARGUMENTS "arguments" Whole,
    INPUT "input" Whole,
    ACTION "action" Whole,
    REVISED_PROMPT "revised_prompt" Inside,
    OUTPUT "output" Inside,
    TOOLS "tools" Inside,
    AUTHOR "author" Inside,
    ITEM "item" Inside,
    ID "id" Inside,
    COMMAND "command" Whole,
    AGGREGATED_OUTPUT "aggregated_output" Inside,
    EXIT_CODE "exit_code" Inside,
    CHANGES "changes" Keys,
    PATH "path" Inside,
    TOOL "tool" Inside,
    NUM_TURNS "num_turns" Inside,
    TURN_ID "turn_id" Inside,
    STARTED_AT "started_at" Inside,
    SOURCE "source" Inside,
    SUBAGENT "subagent" Inside,
    THREAD_SOURCE "thread_source" Inside,
    FORKED_FROM "forked_from_id" Inside,
    OWN_FROM "subagent_history_start_ordinal" Inside,
    HISTORY_BASE "history_base" Inside,
    THREAD_ID "thread_id" Inside,
    END_OFFSET "end_byte_offset" Inside,
}

/// The fields a scanner must find.
pub(crate) fn fields() -> &'static Fields {
    &FIELDS
}

/// What must be known of a rollout to read its next record.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Thread {
    /// Whether the record that says what the rollout is has been read: the first of its kind, for a fork has its
    /// parent's behind it.
    is_known: bool,
    is_subagent: bool,
    /// When the thread was made, in milliseconds since 1970; a subagent's.
    made_ms: u64,
    inherited: Inherited,
}

/// Which records that follow are a subagent's parent's.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
enum Inherited {
    #[default]
    None,
    /// Those with a smaller ordinal.
    Below(u64),
    /// Those before the first turn that is younger than the thread.
    UntilOwnTurn,
}

impl Thread {
    /// Goes on with another file: the fork of the one before.
    pub(crate) fn next_file(&mut self) {
        *self = Self::default();
    }

    /// Whether a record of which this much has been read may give a message, or say something of those that follow.
    pub(crate) fn wanted(&self, tape: &Tape) -> bool {
        let Some(record) = tape.record() else { return true };
        let Some(kind) = record.get(TYPE) else { return true };
        let payload_type = || record.get(PAYLOAD).and_then(|payload| payload.get(TYPE));
        match kind.text().unwrap_or_default() {
            b"response_item" => payload_type().is_none_or(|kind| is_item(kind.text().unwrap_or_default())),
            b"event_msg" => payload_type().is_none_or(|kind| match kind.text() {
                Some(b"item_completed" | b"thread_rolled_back") => true,
                Some(kind) => self.inherited == Inherited::UntilOwnTurn && is_turn(kind),
                None => false,
            }),
            b"session_meta" => !self.is_known || self.is_subagent,
            b"turn_context" => self.inherited == Inherited::UntilOwnTurn,
            b"inter_agent_communication" => true,
            kind => is_item(kind),
        }
    }

    /// Puts out the messages of a record.
    pub(crate) fn read(&mut self, record: Value<'_>, out: &mut Out) -> Result<(), Error> {
        let time_ns = text(record, TIMESTAMP).and_then(time::parse);
        let payload = record.get(PAYLOAD);
        let event = payload.and_then(|payload| text(payload, TYPE));
        match (text(record, TYPE), payload) {
            (Some(b"session_meta"), Some(meta)) => {
                self.session(meta, time_ns, out);
                return Ok(());
            }
            (None, None) if !self.is_known && record.get(ID).is_some() => {
                // Rollouts of 2025 begin so, and their items come without envelopes and without times.
                self.session(record, time_ns, out);
                return Ok(());
            }
            (Some(b"turn_context"), Some(turn)) => self.turn(turn),
            (Some(b"event_msg"), Some(turn)) if event.is_some_and(is_turn) => self.turn(turn),
            _ => {}
        }
        if self.is_inherited(record) {
            return Ok(());
        }
        out.record(time_ns);
        match (text(record, TYPE), payload) {
            (Some(b"response_item"), Some(payload)) => item(payload, out)?,
            (Some(b"inter_agent_communication"), Some(payload)) => agent(payload, out),
            (Some(b"event_msg"), Some(payload)) => match event {
                Some(b"item_completed") => {
                    if let Some(item) = payload.get(ITEM) {
                        completed(item, out);
                    }
                }
                Some(b"thread_rolled_back") => rolled_back(payload, out),
                _ => {}
            },
            (Some(_), None) => item(record, out)?,
            _ => {}
        }
        Ok(())
    }

    /// Takes in what a rollout says of itself.
    fn session(&mut self, meta: Value<'_>, time_ns: Option<i64>, out: &mut Out) {
        if self.is_known {
            if self.is_subagent && self.inherited == Inherited::None {
                self.inherited = Inherited::UntilOwnTurn;
            }
            return;
        }
        self.is_known = true;
        let made_ns = text(meta, TIMESTAMP).and_then(time::parse).or(time_ns);
        if let Some(made_ns) = made_ns {
            out.start(made_ns);
        }
        self.is_subagent = is_subagent(meta);
        if !self.is_subagent {
            return;
        }
        let by_id = text(meta, ID).and_then(made_ms);
        // A thread of unknown age has no turn that is known to be younger.
        self.made_ms = by_id.or_else(|| u64::try_from(made_ns? / 1_000_000).ok()).unwrap_or(u64::MAX);
        self.inherited = match meta.get(OWN_FROM).and_then(Value::integer) {
            Some(ordinal) => Inherited::Below(ordinal),
            None if text(meta, FORKED_FROM).is_some() => Inherited::UntilOwnTurn,
            None => Inherited::None,
        };
    }

    /// Takes in the beginning of a turn. Lines that were copied have new timestamps, but a turn keeps its id.
    fn turn(&mut self, turn: Value<'_>) {
        if self.inherited != Inherited::UntilOwnTurn {
            return;
        }
        let is_own =
            match (text(turn, TURN_ID).and_then(made_ms), turn.get(STARTED_AT).and_then(Value::integer)) {
                (Some(made_ms), _) => made_ms >= self.made_ms,
                (None, Some(started_s)) => started_s >= self.made_ms / 1000,
                (None, None) => false,
            };
        if is_own {
            self.inherited = Inherited::None;
        }
    }

    fn is_inherited(&self, record: Value<'_>) -> bool {
        match self.inherited {
            Inherited::None => false,
            Inherited::Below(own) => {
                record.get(ORDINAL).and_then(Value::integer).is_some_and(|ordinal| ordinal < own)
            }
            Inherited::UntilOwnTurn => true,
        }
    }
}

/// A file that a rollout continues.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Base {
    /// The rollout id of the file.
    pub(crate) rollout: String,
    /// How much of it counts, in bytes.
    pub(crate) length: u64,
}

/// The file that a rollout continues, by its first record; a subagent's history is not its own and has none.
pub(crate) fn base(record: Value<'_>) -> Option<Base> {
    let meta = record.get(PAYLOAD).filter(|_| text(record, TYPE) == Some(b"session_meta"))?;
    let base = meta.get(HISTORY_BASE).filter(|_| !is_subagent(meta))?;
    let rollout = std::str::from_utf8(text(base, THREAD_ID)?).ok()?;
    Some(Base { rollout: rollout.into(), length: base.get(END_OFFSET)?.integer()? })
}

fn is_subagent(meta: Value<'_>) -> bool {
    text(meta, THREAD_SOURCE) == Some(b"subagent")
        || meta.get(SOURCE).is_some_and(|source| source.get(SUBAGENT).is_some())
}

/// Whether there may be a message in an item of this type.
fn is_item(kind: &[u8]) -> bool {
    matches!(kind, b"message" | b"reasoning" | b"agent_message") || is_call(kind) || is_output(kind)
}

fn is_call(kind: &[u8]) -> bool {
    CALLS.iter().any(|(call, _)| *call == kind) || kind == IMAGE_CALL
}

fn is_output(kind: &[u8]) -> bool {
    kind.ends_with(b"_output")
}

fn is_turn(event: &[u8]) -> bool {
    matches!(event, b"task_started" | b"turn_started")
}

/// Puts out a response item.
fn item(item: Value<'_>, out: &mut Out) -> Result<(), Error> {
    let kind = text(item, TYPE).unwrap_or_default();
    match kind {
        b"message" => message(item, out),
        b"reasoning" => {
            out.begin(Kind::Thinking);
            if let Some(summary) = item.get(SUMMARY) {
                parts(summary, out);
            }
            if out.pieces() > 0 {
                out.end();
            }
        }
        b"agent_message" => agent(item, out),
        _ if is_call(kind) => call(kind, item, out)?,
        _ if is_output(kind) => {
            out.begin(out.result(text(item, CALL_ID)));
            if let Some(output) = item.get(OUTPUT).or_else(|| item.get(TOOLS)) {
                parts(output.get(CONTENT).unwrap_or(output), out);
            }
            out.end();
        }
        _ => {}
    }
    Ok(())
}

/// Puts out a message: what stands together and is said by one speaker is one.
fn message(message: Value<'_>, out: &mut Out) {
    let Some(content) = message.get(CONTENT) else { return };
    let whole = match text(message, ROLE) {
        Some(b"user") => None,
        Some(b"assistant") => Some(Kind::Assistant),
        Some(b"developer" | b"system") => Some(Kind::System),
        _ => return,
    };
    let by_prefix = || {
        let text =
            if content.kind() == Json::Array { content.items().find_map(text_of) } else { text_of(content) };
        let front = text.map_or(&[][..], Value::front);
        if INJECTED.iter().any(|prefix| front.starts_with(prefix)) { Kind::System } else { Kind::User }
    };
    match content.kind() {
        Json::String => {
            out.begin(whole.unwrap_or_else(by_prefix));
            out.text_line(content);
            out.end();
            return;
        }
        Json::Array => {}
        _ => return,
    }
    let kinds = message.get(METADATA).and_then(|metadata| metadata.get(ITEM_KINDS));
    let kinds = kinds.filter(|kinds| whole.is_none() && kinds.items().count() == content.items().count());
    let mut kinds = kinds.map(Value::items);
    let whole = if kinds.is_some() { None } else { Some(whole.unwrap_or_else(by_prefix)) };
    let mut open = None;
    for item in content.items() {
        let is_person =
            kinds.as_mut().and_then(Iterator::next).is_some_and(|kind| kind.front().starts_with(b"user."));
        let speaker = whole.unwrap_or(if is_person { Kind::User } else { Kind::System });
        if item.kind() == Json::Null {
            continue;
        }
        let joins = text_of(item).is_some() || is_image(item);
        if open.is_some() && !(joins && open == Some(speaker)) {
            out.end();
            open = None;
        }
        if open.is_none() {
            out.begin(speaker);
        }
        part(item, out);
        if joins {
            open = Some(speaker);
        } else if out.pieces() > 0 {
            out.end();
        }
    }
    if open.is_some() {
        out.end();
    }
}

/// Puts out a call: the tool's name, then what it is called with.
fn call(kind: &[u8], item: Value<'_>, out: &mut Out) -> Result<(), Error> {
    let name = item.get(NAME).filter(|name| name.kind() == Json::String);
    let of_type =
        CALLS.iter().find(|(call, _)| *call == kind).map_or(Word::ImageGeneration, |(_, word)| *word);
    let spelt = name.map_or_else(|| of_type.text().as_bytes(), Value::front);
    let said = out.call(spelt, text(item, CALL_ID))?;
    out.begin(said);
    if kind == IMAGE_CALL {
        if let Some(prompt) = item.get(REVISED_PROMPT) {
            part(prompt, out);
        }
        out.word_line(Word::Image);
        out.end();
        return Ok(());
    }
    match name {
        Some(name) => out.text_line(name),
        None => out.word_line(of_type),
    }
    match [ARGUMENTS, INPUT, ACTION].into_iter().find_map(|key| item.get(key)) {
        Some(arguments) if arguments.kind() == Json::String => out.text_line(arguments),
        Some(arguments) => out.json_line(arguments),
        None => {}
    }
    out.end();
    Ok(())
}

/// Puts out what another agent said, unless nothing of it can be read.
fn agent(said: Value<'_>, out: &mut Out) {
    let Some(content) = said.get(CONTENT).filter(|content| !is_empty(*content)) else { return };
    out.begin(Kind::Agent);
    if let Some(author) = said.get(AUTHOR).filter(|author| author.kind() == Json::String) {
        out.text_line(author);
    }
    let before = out.pieces();
    parts(content, out);
    if out.pieces() > before {
        out.end();
    }
}

/// Puts out what code did, where no call of the model says it.
fn completed(item: Value<'_>, out: &mut Out) {
    if text(item, ID).is_some_and(|id| out.called(id).is_some()) {
        return;
    }
    match text(item, TYPE) {
        Some(b"CommandExecution") => {
            out.begin(Kind::Command);
            for key in [COMMAND, AGGREGATED_OUTPUT] {
                if let Some(said) = item.get(key) {
                    part(said, out);
                }
            }
            if let Some(code) = item.get(EXIT_CODE).filter(|code| code.kind() == Json::Number) {
                out.word(Word::Exit);
                out.json(code);
                out.line();
            }
            out.end();
        }
        Some(b"FileChange") => {
            out.begin(Kind::FileChange);
            if let Some(changes) = item.get(CHANGES) {
                let paths = changes.items().filter_map(|change| match changes.kind() {
                    Json::Array => change.get(PATH),
                    _ => Some(change),
                });
                paths.filter(|path| path.kind() == Json::String).for_each(|path| out.text_line(path));
            }
            out.json_line(item);
            out.end();
        }
        Some(b"McpToolCall") => {
            out.begin(Kind::McpCall);
            if let Some(tool) = item.get(TOOL).filter(|tool| tool.kind() == Json::String) {
                out.text_line(tool);
            }
            out.json_line(item);
            out.end();
        }
        _ => {}
    }
}

/// Puts out that turns were undone. Their records stay.
fn rolled_back(payload: Value<'_>, out: &mut Out) {
    if let Some(turns) = payload.get(NUM_TURNS).filter(|turns| turns.kind() == Json::Number) {
        out.begin(Kind::System);
        out.word(Word::RolledBack);
        out.json(turns);
        out.word(Word::Turns);
        out.line();
        out.end();
    }
}

/// Puts out a content that is one text, or a list of items.
fn parts(content: Value<'_>, out: &mut Out) {
    if content.kind() == Json::Array {
        content.items().for_each(|item| part(item, out));
    } else {
        part(content, out);
    }
}

/// Puts out an item as a line, or lines; what is encrypted says nothing.
fn part(item: Value<'_>, out: &mut Out) {
    match text_of(item) {
        Some(text) => out.text_line(text),
        None if is_image(item) => out.word_line(Word::Image),
        None if item.kind() == Json::Null || text(item, TYPE) == Some(b"encrypted_content") => {}
        None => out.json_line(item),
    }
}

/// The text of a bare string, or of an item of text.
fn text_of(value: Value<'_>) -> Option<Value<'_>> {
    let kind = match value.kind() {
        Json::String => return Some(value),
        _ => text(value, TYPE)?,
    };
    let is_text =
        matches!(kind, b"input_text" | b"output_text" | b"text" | b"summary_text" | b"reasoning_text");
    value.get(TEXT).filter(|text| is_text && text.kind() == Json::String)
}

fn is_image(value: Value<'_>) -> bool {
    matches!(text(value, TYPE), Some(b"input_image" | b"image"))
}

fn is_empty(value: Value<'_>) -> bool {
    value.kind() == Json::String && value.node().text == 0
}

fn text(of: Value<'_>, key: Key) -> Option<&[u8]> {
    of.get(key)?.text()
}

/// When a UUID of version 7 was made, in milliseconds since 1970 (RFC 9562, section 5.7).
fn made_ms(uuid: &[u8]) -> Option<u64> {
    let uuid = std::str::from_utf8(uuid).ok()?;
    let (high, rest) = uuid.split_at_checked(8)?;
    let low = rest.strip_prefix('-')?.get(..4)?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if uuid.len() != 36 || !uuid.get(13..15)?.eq("-7") || !is_hex(high) || !is_hex(low) {
        return None;
    }
    Some(u64::from_str_radix(high, 16).ok()? << 16 | u64::from_str_radix(low, 16).ok()?)
}

/// The calls, and what one without a name is called: its type without `_call`.
const CALLS: [(&[u8], Word); 5] = [
    (b"function_call", Word::Function),
    (b"custom_tool_call", Word::CustomTool),
    (b"local_shell_call", Word::LocalShell),
    (b"web_search_call", Word::WebSearch),
    (b"tool_search_call", Word::ToolSearch),
];
const IMAGE_CALL: &[u8] = b"image_generation_call";
/// What text begins with that nobody typed, where its record does not say.
const INJECTED: [&[u8]; 14] = [
    b"# AGENTS.md instructions",
    b"<environment_context>",
    b"<user_instructions>",
    b"<INSTRUCTIONS>",
    b"<permissions instructions>",
    b"<skill>",
    b"<recommended_plugins>",
    b"<turn_aborted>",
    b"<hook_prompt",
    b"<codex_internal_context",
    b"<subagent_notification>",
    b"<goal",
    b"<user_shell_command>",
    b"<collaboration_mode>",
];
