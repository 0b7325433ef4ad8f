//! Claude Code: its registry, `/clear`, transcripts and subagents.

use crate::world::{Proc, World, on_both};

const S1: &str = "11111111-1111-4111-8111-111111111111";
const S2: &str = "22222222-2222-4222-8222-222222222222";
const S3: &str = "33333333-3333-4333-8333-333333333333";
const PROJECT: &str = "claude/projects/-home-me-work";
const CLEAR: &str = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"<command-name>/clear</command-name>\\n<command-message>clear</command-message>\"}}\n";

fn transcript(session: &str) -> String {
    format!("{PROJECT}/{session}.jsonl")
}

fn prompt(text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"isSidechain\":false,\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

fn reply(model: &str) -> String {
    format!(
        "{{\"parentUuid\":\"a\",\"type\":\"assistant\",\"message\":{{\"role\":\"assistant\",\"model\":\"{model}\",\"content\":[]}}}}\n"
    )
}

/// Writes the record of a process, with more fields behind the usual ones.
fn register(world: &World, pid: u32, session: &str, more: &str) {
    world.write(&format!("claude/sessions/{pid}.json"), &record(pid, session, more));
}

fn record(pid: u32, session: &str, more: &str) -> String {
    let start = u64::from(pid) * 100;
    format!(
        "{{\"pid\":{pid},\"procStart\":\"{start}\",\"sessionId\":\"{session}\",\"cwd\":\"/home/me/work\",\
         \"status\":\"busy\",\"name\":\"swift-otter\"{more}}}"
    )
}

fn world_with(pids: &[u32]) -> World {
    let world = World::new();
    for pid in pids {
        world.run(&Proc::new(*pid, "claude --resume x"));
    }
    world
}

#[test]
fn the_registry_names_the_session() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        world.write(&transcript(S1), &(prompt("fix the build") + &reply("claude-opus-5")));
        let mut client = world.client();
        assert_eq!(client.ls("active/claude"), ["50"]);
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        for (field, value) in [
            ("pid", "50"),
            ("ppid", "1"),
            ("started", &(world.boot_s() + 50).to_string()),
            ("cwd", "/home/me/work"),
            ("name", "swift-otter"),
            ("status", "busy"),
            ("title", "fix the build"),
            ("model", "claude-opus-5"),
            ("zmx", ""),
        ] {
            assert_eq!(client.field("claude", 50, field), value, "{field}");
        }
        let served = client.cat("active/claude/50/transcript").unwrap();
        assert_eq!(served, prompt("fix the build") + &reply("claude-opus-5"));
        let mirrored = client.stat(&transcript(S1)).unwrap();
        let shown = client.stat("active/claude/50/transcript").unwrap();
        assert_eq!((shown.qid, shown.length, shown.mtime), (mirrored.qid, mirrored.length, mirrored.mtime));
    });
}

#[test]
fn a_record_counts_only_for_the_process_it_is_about() {
    on_both(|| {
        let ours = format!("linux:{}:", World::new().machine_id());
        let in_ms = |after_s: u64| format!("{}", (World::new().boot_s() + 50 + after_s) * 1000);
        for (record, counts) in [
            (format!("{{\"procStart\":\"5000\",\"sessionId\":\"{S1}\"}}"), true),
            (format!("{{\"procStart\":5000,\"sessionId\":\"{S1}\"}}"), true),
            (format!("{{\"procStart\":\"5001\",\"sessionId\":\"{S1}\"}}"), false),
            (format!("{{\"procStart\":\"5000\",\"pid\":50,\"sessionId\":\"{S1}\"}}"), true),
            (format!("{{\"procStart\":\"5000\",\"pid\":51,\"sessionId\":\"{S1}\"}}"), false),
            (format!("{{\"startedAt\":{},\"sessionId\":\"{S1}\"}}", in_ms(0)), true),
            (format!("{{\"startedAt\":{},\"sessionId\":\"{S1}\"}}", in_ms(60)), true),
            (format!("{{\"startedAt\":{},\"sessionId\":\"{S1}\"}}", in_ms(61)), false),
            (format!("{{\"startedAt\":{},\"sessionId\":\"{S1}\"}}", in_ms(0) + "0"), false),
            (format!("{{\"sessionId\":\"{S1}\"}}"), false),
            (
                format!(
                    "{{\"procStart\":null,\"pidDomain\":null,\"startedAt\":{},\"sessionId\":\"{S1}\"}}",
                    in_ms(1)
                ),
                true,
            ),
            (
                format!(
                    "{{\"procStart\":\"5000\",\"sessionId\":\"{S1}\",\"x\":\"{}\"}}",
                    "x".repeat(64 << 10)
                ),
                false,
            ),
            (
                format!(
                    "{{\"procStart\":\"5000\",\"pidDomain\":\"{ours}pid:[4026531836]\",\"sessionId\":\"{S1}\"}}"
                ),
                true,
            ),
            (
                format!(
                    "{{\"procStart\":\"5000\",\"pidDomain\":\"linux:x:pid:[1]\",\"sessionId\":\"{S1}\"}}"
                ),
                false,
            ),
            (format!("{{\"procStart\":\"5000\",\"pidDomain\":\"win\",\"sessionId\":\"{S1}\"}}"), false),
            (format!("{{\"procStart\":\"5000\",\"pidDomain\":7,\"sessionId\":\"{S1}\"}}"), false),
            ("{\"procStart\":\"5000\",\"sessionId\":\"../../x\"}".into(), false),
            ("{\"procStart\":\"5000\",\"sessionId\":7}".into(), false),
            ("{\"procStart\":\"5000\"}".into(), false),
        ] {
            let world = world_with(&[50]);
            world.write("claude/sessions/50.json", &record);
            let expected =
                if counts { ("registry".into(), S1.into()) } else { ("none".into(), String::new()) };
            assert_eq!(world.client().found("claude", 50), expected, "{record}");
        }
    });
}

#[test]
fn a_record_of_another_pid_namespace_is_not_ours() {
    on_both(|| {
        let world = world_with(&[50]);
        world.own_namespace();
        for (namespace, via) in [("pid:[4026531836]", "registry"), ("pid:[4026532000]", "none")] {
            register(&world, 50, S1, &format!(",\"pidDomain\":\"linux:{}:{namespace}\"", world.machine_id()));
            assert_eq!(world.client().field("claude", 50, "via"), via);
        }
    });
}

#[test]
fn a_torn_record_is_read_again_once() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        let path = "claude/sessions/50.json";
        let whole = record(50, S1, "");
        for torn in [&whole[..whole.len() / 2], ""] {
            let mut client = world.client();
            assert_eq!(client.ls("active/claude"), ["50"]);
            let waits = client.waits;
            world.write(path, torn);
            let before_ns = client.now.mono_ns;
            client.meanwhile = Some(world.writer(path, &whole));
            assert_eq!(client.field("claude", 50, "session"), S1);
            assert_eq!((client.waits - waits, client.now.mono_ns - before_ns), (1, 50_000_000));
        }
        // One that stays torn is not there.
        world.write(path, "{");
        assert_eq!(world.client().found("claude", 50), ("none".into(), String::new()));
    });
}

#[test]
fn a_registered_process_is_an_agent_whatever_it_is_called() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(60, "/opt/tool/frontend"));
        world.run(&Proc { state: 'D', ..Proc::new(61, "/opt/tool/frontend") });
        world.run(&Proc::new(62, "/opt/tool/frontend"));
        world.run(&Proc::new(63, "claude"));
        world.run(&Proc::new(64, "claude"));
        world.run(&Proc::new(65, "claude mcp serve"));
        register(&world, 60, S1, "");
        register(&world, 61, S2, "");
        world.write(
            "claude/sessions/pid-62.json",
            &format!("{{\"procStart\":\"6200\",\"sessionId\":\"{S3}\"}}"),
        );
        world
            .write("claude/sessions/062.json", &format!("{{\"procStart\":\"6200\",\"sessionId\":\"{S3}\"}}"));
        register(&world, 63, S3, ",\"spare\":true");
        register(&world, 64, S3, ",\"kind\":\"daemon-worker\"");
        register(&world, 65, S3, "");
        let mut client = world.client();
        assert_eq!(client.ls("active/claude"), ["60", "61"]);
        assert_eq!(client.found("claude", 61), ("registry".into(), S2.into()));
    });
}

#[test]
fn the_transcript_is_where_it_was_filed_else_the_newest() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        let mut client = world.client();
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        assert!(client.cat("active/claude/50/transcript").is_err());
        assert!(!client.ls("active/claude/50").contains(&"transcript".into()));
        world.write_aged(&format!("claude/projects/-w-old/{S1}.jsonl"), "old\n", 50);
        world.write_aged(&format!("claude/projects/-w-new/{S1}.jsonl"), "new\n", 10);
        world.write_aged(&format!("claude/projects/-home-me-auth-service/{S2}.jsonl"), "secret\n", 5);
        assert_eq!(client.cat("active/claude/50/transcript").unwrap(), "new\n");
        world.write_aged(&transcript(S1), "filed\n", 90);
        assert_eq!(client.cat("active/claude/50/transcript").unwrap(), "filed\n");
        // A project directory that the mirrors hide is served of a session that was resolved, and of nothing else.
        register(&world, 50, S2, "");
        assert_eq!(client.cat("active/claude/50/transcript").unwrap(), "secret\n");
        assert!(client.cat(&format!("claude/projects/-home-me-auth-service/{S2}.jsonl")).is_err());
    });
}

#[test]
fn what_is_no_file_of_its_own_is_neither_followed_nor_opened() {
    on_both(|| {
        let world = world_with(&[50]);
        let mut client = world.client();
        world.fifo("claude/sessions/50.json");
        assert_eq!(client.found("claude", 50).0, "none");
        world.remove("claude/sessions/50.json");
        world.write("elsewhere.json", &format!("{{\"procStart\":\"5000\",\"sessionId\":\"{S1}\"}}"));
        world.link("claude/sessions/50.json", &world.path("elsewhere.json"));
        assert_eq!(client.found("claude", 50).0, "none");
        world.remove("claude/sessions/50.json");
        register(&world, 50, S1, "");
        world.fifo(&transcript(S1));
        assert!(client.cat("active/claude/50/transcript").is_err());
        assert_eq!(client.field("claude", 50, "title"), "");
        world.remove(&transcript(S1));
        world.write("outside.jsonl", &prompt("outside"));
        world.link(&transcript(S1), &world.path("outside.jsonl"));
        assert!(client.cat("active/claude/50/transcript").is_err());
        world.remove(&transcript(S1));
        world.rename(PROJECT, "claude/projects/away");
        world.write(&format!("outside/{S1}.jsonl"), &prompt("outside"));
        world.link(PROJECT, &world.path("outside"));
        assert!(client.cat("active/claude/50/transcript").is_err());
        assert_eq!(client.field("claude", 50, "title"), "");
    });
}

#[test]
fn a_continued_session_is_followed() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        let on = |id: &str| format!("{{\"type\":\"continued-in\",\"continuedInSessionId\":\"{id}\"}}\n");
        world.write(&transcript(S1), &(prompt("one") + &on(S2) + "{\"type\":\"mode\",\"mode\":\"x\"}\n"));
        world.write(&transcript(S2), &(prompt("two") + &on(S3)));
        world.write(&transcript(S3), &prompt("three"));
        let mut client = world.client();
        assert_eq!(client.found("claude", 50), ("clear".into(), S3.into()));
        assert_eq!(client.field("claude", 50, "title"), "three");
        // It went on itself after all.
        world.append(&transcript(S1), &prompt("again"));
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        // Of some that name each other in a ring, none is known to be the one.
        world.append(&transcript(S1), &on(S2));
        for ring in [S1, S2] {
            world.write(&transcript(S2), &on(ring));
            assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()), "{ring}");
        }
        // It need not be there yet, and it may be in another project.
        world.write(&transcript(S2), &on(S3));
        world.remove(&transcript(S3));
        assert_eq!(client.found("claude", 50), ("clear".into(), S3.into()));
        assert!(!client.ls("active/claude/50").contains(&"transcript".into()));
        world.write(&format!("claude/projects/-w-tree/{S3}.jsonl"), &prompt("moved"));
        assert_eq!(client.field("claude", 50, "title"), "moved");
    });
}

#[test]
fn a_cleared_session_is_followed_where_there_is_one_way_to_go() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        world.write_aged(&transcript(S1), &prompt("one"), 100);
        let mut client = world.client();
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        world.write(&transcript(S2), &prompt("no marker"));
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()), "no marker");
        world.write(&transcript(S2), &(String::from("{\"type\":\"mode\"}\n") + CLEAR + &prompt("fresh")));
        assert_eq!(client.found("claude", 50), ("clear".into(), S2.into()));
        assert_eq!(client.field("claude", 50, "title"), "fresh");
        assert!(client.cat("active/claude/50/transcript").unwrap().contains("fresh"));
        world.write(&transcript(S3), CLEAR);
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()), "two ways to go");
        world.remove(&transcript(S3));
        world.append(&transcript(S1), &prompt("it goes on"));
        assert_eq!(
            client.found("claude", 50),
            ("registry".into(), S1.into()),
            "written after the other was born"
        );
    });
}

#[test]
fn a_cleared_session_is_nobodys_where_two_can_have_begun_it() {
    on_both(|| {
        let world = world_with(&[50, 51]);
        register(&world, 50, S1, "");
        register(&world, 51, S2, "");
        world.write_aged(&transcript(S1), &prompt("one"), 100);
        world.write_aged(&transcript(S2), &prompt("two"), 90);
        world.write(&transcript(S3), CLEAR);
        let mut client = world.client();
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        assert_eq!(client.found("claude", 51), ("registry".into(), S2.into()));
        // The other one has been at work since: it did not clear.
        world.append(&transcript(S2), &prompt("still here"));
        assert_eq!(client.found("claude", 50), ("clear".into(), S3.into()));
        // Its record caught up with it.
        world.age(&transcript(S2), 90);
        register(&world, 51, S3, "");
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        assert_eq!(client.found("claude", 51), ("registry".into(), S3.into()));
        world.append(&transcript(S3), &prompt("and at work in it"));
        assert_eq!(client.found("claude", 50), ("registry".into(), S1.into()));
        // It ended: what it left is nobody's, and may be ours.
        world.end(51);
        assert_eq!(client.found("claude", 50), ("clear".into(), S3.into()));
    });
}

#[test]
fn another_root_in_the_environment_is_another_root() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        let root = world.path("claude");
        for (value, via) in
            [(root.as_str(), "registry"), ("/nowhere/.claude", "none"), ("", "registry"), ("x", "none")]
        {
            world.run(&Proc { env: vec![format!("CLAUDE_CONFIG_DIR={value}")], ..Proc::new(50, "claude") });
            assert_eq!(world.client().field("claude", 50, "via"), via, "{value}");
        }
    });
}

#[test]
fn the_last_title_counts_and_a_given_one_beats_a_thought_one() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        let titled = |kind: &str, field: &str, title: &str| {
            format!("{{\"type\":\"{kind}\",\"{field}\":\"{title}\",\"sessionId\":\"{S1}\"}}\n")
        };
        let ai = |title: &str| titled("ai-title", "aiTitle", title);
        let custom = |title: &str| titled("custom-title", "customTitle", title);
        let mut client = world.client();
        for (content, title) in [
            (prompt("x"), "x"),
            (prompt("x") + &ai("one") + &ai("two"), "two"),
            (custom("mine") + &ai("one"), "mine"),
            (custom("mine") + &custom("new") + &ai("one"), "new"),
            (ai("one") + &prompt("say ai-title and custom-title"), "one"),
            (ai("one") + "{\"type\":\"ai-title\",\"aiTitle\":\"cut", "one"),
            (ai("one") + "{\"type\":\"ai-title\",\"aiTi\n" + &prompt("x"), "one"),
            (ai("one") + &"x".repeat(3 << 20) + "\n" + &prompt("y"), "one"),
            (
                prompt("y") + &ai("old") + &ai("one") + &format!("{}\n", "x".repeat(64 << 10)).repeat(80),
                "one",
            ),
            (custom("mine") + &ai("one") + &format!("{}\n", "x".repeat(64 << 10)).repeat(80), "mine"),
            (prompt("y") + &format!("{}\n", "x".repeat(64 << 10)).repeat(80), "y"),
            (ai("\\u202eone\\u2066 \\ud83d two"), "one \u{fffd} two"),
            (ai(&"long ".repeat(100)), "long ".repeat(100)[..256].trim_end()),
            (prompt(&"word ".repeat(50)), "word ".repeat(16).trim_end()),
            (ai("a\\u001b[31mb\\nc"), "a[31mb c"),
            ("{}".into(), ""),
        ] {
            world.write(&transcript(S1), &content);
            assert_eq!(client.field("claude", 50, "title").trim_end(), title);
        }
    });
}

#[test]
fn the_last_model_counts_and_a_made_up_one_never() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        let mut client = world.client();
        for (content, model) in [
            (prompt("x"), ""),
            (reply("a") + &reply("b"), "b"),
            (reply("a") + &reply("<synthetic>"), "a"),
            (reply("a") + &prompt("assistant model"), "a"),
            (
                reply("a")
                    + "{\"type\":\"progress\",\"data\":{\"message\":{\"type\":\"assistant\",\"message\":{\"model\":\"z\"}}}}\n",
                "a",
            ),
            (reply("a") + &reply("b")[..40], "a"),
        ] {
            world.write(&transcript(S1), &content);
            assert_eq!(client.field("claude", 50, "model"), model, "{content}");
        }
    });
}

#[test]
fn subagents_are_named_by_type_and_id() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        world.write(&transcript(S1), &prompt("x"));
        let mut client = world.client();
        assert!(client.ls("active/claude/50/agents").is_empty());
        let below = format!("{PROJECT}/{S1}/subagents");
        world.write(&format!("{below}/agent-a1.jsonl"), &reply("haiku"));
        world.write(&format!("{below}/agent-a1.meta.json"), "{\"agentType\":\"Explore\"}");
        world.write(&format!("{below}/agent-b2.jsonl"), "");
        world.write(&format!("{below}/workflows/run1/agent-c3.jsonl"), &reply("opus"));
        world.write(&format!("{below}/workflows/run1/agent-c3.meta.json"), "{\"agentType\":\"../x y\"}");
        world.write(&format!("{below}/workflows/run1/journal.jsonl"), "");
        world.write(&format!("{below}/agent-.jsonl"), "");
        world.link(&format!("{below}/agent-d4.jsonl"), &world.path(&transcript(S1)));
        assert_eq!(client.ls("active/claude/50/agents"), ["..-x-y-c3", "Explore-a1", "agent-b2"]);
        let at = "active/claude/50/agents/Explore-a1";
        assert_eq!(client.ls(at), ["model", "transcript"]);
        assert_eq!(client.cat(&format!("{at}/model")).unwrap(), "haiku\n");
        assert_eq!(client.cat(&format!("{at}/transcript")).unwrap(), reply("haiku"));
        assert_eq!(client.cat("active/claude/50/agents/agent-b2/model").unwrap(), "");
        for name in ["Explore", "a1", "agent-d4", "Explore-a1/x", "Explore-a1/model/x"] {
            assert!(client.node(&format!("active/claude/50/agents/{name}")).is_err(), "{name}");
        }
        let node = client.node(&format!("{at}/transcript")).unwrap();
        world.remove(&format!("{below}/agent-a1.jsonl"));
        assert!(client.stat_node(&node).is_err() && client.node(at).is_err());
    });
}

#[test]
fn a_field_is_as_old_as_what_it_was_read_from() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        world.write(&transcript(S1), &(prompt("x") + &reply("m")));
        world.age("claude/sessions/50.json", 500);
        world.age(&transcript(S1), 300);
        let mut client = world.client();
        let started = (world.boot_s() + 50) as u32;
        let written = client.stat("active/claude/50/transcript").unwrap().mtime;
        let registered = written - 200;
        for (field, mtime) in [
            ("status", registered),
            ("name", registered),
            ("session", registered),
            ("via", registered),
            ("title", written),
            ("model", written),
            ("chat", written),
            ("pid", started),
            ("started", started),
            ("cwd", started),
            ("agents", started),
        ] {
            let record = client.stat(&format!("active/claude/50/{field}")).unwrap();
            // The two files were aged one after the other.
            assert!(record.mtime.abs_diff(mtime) <= 1, "{field}: {} {mtime}", record.mtime);
        }
    });
}

#[test]
fn change_is_seen_by_the_next_request() {
    on_both(|| {
        let world = world_with(&[50]);
        register(&world, 50, S1, "");
        world.write(&transcript(S1), &prompt("x"));
        let mut client = world.client();
        let status = client.stat("active/claude/50/status").unwrap();
        world.write("claude/sessions/50.json", &record(50, S1, "").replace("busy", "idle"));
        let now = client.stat("active/claude/50/status").unwrap();
        assert_eq!((status.length, now.length, status.qid.path), (5, 5, now.qid.path));
        assert_ne!(status.qid.version, now.qid.version);
        assert_eq!(client.field("claude", 50, "status"), "idle");
        world.append(&transcript(S1), "{\"type\":\"ai-title\",\"aiTitle\":\"New\"}\n");
        assert_eq!(client.field("claude", 50, "title"), "New");
        world.run(&Proc::new(70, "claude"));
        assert_eq!(client.ls("active/claude"), ["50", "70"]);
        assert!(!client.ls("active/claude/70").contains(&"status".into()));
        world.end(50);
        assert_eq!(client.ls("active/claude"), ["70"]);
        assert!(client.stat("active/claude/50").is_err());
    });
}
