//! Which processes list, and for how long.

use crate::world::{Proc, World, files_only, may_chown, on_both};

#[test]
fn a_directory_has_its_fields_sorted_and_its_records_are_those_of_stat() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc { env: vec!["ZMX_SESSION=night".into()], ..Proc::new(50, "claude") });
        let mut client = world.client();
        let listed = client.list("active/claude/50").unwrap();
        let names: Vec<&str> = listed.iter().map(|record| record.name.as_str()).collect();
        assert_eq!(
            names,
            ["agents", "cwd", "model", "name", "pid", "ppid", "session", "started", "title", "via", "zmx"]
        );
        for record in &listed {
            let path = format!("active/claude/50/{}", record.name);
            assert_eq!(client.stat(&path).unwrap(), *record);
            if record.mode >> 31 == 0 {
                assert_eq!(client.cat(&path).unwrap().len() as u64, record.length, "{path}");
                assert_eq!(record.mode, 0o444);
            } else {
                assert_eq!(record.mode & 0o777, 0o555);
            }
            assert_eq!(record.qid.path >> 63, 1);
            assert_eq!(u64::from(record.mtime), world.boot_s() + 50);
        }
        assert_eq!(client.field("claude", 50, "zmx"), "night");
        assert_eq!(client.cat("active/claude/50/session").unwrap(), "");
        assert_eq!(client.cat("active/claude/50/via").unwrap(), "none\n");
        let listed = client.list("active/claude").unwrap();
        assert_eq!(client.stat("active/claude/50").unwrap(), listed[0]);
    });
}

#[test]
fn only_one_spelling_of_a_pid_resolves_and_only_under_its_harness() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(50, "claude"));
        world.run(&Proc::new(7, "bash"));
        let mut client = world.client();
        assert!(client.node("active/claude/50").is_ok());
        for path in [
            "active/claude/050",
            "active/claude/+50",
            "active/codex/50",
            "active/claude/7",
            "active/claude/50/nope",
            "active/claude/50/pid/x",
            "active/claude/50/status",
            "active/claude/4294967346",
        ] {
            assert!(client.node(path).is_err(), "{path}");
        }
    });
}

#[test]
fn pids_sort_as_names() {
    on_both(|| {
        let world = World::new();
        for pid in [9, 10, 100, 11] {
            world.run(&Proc::new(pid, "claude"));
        }
        assert_eq!(world.client().ls("active/claude"), ["10", "100", "11", "9"]);
    });
}

#[test]
fn a_corpse_never_lists() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(50, "claude"));
        let mut client = world.client();
        let node = client.node("active/claude/50/pid").unwrap();
        for state in ['Z', 'X', 'x'] {
            world.run(&Proc { state, ..Proc::new(50, "claude") });
            assert!(client.ls("active/claude").is_empty());
            assert!(client.node("active/claude/50").is_err() && client.stat_node(&node).is_err());
        }
        world.run(&Proc::new(50, "claude"));
        assert!(client.stat_node(&node).is_ok());
    });
}

#[test]
fn a_reused_pid_is_another_agent() {
    on_both(|| {
        let world = World::new();
        let first = Proc::new(50, "claude");
        world.run(&first);
        let mut client = world.client();
        let dir = client.node("active/claude/50").unwrap();
        let pid = client.node("active/claude/50/pid").unwrap();
        let was = client.stat_node(&dir).unwrap();
        let (_, open) = client.open(&pid).unwrap();
        world.run(&Proc { start: first.start + 1, cwd: "/other".into(), ..first.clone() });
        for node in [&dir, &pid] {
            assert!(client.stat_node(node).is_err());
        }
        assert!(
            client.walk(&dir, "cwd").is_err() && client.open(&pid).is_err() && client.read(&open).is_err()
        );
        let now = client.stat("active/claude/50").unwrap();
        assert_ne!(now.qid.path, was.qid.path);
        assert_eq!(client.field("claude", 50, "cwd"), "/other");
        // Reused by a program of no harness.
        world.run(&Proc { start: first.start + 2, ..Proc::new(50, "bash") });
        assert!(client.node("active/claude/50").is_err());
    });
}

#[test]
fn a_process_waiting_for_a_disk_is_not_asked_for_its_arguments() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc { state: 'D', ..Proc::new(50, "claude") });
        let mut client = world.client();
        assert!(client.ls("active/claude").is_empty());
        world.run(&Proc::new(50, "claude"));
        assert_eq!(client.ls("active/claude"), ["50"]);
        // Known as it is, it stays.
        world.run(&Proc { state: 'D', ..Proc::new(50, "claude") });
        assert_eq!(client.ls("active/claude"), ["50"]);
        if let World::Memory(fixture) = &world {
            assert_eq!(fixture.with(|world| world.hung()), 0);
        }
    });
}

#[test]
fn what_cannot_be_looked_at_is_unknown_and_hides_nothing() {
    on_both(|| {
        let world = World::new();
        for (pid, refuses) in [(50, "cwd"), (51, "environ"), (52, "exe"), (53, "fd")] {
            let (exe, env) = ("/usr/bin/claude".into(), vec!["ZMX_SESSION=z".into()]);
            world.run(&Proc { exe, env, refuses, ..Proc::new(pid, "claude") });
        }
        let mut client = world.client();
        assert_eq!(client.ls("active/claude"), ["50", "51", "52", "53"]);
        assert_eq!(
            (client.field("claude", 50, "cwd"), client.field("claude", 50, "name")),
            (String::new(), String::new())
        );
        assert_eq!(client.field("claude", 51, "zmx"), "");
        assert_eq!(client.field("claude", 52, "zmx"), "z");
    });
}

#[test]
fn a_program_that_takes_anothers_place_is_seen() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(50, "bash"));
        let mut client = world.client();
        assert!(client.ls("active/claude").is_empty());
        world.run(&Proc { start: 5000, ..Proc::new(50, "claude") });
        assert_eq!(client.ls("active/claude"), ["50"]);
        world.run(&Proc { start: 5000, ..Proc::new(50, "vim claude") });
        assert!(client.ls("active/claude").is_empty());
    });
}

#[test]
fn a_machine_without_a_process_table_has_no_agents() {
    on_both(|| {
        let world = World::new();
        let Some(files) = files_only(&world) else { return };
        files.forget_processes();
        assert!(world.client().ls("active/claude").is_empty());
        assert!(world.client().node("active/claude/50").is_err());
    });
}

#[test]
fn values_hold_no_control_characters_and_are_short() {
    on_both(|| {
        let world = World::new();
        let cwd = format!("/home/\u{1b}[31m/{}", "x/".repeat(500));
        world.run(&Proc {
            cwd,
            env: vec![format!("ZMX_SESSION=a\nb\t{}", "z".repeat(400))],
            ..Proc::new(50, "claude")
        });
        let mut client = world.client();
        for field in ["cwd", "name", "zmx"] {
            let value = client.field("claude", 50, field);
            assert!(
                !value.is_empty() && value.len() <= 256 && !value.chars().any(char::is_control),
                "{field} {value:?}"
            );
        }
    });
}

#[test]
fn another_users_processes_never_list() {
    on_both(|| {
        if !may_chown() {
            eprintln!("SKIPPED: a file of another user takes root to make");
            return;
        }
        let world = World::new();
        world.run(&Proc { foreign: true, ..Proc::new(50, "claude") });
        world.write(
            "claude/sessions/50.json",
            "{\"pid\":50,\"procStart\":\"5000\",\"sessionId\":\"11111111-1111-4111-8111-111111111111\"}",
        );
        let mut client = world.client();
        assert!(client.ls("active/claude").is_empty());
        assert!(client.node("active/claude/50").is_err());
    });
}

#[test]
fn a_daemon_lists_none_it_descends_from_and_a_command_does() {
    on_both(|| {
        let world = World::new();
        let me = world.me();
        world.run(&Proc::new(50, "claude"));
        world.run(&Proc { ppid: 50, ..Proc::new(51, "bash") });
        world.run(&Proc { ppid: 51, ..Proc::new(me, "claude") });
        world.run(&Proc { ppid: 50, ..Proc::new(52, "claude") });
        world.run(&Proc { ppid: me, ..Proc::new(53, "claude") });
        assert_eq!(world.client().ls("active/claude"), ["52", "53"]);
        assert!(world.client().node("active/claude/50").is_err());
        let mut all = ["50".to_owned(), "52".into(), "53".into(), me.to_string()];
        all.sort();
        assert_eq!(world.command().ls("active/claude"), all);
    });
}
