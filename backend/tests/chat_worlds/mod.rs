//! Transcripts that nobody recorded: records of every form a harness is known to write, in any order of keys, with what
//! crashes, editors and other writers leave between them.

use backend::chat::Format;
use proptest::prelude::*;

/// The bytes of a transcript, and whose it is.
#[derive(Clone)]
pub(crate) struct Transcript {
    pub(crate) format: Format,
    pub(crate) bytes: Vec<u8>,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}\n{}", self.format, self.bytes.escape_ascii().to_string().replace("\\n", "\n"))
    }
}

/// A transcript of one of the two formats; each line shrinks away on its own.
pub(crate) fn transcript() -> impl Strategy<Value = Transcript> {
    let format = prop_oneof![Just(Format::Claude), Just(Format::Codex)];
    let hurts = proptest::collection::vec((any::<prop::sample::Index>(), 0u8..4, any::<u8>()), 0..3);
    (format, proptest::collection::vec(any::<u64>(), 0..24), hurts, any::<bool>()).prop_map(
        |(format, seeds, hurts, ends)| {
            let mut bytes: Vec<u8> = seeds.iter().flat_map(|seed| line(format, *seed)).collect();
            for (at, how, byte) in hurts {
                if bytes.is_empty() {
                    break;
                }
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    2 => drop(bytes.remove(at)),
                    _ => drop(bytes.drain(at..bytes.len().min(at + usize::from(byte)))),
                }
            }
            if !ends {
                bytes.pop();
            }
            Transcript { format, bytes }
        },
    )
}

fn line(format: Format, seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut line = match format {
        Format::Claude => claude(&mut dice),
        Format::Codex => codex(&mut dice),
    };
    match dice.roll(24) {
        0 => line = b"\0\0\0".repeat(dice.roll(9)),
        1 => line.splice(0..0, [0; 5]).for_each(drop),
        2 => line.extend_from_slice(&[0; 700]),
        3 => line.extend_from_slice(b"\r"),
        4 => line.truncate(dice.roll(line.len() + 1)),
        5 => drop(line.drain(..dice.roll(line.len() + 1))),
        6 => line = [&line[..line.len() / 2], &line[..]].concat(),
        7 => line.clear(),
        8 => line.extend_from_slice(b" \t"),
        _ => {}
    }
    line.push(b'\n');
    line
}

fn claude(dice: &mut Dice) -> Vec<u8> {
    let kind = dice.pick(&[
        "user",
        "user",
        "assistant",
        "assistant",
        "attachment",
        "system",
        "progress",
        "ai-title",
        "mode",
    ]);
    let mut members = vec![("type", string(kind))];
    if dice.roll(8) > 0 {
        members.push(("uuid", string(&format!("u-{}", dice.roll(40)))));
    }
    if dice.roll(8) > 0 {
        members.push(("timestamp", timestamp(dice)));
    }
    for flag in ["isSidechain", "isMeta", "isCompactSummary"] {
        if dice.roll(4) == 0 {
            members.push((flag, dice.pick(&["true", "false", "false", "null", "1"]).into()));
        }
    }
    if dice.roll(5) == 0 {
        members.push(("origin", origin(dice)));
    }
    if dice.roll(8) == 0 {
        members.push(("promptSource", string(dice.pick(&["typed", "system", "sdk"]))));
    }
    let content = content(dice, claude_block);
    match kind {
        "attachment" => {
            let attachment = string(dice.pick(&["queued_command", "queued_command", "task_reminder"]));
            let mut inner = vec![("type", attachment), ("prompt", content)];
            if dice.roll(6) > 0 {
                inner.push((
                    "commandMode",
                    string(dice.pick(&["prompt", "prompt", "bash", "task-notification"])),
                ));
            }
            if dice.roll(4) == 0 {
                inner.push(("origin", origin(dice)));
            }
            if dice.roll(6) == 0 {
                inner.push(("isMeta", "true".into()));
            }
            members.push(("attachment", object(dice, inner)));
        }
        "system" => members.push(("content", content)),
        "progress" => {
            let inner = vec![("content", content)];
            let message = object(dice, inner);
            members.push(("message", message));
        }
        _ => {
            let mut inner = vec![("role", string(kind)), ("content", content)];
            if dice.roll(3) == 0 {
                inner.push(("usage", br#"{"output_tokens":3,"content":[1,{"type":"text"}]}"#.to_vec()));
            }
            members.push(("message", object(dice, inner)));
            if dice.roll(3) == 0 {
                members.push(("toolUseResult", value(dice, 3)));
            }
        }
    }
    object(dice, members)
}

fn claude_block(dice: &mut Dice) -> Vec<u8> {
    let kind = dice.pick(&[
        "text",
        "text",
        "text",
        "image",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_use",
        "server_tool_use",
        "mcp_tool_use",
        "tool_result",
        "tool_result",
        "web_search_tool_result",
        "document",
        "tool_reference",
    ]);
    let mut members = vec![("type", string(kind))];
    match kind {
        "text" => members.push(("text", text_or_junk(dice))),
        "thinking" => members.push(("thinking", text_or_junk(dice))),
        "image" => members.push(("source", br#"{"type":"base64","data":"aGk="}"#.to_vec())),
        _ if kind.ends_with("_use") => {
            members.push(("id", id(dice)));
            if dice.roll(9) > 0 {
                members.push(("name", name(dice)));
            }
            if dice.roll(9) > 0 {
                members.push(("input", value(dice, 2)));
            }
        }
        _ if kind.ends_with("_result") => {
            members.push(("tool_use_id", id(dice)));
            if dice.roll(9) > 0 {
                members.push(("content", content(dice, claude_block)));
            }
        }
        _ => members.push(("title", text(dice))),
    }
    object(dice, members)
}

fn codex(dice: &mut Dice) -> Vec<u8> {
    let mut members = Vec::new();
    if dice.roll(8) > 0 {
        members.push(("timestamp", timestamp(dice)));
    }
    if dice.roll(3) == 0 {
        members.push(("ordinal", dice.roll(30).to_string().into_bytes()));
    }
    let (kind, payload) = match dice.roll(14) {
        0 => ("session_meta", session_meta(dice)),
        1 => ("turn_context", turn(dice, None)),
        2 => {
            let kind = dice.pick(&["task_started", "turn_started"]);
            ("event_msg", turn(dice, Some(kind)))
        }
        3 => ("event_msg", event(dice)),
        4 => {
            let members = vec![("author", text(dice)), ("content", content(dice, codex_item))];
            ("inter_agent_communication", object(dice, members))
        }
        5 => ("compacted", br#"{"message":"m","replacement_history":[{"type":"message","role":"user"}]}"#.to_vec()),
        6 => {
            // Without an envelope.
            let mut item = response_item(dice);
            if dice.roll(4) == 0 {
                item = br#"{"record_type":"state"}"#.to_vec();
            }
            return item;
        }
        7 if dice.roll(3) == 0 => return br#"{"id":"019a0000-0000-7000-8000-000000000001","timestamp":"2025-05-01T10:00:00.000Z","instructions":null}"#.to_vec(),
        _ => ("response_item", response_item(dice)),
    };
    members.push(("type", string(kind)));
    members.push(("payload", payload));
    object(dice, members)
}

fn session_meta(dice: &mut Dice) -> Vec<u8> {
    let mut members = vec![("id", uuid7(dice)), ("cwd", text(dice))];
    if dice.roll(2) == 0 {
        members.push(("timestamp", timestamp(dice)));
    }
    match dice.roll(4) {
        0 => members.push(("thread_source", string("subagent"))),
        1 => members.push(("source", br#"{"subagent":{"thread_spawn":{"depth":1}}}"#.to_vec())),
        2 => members.push(("source", string("cli"))),
        _ => {}
    }
    if dice.roll(2) == 0 {
        members.push(("forked_from_id", uuid7(dice)));
    }
    if dice.roll(4) == 0 {
        members.push(("subagent_history_start_ordinal", dice.roll(30).to_string().into_bytes()));
    }
    object(dice, members)
}

fn turn(dice: &mut Dice, kind: Option<&str>) -> Vec<u8> {
    let mut members = Vec::new();
    if let Some(kind) = kind {
        members.push(("type", string(kind)));
    }
    if dice.roll(3) > 0 {
        members.push(("turn_id", uuid7(dice)));
    }
    if dice.roll(3) > 0 {
        members.push(("started_at", (1_760_000_000 + dice.roll(4)).to_string().into_bytes()));
    }
    object(dice, members)
}

fn event(dice: &mut Dice) -> Vec<u8> {
    match dice.roll(4) {
        0 => br#"{"type":"thread_rolled_back","num_turns":2}"#.to_vec(),
        1 => {
            let members = vec![("type", string("agent_message")), ("message", text(dice))];
            object(dice, members)
        }
        _ => {
            let kind = dice.pick(&["CommandExecution", "FileChange", "McpToolCall", "UserMessage"]);
            let mut item = vec![("type", string(kind)), ("id", id(dice))];
            match kind {
                "CommandExecution" => {
                    let command =
                        if dice.roll(2) == 0 { text(dice) } else { br#"["sh","-c","ls"]"#.to_vec() };
                    item.push(("command", command));
                    item.push(("aggregated_output", text_or_junk(dice)));
                    item.push(("exit_code", dice.pick(&["0", "-1", "null", "127"]).into()));
                }
                "FileChange" => {
                    let changes = dice.pick(&[
                        r#"{"a/b.rs":{"type":"update","path":"no"},"c\n\u00e9":{}}"#,
                        r#"[{"path":"x.rs","kind":"add"},{"kind":"add"},"y",null]"#,
                        r#""z""#,
                        "{}",
                    ]);
                    item.push(("changes", changes.into()));
                }
                "McpToolCall" => {
                    item.push(("tool", text_or_junk(dice)));
                    item.push(("arguments", value(dice, 2)));
                }
                _ => {}
            }
            let item = object(dice, item);
            let members = vec![("type", string("item_completed")), ("item", item)];
            object(dice, members)
        }
    }
}

fn response_item(dice: &mut Dice) -> Vec<u8> {
    let kind = dice.pick(&[
        "message",
        "message",
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
        "image_generation_call",
        "agent_message",
        "ghost_snapshot",
        "compaction",
    ]);
    let mut members = vec![("type", string(kind))];
    match kind {
        "message" => {
            members.push((
                "role",
                string(dice.pick(&["user", "user", "assistant", "developer", "system", "critic"])),
            ));
            members.push(("content", content(dice, codex_item)));
            if dice.roll(3) == 0 {
                let kinds =
                    (0..dice.roll(4)).map(|_| string(dice.pick(&["user.text", "agents_md.instructions"])));
                let kinds = array(kinds.collect());
                let metadata = vec![("turn_id", string("t")), ("content_item_kinds", kinds)];
                members.push(("internal_chat_message_metadata_passthrough", object(dice, metadata)));
            }
        }
        "reasoning" => {
            members.push(("summary", content(dice, codex_item)));
            members.push(("encrypted_content", string("Z0FBQUE=")));
        }
        "agent_message" => {
            members.push(("author", text_or_junk(dice)));
            members.push(("content", content(dice, codex_item)));
        }
        "image_generation_call" => {
            members.push(("revised_prompt", text_or_junk(dice)));
            members.push(("result", string("aGk=")));
        }
        _ if kind.ends_with("_call") => {
            if dice.roll(3) > 0 {
                members.push(("name", name(dice)));
            }
            members.push(("call_id", id(dice)));
            let field = dice.pick(&["arguments", "input", "action"]);
            members.push((field, if dice.roll(2) == 0 { text(dice) } else { value(dice, 2) }));
        }
        "tool_search_output" => {
            members.push(("call_id", id(dice)));
            members.push(("tools", br#"[{"type":"function","name":"f","content":3},"t"]"#.to_vec()));
        }
        _ if kind.ends_with("_output") => {
            members.push(("call_id", id(dice)));
            let output = content(dice, codex_item);
            members.push((
                "output",
                match dice.roll(3) {
                    0 => object(dice, vec![("content", output), ("success", "true".into())]),
                    1 => value(dice, 2),
                    _ => output,
                },
            ));
        }
        _ => {}
    }
    object(dice, members)
}

fn codex_item(dice: &mut Dice) -> Vec<u8> {
    let kind = dice.pick(&[
        "input_text",
        "input_text",
        "output_text",
        "summary_text",
        "text",
        "input_image",
        "input_file",
        "encrypted_content",
    ]);
    let said = text_or_junk(dice);
    object(dice, vec![("type", string(kind)), ("text", said)])
}

/// A text, or a list of blocks and what else has been seen among them.
fn content(dice: &mut Dice, block: fn(&mut Dice) -> Vec<u8>) -> Vec<u8> {
    match dice.roll(6) {
        0 | 1 => text(dice),
        2 if dice.roll(3) == 0 => value(dice, 2),
        _ => {
            let blocks = (0..dice.roll(5)).map(|_| match dice.roll(12) {
                0 => text(dice),
                1 => b"null".to_vec(),
                2 => value(dice, 1),
                _ => block(dice),
            });
            array(blocks.collect())
        }
    }
}

fn text_or_junk(dice: &mut Dice) -> Vec<u8> {
    if dice.roll(12) == 0 { value(dice, 1) } else { text(dice) }
}

/// A string as it may stand in a record: its escapes are its own.
fn text(dice: &mut Dice) -> Vec<u8> {
    let mut text = b"\"".to_vec();
    if dice.roll(5) == 0 {
        text.extend_from_slice(dice.pick(&[
            b"<task-notification>" as &[u8],
            b"<system-reminder>",
            b"Caveat: The messages below",
            b"<command-name>",
            b"\\u003ctask-notification>",
            b"# AGENTS.md instructions",
            b"<environment_context>",
        ]));
    }
    for _ in 0..dice.roll(7) {
        text.extend_from_slice(dice.pick(&[
            b"hello" as &[u8],
            b" ",
            b"\\n",
            b"\\\"",
            b"\\\\",
            b"\\u00e9",
            b"\\ud83d\\ude00",
            b"\\ud83d",
            b"\\ude00",
            "\u{e9}\u{1f600}\u{2028}".as_bytes(),
            b"\xff\xc3",
            b"\xe2\x82",
            b"\\/\\b\\f\\r\\t",
            b"{\\\"type\\\":\\\"user\\\"}",
            b"a longer run of plain text that passes the width of any register there is, twice over",
        ]));
    }
    if dice.roll(60) == 0 {
        text.extend_from_slice(dice.pick(&[b"\\d" as &[u8], b"\t", b"\\u12", b"\0"]));
    }
    text.push(b'"');
    text
}

fn value(dice: &mut Dice, depth: usize) -> Vec<u8> {
    match dice.roll(if depth == 0 { 5 } else { 8 }) {
        0 => text(dice),
        1 => dice.pick(&["0", "-1.5e+3", "12", "1E9"]).into(),
        2 => "true".into(),
        3 => "null".into(),
        4 => "{}".into(),
        5 => array((0..dice.roll(4)).map(|_| value(dice, depth - 1)).collect()),
        _ => {
            let keys = ["type", "content", "text", "path", "x", "message", "input"];
            let members = (0..dice.roll(4)).map(|_| (dice.pick(&keys), value(dice, depth - 1))).collect();
            object(dice, members)
        }
    }
}

fn origin(dice: &mut Dice) -> Vec<u8> {
    dice.pick(&[
        r#"{"kind":"human"}"#,
        r#"{"kind":"peer"}"#,
        r#"{"kind":"new-thing"}"#,
        r#"{"kind":null}"#,
        r#""human""#,
    ])
    .into()
}

fn id(dice: &mut Dice) -> Vec<u8> {
    if dice.roll(8) == 0 { b"null".to_vec() } else { string(&format!("call-{}", dice.roll(6))) }
}

fn name(dice: &mut Dice) -> Vec<u8> {
    let names = ["Bash", "Read", "mcp__a__b", "Agent", "user", "my-result", "", "\u{e9}clair x", "exec"];
    string(dice.pick(&names))
}

fn uuid7(dice: &mut Dice) -> Vec<u8> {
    let seconds = 1_760_000_000 + dice.roll(4) as u64;
    let hex = format!("{:012x}", seconds * 1000 + dice.roll(3) as u64);
    let version = dice.pick(&["7", "7", "7", "4"]);
    string(&format!("{}-{}-{version}000-8000-000000000001", &hex[..8], &hex[8..]))
}

fn timestamp(dice: &mut Dice) -> Vec<u8> {
    match dice.roll(12) {
        0 => b"17".to_vec(),
        1 => string("yesterday"),
        _ => string(&format!("2026-1{}-02T10:00:{:02}.{:03}Z", dice.roll(3), dice.roll(60), dice.roll(1000))),
    }
}

fn string(text: &str) -> Vec<u8> {
    format!("\"{text}\"").into_bytes()
}

fn array(items: Vec<Vec<u8>>) -> Vec<u8> {
    [b"[", &items.join(&b","[..])[..], b"]"].concat()
}

/// An object, its members in any order, once in a while one of them twice.
fn object(dice: &mut Dice, mut members: Vec<(&str, Vec<u8>)>) -> Vec<u8> {
    if dice.roll(20) == 0 && !members.is_empty() {
        let again = members[dice.roll(members.len())].0;
        members.push((again, value(dice, 1)));
    }
    if dice.roll(2) == 0 {
        for at in (1..members.len()).rev() {
            members.swap(at, dice.roll(at + 1));
        }
    }
    let blank = dice.pick(&["", "", " "]).as_bytes();
    let members = members.into_iter().map(|(key, value)| [&string(key)[..], b":", blank, &value].concat());
    [b"{", &members.collect::<Vec<_>>().join(&b","[..])[..], b"}"].concat()
}

/// Random numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }
}
