//! `agents/`: who is in it, and what looking at one costs.

use proto::Refusal;

use crate::world::{Proc, World, files_only, on_both};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";
const PROJECT: &str = "claude/projects/-home-me-work";
const PARENT: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
const CHILDREN: [&str; 3] = [
    "019f624b-cc95-7c50-b9fa-1db381270b74",
    "019f624b-cc95-7c50-b9fa-1db381270b75",
    "5e2b7c11-3a4d-4c5e-8f60-718293a4b5c6",
];
const DAY: &str = "codex/sessions/2026/07/14";
const OMP: &str = "omp/sessions/-work/2026-07-14T20-21-37-000Z_019dc920d76e";

fn below(path: &str) -> String {
    format!("{PROJECT}/{SESSION}/subagents/{path}")
}

fn kind(kind: &str) -> String {
    format!("{{\"agentType\":\"{kind}\"}}")
}

/// A Claude Code in a session.
fn claude() -> World {
    let world = World::new();
    world.run(&Proc::new(50, "claude"));
    let record = format!("{{\"procStart\":\"5000\",\"sessionId\":\"{SESSION}\",\"cwd\":\"/home/me/work\"}}");
    world.write("claude/sessions/50.json", &record);
    world.write(&format!("{PROJECT}/{SESSION}.jsonl"), "");
    world
}

/// A codex in a thread that has three others.
fn codex() -> World {
    let world = World::new();
    let own = format!("{DAY}/rollout-2026-07-14T20-21-37-{PARENT}.jsonl");
    world.write(&own, &format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{PARENT}\"}}}}\n"));
    world.run(&Proc { fds: vec![(20, world.path(&own))], ..Proc::new(40, "codex") });
    for (id, name) in CHILDREN.iter().zip(["Hopper", "Noether", "Hopper"]) {
        let meta = format!(
            "{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"parent_thread_id\":\"{PARENT}\",\"agent_nickname\":\"{name}\"}}}}\n"
        );
        world.write(&format!("{DAY}/rollout-2026-07-14T20-22-00-{id}.jsonl"), &meta);
    }
    world
}

/// An omp in a session that has three others.
fn omp() -> World {
    let world = World::new();
    let own = format!("{OMP}.jsonl");
    world.write(&own, "{\"type\":\"session\",\"cwd\":\"/home/me/work\"}\n");
    world.run(&Proc { fds: vec![(20, world.path(&own))], ..Proc::new(30, "omp") });
    for name in ["Explore", "Review", "Review-2"] {
        world.write(&format!("{OMP}/{name}.jsonl"), "");
    }
    world
}

#[test]
fn they_are_found_in_any_directory_below_and_as_deep_as_is_told() {
    on_both(|| {
        let world = claude();
        for (path, of) in [
            ("agent-a.jsonl", "x"),
            ("workflows/run.2026-07/agent-b.jsonl", "y"),
            ("workflows/wf_1/deeper/still/agent-c.jsonl", "z"),
        ] {
            world.write(&below(path), "");
            world.write(&below(&path.replace(".jsonl", ".meta.json")), &kind(of));
        }
        world.write(&below("workflows/wf_1/agent-d.jsonl/agent-e.jsonl"), "");
        world.fifo(&below("workflows/wf_1/agent-f.jsonl"));
        let mut client = world.client();
        assert_eq!(client.ls("active/claude/50/agents"), ["x-a", "y-b", "z-c"]);
        let deep = format!("{}agent-g.jsonl", "d/".repeat(15));
        world.write(&below(&deep), "");
        assert_eq!(client.ls("active/claude/50/agents"), ["agent-g", "x-a", "y-b", "z-c"]);
        // Deeper than that, it would be missing and nobody would know.
        world.write(&below(&format!("d/{deep}")), "");
        assert_eq!(client.list("active/claude/50/agents"), Err(Refusal::TOO_MANY_SUBAGENTS));
    });
}

#[test]
fn looking_at_one_reads_no_record_of_another() {
    on_both(|| {
        let with_three = claude();
        for (id, of) in [("a1", "Explore"), ("b2", "Explore"), ("c3", "Plan")] {
            with_three.write(&below(&format!("agent-{id}.jsonl")), "");
            with_three.write(&below(&format!("agent-{id}.meta.json")), &kind(of));
        }
        for (world, at) in [(with_three, "claude/50"), (codex(), "codex/40"), (omp(), "omp/30")] {
            let (mut client, traced) = world.traced();
            let listed = client.ls(&format!("active/{at}/agents"));
            assert_eq!(listed.len(), 3, "{at}");
            // What is in the names of its files: all but what kind of agent it is.
            let id = |name: &str| match at {
                "omp/30" => format!("/{name}."),
                _ => format!("-{}.", name.split_once('-').unwrap().1),
            };
            for name in &listed {
                _ = traced.take_lines();
                let node = client.node(&format!("active/{at}/agents/{name}/transcript")).unwrap();
                let asked = traced.take_lines();
                assert!(asked.iter().any(|line| line.contains(&id(name))), "{name}");
                for other in listed.iter().filter(|other| *other != name) {
                    assert_eq!(asked.iter().find(|line| line.contains(&id(other))), None, "{name}");
                }
                assert_eq!(client.stat_node(&node).unwrap().name, "transcript");
            }
            for none in ["Explore", "a1", "b2", "Hopper", "Plan-a1", "x", CHILDREN[0], "Review-", ""] {
                let path = format!("active/{at}/agents/{none}/model");
                assert!(listed.iter().any(|name| name == none) || client.node(&path).is_err(), "{path}");
            }
        }
    });
}

#[test]
fn a_name_leads_to_its_own_transcript() {
    on_both(|| {
        let world = claude();
        // One is `a-1` of the type `x`, the other `1` of the type `x-a`: of the two of one name the first counts.
        for (id, of) in [("a-1", "x"), ("1", "x-a"), ("2", "x-a")] {
            world.write(&below(&format!("agent-{id}.jsonl")), &format!("{id}\n"));
            world.write(&below(&format!("agent-{id}.meta.json")), &kind(of));
        }
        let mut client = world.client();
        assert_eq!(client.ls("active/claude/50/agents"), ["x-a-1", "x-a-2"]);
        assert_eq!(client.cat("active/claude/50/agents/x-a-1/transcript").unwrap(), "1\n");
        assert_eq!(client.cat("active/claude/50/agents/x-a-2/transcript").unwrap(), "2\n");
    });
}

#[test]
fn what_all_listings_take_is_bounded() {
    on_both(|| {
        let world = claude();
        if files_only(&world).is_some() {
            // The bound is the same, and files take their time.
            return;
        }
        for number in 0..1000 {
            world.write(&below(&format!("agent-{number:064}.jsonl")), "");
        }
        let mut client = world.client();
        let node = client.node("active/claude/50/agents").unwrap();
        let mut held = Vec::new();
        let refusal = loop {
            match client.begin_list(&node) {
                Ok((.., open)) => held.push(open),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refusal, Refusal::LISTINGS_TOO_LARGE);
        // Each entry has two names of some 70 bytes, and a path.
        assert!((100..1000).contains(&held.len()), "{}", held.len());
        held.pop();
        assert!(client.begin_list(&node).is_ok());
    });
}
