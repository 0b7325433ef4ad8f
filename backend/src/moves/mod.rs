//! The move: an agent ends, and comes back in a zmx session of another name.
//!
//! Owns: what has to be true before an agent is touched ([`Moves::check`]), which moves are under way ([`claims`]), and the steps
//! of one ([`job`]). It is the only thing in this program that changes anything. Must not know: 9P, or how a session of a harness is
//! found and resumed ([`crate::active`], [`crate::harness`]).
//!
//! Nothing a client writes reaches another program but the name of a session, which is checked to the letter ([`name`]). A process
//! is signalled through a handle that was taken before everything else was asked of it, so whatever takes its number meanwhile is
//! never meant.

mod claims;
mod job;
mod name;
mod settings;

use std::sync::Arc;

use proto::Refusal;

use crate::active::{Active, Agent, WayBack};
use crate::host::{Errno, Held, Host, Kind};
use crate::process;
use crate::tree::Turn;
use crate::tree::halt::Halt;

use claims::Claims;
use name::SessionName;

pub(crate) use job::Move;
pub use settings::Moving;

/// Moves the agents of one machine.
pub(crate) struct Moves {
    host: Arc<dyn Host>,
    settings: Moving,
    claims: Arc<Claims>,
}

/// All that a move needs once nothing speaks against it.
struct Ready {
    held: Box<dyn Held>,
    /// What is started: zmx, and the harness as its argument.
    args: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    cwd: Vec<u8>,
    /// Where the new session will answer: at one of these.
    sockets: Vec<Vec<u8>>,
}

impl Moves {
    pub(crate) fn new(host: Arc<dyn Host>, settings: Moving) -> Self {
        Self { host, settings, claims: Arc::default() }
    }

    /// Begins a move that a write asks for. Nothing is looked at yet.
    pub(crate) fn begin(
        self: &Arc<Self>,
        active: &Arc<Active>,
        agent: &Arc<Agent>,
        offset: u64,
        written: &[u8],
    ) -> Result<Move, Refusal> {
        if offset != 0 {
            return Err(Refusal::MOVE_OFFSET);
        }
        let name = SessionName::parse(written).ok_or(Refusal::MOVE_NAME)?;
        let claim = self.claims.enter(agent.process, name).ok_or(Refusal::MOVE_BUSY)?;
        Ok(Move::new(self, active, agent, claim, u32::try_from(written.len()).unwrap_or(u32::MAX)))
    }

    /// Whether a move is past its first signal, and must come to its end.
    pub(crate) fn any_committed(&self) -> bool {
        self.claims.any_committed()
    }

    /// Looks at everything that has to be true, and changes nothing.
    fn check(&self, active: &Active, agent: &Agent, name: &SessionName, turn: Turn) -> Result<Ready, Halt> {
        let host = &*self.host;
        let sockets = self.settings.sockets(name.as_bytes()).ok_or(Refusal::MOVE_LONG_NAME)?;
        if self.settings.is_taken(host, name.as_bytes()) {
            return Err(Refusal::MOVE_NAME_TAKEN.into());
        }
        if sockets.iter().any(|socket| is_obstructed(host, socket)) {
            return Err(Refusal::MOVE_NAME_OBSTRUCTED.into());
        }
        // Before anything is asked of the process, so that all of it is about the one that will be signalled.
        let held = host.hold(agent.process.pid, agent.process.start).map_err(gone)?;
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::MoveEager) {
            let _ = held.signal(crate::host::Signal::Term);
        }
        let looked = self.look(active, agent, name, turn);
        // Of one that has ended meanwhile, what was found missing is no reason.
        if held.has_ended() {
            return Err(Refusal::MOVE_GONE.into());
        }
        let (args, cwd) = looked?;
        Ok(Ready { held, args, env: self.settings.env(host, agent.root), cwd, sockets })
    }

    /// What is to be started, and where.
    fn look(
        &self,
        active: &Active,
        agent: &Agent,
        name: &SessionName,
        turn: Turn,
    ) -> Result<(Vec<Vec<u8>>, Vec<u8>), Halt> {
        let host = &*self.host;
        let WayBack { cwd, arguments } = active.way_back(agent, turn)?;
        let zmx = self.settings.zmx().filter(|zmx| host.may_run(zmx)).ok_or(Refusal::MOVE_NO_ZMX)?;
        let program = self.settings.program(agent.root).filter(|program| host.may_run(program));
        let program = program.ok_or(Refusal::MOVE_NO_HARNESS)?;
        let said = arguments.iter().map(Vec::as_slice).chain([&cwd[..], program]);
        if !said.into_iter().all(is_plain) {
            return Err(Refusal::MOVE_CONTROL_BYTE.into());
        }
        if process::ancestry(host, &|_| None)?.contains(&agent.process.pid) {
            return Err(Refusal::MOVE_ANCESTOR.into());
        }
        let words = [zmx, b"run", name.as_bytes(), b"-d", program].map(<[u8]>::to_vec);
        Ok((words.into_iter().chain(arguments).collect(), cwd))
    }
}

/// Why a process cannot be held.
fn gone(errno: Errno) -> Halt {
    match errno {
        Errno::SRCH => Refusal::MOVE_GONE.into(),
        errno => Refusal::from_errno(errno.raw_os_error().unsigned_abs()).into(),
    }
}

/// Whether there is something at the place of a socket that no zmx takes away: it keeps its logs beside its sockets.
fn is_obstructed(host: &dyn Host, socket: &[u8]) -> bool {
    host.look_up(socket).is_ok_and(|meta| matches!(meta.kind, Kind::File | Kind::Dir))
}

/// Whether a text can be typed to a shell as it stands between quotes: zmx does that with what it is given.
fn is_plain(text: &[u8]) -> bool {
    str::from_utf8(text).is_ok_and(|text| !text.chars().any(char::is_control))
}
