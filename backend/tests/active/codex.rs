//! Codex: rollouts held open, locks, and what rollouts say.

use crate::world::{Holds, Proc, World, on_both};

const T1: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
const T2: &str = "019f624b-cc95-7c50-b9fa-1db381270b74";
const V4: &str = "5e2b7c11-3a4d-4c5e-8f60-718293a4b5c6";
const DAY: &str = "codex/sessions/2026/07/14";

fn rollout(time: &str, id: &str) -> String {
    format!("{DAY}/rollout-2026-07-14T{time}-{id}.jsonl")
}

fn meta(id: &str, more: &str) -> String {
    format!(
        "{{\"timestamp\":\"x\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"cwd\":\"/w\",\"source\":\"cli\"{more}}}}}\n"
    )
}

fn turn(model: &str) -> String {
    format!("{{\"type\":\"turn_context\",\"payload\":{{\"model\":\"{model}\"}}}}\n")
}

fn said(text: &str) -> String {
    format!(
        "{{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

/// A codex that holds these files of the machine open.
fn holding(world: &World, pid: u32, paths: &[&str]) -> Proc {
    let fd = |(number, path): (usize, &&str)| (number as u32 + 20, world.path(path));
    Proc { fds: paths.iter().enumerate().map(fd).collect(), ..Proc::new(pid, "codex") }
}

fn lock(world: &World, holders: &[(u32, &str)]) {
    let paths: Vec<String> = holders.iter().map(|(_, id)| lock_of(id)).collect();
    let locks = holders.iter().zip(&paths).map(|((pid, _), path)| (*pid, path.as_str(), Holds::Write));
    world.locks(&locks.collect::<Vec<_>>());
}

fn lock_of(id: &str) -> String {
    format!("codex/thread-writer-locks/{id}.lock")
}

#[test]
fn the_rollout_it_holds_open_is_its_thread() {
    on_both(|| {
        let world = World::new();
        let path = rollout("20-21-37", T1);
        world.write(
            &path,
            &(meta(T1, "")
                + &turn("gpt-5")
                + &said("# AGENTS.md instructions x")
                + &said("why is CI red?")
                + &turn("gpt-6")),
        );
        world.run(&holding(&world, 40, &[&path]));
        let mut client = world.client();
        assert_eq!(client.ls("active/codex"), ["40"]);
        assert_eq!(client.found("codex", 40), ("fd".into(), T1.into()));
        assert_eq!(client.field("codex", 40, "model"), "gpt-6");
        assert_eq!(client.field("codex", 40, "title"), "why is CI red?");
        assert_eq!(client.field("codex", 40, "name"), "work");
        world.write("codex/session_index.jsonl", &format!("{{\"id\":\"{T1}\",\"thread_name\":\"Old\"}}\n{{\"id\":\"{T1}\",\"thread_name\":\"CI\"}}\n{{\"id\":\"{T2}\",\"thread_name\":\"Other\"}}\n"));
        assert_eq!(client.field("codex", 40, "title"), "CI");
        assert!(!client.ls("active/codex/40").contains(&"status".into()));
        assert!(client.cat("active/codex/40/transcript").unwrap().contains("CI red"));
    });
}

#[test]
fn a_thread_that_was_taken_back_keeps_its_id() {
    on_both(|| {
        let world = World::new();
        let path = rollout("20-21-37", &format!("{T1}_{V4}"));
        world.write(&path, &meta(T1, ""));
        world.run(&holding(&world, 40, &[&path]));
        assert_eq!(world.client().found("codex", 40), ("fd".into(), T1.into()));
    });
}

#[test]
fn of_several_rollouts_the_subagents_are_not_its_thread() {
    on_both(|| {
        let world = World::new();
        let (own, of_child) = (rollout("20-21-37", T1), rollout("20-21-42", T2));
        world.write(&own, &meta(T1, ""));
        for child in [format!(",\"parent_thread_id\":\"{T1}\""), ",\"thread_source\":\"subagent\"".into()] {
            world.write(&of_child, &(meta(T2, &child) + &meta(T1, "")));
            world.run(&holding(&world, 40, &[&of_child, &own]));
            assert_eq!(world.client().found("codex", 40), ("fd".into(), T1.into()));
            world.run(&holding(&world, 40, &[&of_child]));
            assert_eq!(world.client().found("codex", 40).0, "none");
        }
        // One that has no record yet is believed alone.
        world.write(&own, "{\"type\":\"session_me");
        world.run(&holding(&world, 40, &[&own]));
        assert_eq!(world.client().found("codex", 40), ("fd".into(), T1.into()));
        world.write(&of_child, "");
        world.run(&holding(&world, 40, &[&own, &of_child]));
        assert_eq!(world.client().found("codex", 40).0, "none");
    });
}

#[test]
fn what_a_descriptor_says_is_believed_of_the_same_file_only() {
    on_both(|| {
        let world = World::new();
        let path = rollout("20-21-37", T1);
        world.write(&path, &meta(T1, ""));
        // The same names in another home, as another mount namespace may show them.
        let other = format!("elsewhere/.codex/{}", path.strip_prefix("codex/").unwrap());
        world.write(&other, &meta(T1, ""));
        world.run(&holding(&world, 40, &[&other]));
        assert_eq!(world.client().found("codex", 40).0, "none");
        world.remove(&other);
        world.hard_link(&path, &other);
        world.run(&holding(&world, 40, &[&other]));
        assert_eq!(world.client().found("codex", 40), ("fd".into(), T1.into()));
        let mut gone = holding(&world, 40, &[]);
        gone.fds = vec![(3, format!("{} (deleted)", world.path(&path)))];
        world.run(&gone);
        assert_eq!(world.client().found("codex", 40).0, "none");
    });
}

#[test]
fn the_lock_it_holds_is_its_thread() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(40, "codex"));
        world.run(&Proc::new(41, "codex"));
        lock(&world, &[(40, T1), (99, T2)]);
        world.write("codex/thread-writer-locks/.coordination.lock", "");
        let mut client = world.client();
        assert_eq!(client.found("codex", 40), ("lock".into(), T1.into()), "before the first turn");
        assert!(client.cat("active/codex/40/transcript").is_err());
        assert_eq!(client.found("codex", 41).0, "none");
        world.write(&rollout("20-21-37", T1), &meta(T1, ""));
        world.write(&rollout("21-00-00", &format!("{T1}_{V4}")), &(meta(T1, "") + &turn("gpt-7")));
        assert_eq!(client.found("codex", 40), ("lock".into(), T1.into()));
        assert_eq!(client.field("codex", 40, "model"), "gpt-7");
    });
}

#[test]
fn one_that_waits_or_only_reads_holds_nothing() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(40, "codex"));
        for (pid, holds) in
            [(40, Holds::Read), (40, Holds::Not), (40, Holds::Posix), (4, Holds::Write), (400, Holds::Write)]
        {
            world.locks(&[(pid, &lock_of(T1), holds)]);
            assert_eq!(world.client().found("codex", 40).0, "none", "{pid} {holds:?}");
        }
    });
}

#[test]
fn a_rollout_is_found_a_day_off_and_an_old_id_by_search() {
    on_both(|| {
        for (day, id) in [("2026/07/13", T1), ("2026/07/15", T1), ("2025/01/02", V4), ("2020/02/02", T1)] {
            let world = World::new();
            world.run(&Proc::new(40, "codex"));
            lock(&world, &[(40, id)]);
            world.write(
                &format!("codex/sessions/{day}/rollout-2026-07-14T00-00-00-{id}.jsonl"),
                &(meta(id, "") + &turn("m")),
            );
            let mut client = world.client();
            assert_eq!(client.found("codex", 40), ("lock".into(), id.into()));
            assert_eq!(client.field("codex", 40, "model"), "m", "{day} {id}");
        }
    });
}

#[test]
fn of_several_locks_a_subagents_is_not_its_thread() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(40, "codex"));
        lock(&world, &[(40, T1), (40, T2)]);
        let mut client = world.client();
        assert_eq!(client.found("codex", 40).0, "none", "two, and nothing tells them apart");
        world.write(&rollout("20-21-37", T1), &meta(T1, ""));
        world.write(&rollout("20-21-42", T2), &meta(T2, ",\"source\":{\"subagent\":\"review\"}"));
        assert_eq!(client.found("codex", 40), ("lock".into(), T1.into()));
        world.write(&rollout("20-21-42", T2), "not json\n");
        assert_eq!(client.found("codex", 40), ("lock".into(), T1.into()));
        // However long the first record is, the second is another.
        for long in [2 << 20, 5 << 20] {
            let more = format!(",\"source\":{{\"subagent\":\"review\"}},\"tools\":\"{}\"", "x".repeat(long));
            world.write(&rollout("20-21-42", T2), &(meta(T2, &more) + &meta(T1, "")));
            assert_eq!(client.found("codex", 40), ("lock".into(), T1.into()));
        }
        world.write(&rollout("20-21-42", T2), &meta(T2, ""));
        assert_eq!(client.found("codex", 40), ("lock".into(), T2.into()), "the newest");
    });
}

#[test]
fn two_in_one_directory_are_told_apart_or_not_at_all() {
    on_both(|| {
        let world = World::new();
        world.write(&rollout("20-21-37", T1), &meta(T1, ""));
        world.run(&Proc::new(40, "codex"));
        world.run(&Proc::new(41, "codex"));
        let mut client = world.client();
        for pid in [40, 41] {
            assert_eq!(client.found("codex", pid).0, "none");
        }
    });
}

#[test]
fn a_wrapper_lists_only_without_its_native_child() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(40, "node /usr/bin/codex"));
        let mut client = world.client();
        assert_eq!(client.ls("active/codex"), ["40"]);
        world.run(&Proc { ppid: 40, ..Proc::new(41, "/n/vendor/x86_64-unknown-linux-musl/bin/codex") });
        assert_eq!(client.ls("active/codex"), ["41"]);
        world.end(41);
        assert_eq!(client.ls("active/codex"), ["40"]);
    });
}

#[test]
fn subagents_are_the_threads_whose_parent_is_this_one() {
    on_both(|| {
        let world = World::new();
        let path = rollout("20-21-37", T1);
        world.write(&path, &meta(T1, ""));
        world.run(&holding(&world, 40, &[&path]));
        let spawned = format!(",\"session_id\":\"{T1}\",\"thread_source\":\"subagent\",\"source\":{{\"subagent\":{{\"thread_spawn\":{{\"parent_thread_id\":\"{T1}\",\"agent_nickname\":\"Hopper\"}}}}}}").replace(",\"source\"", ",\"source\"");
        world.write(
        "codex/sessions/2026/07/16/rollout-2026-07-16T00-00-00-019f624b-cc95-7c50-b9fa-1db381270b74.jsonl",
        &(format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{T2}\"{spawned}}}}}\n")
            + &turn("gpt-mini")),
    );
        world.write(&rollout("23-00-00", V4), &meta(V4, &format!(",\"forked_from_id\":\"{T1}\"")));
        let mut client = world.client();
        let name = format!("Hopper-{T2}");
        assert_eq!(client.ls("active/codex/40/agents"), std::slice::from_ref(&name));
        assert_eq!(client.cat(&format!("active/codex/40/agents/{name}/model")).unwrap(), "gpt-mini\n");
        assert!(client.cat(&format!("active/codex/40/agents/{name}/transcript")).unwrap().contains("Hopper"));
    });
}

#[test]
fn a_damaged_descriptor_table_leaves_the_lock() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(40, "codex"));
        lock(&world, &[(40, T1)]);
        for refuses in ["fd", "cwd", "environ", "exe"] {
            let exe = "/opt/codex".into();
            world.run(&Proc { refuses, exe, ..Proc::new(40, "codex") });
            lock(&world, &[(40, T1)]);
            assert_eq!(world.client().found("codex", 40), ("lock".into(), T1.into()), "{refuses}");
            assert_eq!(world.client().field("codex", 40, "cwd").is_empty(), refuses == "cwd");
        }
    });
}
