//! What stands in the place of a file that a harness's records are read from: a fifo, a link to the very file, a directory. It
//! counts as nothing at all, and nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{Holds, Proc, World, on_both};

const SESSION: &str = "11111111-1111-4111-8111-111111111111";
const NEXT: &str = "22222222-2222-4222-8222-222222222222";
const THREAD: &str = "019f624a-cc95-7c50-b9fa-1db381270b73";
const CHILD: &str = "019f624b-cc95-7c50-b9fa-1db381270b74";
const BASE: &str = "019f6249-cc95-7c50-b9fa-1db381270b74";
const DAY: &str = "codex/sessions/2026/07/14";
const OMP: &str = "omp/sessions/-work/2026-11-02T10-00-00-000Z_019dc920d76e";
const LOG: &str = "dsh/sessions/--home-me-work--/session-0f3f1a52-9f6e-4b77-8a49-0a51a2ab71b4/session.jsonl";

/// A machine with one agent, and where that is.
type Machine = (World, &'static str);

const MACHINES: &[fn() -> Machine] = &[
    claude,
    claude_cleared,
    codex_by_descriptor,
    codex_by_lock,
    omp_by_terminal,
    omp_by_directory,
    hermes,
    dsh,
];

fn claude() -> Machine {
    let world = World::new();
    world.run(&Proc::new(50, "claude"));
    let record = format!(
        "{{\"procStart\":\"5000\",\"sessionId\":\"{SESSION}\",\"status\":\"busy\",\"name\":\"otter\"}}"
    );
    world.write("claude/sessions/50.json", &record);
    let project = "claude/projects/-home-me-work";
    world.write(
        &format!("{project}/{SESSION}.jsonl"),
        "{\"type\":\"user\",\"message\":{\"content\":\"hi\"}}\n{\"type\":\"assistant\",\"message\":{\"model\":\"m\",\"content\":\"ho\"}}\n",
    );
    world.write(&format!("{project}/{SESSION}/subagents/agent-a1.jsonl"), "");
    world.write(&format!("{project}/{SESSION}/subagents/agent-a1.meta.json"), "{\"agentType\":\"Plan\"}");
    (world, "claude/50")
}

fn claude_cleared() -> Machine {
    let (world, at) = claude();
    let project = "claude/projects/-home-me-work";
    world.age(&format!("{project}/{SESSION}.jsonl"), 100);
    world.write(
        &format!("{project}/{NEXT}.jsonl"),
        "{\"type\":\"user\",\"message\":{\"content\":\"<command-name>/clear</command-name>\"}}\n",
    );
    (world, at)
}

fn rollout(id: &str, more: &str) -> String {
    format!(
        "{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\"source\":\"cli\"{more}}}}}\n\
         {{\"type\":\"turn_context\",\"payload\":{{\"model\":\"m-{id}\"}}}}\n\
         {{\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\"role\":\"user\",\"content\":\"in {id}\"}}}}\n"
    )
}

fn codex_by_descriptor() -> Machine {
    let world = World::new();
    let base = rollout(BASE, "");
    world.write_bytes(
        &format!("codex/archived_sessions/rollout-2026-07-14T20-20-00-{BASE}.jsonl.zst"),
        &zstd::encode_all(base.as_bytes(), 1).unwrap(),
    );
    let own = format!("{DAY}/rollout-2026-07-14T20-21-37-{THREAD}.jsonl");
    let from = format!(
        ",\"history_base\":{{\"thread_id\":\"{BASE}\",\"end_ordinal_exclusive\":2,\"end_byte_offset\":{}}}",
        base.len()
    );
    world.write(&own, &rollout(THREAD, &from));
    let child = format!(",\"parent_thread_id\":\"{THREAD}\",\"agent_nickname\":\"Hopper\"");
    world.write(&format!("{DAY}/rollout-2026-07-14T20-22-00-{CHILD}.jsonl"), &rollout(CHILD, &child));
    world.write("codex/session_index.jsonl", &format!("{{\"id\":\"{THREAD}\",\"thread_name\":\"CI\"}}\n"));
    world.run(&Proc { fds: vec![(20, world.path(&own))], ..Proc::new(40, "codex") });
    (world, "codex/40")
}

fn codex_by_lock() -> Machine {
    let (world, at) = codex_by_descriptor();
    world.run(&Proc::new(40, "codex"));
    world.locks(&[(40, &format!("codex/thread-writer-locks/{THREAD}.lock"), Holds::Write)]);
    world.run(&Proc::new(40, "codex"));
    world.locks(&[(40, &format!("codex/thread-writer-locks/{THREAD}.lock"), Holds::Write)]);
    (world, at)
}

fn omp() -> World {
    let world = World::new();
    let lines = "{\"type\":\"session\",\"cwd\":\"/home/me/work\",\"title\":\"T\"}\n\
                 {\"type\":\"message\",\"message\":{\"role\":\"assistant\",\"model\":\"m\",\"content\":[]}}\n";
    world.write(&format!("{OMP}.jsonl"), lines);
    world.write(&format!("{OMP}/Explore.jsonl"), lines);
    world
}

fn omp_by_terminal() -> Machine {
    let world = omp();
    world.write("omp/terminal-sessions/pts-3", &format!("/x\n{}.jsonl\n", world.path(OMP)));
    let (fds, cwd) = (vec![(0, "/dev/pts/3".into())], "/elsewhere".into());
    world.run(&Proc { fds, cwd, ..Proc::new(30, "omp") });
    (world, "omp/30")
}

fn omp_by_directory() -> Machine {
    let world = omp();
    world.run(&Proc::new(30, "omp"));
    (world, "omp/30")
}

fn hermes() -> Machine {
    let world = World::new();
    world.run(&Proc::new(20, "python3 /v/bin/hermes"));
    let began_s = world.boot_s() + 20;
    let entry = format!("{{\"session_id\":\"abc\",\"pid\":20,\"process_start_time\":{began_s}}}");
    world.write("hermes/runtime/active_sessions.json", &format!("{{\"entries\":[{entry}]}}"));
    (world, "hermes/20")
}

fn dsh() -> Machine {
    let world = World::new();
    world.run(&Proc::new(10, "node /x/bin/dsh"));
    let lines = "{\"type\":\"session\",\"cwd\":\"/home/me/work\"}\n\
                 {\"type\":\"user/message\",\"data\":{\"content\":\"hi\",\"source\":{\"kind\":\"user\"}}}\n";
    world.write(LOG, lines);
    (world, "dsh/10")
}

/// All there is of an agent, and the files of its harness that were looked into on the way.
fn all(world: &World, at: &str) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (mut client, traced) = world.traced();
    let mut told = BTreeMap::new();
    let mut dirs = vec![format!("active/{at}")];
    while let Some(dir) = dirs.pop() {
        let Ok(listed) = client.list(&dir) else {
            told.insert(dir, "refused".into());
            continue;
        };
        for record in listed {
            let path = format!("{dir}/{}", record.name);
            if record.mode >> 31 == 1 {
                dirs.push(path);
                continue;
            }
            let text = client.cat(&path).unwrap_or_else(|refusal| format!("{refusal:?}"));
            assert_eq!(text.len() as u64, record.length, "{path}: {text}");
            told.insert(path, text);
        }
    }
    let root = at.split('/').next().unwrap();
    let opened = traced.take_lines().into_iter().filter_map(|line| {
        let path = line.strip_prefix("Open ")?.split(' ').next()?.to_owned();
        path.starts_with(&format!("{root}/")).then_some(path)
    });
    (told, opened.collect())
}

#[test]
fn what_is_no_file_of_its_own_is_as_good_as_none() {
    on_both(|| {
        for machine in MACHINES {
            let (world, at) = machine();
            let (told, read) = all(&world, at);
            let via = &told[&format!("active/{at}/via")];
            assert_ne!(via, "none\n");
            assert!(!read.is_empty(), "{at}");
            for file in &read {
                let (world, _) = &machine();
                world.rename(file, "away/file");
                let without = all(world, at).0;
                assert_ne!(without, told, "{at} {file} makes no difference");
                world.fifo(file);
                assert_eq!(all(world, at).0, without, "{at}: a fifo for {file}");
                world.remove(file);
                world.link(file, &world.path("away/file"));
                assert_eq!(all(world, at).0, without, "{at}: a link for {file}");
                world.remove(file);
                world.write(&format!("{file}/x"), "");
                assert_eq!(all(world, at).0, without, "{at}: a directory for {file}");
            }
        }
    });
}

#[test]
fn no_directory_is_reached_by_a_link() {
    on_both(|| {
        for machine in MACHINES {
            let (world, at) = machine();
            let (_, read) = all(&world, at);
            let dirs: BTreeSet<&str> = read
                .iter()
                .flat_map(|file| file.match_indices('/').skip(1).map(|(end, _)| &file[..end]))
                .collect();
            assert!(!dirs.is_empty());
            for dir in dirs {
                let (world, _) = &machine();
                world.rename(dir, "away/dir");
                let without = all(world, at).0;
                world.link(dir, &world.path("away/dir"));
                assert_eq!(all(world, at).0, without, "{at}: a link for {dir}");
            }
        }
    });
}
