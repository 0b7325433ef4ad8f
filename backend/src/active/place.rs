//! Places in `/active`.
//!
//! Owns: what there can be, and every question about it that needs no look at the machine. A place holds what identifies it
//! and nothing that is known of it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::name::{Rel, Root};
use crate::process::Process;
use crate::qid;

/// One agent: a process of a harness.
#[derive(Copy, Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Agent {
    pub(crate) process: Process,
    pub(crate) root: Root,
}

/// A place in `/active`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    /// `/active` itself.
    Top,
    /// `/active/<harness>`: the harness whose files are below this root.
    Harness(Root),
    /// `/active/<harness>/<pid>`.
    Agent(Arc<Agent>),
    /// A file with one value.
    Field(Arc<Agent>, Field),
    /// The transcript of an agent's session.
    Transcript(Arc<Agent>),
    /// `chat/`.
    Chat(Arc<Agent>),
    /// `chat/<id>-<kind>`.
    Message(Arc<Message>),
    /// `agents/`.
    Subagents(Arc<Agent>),
    /// `agents/<name>`.
    Subagent(Arc<Subagent>),
    /// `agents/<name>/model`.
    SubagentModel(Arc<Subagent>),
    /// `agents/<name>/transcript`.
    SubagentTranscript(Arc<Subagent>),
}

/// A subagent as it was when it was walked to.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Subagent {
    pub(crate) of: Arc<Agent>,
    pub(crate) name: Box<str>,
    pub(crate) transcript: Rel,
}

/// A message of a chat by its name.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Message {
    pub(crate) of: Arc<Agent>,
    pub(crate) id: u32,
    pub(crate) name: Box<str>,
}

/// A file with one value and a newline; empty where the value is not known.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Field {
    Cwd,
    Model,
    Name,
    Pid,
    Ppid,
    Session,
    Started,
    /// Absent where the harness publishes no word.
    Status,
    Title,
    Via,
    Zmx,
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Cwd => "cwd",
            Self::Model => MODEL,
            Self::Name => "name",
            Self::Pid => "pid",
            Self::Ppid => "ppid",
            Self::Session => "session",
            Self::Started => "started",
            Self::Status => "status",
            Self::Title => "title",
            Self::Via => "via",
            Self::Zmx => "zmx",
        }
    }
}

impl Agent {
    /// All that can be in its directory, sorted by name.
    pub(crate) fn children(self: &Arc<Self>) -> [Place; 14] {
        let field = |field| Place::Field(Arc::clone(self), field);
        [
            Place::Subagents(Arc::clone(self)),
            Place::Chat(Arc::clone(self)),
            field(Field::Cwd),
            field(Field::Model),
            field(Field::Name),
            field(Field::Pid),
            field(Field::Ppid),
            field(Field::Session),
            field(Field::Started),
            field(Field::Status),
            field(Field::Title),
            Place::Transcript(Arc::clone(self)),
            field(Field::Via),
            field(Field::Zmx),
        ]
    }
}

impl Place {
    /// The agent whose `zmx` it is, if it is one.
    pub(crate) fn whose_zmx(&self) -> Option<&Arc<Agent>> {
        match self {
            Self::Field(agent, Field::Zmx) => Some(agent),
            _ => None,
        }
    }

    /// The directory it is in; `None` for `/active` itself.
    pub(crate) fn parent(&self) -> Option<Self> {
        match self {
            Self::Top => None,
            Self::Harness(_) => Some(Self::Top),
            Self::Agent(agent) => Some(Self::Harness(agent.root)),
            Self::Field(agent, _) | Self::Transcript(agent) | Self::Subagents(agent) | Self::Chat(agent) => {
                Some(Self::Agent(Arc::clone(agent)))
            }
            Self::Message(message) => Some(Self::Chat(Arc::clone(&message.of))),
            Self::Subagent(subagent) => Some(Self::Subagents(Arc::clone(&subagent.of))),
            Self::SubagentModel(subagent) | Self::SubagentTranscript(subagent) => {
                Some(Self::Subagent(Arc::clone(subagent)))
            }
        }
    }

    /// How many steps below `/active`.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Top => 0,
            Self::Harness(_) => 1,
            Self::Agent(_) => 2,
            Self::Field(..) | Self::Transcript(_) | Self::Subagents(_) | Self::Chat(_) => 3,
            Self::Subagent(_) | Self::Message(_) => 4,
            Self::SubagentModel(_) | Self::SubagentTranscript(_) => 5,
        }
    }

    /// Whether it is a directory.
    pub(crate) fn is_dir(&self) -> bool {
        match self {
            Self::Top
            | Self::Harness(_)
            | Self::Agent(_)
            | Self::Chat(_)
            | Self::Subagents(_)
            | Self::Subagent(_) => true,
            Self::Field(..)
            | Self::Transcript(_)
            | Self::Message(_)
            | Self::SubagentModel(_)
            | Self::SubagentTranscript(_) => false,
        }
    }

    /// Its entry's name.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Top => super::NAME.into(),
            Self::Harness(root) => root.as_str().into(),
            Self::Agent(agent) => agent.process.pid.to_string().into(),
            Self::Field(_, field) => field.name().into(),
            Self::Transcript(_) | Self::SubagentTranscript(_) => "transcript".into(),
            Self::Chat(_) => "chat".into(),
            Self::Message(message) => (*message.name).into(),
            Self::Subagents(_) => "agents".into(),
            Self::Subagent(subagent) => (*subagent.name).into(),
            Self::SubagentModel(_) => MODEL.into(),
        }
    }

    /// The agent it belongs to.
    pub(crate) fn agent(&self) -> Option<&Arc<Agent>> {
        match self {
            Self::Top | Self::Harness(_) => None,
            Self::Agent(agent)
            | Self::Field(agent, _)
            | Self::Transcript(agent)
            | Self::Chat(agent)
            | Self::Subagents(agent) => Some(agent),
            Self::Message(message) => Some(&message.of),
            Self::Subagent(subagent) | Self::SubagentModel(subagent) | Self::SubagentTranscript(subagent) => {
                Some(&subagent.of)
            }
        }
    }

    /// Bytes it takes in a listing, with what it alone holds on to.
    pub(crate) fn memory(&self) -> usize {
        let held = match self {
            Self::Subagent(subagent) => {
                size_of::<Subagent>()
                    + subagent.name.len()
                    + subagent.transcript.as_str().len()
                    + COUNTS_BYTES
            }
            _ => 0,
        };
        size_of::<Self>() + held
    }

    /// The identity of what is no file on disk: all that tells it from everything else in `/active`, and no more.
    pub(crate) fn qid_path(&self) -> u64 {
        match self {
            Self::Top => qid::derived(&[b"active"]),
            Self::Harness(root) => qid::derived(&[b"active", root.as_str().as_bytes()]),
            Self::Agent(agent) => {
                let Agent { process, root } = **agent;
                let (pid, start) = (process.pid.to_le_bytes(), process.start.to_le_bytes());
                qid::derived(&[b"active", root.as_str().as_bytes(), &pid, &start])
            }
            other => {
                let parent = other.parent().map_or(0, |parent| parent.qid_path());
                entry_path(parent, &other.name())
            }
        }
    }
}

/// The identity of an entry in a directory that has the identity `parent`.
pub(super) fn entry_path(parent: u64, name: &str) -> u64 {
    qid::derived(&[&parent.to_le_bytes(), name.as_bytes()])
}

/// What an [`Arc`] keeps beside its content: two counts.
const COUNTS_BYTES: usize = 2 * size_of::<usize>();
const MODEL: &str = "model";
