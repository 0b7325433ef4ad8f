//! One agent, looked at for one request.
//!
//! Owns: how the value of each field is derived, and that all of them are about one process. Must not know: how an agent was
//! found, or how a value travels.
//!
//! Nothing is kept from one request to the next. Within one, what several fields need is looked up once.

use std::cell::OnceCell;

use crate::harness::{self, Harness, Resolved, Scene, Session, Subagent, Torn};
use crate::host::{Kind, Meta};
use crate::name::Rel;
use crate::process::{Environ, Stat};
use crate::text::is_unprintable;
use crate::tree::halt::Halt;
use engine::port::Effort;
use proto::Refusal;

use super::place::{Agent, Field};

/// An agent that was alive when the view was made.
pub(super) struct View<'a> {
    agent: Agent,
    scene: Scene<'a>,
    harness: &'static dyn Harness,
    stat: Stat,
    boot_s: Option<i64>,
    environ: OnceCell<Option<Environ>>,
    resolved: OnceCell<Resolved>,
    transcript: OnceCell<Option<(Rel, Meta)>>,
}

/// How an agent is brought back.
pub(crate) struct WayBack {
    /// Where.
    pub(crate) cwd: Vec<u8>,
    /// The arguments of its harness.
    pub(crate) arguments: Vec<Vec<u8>>,
}

/// A value, and when its source changed last, in nanoseconds since 1970.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) mtime_ns: i64,
}

impl<'a> View<'a> {
    /// `NOT_FOUND` if the process has ended.
    pub(super) fn new(agent: Agent, scene: Scene<'a>, boot_s: Option<i64>) -> Result<Self, Halt> {
        let harness = harness::of(agent.root).ok_or(Refusal::NOT_FOUND)?;
        let stat = agent.process.stat(scene.host)?;
        let (environ, resolved, transcript) = Default::default();
        Ok(Self { agent, scene, harness, stat, boot_s, environ, resolved, transcript })
    }

    /// Ends the view: `NOT_FOUND` if the process has ended meanwhile, for then what was seen may be of another one.
    pub(super) fn close(self) -> Result<(), Halt> {
        self.agent.process.stat(self.scene.host)?;
        Ok(())
    }

    /// When the process started, in nanoseconds since 1970.
    pub(super) fn started_ns(&self) -> i64 {
        self.scene.started_ms(self.agent.process).saturating_mul(1_000_000)
    }

    /// The value of a field; `None` for one that is not there.
    pub(super) fn value(&self, field: Field) -> Result<Option<Value>, Halt> {
        let started_ns = self.started_ns();
        let (text, mtime_ns) = match field {
            Field::Pid => (Some(self.agent.process.pid.to_string()), started_ns),
            Field::Ppid => (Some(self.stat.ppid.to_string()), started_ns),
            Field::Started => {
                let known = self.boot_s.map(|_| started_ns.div_euclid(1_000_000_000).to_string());
                (known, started_ns)
            }
            Field::Cwd => (self.cwd()?, started_ns),
            Field::Zmx => {
                (self.environ().and_then(|environ| environ.value("ZMX_SESSION")).map(lossy), started_ns)
            }
            Field::Name => self.name()?,
            Field::Status => match &self.resolved()?.registered {
                Some(registered) if registered.status.is_some() => {
                    (registered.status.clone(), registered.mtime_ns)
                }
                _ => return Ok(None),
            },
            Field::Session => (self.session()?.map(|session| session.id.clone()), self.found_ns()?),
            Field::Via => {
                let via = self.session()?.map_or("none", |session| session.via.as_str());
                (Some(via.to_owned()), self.found_ns()?)
            }
            Field::Title => {
                let title = self.session()?.and_then(|session| self.harness.title(&self.scene, session));
                (title, self.transcript_ns()?)
            }
            Field::Model => {
                let model = self.transcript()?.and_then(|(rel, _)| self.harness.model(&self.scene, rel));
                (model, self.transcript_ns()?)
            }
        };
        Ok(Some(Value { text: line(text), mtime_ns }))
    }

    /// The transcript of the session, a regular file when it was looked at.
    pub(super) fn transcript(&self) -> Result<Option<&(Rel, Meta)>, Halt> {
        if self.transcript.get().is_none() {
            let found = self.session()?.and_then(|session| {
                let rel = session.transcript.as_ref()?;
                let meta = self.scene.host.stat(self.agent.root, rel, Effort::Full).ok()?;
                (meta.kind == Kind::File).then(|| (rel.clone(), meta))
            });
            _ = self.transcript.set(found);
        }
        Ok(self.transcript.get().and_then(Option::as_ref))
    }

    /// The subagents of the session, or the one of a name.
    pub(super) fn subagents(&self, only: Option<&str>) -> Result<Vec<Subagent>, Halt> {
        let session = self.session()?;
        session.map_or_else(|| Ok(Vec::new()), |session| self.harness.subagents(&self.scene, session, only))
    }

    /// The model a subagent's transcript used last. `NOT_FOUND` if it has gone.
    pub(super) fn model_of(&self, transcript: &Rel) -> Result<Value, Halt> {
        let meta = self.scene.host.stat(self.agent.root, transcript, Effort::Full)?;
        let text = line(self.harness.model(&self.scene, transcript));
        Ok(Value { text, mtime_ns: meta.mtime.ns() })
    }

    /// How to bring the agent back, or in words why there is no way.
    pub(super) fn way_back(&self) -> Result<WayBack, Halt> {
        let session = self.session()?.ok_or(Refusal::MOVE_UNRESOLVED)?;
        let cwd = self.place_of_work()?.ok_or(Refusal::MOVE_NO_CWD)?;
        let arguments = self.harness.resume(&self.scene, self.agent.process, session);
        Ok(WayBack { cwd, arguments: arguments.ok_or(Refusal::MOVE_NO_RESUME)? })
    }

    /// The directory the process works in, by a path that leads there here too. Where the process does not let it be seen, what
    /// the harness has on record of it.
    fn place_of_work(&self) -> Result<Option<Vec<u8>>, Torn> {
        let (host, process) = (self.scene.host, self.agent.process);
        let is_dir = |path: &[u8]| host.look_up(path).ok().filter(|meta| meta.kind == Kind::Dir);
        if let Some(path) = process.cwd(host) {
            let (here, there) = (is_dir(&path), process.cwd_meta(host));
            let is_one =
                here.zip(there).is_some_and(|(here, there)| (here.dev, here.ino) == (there.dev, there.ino));
            return Ok(is_one.then_some(path));
        }
        let registered = self.resolved()?.registered.as_ref().and_then(|registered| registered.cwd.as_ref());
        Ok(registered.map(|path| path.clone().into_bytes()).filter(|path| is_dir(path).is_some()))
    }

    fn session(&self) -> Result<Option<&Session>, Torn> {
        Ok(self.resolved()?.session.as_ref())
    }

    fn resolved(&self) -> Result<&Resolved, Torn> {
        if let Some(known) = self.resolved.get() {
            return Ok(known);
        }
        let elsewhere = self.environ().is_some_and(|environ| self.harness.is_elsewhere(&self.scene, environ));
        let found = if elsewhere {
            Resolved::default()
        } else {
            self.harness.resolve(&self.scene, self.agent.process)?
        };
        Ok(self.resolved.get_or_init(|| found))
    }

    fn environ(&self) -> Option<&Environ> {
        self.environ.get_or_init(|| self.agent.process.environ(self.scene.host)).as_ref()
    }

    fn cwd(&self) -> Result<Option<String>, Torn> {
        match self.agent.process.cwd(self.scene.host) {
            Some(cwd) => Ok(Some(lossy(&cwd))),
            None => Ok(self.resolved()?.registered.as_ref().and_then(|registered| registered.cwd.clone())),
        }
    }

    /// What the registry calls it, else the last part of the directory it works in.
    fn name(&self) -> Result<(Option<String>, i64), Torn> {
        if let Some(registered) = &self.resolved()?.registered
            && registered.name.is_some()
        {
            return Ok((registered.name.clone(), registered.mtime_ns));
        }
        let cwd = self.cwd()?;
        let name = cwd.map(|cwd| cwd.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned());
        Ok((name, self.started_ns()))
    }

    /// When what says which session it is was written.
    fn found_ns(&self) -> Result<i64, Torn> {
        let registered = self.resolved()?.registered.as_ref();
        Ok(registered.map_or_else(|| self.started_ns(), |registered| registered.mtime_ns))
    }

    fn transcript_ns(&self) -> Result<i64, Halt> {
        Ok(self.transcript()?.map_or_else(|| self.started_ns(), |(_, meta)| meta.mtime.ns()))
    }
}

/// The content of a file with one value: nothing if it is not known.
fn line(value: Option<String>) -> String {
    match value.map(|value| clean(&value)) {
        Some(value) if !value.is_empty() => value + "\n",
        _ => String::new(),
    }
}

/// A value fit to be one line: without characters that a terminal would obey, and at most [`VALUE_BYTES`] long.
fn clean(text: &str) -> String {
    let mut value = String::with_capacity(text.len().min(VALUE_BYTES));
    let visible = text.trim().chars().filter_map(|c| match c {
        '\t' | '\n' | '\r' => Some(' '),
        c if is_unprintable(c) => None,
        c => Some(c),
    });
    for c in visible {
        if value.len() + c.len_utf8() > VALUE_BYTES {
            break;
        }
        value.push(c);
    }
    value
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The longest value, in bytes (contract 3).
const VALUE_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn a_value_is_one_short_line() {
        assert_eq!(clean(" a\tb\r\nc\u{1b}[0m\u{0}\u{85}\u{7f} "), "a b  c[0m");
        assert_eq!(clean("\u{202e}evil\u{2066}\u{61c}\u{2028}é\u{200d}"), "evilé\u{200d}");
        assert_eq!(clean("\n"), "");
        assert_eq!(clean(&"x".repeat(300)).len(), 256);
        assert_eq!(clean(&"ü".repeat(300)), "ü".repeat(128));
        assert_eq!(clean(&format!("x{}", "ü".repeat(300))).len(), 255);
    }
}
