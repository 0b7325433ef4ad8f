//! hermes: its registry alone.

use crate::world::{Proc, World, on_both};

const REGISTRY: &str = "hermes/runtime/active_sessions.json";

fn entry(pid: u32, began_s: f64, id: &str) -> String {
    format!(
        "{{\"lease_id\":\"l\",\"session_id\":\"{id}\",\"surface\":\"cli\",\"pid\":{pid},\"process_start_time\":{began_s}}}"
    )
}

fn registry(entries: &[String]) -> String {
    format!("{{\"entries\":[{}]}}", entries.join(","))
}

#[test]
fn its_registry_names_the_session_of_a_pid_and_a_start() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(20, "/v/bin/python3 /v/bin/hermes"));
        world.run(&Proc::new(21, "/v/bin/python3 /v/bin/hermes"));
        let mut client = world.client();
        assert_eq!(client.ls("active/hermes"), ["20", "21"]);
        assert_eq!(client.found("hermes", 20).0, "none");
        let began_s = (world.boot_s() + 20) as f64;
        let found = ("registry".to_owned(), "20261102_100000_ab12cd".to_owned());
        let none = ("none".to_owned(), String::new());
        for (entries, expected) in [
            (vec![entry(20, began_s, &found.1), entry(22, began_s, "other")], &found),
            (vec![entry(20, began_s + 0.99, &found.1)], &found),
            (vec![entry(20, began_s + 2.0, &found.1)], &none),
            (vec![entry(19, began_s, &found.1)], &none),
            (vec![entry(20, began_s - 500.0, "old"), entry(20, began_s, &found.1)], &found),
            (vec![entry(20, began_s, "one"), entry(20, began_s, "two")], &none),
            (vec![entry(20, began_s, "../x")], &none),
            (vec![entry(20, began_s, "")], &none),
            (vec![entry(20, began_s, &"x".repeat(65))], &none),
            (vec!["7".into(), "null".into(), "{}".into()], &none),
        ] {
            world.write(REGISTRY, &registry(&entries));
            assert_eq!(client.found("hermes", 20), *expected, "{entries:?}");
        }
        let names = client.ls("active/hermes/20");
        for absent in ["transcript", "agents", "status"] {
            assert!(!names.contains(&absent.into()), "{absent}");
        }
        assert_eq!(
            (client.field("hermes", 20, "title"), client.field("hermes", 20, "model")),
            (String::new(), String::new())
        );
        assert_eq!(client.field("hermes", 20, "name"), "work");
    });
}

#[test]
fn a_torn_registry_is_read_again_once() {
    on_both(|| {
        let world = World::new();
        world.run(&Proc::new(20, "hermes"));
        let whole = registry(&[entry(20, (world.boot_s() + 20) as f64, "s1")]);
        world.write(REGISTRY, &whole[..30]);
        let mut client = world.client();
        client.meanwhile = Some(world.writer(REGISTRY, &whole));
        assert_eq!(client.field("hermes", 20, "session"), "s1");
        assert_eq!(client.waits, 1);
    });
}

#[test]
fn another_home_is_another_root() {
    on_both(|| {
        let world = World::new();
        world.write(REGISTRY, &registry(&[entry(20, (world.boot_s() + 20) as f64, "s1")]));
        world.run(&Proc { env: vec!["HERMES_HOME=/other".into()], ..Proc::new(20, "hermes") });
        assert_eq!(world.client().found("hermes", 20).0, "none");
    });
}
