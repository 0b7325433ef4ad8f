//! omp: transcripts held open, breadcrumbs of terminals, directories.

use crate::world::{Proc, World, on_both};

const A: &str = "2026-11-02T10-00-00-000Z_019dc920d76e";
const B: &str = "2026-11-02T11-00-00-000Z_019dc920d76f";
const DIR: &str = "omp/sessions/-work";

fn file(stem: &str) -> String {
    format!("{DIR}/{stem}.jsonl")
}

fn header(cwd: &str) -> String {
    format!("{{\"type\":\"session\",\"version\":3,\"id\":\"x\",\"cwd\":\"{cwd}\"}}\n")
}

/// The rewritable first line: 256 bytes.
fn slot(title: &str) -> String {
    let head = format!("{{\"type\":\"title\",\"v\":1,\"title\":\"{title}\",\"pad\":\"");
    format!("{head}{}\"}}\n", " ".repeat(256 - head.len() - 3))
}

fn said(role: &str, text: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"message\":{{\"role\":\"{role}\",\"model\":\"m-{text}\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

fn with_fds(world: &World, pid: u32, fds: &[(u32, &str)]) -> Proc {
    let absolute = |path: &str| if path.starts_with('/') { path.into() } else { world.path(path) };
    Proc { fds: fds.iter().map(|(n, path)| (*n, absolute(path))).collect(), ..Proc::new(pid, "bun /x/omp") }
}

#[test]
fn the_newest_transcript_it_holds_open_is_its_session() {
    on_both(|| {
        let world = World::new();
        let (a, b) = (file(A), file(B));
        let child = format!("{DIR}/{B}/Explore.jsonl");
        world.write_aged(
            &a,
            &(slot("Mend it") + &header("/elsewhere") + &said("user", "hi") + &said("assistant", "x")),
            9,
        );
        world.write_aged(&b, &header("/elsewhere"), 99);
        world.write(&child, &header("/elsewhere"));
        world.run(&with_fds(&world, 30, &[(9, &b), (11, &a), (12, &child)]));
        let mut client = world.client();
        assert_eq!(client.ls("active/omp"), ["30"]);
        assert_eq!(client.found("omp", 30), ("fd".into(), "019dc920d76e".into()));
        assert_eq!(client.field("omp", 30, "title"), "Mend it");
        assert_eq!(client.field("omp", 30, "model"), "m-x");
        assert!(client.cat("active/omp/30/transcript").unwrap().starts_with("{\"type\":\"title\""));
        world.age(&b, 0);
        assert_eq!(client.field("omp", 30, "session"), "019dc920d76f");
        assert_eq!(client.ls("active/omp/30/agents"), ["Explore"]);
        // A subagent's alone is nobody's session.
        world.run(&with_fds(&world, 30, &[(12, &child)]));
        assert_eq!(client.found("omp", 30).0, "none");
    });
}

#[test]
fn the_breadcrumb_of_its_terminal_names_its_session() {
    on_both(|| {
        let world = World::new();
        world.write(&file(A), &header("/elsewhere"));
        world.run(&with_fds(&world, 30, &[(0, "/dev/pts/3"), (1, "/dev/pts/3")]));
        let mut client = world.client();
        assert_eq!(client.found("omp", 30).0, "none");
        let crumb = |path: &str| format!("/elsewhere\n{path}\ncwdstat 1 2\n");
        let path = world.path(&file(A));
        world.write("omp/terminal-sessions/pts-3", &crumb(&path));
        assert_eq!(client.found("omp", 30), ("tty".into(), "019dc920d76e".into()));
        for wrong in [
            crumb("/etc/passwd"),
            crumb(&path.replace("-work", "../codex/x")),
            crumb(&path.replace("-work", "..")),
            crumb(&path.replace(A, B)),
            format!("{path}\n"),
            String::new(),
        ] {
            world.write("omp/terminal-sessions/pts-3", &wrong);
            assert_eq!(client.found("omp", 30).0, "none", "{wrong}");
        }
        // Another terminal's is not ours, and a link is nobody's.
        world.write("omp/terminal-sessions/pts-33", &crumb(&path));
        world.link("omp/terminal-sessions/pts-3", "pts-33");
        assert_eq!(client.found("omp", 30).0, "none");
    });
}

#[test]
fn the_directory_it_works_in_has_its_session_by_three_names() {
    on_both(|| {
        let directories = [
            "-work",
            "-me-work",
            "-tmp-work",
            "--home-me-work--",
            "home-work-00112233445566778899aabbccddeeff",
            "abs-work-0011223344556677",
        ];
        for directory in directories {
            let world = World::new();
            world.run(&Proc::new(30, "omp"));
            let at = |stem: &str| format!("omp/sessions/{directory}/{stem}.jsonl");
            world.write_aged(&at(A), &(slot("Here") + &header("/home/me/work")), 50);
            world.write_aged(&at(B), &header("/home/other/work"), 10);
            let mut client = world.client();
            assert_eq!(client.found("omp", 30), ("dir".into(), "019dc920d76e".into()), "{directory}");
            assert_eq!(client.field("omp", 30, "title"), "Here");
        }
        for directory in ["-other", "--work--", "home-other-0011223344556677", "home-work-xyz"] {
            let world = World::new();
            world.run(&Proc::new(30, "omp"));
            world.write(&format!("omp/sessions/{directory}/{A}.jsonl"), &header("/home/me/work"));
            assert_eq!(world.client().found("omp", 30).0, "none", "{directory}");
        }
    });
}

#[test]
fn two_in_one_directory_are_told_apart_or_not_at_all() {
    on_both(|| {
        let world = World::new();
        world.write_aged(&file(A), &header("/home/me/work"), 50);
        world.write_aged(&file(B), &header("/home/me/work"), 10);
        world.run(&Proc::new(30, "omp"));
        world.run(&Proc::new(31, "omp"));
        let mut client = world.client();
        assert_eq!(client.ls("active/omp"), ["30", "31"]);
        assert_eq!(client.found("omp", 30).0, "none");
        assert_eq!(client.found("omp", 31).0, "none");
        // What another holds open is not ours.
        world.run(&with_fds(&world, 31, &[(9, &file(B))]));
        assert_eq!(client.found("omp", 30), ("dir".into(), "019dc920d76e".into()));
        assert_eq!(client.found("omp", 31), ("fd".into(), "019dc920d76f".into()));
        // One of another root, or in another directory, is no rival.
        for rival in [
            Proc { env: vec!["PI_CODING_AGENT_DIR=/other".into()], ..Proc::new(31, "omp") },
            Proc { env: vec!["OMP_PROFILE=x".into(), "HOME=/h".into()], ..Proc::new(31, "omp") },
            Proc { cwd: "/other".into(), ..Proc::new(31, "omp") },
        ] {
            world.run(&rival);
            assert_eq!(client.found("omp", 30), ("dir".into(), "019dc920d76f".into()));
            assert_eq!(client.found("omp", 31).0, "none");
        }
    });
}

#[test]
fn a_title_stands_in_the_slot_else_in_the_header_else_in_the_prompt() {
    on_both(|| {
        let world = World::new();
        world.write(&file(A), "");
        world.run(&with_fds(&world, 30, &[(9, &file(A))]));
        let titled = header("/w").replace("\"version\"", "\"title\":\"Header\",\"version\"");
        let mut client = world.client();
        for (content, title) in [
            (slot("Slot") + &titled, "Slot"),
            (slot("") + &titled, "Header"),
            (titled.clone() + &said("user", "prompt"), "Header"),
            (slot("") + &header("/w") + &said("assistant", "x") + &said("user", "prompt"), "prompt"),
            (header("/w"), ""),
            (said("user", "prompt") + &header("/w"), ""),
            ("\u{0}\n".into(), ""),
        ] {
            world.write(&file(A), &content);
            assert_eq!(client.field("omp", 30, "title"), title, "{content}");
        }
    });
}

#[test]
fn a_model_is_a_replys_or_the_one_chosen_for_the_conversation() {
    on_both(|| {
        let world = World::new();
        world.write(&file(A), "");
        world.run(&with_fds(&world, 30, &[(9, &file(A))]));
        let chosen =
            |more: &str| format!("{{\"type\":\"model_change\",\"model\":\"openrouter/moon/k3\"{more}}}\n");
        let mut client = world.client();
        for (content, model) in [
            (header("/w") + &chosen(""), "moon/k3"),
            (chosen("") + &said("assistant", "b"), "m-b"),
            (said("assistant", "b") + &chosen(",\"role\":\"default\""), "moon/k3"),
            (said("assistant", "b") + &chosen(",\"role\":\"smol\""), "m-b"),
            (said("user", "b"), ""),
            ("{\"type\":\"model_change\",\"provider\":\"p\",\"modelId\":\"g5\"}\n".into(), "g5"),
        ] {
            world.write(&file(A), &content);
            assert_eq!(client.field("omp", 30, "model"), model, "{content}");
        }
    });
}

#[test]
fn subagents_lie_below_the_session() {
    on_both(|| {
        let world = World::new();
        world.write(&file(A), &header("/w"));
        world.run(&with_fds(&world, 30, &[(9, &file(A))]));
        let mut client = world.client();
        assert!(client.ls("active/omp/30/agents").is_empty());
        for name in [
            "Explore.jsonl",
            "Explore.md",
            "__advisor.jsonl",
            "Review-2.jsonl",
            "deep/x.jsonl",
            "token-eater.jsonl",
        ] {
            world.write(&format!("{DIR}/{A}/{name}"), &said("assistant", "sub"));
        }
        world.link(&format!("{DIR}/{A}/Link.jsonl"), "Explore.jsonl");
        assert_eq!(client.ls("active/omp/30/agents"), ["Explore", "Review-2"]);
        assert_eq!(client.cat("active/omp/30/agents/Explore/model").unwrap(), "m-sub\n");
        assert_eq!(client.cat("active/omp/30/agents/Review-2/transcript").unwrap(), said("assistant", "sub"));
    });
}
