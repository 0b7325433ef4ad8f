//! `/active` as the contract tells it, for lives that are known.
//!
//! Owns: which of the lives there are, what each field of theirs says, and their conversations. It looks at the machine
//! through the same calls as the backend, knows from the scene whose everything is, and shares no code with it: a
//! conversation is told by the naive parser. Must not know: what has been before.

#[path = "../../../backend/tests/chat_naive/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::use_self,
    reason = "a test of another package, as it is"
)]
mod naive;

use backend::host::fixture::Fixture;
use backend::host::{File, Host, Kind, Meta};
use backend::name::{Rel, Root};
use engine::port::Effort;
use proto::Refusal;

pub(super) use self::naive::Message;
use crate::plan::{BOOT_S, Life};

/// The agents of a machine as it is now.
pub(super) struct Truth<'a> {
    machine: &'a Fixture,
    lives: &'a [Life],
}

/// A life that goes on.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) struct Being {
    /// Whose.
    pub(super) life: Life,
    /// It waits for a disk: whether it is found depends on whether it was looked at before.
    pub(super) dozes: bool,
}

/// Which session a process is in.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// By which route.
    via: &'static str,
    /// Whose session it is.
    pub(super) whose: Life,
    /// The transcript, if it is there.
    pub(super) transcript: Option<Meta>,
}

/// What stands at a place below an agent's directory.
#[derive(Clone, Debug)]
pub(super) enum Spot {
    /// A directory.
    Dir,
    /// A text, whole.
    Text(String),
    /// A file below a root.
    File(Root, Rel, Meta),
    /// A message: its text, and what of the transcript it is made from.
    Message(String, String),
}

impl<'a> Truth<'a> {
    /// Of this machine.
    pub(super) fn new(machine: &'a Fixture, lives: &'a [Life]) -> Self {
        Self { machine, lives }
    }

    /// The process that has a pid now, if it is one of the lives and no corpse.
    pub(super) fn being(&self, pid: u32) -> Option<Being> {
        let stat = self.read(Root::Proc, &format!("{pid}/stat"))?;
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        // Fields 3 and 22 of proc_pid_stat(5).
        let (state, start) = (fields[0], fields[19].parse::<u64>().ok()?);
        let life = self.lives.iter().find(|life| life.pid == pid && life.serial * 100 == start)?;
        (!matches!(state, "Z" | "X")).then_some(Being { life: *life, dozes: state == "D" })
    }

    /// All of them, by pid.
    pub(super) fn beings(&self) -> Vec<Being> {
        let mut pids: Vec<u32> = self.lives.iter().map(|life| life.pid).collect();
        pids.dedup();
        pids.into_iter().filter_map(|pid| self.being(pid)).collect()
    }

    /// The agents of a harness, by pid as text.
    pub(super) fn agents(&self, harness: &str) -> Vec<Being> {
        let mut agents: Vec<_> =
            self.beings().into_iter().filter(|being| being.life.harness == harness).collect();
        agents.sort_by_key(|being| being.life.pid.to_string());
        agents
    }

    /// The session of a process (contract 8).
    pub(super) fn found(&self, life: &Life) -> Option<Found> {
        let with = |via, whose: Life| {
            let transcript = whose.transcript().and_then(|path| self.file(&whose, &path));
            Some(Found { via, whose, transcript })
        };
        let registered = || with("registry", self.registered(life)?);
        let open = || with("fd", self.opened(life)?);
        let works_here = || {
            let cwd = self.link(life, "cwd")?;
            with("dir", *life).filter(|found| cwd == life.cwd() && found.transcript.is_some())
        };
        match life.harness {
            "claude" | "hermes" => registered(),
            "codex" => open().or_else(|| self.locked(life)),
            "omp" | "dsh" => open().or_else(works_here),
            _ => None,
        }
    }

    /// Whose record the process's harness has under its pid and start.
    fn registered(&self, life: &Life) -> Option<Life> {
        let record = self.record(life)?;
        let (id, is_about) = if life.harness == "hermes" {
            let entry = record.get("entries")?.array()?.first()?;
            let (pid, began) = (entry.get("pid")?.json(), entry.get("process_start_time")?.json());
            let is_about = pid == life.pid.to_string() && began == (BOOT_S + life.serial).to_string();
            (entry.text("session_id")?.to_owned(), is_about)
        } else {
            let start = record.text("procStart")? == (life.serial * 100).to_string();
            (record.text("sessionId")?.to_owned(), start)
        };
        let whose = self.lives.iter().find(|other| other.harness == life.harness && other.id() == id)?;
        is_about.then_some(*whose)
    }

    fn record(&self, life: &Life) -> Option<naive::json::Value> {
        let (root, path) = record_path(life);
        naive::json::parse(self.read(root, &path)?.as_bytes())
    }

    /// Whose transcript the process holds open: one that its harness knows by that path.
    fn opened(&self, life: &Life) -> Option<Life> {
        let says = self.link(life, "fd/9")?;
        let held = self.machine.stat_link(&rel(&format!("{}/fd/9", life.pid))?).ok()?;
        let whose = self.lives.iter().find(|other| {
            let path = other.transcript().map(|path| format!("/home/me/{}/{path}", other.root()));
            other.harness == life.harness && path.as_ref() == Some(&says)
        })?;
        let meta = self.file(whose, &whose.transcript()?)?;
        ((meta.dev, meta.ino) == (held.dev, held.ino)).then_some(*whose)
    }

    /// The thread whose lock the process holds: one that a person began, or that has no rollout yet.
    fn locked(&self, life: &Life) -> Option<Found> {
        let locks = self.read(Root::Proc, "locks")?;
        let is_held = |inode: u64| {
            locks.lines().any(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                words[1..5] == ["FLOCK", "ADVISORY", "WRITE", &life.pid.to_string()]
                    && words[5].rsplit(':').next() == Some(&inode.to_string())
            })
        };
        let held: Vec<Found> = self
            .lives
            .iter()
            .filter(|whose| whose.harness == "codex")
            .filter(|whose| self.file(whose, &whose.lock()).is_some_and(|lock| is_held(lock.ino)))
            .map(|whose| {
                let transcript = whose.transcript().and_then(|path| self.file(whose, &path));
                Found { via: "lock", whose: *whose, transcript }
            })
            .collect();
        let says_who = |found: &&Found| {
            let script = self.script(&found.whose).unwrap_or_default();
            naive::lines(script.as_bytes()).next().is_some_and(|line| naive::json::parse(line).is_some())
        };
        let begun = held.iter().filter(|found| found.transcript.is_some()).filter(says_who);
        // All are of one day: the name with the greatest id is the newest.
        if let Some(newest) = begun.max_by_key(|found| found.whose.id()) {
            return Some(newest.clone());
        }
        let mut empty = held.into_iter().filter(|found| found.transcript.is_none());
        empty.next().filter(|_| empty.next().is_none())
    }

    /// The text of a field, and when it was changed, in nanoseconds since 1970; `None` for one that is not there.
    fn value(&self, life: &Life, field: &str) -> Option<(String, i64)> {
        let started_ns = (BOOT_S + life.serial) as i64 * 1_000_000_000;
        let found = self.found(life);
        let (root, path) = record_path(life);
        let record = (life.harness == "claude" && self.registered(life).is_some())
            .then(|| Some((self.record(life)?, self.machine.stat(root, &rel(&path)?, Effort::Full).ok()?)))
            .flatten();
        let recorded_ns = record.as_ref().map_or(started_ns, |(_, meta)| meta.mtime.ns());
        let said_ns =
            found.as_ref().and_then(|found| found.transcript).map_or(started_ns, |meta| meta.mtime.ns());
        let cwd = || {
            let registered = || Some(record.as_ref()?.0.text("cwd")?.to_owned());
            self.link(life, "cwd").or_else(registered)
        };
        let (value, at_ns) = match field {
            "pid" => (Some(life.pid.to_string()), started_ns),
            "ppid" => (Some("1".to_owned()), started_ns),
            "started" => (Some((BOOT_S + life.serial).to_string()), started_ns),
            "cwd" => (cwd(), started_ns),
            "name" => (cwd().map(|cwd| cwd.rsplit('/').next().unwrap_or_default().to_owned()), started_ns),
            "zmx" => {
                (self.read(Root::Proc, &format!("{}/environ", life.pid)).map(|_| life.mark()), started_ns)
            }
            "status" => (Some(record.as_ref()?.0.text("status")?.to_owned()), recorded_ns),
            "session" => (found.map(|found| found.whose.id()), recorded_ns),
            "via" => (Some(found.map_or("none", |found| found.via).to_owned()), recorded_ns),
            "title" => (found.and_then(|found| self.title(&found)), said_ns),
            "model" => (found.and_then(|found| self.model(&found)), said_ns),
            _ => return None,
        };
        Some((value.map_or_else(String::new, |value| value + "\n"), at_ns))
    }

    fn title(&self, found: &Found) -> Option<String> {
        let whose = &found.whose;
        let last = |text: &str, tells: &dyn Fn(&naive::json::Value) -> Option<String>| {
            let records = naive::lines(text.as_bytes()).filter_map(naive::json::parse);
            records.filter_map(|record| tells(&record)).last()
        };
        let named = if whose.harness == "codex" {
            let index = self.read(Root::Codex, "session_index.jsonl").unwrap_or_default();
            last(&index, &|record| {
                let name = record.text("thread_name")?.to_owned();
                (record.text("id") == Some(&whose.id())).then_some(name)
            })
        } else {
            let said = self.script(whose).filter(|_| whose.harness == "claude").unwrap_or_default();
            last(&said, &|record| record.text("aiTitle").map(str::to_owned))
        };
        named.or_else(|| match whose.harness {
            "claude" | "codex" => {
                found.transcript?;
                let script = self.script(whose)?;
                let mut records = naive::lines(script.as_bytes()).filter_map(naive::json::parse);
                records.find_map(|record| prompt(&record))
            }
            _ => found.transcript.map(|_| format!("{} title", whose.mark())),
        })
    }

    fn model(&self, found: &Found) -> Option<String> {
        found.transcript?;
        if !matches!(found.whose.harness, "claude" | "codex") {
            return Some(format!("{}-model", found.whose.mark()));
        }
        let script = self.script(&found.whose)?;
        let records = naive::lines(script.as_bytes()).filter_map(naive::json::parse);
        let models = records.filter_map(|record| {
            let inner = match record.text("type")? {
                "assistant" => record.get("message")?,
                "turn_context" => record.get("payload")?,
                _ => return None,
            };
            inner.text("model").filter(|model| *model != "<synthetic>").map(str::to_owned)
        });
        models.last()
    }

    /// The messages of a life's transcript, of those harnesses whose can be told.
    pub(super) fn messages(whose: &Life, script: &str) -> Vec<Message> {
        match whose.harness {
            "claude" => naive::claude::messages(script.as_bytes()),
            _ => naive::codex::messages(&[script.as_bytes()]),
        }
    }

    /// What makes the file of a life's transcript the one that it is.
    pub(super) fn file_of(&self, whose: &Life) -> Option<(u64, u64, u64)> {
        self.file(whose, &whose.transcript()?).map(|meta| (meta.dev, meta.ino, meta.handle))
    }

    /// All that is in a life's transcript.
    pub(super) fn script(&self, whose: &Life) -> Option<String> {
        self.read(whose_root(whose), &whose.transcript()?)
    }

    /// What stands at a path below an agent's directory, and when it was changed, in nanoseconds since 1970.
    pub(super) fn spot(&self, being: &Being, below: &[&str]) -> Result<(Spot, i64), Refusal> {
        let life = &being.life;
        let started_ns = (BOOT_S + life.serial) as i64 * 1_000_000_000;
        let transcript = || {
            let found = self.found(life)?;
            Some((found.whose, found.transcript?))
        };
        let chat = || transcript().filter(|(whose, _)| matches!(whose.harness, "claude" | "codex"));
        let spot = match below {
            [] => Some((Spot::Dir, started_ns)),
            ["agents"] => {
                matches!(life.harness, "claude" | "codex" | "omp").then_some((Spot::Dir, started_ns))
            }
            ["agents", "agent-x", rest @ ..] => {
                transcript().filter(|_| life.harness == "claude").and_then(|(whose, _)| {
                    let path = whose.transcript()?.replace(".jsonl", "/subagents/agent-x.jsonl");
                    let meta = self.file(&whose, &path)?;
                    Some(match rest {
                        [] => (Spot::Dir, meta.mtime.ns()),
                        ["model"] => {
                            (Spot::Text(format!("{0}-model-9-{0}\n", whose.mark())), meta.mtime.ns())
                        }
                        ["transcript"] => (Spot::File(whose_root(&whose), rel(&path)?, meta), 0),
                        _ => return None,
                    })
                })
            }
            ["transcript"] => transcript().and_then(|(whose, meta)| {
                Some((Spot::File(whose_root(&whose), rel(&whose.transcript()?)?, meta), 0))
            }),
            ["chat"] => chat().map(|(_, meta)| (Spot::Dir, meta.mtime.ns())),
            ["chat", name] => chat().and_then(|(whose, _)| self.message(&whose, name)),
            [field] => self.value(life, field).map(|(text, at_ns)| (Spot::Text(text), at_ns)),
            _ => None,
        };
        spot.ok_or(Refusal::NOT_FOUND)
    }

    fn message(&self, whose: &Life, name: &str) -> Option<(Spot, i64)> {
        let script = self.script(whose)?;
        let id: usize = name.split('-').next()?.parse().ok()?;
        let message = Self::messages(whose, &script).into_iter().nth(id)?;
        if name_of(id, &message) != name {
            return None;
        }
        // As much of the transcript as it takes to tell it.
        let mut ends = script.match_indices('\n').map(|(at, _)| at + 1);
        let end = ends.find(|end| Self::messages(whose, &script[..*end]).len() > id)?;
        Some((Spot::Message(message.text, script[..end].to_owned()), message.time_ms * 1_000_000))
    }

    /// The names that an agent's directory may have below it, sorted; a number that is not there keeps its place.
    pub(super) fn names(&self, being: &Being, below: &[&str]) -> Vec<String> {
        let names: &[&str] = match below {
            [] => &CHILDREN,
            ["agents"] => &["agent-x"],
            ["agents", _] => &["model", "transcript"],
            _ => {
                let script =
                    self.found(&being.life).and_then(|found| Some((found.whose, self.script(&found.whose)?)));
                let messages =
                    script.map(|(whose, script)| Self::messages(&whose, &script)).unwrap_or_default();
                return messages.iter().enumerate().map(|(id, message)| name_of(id, message)).collect();
            }
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn file(&self, whose: &Life, path: &str) -> Option<Meta> {
        let meta = self.machine.stat(whose_root(whose), &rel(path)?, Effort::Full).ok()?;
        (meta.kind == Kind::File).then_some(meta)
    }

    fn link(&self, life: &Life, name: &str) -> Option<String> {
        String::from_utf8(self.machine.read_link(&rel(&format!("{}/{name}", life.pid))?).ok()?).ok()
    }

    fn read(&self, root: Root, path: &str) -> Option<String> {
        let (file, _) = self.machine.open(root, &rel(path)?, Effort::Full).ok()?;
        let mut bytes = Vec::new();
        let mut buf = [0; 4096];
        loop {
            match File::read_at(&*file, &mut buf, bytes.len() as u64, Effort::Full).ok()? {
                0 => return String::from_utf8(bytes).ok(),
                got => bytes.extend_from_slice(&buf[..got]),
            }
        }
    }
}

/// What a message is called.
pub(super) fn name_of(id: usize, message: &Message) -> String {
    format!("{id:08}-{}", message.kind)
}

/// What a person said, if a record is that.
fn prompt(record: &naive::json::Value) -> Option<String> {
    let said = match record.text("type")? {
        "user" => record.get("message")?.text("content")?,
        "response_item" => {
            let payload = record.get("payload").filter(|payload| payload.text("role") == Some("user"))?;
            payload.get("content")?.array()?.first()?.text("text")?
        }
        _ => return None,
    };
    (!record.get("isSidechain").is_some_and(naive::json::Value::is_true)).then(|| said.to_owned())
}

/// Where a process's harness has it on record.
fn record_path(life: &Life) -> (Root, String) {
    match life.harness {
        "hermes" => (Root::Hermes, "runtime/active_sessions.json".to_owned()),
        _ => (Root::Claude, format!("sessions/{}.json", life.pid)),
    }
}

fn whose_root(life: &Life) -> Root {
    match life.harness {
        "claude" => Root::Claude,
        "codex" => Root::Codex,
        "omp" => Root::Omp,
        "hermes" => Root::Hermes,
        _ => Root::Dsh,
    }
}

fn rel(path: &str) -> Option<Rel> {
    Rel::from_harness(path)
}

const CHILDREN: [&str; 14] = [
    "agents",
    "chat",
    "cwd",
    "model",
    "name",
    "pid",
    "ppid",
    "session",
    "started",
    "status",
    "title",
    "transcript",
    "via",
    "zmx",
];
