//! A machine with an agent of each harness, as a script: what moves are tried on, one by one and at random.
//!
//! Owns: where everything is, how each agent is known, what resumes it, and the environment of the server. Must not know: what
//! happens to them.

/// Where everything is, with what each harness has on record of its agent.
pub(crate) const PLACES: &str = r#"
mkdirs /usr/bin
write /usr/bin/zmx ""
write /usr/bin/claude ""
write /usr/bin/codex ""
write /usr/bin/omp ""
write /usr/bin/hermes ""
write /usr/bin/dsh ""
mkdirs /run/user/1000/9p/zmx
mkdirs /run/user/1000/zmx
mkdirs /home/me/work
mkdirs /home/me/.claude/sessions
write /home/me/.claude/sessions/10.json
| {"pid":10,"procStart":"1000","sessionId":"11111111-1111-4111-8111-111111111111","cwd":"/home/me/work","name":"otter"}
mkdirs /home/me/.codex/sessions/2026/07/14
write /home/me/.codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-019f624a-cc95-7c50-b9fa-1db381270b73.jsonl
| {"type":"session_meta","payload":{"id":"019f624a-cc95-7c50-b9fa-1db381270b73","source":"cli"}}
mkdirs /home/me/.omp/agent/sessions/--home-me-work--
write /home/me/.omp/agent/sessions/--home-me-work--/2026-11-02T10-00-00-000Z_a.jsonl
| {"type":"session","id":"a","cwd":"/home/me/work"}
mkdirs /home/me/.hermes/runtime
write /home/me/.hermes/runtime/active_sessions.json
| {"entries":[{"session_id":"s1","pid":40,"process_start_time":1767139240.0}]}
mkdirs /home/me/.dsh/sessions/--home-me-work--/session-22222222-2222-4222-8222-222222222222
write /home/me/.dsh/sessions/--home-me-work--/session-22222222-2222-4222-8222-222222222222/session.jsonl
| {"type":"session","cwd":"/home/me/work"}
"#;

/// What each agent is called in the tree, and what resumes it.
pub(crate) const AGENTS: [(&str, u32, &[&str]); 5] = [
    ("claude", 10, &["/usr/bin/claude", "--resume", "11111111-1111-4111-8111-111111111111"]),
    ("codex", 20, &["/usr/bin/codex", "resume", "019f624a-cc95-7c50-b9fa-1db381270b73"]),
    (
        "omp",
        30,
        &[
            "/usr/bin/omp",
            "--resume",
            "/home/me/.omp/agent/sessions/--home-me-work--/2026-11-02T10-00-00-000Z_a.jsonl",
        ],
    ),
    ("hermes", 40, &["/usr/bin/hermes", "--resume", "s1"]),
    ("dsh", 50, &["/usr/bin/dsh", "--profile", "tui", "--resume", "22222222-2222-4222-8222-222222222222"]),
];

/// What the server was started with.
pub(crate) const ENVIRONMENT: [&str; 6] = [
    "PATH=/usr/bin",
    "XDG_RUNTIME_DIR=/run/user/1000",
    "ZMX_SESSION=outer",
    "ZMX_SESSION_PREFIX=x-",
    "LISTEN_FDS=1",
    "HOME=/home/me",
];

/// The lines of a script that start an agent; `how` is what else is known of it.
pub(crate) fn start(pid: u32, how: &str) -> String {
    let (process, open) = life(pid);
    let open = open.map_or_else(String::new, |path| format!("open {pid} 9 {path}\n"));
    format!("start {pid} {process} cwd=/home/me/work start={} {how}\n{open}", began(pid))
}

/// When an agent began, in ticks since boot.
pub(crate) fn began(pid: u32) -> u64 {
    u64::from(pid) * 100
}

/// What an agent runs, and what it holds open.
pub(crate) fn life(pid: u32) -> (&'static str, Option<&'static str>) {
    match pid {
        10 => ("comm=claude arg=claude env=ZMX_SESSION=day env=SECRET=1", None),
        20 => ("comm=codex arg=codex", Some(ROLLOUT)),
        30 => ("comm=omp arg=omp", Some(AGENTS[2].2[2])),
        40 => ("comm=hermes arg=python3 arg=/opt/venv/bin/hermes", None),
        _ => ("comm=node arg=node arg=/usr/lib/bin/dsh arg=--profile arg=tui", None),
    }
}

const ROLLOUT: &str = "/home/me/.codex/sessions/2026/07/14/rollout-2026-07-14T20-21-37-019f624a-cc95-7c50-b9fa-1db381270b73.jsonl";
