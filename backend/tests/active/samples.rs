//! Recordings of real harnesses, laid out as their homes are: each resolves with the session, title and model that reading
//! all of it says.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::world::{Proc, World, on_both};

/// What is expected of a recording.
#[derive(Debug, Default, Eq, PartialEq)]
struct Expected {
    session: String,
    title: String,
    model: String,
}

#[test]
fn recordings_resolve() {
    let Some(samples) = std::env::var_os("NINEAGENTS_SAMPLES") else {
        eprintln!("SKIPPED: NINEAGENTS_SAMPLES names no directory of recordings");
        return;
    };
    let mut count = 0;
    for (harness, kind) in [("claude", "claude"), ("codex", "codex"), ("omp", "pi")] {
        let mut files: Vec<_> = fs::read_dir(Path::new(&samples).join(kind))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files {
            let content = fs::read(&file).unwrap();
            let records: Vec<Value> = content
                .split(|byte| *byte == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect();
            let expected = match harness {
                "claude" => claude(&records),
                "codex" => codex(&records),
                _ => pi(&records),
            };
            let Some(expected) = expected else { continue };
            on_both(|| {
                let got = resolve(harness, &content, &expected.session);
                println!(
                    "{}\n  expected {expected:?}\n  got      {got:?}",
                    file.file_name().unwrap().display()
                );
                assert_eq!(got, expected);
            });
            count += 1;
        }
    }
    assert!(count > 20, "{count} recordings");
}

fn resolve(harness: &str, content: &[u8], session: &str) -> Expected {
    let world = World::new();
    let mut proc = Proc::new(50, harness);
    match harness {
        "claude" => {
            world.write_bytes(&format!("claude/projects/-w/{session}.jsonl"), content);
            let record = format!("{{\"procStart\":\"5000\",\"sessionId\":\"{session}\",\"cwd\":\"/w\"}}");
            world.write("claude/sessions/50.json", &record);
        }
        "codex" => {
            let path = format!("codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-{session}.jsonl");
            world.write_bytes(&path, content);
            proc.fds = vec![(20, world.path(&path))];
        }
        _ => {
            let path = format!("omp/sessions/-w/2026-04-26T09-31-05-967Z_{session}.jsonl");
            world.write_bytes(&path, content);
            proc.fds = vec![(20, world.path(&path))];
        }
    }
    world.run(&proc);
    let mut client = world.client();
    let mut field = |name| client.field(harness, 50, name);
    Expected { session: field("session"), title: field("title"), model: field("model") }
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().map(str::to_owned)
}

fn first_line(text: &str) -> String {
    let line: String = text.trim_start().lines().next().unwrap_or_default().trim().chars().take(80).collect();
    line.trim().to_owned()
}

/// The first text of a message's content.
fn said(content: &Value) -> Option<String> {
    let of_block = |block: &Value| text(block, "/text");
    content.as_str().map(str::to_owned).or_else(|| content.as_array()?.iter().find_map(of_block))
}

/// `None` for a subagent's.
fn claude(records: &[Value]) -> Option<Expected> {
    if records.iter().any(|record| record["isSidechain"] == true) {
        return None;
    }
    let last = |kind: &str, pointer: &str| {
        records.iter().rev().find(|record| record["type"] == kind).and_then(|record| text(record, pointer))
    };
    let prompt = || {
        let of_person = records.iter().filter(|record| record["type"] == "user" && record["isMeta"] != true);
        let said = of_person.filter_map(|record| said(&record["message"]["content"])).next()?;
        Some(match said.split_once("<command-name>") {
            Some((_, rest)) => {
                let args = rest.split_once("<command-args>").map_or("", |(_, args)| args);
                let part = |text: &str| text.split("</").next().unwrap_or_default().to_owned();
                first_line(&format!("{} {}", part(rest), part(args)))
            }
            None => first_line(&said),
        })
    };
    let models = records.iter().rev().filter(|record| record["type"] == "assistant");
    Some(Expected {
        session: records.iter().find_map(|record| text(record, "/sessionId"))?,
        title: last("custom-title", "/customTitle")
            .or_else(|| last("ai-title", "/aiTitle"))
            .or_else(prompt)?,
        model: models
            .filter_map(|record| text(record, "/message/model"))
            .find(|model| model != "<synthetic>")
            .unwrap_or_default(),
    })
}

/// `None` for a subagent's.
fn codex(records: &[Value]) -> Option<Expected> {
    let meta = &records.first()?["payload"];
    if meta["source"]["subagent"].is_object() {
        return None;
    }
    let users = records.iter().filter(|record| record["payload"]["role"] == "user");
    let texts = users.flat_map(|record| record["payload"]["content"].as_array().into_iter().flatten());
    let title = texts
        .filter_map(|item| text(item, "/text"))
        .find(|said| !said.trim_start().starts_with(['<', '#']))
        .map(|said| first_line(&said))?;
    let turns = records.iter().rev().filter(|record| record["type"] == "turn_context");
    let model = turns.filter_map(|record| text(record, "/payload/model")).next().unwrap_or_default();
    Some(Expected { session: text(meta, "/id")?, title, model })
}

fn pi(records: &[Value]) -> Option<Expected> {
    let session = text(records.first()?, "/id")?;
    let of_role = |role: &'static str| records.iter().filter(move |record| record["message"]["role"] == role);
    let title = of_role("user")
        .find_map(|record| said(&record["message"]["content"]))
        .map(|said| first_line(&said))?;
    let model = of_role("assistant")
        .filter_map(|record| text(record, "/message/model"))
        .next_back()
        .unwrap_or_default();
    Some(Expected { session, title, model })
}
