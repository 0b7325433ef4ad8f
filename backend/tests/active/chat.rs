//! `chat/`: messages by name, live, from their transcript.

use proto::Refusal;

use crate::client::Client;
use crate::world::{Proc, World};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";
const THREAD: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
const BASE: &str = "019f6249-cc95-7c50-b9fa-1db381270b74";
const CHAT: &str = "active/claude/50/chat";
const DAY: &str = "codex/sessions/2026/07/14";

fn script() -> String {
    format!("claude/projects/-home-me-work/{SESSION}.jsonl")
}

/// A Claude Code with this transcript.
fn claude(transcript: &str) -> (World, Client) {
    let world = World::new();
    world.run(&Proc::new(50, "claude"));
    world.write(
        "claude/sessions/50.json",
        &format!(
            "{{\"pid\":50,\"procStart\":\"5000\",\"sessionId\":\"{SESSION}\",\"cwd\":\"/home/me/work\"}}"
        ),
    );
    world.write(&script(), transcript);
    let client = world.client();
    (world, client)
}

fn user(text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"timestamp\":\"2026-11-02T10:00:05.120Z\",\"message\":{{\"content\":\"{text}\"}}}}\n"
    )
}

fn assistant(block: &str) -> String {
    format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{block}]}}}}\n")
}

#[test]
fn messages_list_and_read_in_the_order_of_saying() {
    let call = r#"{"type":"tool_use","id":"t1","name":"get_secret","input":{"of": 7}}"#;
    let (_world, mut client) =
        claude(&(user("hi") + &assistant(call) + &assistant(r#"{"type":"text","text":"Hello\nthere\n"}"#)));
    assert!(client.ls("active/claude/50").contains(&"chat".into()));
    let listed = client.list(CHAT).unwrap();
    let names: Vec<&str> = listed.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["00000000-user", "00000001-get_secret", "00000002-assistant"]);
    for record in &listed {
        let path = format!("{CHAT}/{}", record.name);
        assert_eq!(client.stat(&path).unwrap(), *record);
        let node = client.node(&path).unwrap();
        let (qid, open) = client.open(&node).unwrap();
        assert_eq!(qid, record.qid);
        assert_eq!(client.read(&open).unwrap().len() as u64, record.length);
        assert_eq!((record.mode, record.mtime), (0o444, 1_793_613_605));
    }
    assert_eq!(client.cat(&format!("{CHAT}/00000000-user")).unwrap(), "hi\n");
    assert_eq!(client.cat(&format!("{CHAT}/00000001-get_secret")).unwrap(), "get_secret\n{\"of\": 7}\n");
    assert_eq!(client.cat(&format!("{CHAT}/00000002-assistant")).unwrap(), "Hello\nthere\n");
}

#[test]
fn a_database_is_no_conversation_whatever_lines_it_holds() {
    let (_world, mut client) = claude(&("SQLite format 3\0\n".to_owned() + &user("hi")));
    assert_eq!(client.list(CHAT).unwrap_err(), Refusal::NOT_PERMITTED);
    assert!(client.node(&format!("{CHAT}/00000000-user")).is_err());
}

#[test]
fn a_name_has_one_spelling() {
    let (_world, mut client) = claude(&user("hi"));
    for name in
        ["0-user", "000000000-user", "00000000-assistant", "00000000", "00000001-user", "00000000-user/x"]
    {
        assert!(client.node(&format!("{CHAT}/{name}")).is_err(), "{name}");
    }
    assert!(client.node(&format!("{CHAT}/00000000-user/..")).is_err(), "a message is no directory");
    let chat = client.node(&format!("{CHAT}/../chat/00000000-user")).unwrap();
    assert_eq!(client.stat_node(&chat).unwrap().name, "00000000-user");
}

#[test]
fn what_is_appended_is_there_at_once_and_half_a_line_is_not() {
    let (world, mut client) = claude(&user("one"));
    assert_eq!(client.ls(CHAT), ["00000000-user"]);
    let line = user("two");
    let (half, rest) = line.split_at(40);
    world.append(&script(), half);
    assert_eq!(client.ls(CHAT), ["00000000-user"]);
    world.append(&script(), rest);
    assert_eq!(client.ls(CHAT), ["00000000-user", "00000001-user"]);
    assert_eq!(client.cat(&format!("{CHAT}/00000001-user")).unwrap(), "two\n");
}

#[test]
fn an_open_message_is_of_the_transcript_its_path_names_now() {
    let (world, mut client) = claude(&(user("one") + &user("two")));
    let node = client.node(&format!("{CHAT}/00000001-user")).unwrap();
    let (_, open) = client.open(&node).unwrap();
    assert_eq!(client.read(&open).unwrap(), "two\n");
    // In place, to other words of the same length.
    world.write(&script(), &(user("six") + &user("ten")));
    client.now.mono_ns += 1_000_000_000;
    assert_eq!(client.read(&open).unwrap(), "ten\n");
    // By a file of its own.
    world.write(&format!("{}.new", script()), &(user("longer") + &user("and longer")));
    world.rename(&format!("{}.new", script()), &script());
    client.now.mono_ns += 1_000_000_000;
    assert_eq!(client.read(&open).unwrap(), "and longer\n");
    // Shorter: there is no such message.
    world.write(&script(), &user("one"));
    client.now.mono_ns += 1_000_000_000;
    assert_eq!(client.read(&open), Err(Refusal::NOT_FOUND));
    assert_eq!(client.stat_node(&node), Err(Refusal::NOT_FOUND));
    world.remove(&script());
    client.now.mono_ns += 1_000_000_000;
    assert_eq!(client.read(&open), Err(Refusal::NOT_FOUND));
    assert!(!client.ls("active/claude/50").contains(&"chat".into()));
}

#[test]
fn a_long_transcript_takes_steps_and_lists_whole() {
    let transcript: String =
        (0..90_000).map(|at| user(&format!("message {at} {}", "x".repeat(40)))).collect();
    assert!(transcript.len() > 10 << 20);
    let (_world, mut client) = claude(&transcript);
    assert_eq!(client.stat(&format!("{CHAT}/00089999-user")).unwrap().length, 14 + 40 + 1);
    assert_eq!(client.waits, 1, "the scan is a job");
    let names = client.ls(CHAT);
    assert_eq!((names.len(), names[77_777].as_str()), (90_000, "00077777-user"));
    assert_eq!(client.waits, 1);
}

#[test]
fn a_limit_that_is_met_says_so_and_leaves_the_transcript() {
    let tools: String =
        (0..=65_535).map(|at| assistant(&format!(r#"{{"type":"tool_use","name":"t{at}"}}"#))).collect();
    let blocks = assistant(&"1,".repeat(1_500_000)[..3_000_000 - 1]);
    for (transcript, refusal) in [(tools, Refusal::CHAT_TOO_MANY_TOOLS), (blocks, Refusal::CHAT_TOO_LARGE)] {
        let (world, mut client) = claude(&(user("before") + &transcript));
        assert_eq!(client.list(CHAT).unwrap_err(), refusal);
        let chat = client.node(CHAT).unwrap();
        assert_eq!(client.walk(&chat, "00000000-user").unwrap_err(), refusal);
        assert!(client.ls("active/claude/50").contains(&"chat".into()));
        let length = client.stat("active/claude/50/transcript").unwrap().length;
        assert_eq!(length as usize, user("before").len() + transcript.len());
        world.append(&script(), &user("after"));
        assert_eq!(client.list(CHAT).unwrap_err(), refusal);
        world.write(&script(), &user("anew"));
        assert_eq!(client.ls(CHAT), ["00000000-user"]);
    }
}

#[test]
fn there_is_no_chat_where_there_is_nothing_to_tell() {
    let world = World::new();
    world.run(&Proc::new(50, "claude"));
    let mut client = world.client();
    assert!(!client.ls("active/claude/50").contains(&"chat".into()));
    assert_eq!(client.stat(CHAT), Err(Refusal::NOT_FOUND));
    let (_world, mut client) = claude("{\"type\":\"mode\",\"mode\":\"normal\"}\n");
    assert_eq!(client.ls(CHAT), [""; 0]);
}

#[test]
fn a_fork_tells_the_compressed_base_it_continues() {
    let said = |text: &str| {
        format!(
            "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
        )
    };
    let meta = |id: &str, more: &str| {
        format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"source\":\"cli\"{more}}}}}\n")
    };
    let world = World::new();
    let base = meta(BASE, "") + &said("from the base");
    let end = base.len();
    let base = base + &said("taken back");
    let name = format!("rollout-2026-07-14T20-20-00-{BASE}.jsonl.zst");
    world.write_bytes(&format!("{DAY}/{name}"), &zstd::encode_all(base.as_bytes(), 1).unwrap());
    let from = format!(
        ",\"history_base\":{{\"thread_id\":\"{BASE}\",\"end_ordinal_exclusive\":2,\"end_byte_offset\":{end}}}"
    );
    let own = format!("{DAY}/rollout-2026-07-14T20-21-37-{THREAD}.jsonl");
    world.write(&own, &(meta(THREAD, &from) + &said("and on")));
    let held = (20, world.path(&own));
    world.run(&Proc { fds: vec![held], ..Proc::new(40, "codex") });
    let mut client = world.client();
    let chat = "active/codex/40/chat";
    assert_eq!(client.ls(chat), ["00000000-user", "00000001-user"]);
    assert_eq!(client.cat(&format!("{chat}/00000000-user")).unwrap(), "from the base\n");
    assert_eq!(client.cat(&format!("{chat}/00000001-user")).unwrap(), "and on\n");
    world.append(&own, &said("further"));
    assert_eq!(client.cat(&format!("{chat}/00000002-user")).unwrap(), "further\n");
    // Archived, it is still found.
    world.rename(&format!("{DAY}/{name}"), &format!("codex/archived_sessions/{name}"));
    assert_eq!(world.client().cat(&format!("{chat}/00000000-user")).unwrap(), "from the base\n");
    let nested = format!("codex/archived_sessions/2026/07/14/{name}");
    world.rename(&format!("codex/archived_sessions/{name}"), &nested);
    assert_eq!(world.client().cat(&format!("{chat}/00000000-user")).unwrap(), "from the base\n");
    // And when it is gone, its words are, and the thread's own are not.
    world.remove(&nested);
    assert_eq!(world.client().ls(chat), ["00000000-user", "00000001-user"]);
    assert_eq!(world.client().cat(&format!("{chat}/00000000-user")).unwrap(), "and on\n");
}
