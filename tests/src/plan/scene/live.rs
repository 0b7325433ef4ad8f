//! A machine on which agents of every harness begin, talk and end.
//!
//! Owns: the lives: every process there will ever be, what it leaves on disk, and what can happen to it. Everything about one
//! holds its serial number, its start and directory, its session, title and model, so that whatever is read tells whose it
//! is. Must not know: how anything of it is served.
//!
//! Pids come again, lives do not: a life begins at most once in a run.

use backend::host::fixture::{Bytes, Edit, LockKind, Process, Refuses, State, World};

use super::{CANARY, Change, Scene, Spot};

/// Agents that come and go.
pub(super) const AGENTS: Scene = Scene {
    name: "agents",
    build,
    paths: || {
        paths(&[
            "session",
            "via",
            "status",
            "title",
            "model",
            "cwd",
            "name",
            "started",
            "pid",
            "zmx",
            "agents",
            "chat",
            "agents/agent-x/model",
        ])
    },
    words: WORDS,
    hidden: &[],
    databases: &[],
    spots: || PIDS.iter().map(|pid| of_process(*pid)).collect(),
    lives: true,
};

/// The conversations of agents that stay.
pub(super) const CHATS: Scene = Scene {
    name: "chats",
    build,
    paths: || paths(&["chat", "transcript", "title", "model", "session"]),
    words: WORDS,
    hidden: &[],
    databases: &[],
    spots: || TALKERS.iter().map(|serial| of_transcript(life(*serial))).collect(),
    lives: true,
};

/// A process, from its start to its end.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Life {
    /// Its serial number: also the second after boot at which it starts.
    pub serial: u64,
    /// Its number, which others have before and after it.
    pub pid: u32,
    /// Whose agent it is; `bash` is nobody's.
    pub harness: &'static str,
    begins: Begins,
}

/// With what a process begins.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Begins {
    /// What its harness has on record of it.
    Registered,
    /// A record that is half written.
    Torn,
    /// An open transcript.
    Open,
    /// A lock on its thread.
    Locked,
    /// Nothing that is its own but the directory it works in.
    Bare,
}

const PIDS: [u32; 3] = [50, 51, 52];

/// The lives of each pid, in no order. The first is there from the beginning.
const LIVES: [&[(&str, Begins)]; 3] = [
    &[
        ("claude", Begins::Registered),
        ("claude", Begins::Bare),
        ("codex", Begins::Open),
        ("claude", Begins::Torn),
        ("codex", Begins::Bare),
        ("claude", Begins::Registered),
        ("bash", Begins::Bare),
    ],
    &[
        ("codex", Begins::Open),
        ("codex", Begins::Locked),
        ("omp", Begins::Open),
        ("dsh", Begins::Bare),
        ("codex", Begins::Locked),
        ("omp", Begins::Bare),
        ("dsh", Begins::Open),
    ],
    &[
        ("hermes", Begins::Registered),
        ("claude", Begins::Registered),
        ("hermes", Begins::Torn),
        ("omp", Begins::Bare),
        ("dsh", Begins::Bare),
        ("codex", Begins::Locked),
        ("hermes", Begins::Registered),
    ],
];

/// Those of the lives at the beginning whose conversation is told: by serial.
const TALKERS: [u64; 2] = [10, 20];

/// All lives.
pub(super) fn lives() -> impl Iterator<Item = Life> {
    LIVES.into_iter().zip(PIDS).zip(1..).flat_map(|((lives, pid), ten)| {
        lives.iter().zip(0..).map(move |(&(harness, begins), one)| Life {
            serial: 10 * ten + one,
            pid,
            harness,
            begins,
        })
    })
}

fn life(serial: u64) -> Life {
    lives().find(|life| life.serial == serial).expect("a life of this number")
}

impl Life {
    /// What is in everything that is about it.
    pub fn mark(&self) -> String {
        format!("s{}s", self.serial)
    }

    /// Whether it is there from the beginning.
    pub fn is_first(&self) -> bool {
        self.serial.is_multiple_of(10)
    }

    /// Where it works.
    pub fn cwd(&self) -> String {
        format!("/home/{}", self.mark())
    }

    /// The id of its session.
    pub fn id(&self) -> String {
        let serial = self.serial;
        match self.harness {
            "omp" | "hermes" => format!("{serial:012x}"),
            _ => format!("019f624a-cc95-7c50-b9fa-{serial:012x}"),
        }
    }

    /// Its transcript, below the root of its harness.
    pub fn transcript(&self) -> Option<String> {
        let (mark, id) = (self.mark(), self.id());
        match self.harness {
            "claude" => Some(format!("projects/-home-{mark}/{id}.jsonl")),
            "codex" => Some(format!("sessions/2026/07/14/rollout-2026-07-14T20-21-37-{id}.jsonl")),
            "omp" => Some(format!("sessions/-{mark}/2026-11-02T10-00-00-000Z_{id}.jsonl")),
            "dsh" => Some(format!("sessions/--home-{mark}--/session-{id}/session.jsonl")),
            _ => None,
        }
    }

    /// Where its root lies below the home directory.
    pub fn root(&self) -> &'static str {
        match self.harness {
            "claude" => ".claude",
            "codex" => ".codex",
            "omp" => ".omp/agent",
            "hermes" => ".hermes",
            _ => ".dsh",
        }
    }

    fn path(&self) -> Bytes {
        at(&format!("{}/{}", self.root(), self.transcript().unwrap_or_default()))
    }

    /// The lock on its thread, below the root of its harness.
    pub fn lock(&self) -> String {
        format!("thread-writer-locks/{}.lock", self.id())
    }

    /// The file its harness has on record of it, and what is in there.
    fn registry(&self, word: &str) -> (Bytes, String) {
        let Self { pid, serial, .. } = self;
        let (id, mark, cwd) = (self.id(), self.mark(), self.cwd());
        if self.harness == "hermes" {
            let began = BOOT_S + serial;
            let entry = format!("{{\"session_id\":\"{id}\",\"pid\":{pid},\"process_start_time\":{began}}}");
            return (at(".hermes/runtime/active_sessions.json"), format!("{{\"entries\":[{entry}]}}"));
        }
        let start = serial * 100;
        let record = format!(
            "{{\"pid\":{pid},\"procStart\":\"{start}\",\"sessionId\":\"{id}\",\"cwd\":\"{cwd}\",\"status\":\"{word}-{mark}\"}}"
        );
        (at(&format!(".claude/sessions/{pid}.json")), record)
    }

    /// What its transcript holds at first.
    fn said(&self) -> String {
        let (mark, id, cwd) = (self.mark(), self.id(), self.cwd());
        let first: Vec<String> = match self.harness {
            "claude" => {
                vec![self.line(0, 0), self.line(1, 1), self.line(6, 2), self.line(2, 3), self.line(3, 4)]
            }
            "codex" => vec![
                format!("{{\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\"}}}}\n"),
                self.line(0, 0),
                self.line(6, 1),
                self.line(1, 2),
                self.line(2, 3),
                self.line(3, 4),
            ],
            "omp" => vec![
                format!("{{\"type\":\"session\",\"cwd\":\"{cwd}\",\"title\":\"{mark} title\"}}\n"),
                format!(
                    "{{\"type\":\"message\",\"message\":{{\"role\":\"assistant\",\"model\":\"{mark}-model\"}}}}\n"
                ),
            ],
            _ => vec![
                format!("{{\"type\":\"session\",\"cwd\":\"{cwd}\"}}\n"),
                format!(
                    "{{\"type\":\"user/message\",\"data\":{{\"content\":\"{mark} title\",\"source\":{{\"kind\":\"user\"}}}}}}\n"
                ),
                format!(
                    "{{\"type\":\"assistant/message\",\"data\":{{\"message\":{{\"source\":{{\"model\":\"{mark}-model\"}}}}}}}}\n"
                ),
            ],
        };
        first.concat()
    }

    /// A line of its transcript, of some kind; `number` tells it from others of that kind.
    fn line(&self, kind: u8, number: u8) -> String {
        let mark = self.mark();
        let time = format!("\"timestamp\":\"2026-01-01T00:00:{:02}.{number:03}Z\"", number % 60);
        if self.harness == "claude" {
            let body = match kind {
                0 => format!("\"type\":\"user\",\"message\":{{\"content\":\"{mark} asks {number} {mark}\"}}"),
                1 => format!(
                    "\"type\":\"assistant\",\"message\":{{\"model\":\"{mark}-model-{number}-{mark}\",\"content\":[{{\"type\":\"thinking\",\"thinking\":\"{mark} thinks\"}},{{\"type\":\"text\",\"text\":\"{mark} says\\n{number}\"}}]}}"
                ),
                2 => format!(
                    "\"type\":\"assistant\",\"message\":{{\"model\":\"<synthetic>\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"c{number}\",\"name\":\"Bash\",\"input\":{{\"command\":\"{mark}\"}}}}]}}"
                ),
                3 => format!(
                    "\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"c{}\",\"content\":\"{mark} found\"}}]}}",
                    number.saturating_sub(1)
                ),
                4 => format!("\"uuid\":\"u\",\"type\":\"user\",\"message\":{{\"content\":\"{mark} once\"}}"),
                5 => format!(
                    "\"type\":\"user\",\"isSidechain\":true,\"message\":{{\"content\":\"{mark} beside\"}}"
                ),
                _ => {
                    return format!(
                        "{{\"type\":\"ai-title\",\"aiTitle\":\"{mark} title {number} {mark}\"}}\n"
                    );
                }
            };
            return format!("{{{time},{body}}}\n");
        }
        let (of, body) = match kind {
            0 => (
                "response_item",
                format!(
                    "\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{mark} asks {number} {mark}\"}}]"
                ),
            ),
            1 => (
                "response_item",
                format!(
                    "\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"output_text\",\"text\":\"{mark} says {number}\"}}]"
                ),
            ),
            2 => (
                "response_item",
                format!(
                    "\"type\":\"function_call\",\"name\":\"shell\",\"arguments\":\"{mark}\",\"call_id\":\"c{number}\""
                ),
            ),
            3 => (
                "response_item",
                format!(
                    "\"type\":\"function_call_output\",\"call_id\":\"c{}\",\"output\":\"{mark} found\"",
                    number.saturating_sub(1)
                ),
            ),
            4 => ("event_msg", "\"type\":\"thread_rolled_back\",\"num_turns\":1".to_owned()),
            5 => ("event_msg", format!("\"type\":\"agent_message\",\"message\":\"{mark} beside\"")),
            _ => ("turn_context", format!("\"model\":\"{mark}-model-{number}-{mark}\"")),
        };
        format!("{{\"type\":\"{of}\",\"payload\":{{{body}}},{time}}}\n")
    }

    fn process(&self) -> Process {
        let args = if self.harness == "dsh" { "node /usr/bin/dsh --profile tui" } else { self.harness };
        Process {
            start_ticks: Some(self.serial * 100),
            args: args.split(' ').map(Into::into).collect(),
            cwd: self.cwd().into(),
            env: vec![format!("ZMX_SESSION={}", self.mark()).into()],
            ..Process::new(self.pid, self.harness)
        }
    }

    /// It begins, in place of whatever had its pid.
    fn begin(&self) -> Vec<Edit> {
        let pid = self.pid;
        let mut edits = vec![Edit::Exit { pid }, Edit::Start(Box::new(self.process()))];
        if let Some(transcript) = self.transcript() {
            edits.extend(write(&format!("{}/{transcript}", self.root()), &self.said()));
        }
        if self.harness == "claude" {
            let below = self.transcript().unwrap_or_default().replace(".jsonl", "/subagents/agent-x.jsonl");
            edits.extend(write(&format!(".claude/{below}"), &self.line(1, 9)));
        }
        match self.begins {
            Begins::Registered | Begins::Torn => {
                let (path, record) = self.registry("busy");
                let whole = if self.begins == Begins::Torn { record.len() / 2 } else { record.len() };
                edits.push(Edit::Write { path, bytes: record[..whole].into() });
            }
            Begins::Open => edits.push(self.opens()),
            Begins::Locked => {
                edits.extend(write(&format!(".codex/{}", self.lock()), ""));
                edits.push(self.locks());
            }
            Begins::Bare => {}
        }
        edits
    }

    fn opens(&self) -> Edit {
        Edit::OpenFd { pid: self.pid, fd: 9, path: self.path(), says: None }
    }

    fn locks(&self) -> Edit {
        let path = at(&format!(".codex/{}", self.lock()));
        Edit::HoldLock { pid: self.pid, path, kind: LockKind::Flock, exclusive: true }
    }
}

fn build() -> World {
    let mut world = World::new();
    let hidden = |pid, ppid, uid, args: &str| Process {
        ppid,
        uid,
        start_ticks: Some(100 * u64::from(pid)),
        args: args.split(' ').map(Into::into).collect(),
        cwd: format!("/home/{CANARY}").into(),
        ..Process::new(pid, args.split(' ').next().unwrap_or_default())
    };
    // Whom we descend from, another user's agent, and a helper: nothing of them is ever to be seen.
    let mut edits = vec![
        Edit::Exit { pid: 4000 },
        Edit::Start(Box::new(hidden(4000, 60, 1000, "9agents"))),
        Edit::Start(Box::new(hidden(60, 1, 1000, "claude"))),
        Edit::Start(Box::new(hidden(61, 1, 1001, "codex"))),
        Edit::Start(Box::new(hidden(62, 1, 1000, "claude mcp serve"))),
    ];
    for root in [
        ".claude/sessions",
        ".codex/sessions",
        ".codex/thread-writer-locks",
        ".omp/agent",
        ".hermes/runtime",
        ".dsh",
    ] {
        edits.push(Edit::MkdirAll { path: at(root) });
    }
    edits.extend(lives().filter(Life::is_first).flat_map(|life| life.begin()).filter(|edit| {
        // Nobody had its pid.
        !matches!(edit, Edit::Exit { pid } if *pid < 60)
    }));
    edits.push(Edit::Advance { ns: 10_000_000_000 });
    for edit in edits {
        world.apply(&edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
    }
    world
}

/// Where the tree has a process, and what is in its directory.
fn paths(fields: &[&str]) -> Vec<String> {
    let mut paths: Vec<String> =
        ["active", "active/claude", "active/codex", "active/omp", "active/hermes", "active/dsh"]
            .map(str::to_owned)
            .into();
    for (pid, lives) in PIDS.iter().zip(LIVES) {
        let mut harnesses: Vec<&str> =
            lives.iter().map(|life| life.0).filter(|name| *name != "bash").collect();
        harnesses.sort_unstable();
        harnesses.dedup();
        for harness in harnesses {
            let agent = format!("active/{harness}/{pid}");
            paths.extend(fields.iter().map(|field| format!("{agent}/{field}")));
            paths.push(agent);
        }
    }
    paths.extend(
        [
            "active/claude/60",
            "active/codex/61",
            "active/claude/62",
            "active/claude/050",
            "active/claude/50/nothing",
        ]
        .map(str::to_owned),
    );
    paths.extend(["claude/projects", "codex/sessions", "omp/sessions", "hermes"].map(str::to_owned));
    paths
}

/// A process and all that can happen to it.
fn of_process(pid: u32) -> Spot {
    let own = || lives().filter(move |life| life.pid == pid);
    let mut harnesses: Vec<&str> = own().map(|life| life.harness).filter(|name| *name != "bash").collect();
    harnesses.sort_unstable();
    harnesses.dedup();
    let fields =
        ["", "/session", "/via", "/status", "/title", "/transcript", "/chat", "/zmx", "/name", "/cwd"];
    let of = |harness: &str| {
        let agent = format!("active/{harness}/{pid}");
        let mut paths: Vec<String> = fields.iter().map(|field| format!("{agent}{field}")).collect();
        paths.push(format!("active/{harness}"));
        paths.push(format!("{agent}/agents/agent-x/model"));
        paths
    };
    let begins = |life: Life| Change { edits: life.begin(), once: Some(life.serial) };
    let mut changes: Vec<Change> = (0..3).flat_map(|_| own().map(begins)).collect();
    let state = |state| plain([Edit::State { pid, state }]);
    let refuse = |refuses| plain([Edit::Refuse { pid, refuses }]);
    changes.extend([
        plain([Edit::Exit { pid }]),
        plain([Edit::Zombie { pid }]),
        state(State::DiskSleep),
        state(State::Sleeping),
        state(State::Running),
        refuse(Refuses { fd: true, ..Refuses::default() }),
        refuse(Refuses { cwd: true, ..Refuses::default() }),
        refuse(Refuses { environ: true, ..Refuses::default() }),
        refuse(Refuses::default()),
        plain([Edit::CloseFd { pid, fd: 9 }]),
    ]);
    for life in own() {
        changes.extend(of_life(&life));
    }
    let paths = (0..12).flat_map(|field| harnesses.iter().map(move |harness| of(harness)[field].clone()));
    Spot { paths: paths.take(32).collect(), changes }
}

/// What can happen to what a process has left, while it is there or later.
fn of_life(life: &Life) -> Vec<Change> {
    let mut changes = Vec::new();
    let append =
        |kind, number| plain([Edit::Append { path: life.path(), bytes: life.line(kind, number).into() }]);
    match life.harness {
        "claude" | "hermes" => {
            for word in ["busy", "idle", "waiting"] {
                let (path, record) = life.registry(word);
                changes.push(plain([Edit::Write { path: path.clone(), bytes: record.as_str().into() }]));
                changes.push(plain([Edit::Replace { path, bytes: record.into() }]));
            }
            let (path, record) = life.registry("shell");
            changes.push(plain([Edit::AppendHalf { path: path.clone(), bytes: record.as_str().into() }]));
            changes
                .push(plain([Edit::Write { path: path.clone(), bytes: record[..record.len() / 2].into() }]));
            changes.push(plain([Edit::Unlink { path }]));
        }
        "codex" => {
            let lock = at(&format!(".codex/{}", life.lock()));
            changes.push(plain([life.locks()]));
            changes.push(plain([life.opens()]));
            changes.push(plain([Edit::DropLock { pid: life.pid, path: lock.clone() }]));
            for to in PIDS.into_iter().filter(|pid| *pid != life.pid) {
                changes.push(plain([Edit::MoveLock { from: life.pid, to, path: lock.clone() }]));
            }
            let name = format!("{{\"id\":\"{}\",\"thread_name\":\"{} named\"}}\n", life.id(), life.mark());
            let index = at(".codex/session_index.jsonl");
            changes.push(plain([Edit::Append { path: index.clone(), bytes: name.as_str().into() }]));
            changes.push(plain([Edit::AppendHalf { path: index, bytes: name.into() }]));
        }
        "omp" | "dsh" => changes.push(plain([life.opens()])),
        _ => {}
    }
    if matches!(life.harness, "claude" | "codex") {
        changes.extend([append(6, 7), append(6, 8), append(0, 5)]);
        changes.push(plain([Edit::AppendHalf { path: life.path(), bytes: life.line(6, 9).into() }]));
        changes.push(plain([Edit::Unlink { path: life.path() }]));
    }
    changes
}

/// A transcript and all that its writer can do with it.
fn of_transcript(life: Life) -> Spot {
    let agent = format!("active/{}/{}", life.harness, life.pid);
    let kinds = match life.harness {
        "claude" => ["user", "thinking", "assistant", "bash", "bash-result", "user"],
        _ => ["user", "assistant", "shell", "shell-result", "user", "assistant"],
    };
    let mut paths = vec![format!("{agent}/chat"); 4];
    paths.extend(kinds.iter().enumerate().map(|(id, kind)| format!("{agent}/chat/{id:08}-{kind}")));
    paths.extend(
        (5..9).flat_map(|id| ["user", "assistant"].map(|kind| format!("{agent}/chat/{id:08}-{kind}"))),
    );
    paths.extend(["transcript", "title", "model", "via", "session"].map(|field| format!("{agent}/{field}")));
    paths.extend([format!("{agent}/chat/1-user"), format!("{agent}/chat/00000001-nothing"), agent]);

    let path = || life.path();
    let said = life.said();
    let mut changes = Vec::new();
    for kind in [0, 0, 1, 1, 2, 3, 4, 5, 6] {
        for number in [10, 11, 12] {
            changes.push(plain([Edit::Append { path: path(), bytes: life.line(kind, number).into() }]));
        }
        changes.push(plain([Edit::AppendHalf { path: path(), bytes: life.line(kind, 13).into() }]));
        // All but its end.
        changes.push(plain([Edit::Append { path: path(), bytes: life.line(kind, 16).trim_end().into() }]));
    }
    // The second half of a line, at last.
    for kind in [0, 1, 2] {
        let line = life.line(kind, 13);
        changes.push(plain([Edit::Append { path: path(), bytes: line[line.len() / 2..].into() }]));
    }
    let both = [life.line(0, 14), life.line(1, 15)].concat();
    changes.push(plain([Edit::Append { path: path(), bytes: both.as_str().into() }]));
    for _ in 0..3 {
        changes.push(plain([Edit::Append { path: path(), bytes: "\n".into() }]));
    }
    changes.push(plain([Edit::Append { path: path(), bytes: "\0\0\0\n".into() }]));
    for bytes in [0, 3, 150, said.len() as u64 / 2, said.len() as u64] {
        changes.push(plain([Edit::Truncate { path: path(), bytes }]));
    }
    // In the first bytes, where a reader that keeps its place looks again.
    let word = said.find(" asks").unwrap_or_default() as u64;
    for keep_mtime in [false, true, false, true] {
        for bytes in [" ASKS", " asks", " Asks"] {
            changes.push(plain([Edit::Overwrite {
                path: path(),
                offset: word,
                bytes: bytes.into(),
                keep_mtime,
            }]));
        }
    }
    let other = [life.line(0, 21), life.line(1, 20), said.clone()].concat();
    for bytes in [said.as_str(), other.as_str(), &both, ""] {
        for _ in 0..3 {
            changes.push(plain([Edit::Write { path: path(), bytes: bytes.into() }]));
        }
        changes.push(plain([Edit::Replace { path: path(), bytes: bytes.into() }]));
        changes.push(plain([Edit::Reappear { path: path(), bytes: bytes.into(), same_birth: true }]));
        changes.push(plain([Edit::Reappear { path: path(), bytes: bytes.into(), same_birth: false }]));
    }
    changes.extend([
        plain([Edit::Unlink { path: path() }]),
        plain([Edit::Cool { path: path() }]),
        plain([Edit::CloseFd { pid: life.pid, fd: 9 }]),
        plain([life.opens()]),
    ]);
    Spot { paths, changes }
}

const WORDS: &[&[u8]] = &[
    b"..",
    b"chat",
    b"50",
    b"51",
    b"52",
    b"session",
    b"claude",
    b"codex",
    b"transcript",
    b"00000000-user",
    b"agents",
    b"60",
];

fn write(path: &str, text: &str) -> [Edit; 2] {
    let (directory, _) = path.rsplit_once('/').unwrap_or(("", path));
    [Edit::MkdirAll { path: at(directory) }, Edit::Write { path: at(path), bytes: text.into() }]
}

fn plain<const N: usize>(edits: [Edit; N]) -> Change {
    Change { edits: edits.into(), once: None }
}

fn at(path: &str) -> Bytes {
    ["/home/me/", path].concat().into()
}

/// When the machine was started, in seconds since 1970.
pub const BOOT_S: u64 = 1_767_139_200;
