//! dsh: compressed logs, and the directory a process works in.

use crate::world::{Proc, World, on_both};

const A: &str = "0f3f1a52-9f6e-4b77-8a49-0a51a2ab71b4";
const B: &str = "5e2b7c11-3a4d-4c5e-8f60-718293a4b5c6";

fn log(id: &str, name: &str) -> String {
    format!("dsh/sessions/--home-me-work--/session-{id}/{name}")
}

fn header(cwd: &str, more: &str) -> String {
    format!("{{\"type\":\"session\",\"version\":0,\"id\":\"x\",\"createdAt\":1,\"cwd\":\"{cwd}\"{more}}}\n")
}

fn user(text: &str, kind: &str) -> String {
    format!(
        "{{\"type\":\"user/message\",\"seq\":1,\"time\":1,\"data\":{{\"id\":\"u\",\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"source\":{{\"kind\":\"{kind}\"}}}}}}\n"
    )
}

fn assistant(model: &str) -> String {
    format!(
        "{{\"type\":\"assistant/message\",\"seq\":2,\"time\":2,\"data\":{{\"message\":{{\"content\":[],\"source\":{{\"model\":\"{model}\"}}}}}}}}\n"
    )
}

/// A frame for each part.
fn frames(parts: &[&str]) -> Vec<u8> {
    parts.iter().flat_map(|part| zstd::encode_all(part.as_bytes(), 3).unwrap()).collect()
}

fn dsh(pid: u32) -> Proc {
    Proc::new(pid, "node /usr/local/bin/dsh --profile tui")
}

#[test]
fn the_directory_it_works_in_has_its_session() {
    on_both(|| {
        let world = World::new();
        world.run(&dsh(10));
        let mut client = world.client();
        assert_eq!(client.ls("active/dsh"), ["10"]);
        assert_eq!(client.found("dsh", 10).0, "none");
        let own = log(A, "session.jsonl.zstd");
        let content = frames(&[
            &header("/home/me/work", ""),
            &(user("rules", "agent-instructions") + &user("mend the boat", "user")),
            &assistant("deepseek-v4"),
            &assistant("deepseek-v5"),
        ]);
        world.write_bytes(&own, &content);
        let child = log(B, "session.jsonl.zstd");
        world.write_bytes(&child, &frames(&[&header("/home/me/work", ",\"delegationDepth\":1")]));
        assert_eq!(client.found("dsh", 10), ("dir".into(), A.into()));
        assert_eq!(client.field("dsh", 10, "title"), "mend the boat");
        assert_eq!(client.field("dsh", 10, "model"), "deepseek-v5");
        assert_eq!(client.stat("active/dsh/10/transcript").unwrap().length, content.len() as u64);
        assert!(!client.ls("active/dsh/10").contains(&"agents".into()));
        // Begun elsewhere.
        world.write_bytes(&own, &frames(&[&header("/home/me/other", "")]));
        assert_eq!(client.found("dsh", 10).0, "none");
    });
}

#[test]
fn a_torn_last_frame_hides_nothing_before_it() {
    on_both(|| {
        let whole = frames(&[&header("/home/me/work", ""), &user("one", "user"), &assistant("a")]);
        let torn = frames(&[&assistant("b")]);
        for cut in 0..torn.len() {
            let world = World::new();
            world.run(&dsh(10));
            world.write_bytes(&log(A, "session.v4.jsonl.zstd"), &[&whole[..], &torn[..cut]].concat());
            let mut client = world.client();
            assert_eq!(client.field("dsh", 10, "session"), A, "{cut}");
            assert_eq!(client.field("dsh", 10, "title"), "one", "{cut}");
            let model = client.field("dsh", 10, "model");
            assert!(model == "a" || (model == "b" && cut + 8 > torn.len()), "{cut} {model}");
        }
    });
}

#[test]
fn a_log_may_be_plain_and_the_newest_of_its_generations_counts() {
    on_both(|| {
        let world = World::new();
        world.run(&dsh(10));
        world.write_aged(
            &log(A, "session.jsonl"),
            &(header("/home/me/work", "") + &user("old", "user") + &assistant("m0")),
            50,
        );
        let mut client = world.client();
        assert_eq!(client.field("dsh", 10, "title"), "old");
        assert_eq!(client.field("dsh", 10, "model"), "m0");
        world.write_bytes(
            &log(A, "session.v3.jsonl.zstd"),
            &frames(&[&header("/home/me/work", ""), &user("new", "user")]),
        );
        assert_eq!(client.found("dsh", 10), ("dir".into(), A.into()));
        assert_eq!(client.field("dsh", 10, "title"), "new");
    });
}

#[test]
fn the_log_it_holds_open_is_its_session_wherever_it_began() {
    on_both(|| {
        let world = World::new();
        let path = log(A, "session.jsonl.zstd");
        world.write_bytes(&path, &frames(&[&header("/elsewhere", "")]));
        let other = log(B, "session.jsonl.zstd");
        world.write_bytes(&other, &frames(&[&header("/home/me/work", "")]));
        world.run(&Proc { fds: vec![(20, world.path(&path))], ..dsh(10) });
        assert_eq!(world.client().found("dsh", 10), ("fd".into(), A.into()));
    });
}

#[test]
fn two_in_one_directory_are_told_apart_or_not_at_all() {
    on_both(|| {
        let world = World::new();
        world.run(&dsh(10));
        world.run(&dsh(11));
        let path = log(A, "session.jsonl.zstd");
        world.write_bytes(&path, &frames(&[&header("/home/me/work", "")]));
        let mut client = world.client();
        assert_eq!(client.ls("active/dsh"), ["10", "11"]);
        assert_eq!(client.found("dsh", 10).0, "none");
        world.run(&Proc { fds: vec![(20, world.path(&path))], ..dsh(11) });
        assert_eq!((client.found("dsh", 10).0.as_str(), client.found("dsh", 11).0.as_str()), ("none", "fd"));
        world.end(11);
        assert_eq!(client.found("dsh", 10), ("dir".into(), A.into()));
    });
}

#[test]
fn one_that_a_daemon_does_not_list_is_a_rival_all_the_same() {
    on_both(|| {
        let world = World::new();
        world.run(&dsh(10));
        world.run(&dsh(11));
        world.run(&Proc { ppid: 11, ..Proc::new(world.me(), "9agents") });
        world.write_bytes(&log(A, "session.jsonl.zstd"), &frames(&[&header("/home/me/work", "")]));
        let mut client = world.client();
        assert_eq!(client.ls("active/dsh"), ["10"]);
        assert_eq!(client.found("dsh", 10).0, "none");
    });
}

#[test]
fn what_is_no_log_is_nothing() {
    on_both(|| {
        for content in [
            &b""[..],
            b"not zstd at all\n",
            &zstd::encode_all(&b"{\"type\":\"other\",\"cwd\":\"/home/me/work\"}\n"[..], 3).unwrap(),
            &zstd::encode_all(&b"{\"type\":\"session\",\"cwd\":\"/home/me/work\"}"[..], 3).unwrap(),
            &[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff, 0xff],
            &[0x28, 0xb5, 0x2f, 0xfd],
        ] {
            let world = World::new();
            world.run(&dsh(10));
            world.write_bytes(&log(A, "session.jsonl.zstd"), content);
            assert_eq!(world.client().found("dsh", 10).0, "none", "{content:?}");
        }
    });
}

#[test]
fn the_last_model_of_a_large_log_is_found_from_its_end() {
    on_both(|| {
        let world = World::new();
        world.run(&dsh(10));
        // Hard to compress, so that most of it lies before the part that is looked at first.
        let mut seed = 1_u64;
        let noise: String = (0..3_000_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'a' + (seed >> 59) as u8 % 26)
            })
            .collect();
        let body: Vec<String> = noise
            .as_bytes()
            .chunks(100_000)
            .map(|chunk| user(str::from_utf8(chunk).unwrap(), "user"))
            .collect();
        let mut parts = vec![header("/home/me/work", ""), assistant("first")];
        parts.extend(body);
        parts.push(assistant("last"));
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        world.write_bytes(&log(A, "session.jsonl.zstd"), &frames(&parts));
        let mut client = world.client();
        assert_eq!(client.field("dsh", 10, "model"), "last");
        let without: Vec<&str> = parts[..parts.len() - 1].to_vec();
        world.write_bytes(&log(A, "session.jsonl.zstd"), &frames(&without));
        assert_eq!(client.field("dsh", 10, "model"), "first");
    });
}
