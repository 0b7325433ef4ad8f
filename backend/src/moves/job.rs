//! One move, step by step.
//!
//! Owns: its states, and when which is left. Must not know: what a resumable session is (`active`), or who waits for it.
//!
//! ```text
//!   check ──▶ term ──▶ kill ──▶ spawn ──▶ await ──▶ the write is answered
//!     │         └────────────────▲
//!     └──▶ refused, and nothing has happened
//! ```
//!
//! Check looks at everything, and in the same step sends the first signal: that is the commitment. Before it a move can be
//! undone by forgetting it; after it, it goes on whoever waits. No step waits for anything; between two steps time passes.

use std::sync::Arc;

use engine::port::{Answer, Effort, Job, Now, Outcome, Room, Step};
use proto::Refusal;

use super::claims::Claim;
use super::{Moves, Ready};
use crate::active::{Active, Agent};
use crate::host::{Errno, Launch, Signal};
use crate::tree::halt::Halt;
use crate::tree::{TORN_NS, Tree, Turn};

/// A move.
pub(crate) struct Move {
    moves: Arc<Moves>,
    active: Arc<Active>,
    agent: Arc<Agent>,
    claim: Claim,
    /// What the write that asked for it was long.
    written: u32,
    state: State,
    /// How long until the next look.
    pause_ns: u64,
}

/// How far it is.
enum State {
    /// Nothing has happened yet.
    Check {
        /// A record was being written when it was read; this long it is given.
        torn_until_ns: Option<u64>,
    },
    /// SIGTERM was sent at this time.
    Term { ready: Ready, since_ns: u64 },
    /// SIGKILL was sent too; by this time it must have had its effect.
    Kill { ready: Ready, until_ns: u64 },
    /// The agent has ended. It is tried for so long to start the program that brings it back.
    Spawn { ready: Ready, until_ns: u64 },
    /// The program runs; the session is to answer by this time.
    Await { ready: Ready, until_ns: u64 },
    /// It has been answered.
    Over,
}

impl Move {
    /// One that has not begun.
    pub(super) fn new(
        moves: &Arc<Moves>,
        active: &Arc<Active>,
        agent: &Arc<Agent>,
        claim: Claim,
        written: u32,
    ) -> Self {
        Self {
            moves: Arc::clone(moves),
            active: Arc::clone(active),
            agent: Arc::clone(agent),
            claim,
            written,
            state: State::Check { torn_until_ns: None },
            pause_ns: FIRST_PAUSE_NS,
        }
    }

    /// Looks at everything, and if nothing speaks against it, sends the first signal.
    fn check(&self, now: Now, last_try: bool) -> Next {
        let begun = self.moves.host.now();
        let turn = Turn { effort: Effort::Full, now, last_try, local: true };
        let ready = match self.moves.check(&self.active, &self.agent, self.claim.name(), turn) {
            Ok(ready) => ready,
            Err(Halt::Torn) if !last_try => {
                let until_ns = now.mono_ns.saturating_add(TORN_NS);
                return Next::Look(State::Check { torn_until_ns: Some(until_ns) }, until_ns);
            }
            Err(Halt::Refused(refusal)) => return Next::Done(Err(refusal)),
            Err(Halt::Cold | Halt::Torn | Halt::Unfinished(_)) => return Next::Done(Err(Refusal::AGAIN)),
        };
        // A call that does not return is written off in the end by whoever steps this, and the client is told so.
        if self.moves.host.now().mono_ns.saturating_sub(begun.mono_ns) > LATE_NS {
            return Next::Done(Err(Refusal::AGAIN));
        }
        match ready.held.signal(Signal::Term) {
            Ok(()) => {
                self.claim.commit();
                Next::Change(State::Term { ready, since_ns: now.mono_ns })
            }
            Err(Errno::SRCH) => Next::Done(Err(Refusal::MOVE_GONE)),
            Err(errno) => Next::Done(Err(Refusal::from_errno(errno.raw_os_error().unsigned_abs()))),
        }
    }

    fn advance(&mut self, now: Now) -> Next {
        let now_ns = now.mono_ns;
        match std::mem::replace(&mut self.state, State::Over) {
            State::Check { torn_until_ns: Some(until_ns) } if now_ns < until_ns => {
                Next::Look(State::Check { torn_until_ns: Some(until_ns) }, until_ns)
            }
            State::Check { torn_until_ns } => self.check(now, torn_until_ns.is_some()),
            State::Term { ready, .. } | State::Kill { ready, .. } if ready.held.has_ended() => {
                Next::Change(State::Spawn { ready, until_ns: now_ns.saturating_add(RETURN_NS) })
            }
            State::Term { ready, since_ns } => {
                let kill_ns = since_ns.saturating_add(TERM_NS);
                #[cfg(feature = "planted")]
                let kill_ns =
                    if engine::planted::is(engine::planted::Bug::MoveHasty) { now_ns } else { kill_ns };
                if now_ns < kill_ns {
                    return Next::Look(State::Term { ready, since_ns }, kill_ns);
                }
                // If it cannot be sent, the process has ended or will have outlived both.
                let _ = ready.held.signal(Signal::Kill);
                // From now on: however late this step comes, a process is given its time to end.
                Next::Change(State::Kill { ready, until_ns: now_ns.saturating_add(END_NS - TERM_NS) })
            }
            State::Kill { ready, until_ns } => {
                if now_ns < until_ns {
                    return Next::Look(State::Kill { ready, until_ns }, until_ns);
                }
                #[cfg(feature = "planted")]
                if engine::planted::is(engine::planted::Bug::MoveDoubled) {
                    return Next::Change(State::Spawn { ready, until_ns: now_ns });
                }
                Next::Done(Err(Refusal::MOVE_SURVIVED))
            }
            State::Spawn { ready, until_ns } => self.spawn(ready, until_ns, now_ns),
            State::Await { ready, until_ns } => {
                let host = &*self.moves.host;
                if ready.sockets.iter().any(|socket| host.is_live(socket)) {
                    return Next::Done(Ok(Answer::Wrote(self.written)));
                }
                if now_ns < until_ns {
                    return Next::Look(State::Await { ready, until_ns }, until_ns);
                }
                Next::Done(Err(Refusal::MOVE_LOST))
            }
            State::Over => Next::Done(Err(Refusal::IO)),
        }
    }

    /// Starts the program, in the name of which nobody else has begun a session meanwhile: it would type its command there.
    fn spawn(&self, ready: Ready, until_ns: u64, now_ns: u64) -> Next {
        let is_taken = self.moves.settings.is_taken(&*self.moves.host, self.claim.name().as_bytes());
        #[cfg(feature = "planted")]
        let is_taken = is_taken && !engine::planted::is(engine::planted::Bug::MoveBlind);
        if is_taken {
            return Next::Done(Err(Refusal::MOVE_NAME_LOST));
        }
        let launch = Launch { args: &ready.args, env: &ready.env, cwd: &ready.cwd };
        match self.moves.host.spawn(&launch) {
            Ok(()) => Next::Change(State::Await { ready, until_ns: now_ns.saturating_add(RETURN_NS) }),
            Err(errno) if may_pass(errno) && now_ns < until_ns => {
                Next::Look(State::Spawn { ready, until_ns }, until_ns)
            }
            Err(_) => Next::Done(Err(Refusal::MOVE_NOT_STARTED)),
        }
    }
}

/// What one look came to.
enum Next {
    /// To be looked at anew at once.
    Change(State),
    /// To be looked at again after a pause, and at this time at the latest.
    Look(State, u64),
    Done(Outcome<Tree>),
}

impl Job<Tree> for Move {
    fn step(&mut self, _: Room<'_>, now: Now) -> Step<Tree> {
        match self.advance(now) {
            Next::Change(state) => {
                // A program that is just started, and a process that was just asked, are given a moment.
                let is_pause = !matches!(state, State::Spawn { .. });
                self.state = state;
                self.pause_ns = FIRST_PAUSE_NS;
                if is_pause { Step::At(now.mono_ns.saturating_add(FIRST_PAUSE_NS)) } else { Step::Again }
            }
            Next::Look(state, latest_ns) => {
                self.state = state;
                let pause_ns = self.pause_ns;
                self.pause_ns = (pause_ns * 2).min(LONGEST_PAUSE_NS);
                Step::At(now.mono_ns.saturating_add(pause_ns).min(latest_ns))
            }
            Next::Done(outcome) => {
                self.claim.release();
                Step::Done(outcome)
            }
        }
    }

    fn abandon(&mut self) -> bool {
        #[cfg(feature = "planted")]
        if engine::planted::is(engine::planted::Bug::MoveDropped) {
            return true;
        }
        matches!(self.state, State::Check { .. } | State::Over)
    }
}

/// Whether it may be different the next time: the machine is short of something.
fn may_pass(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::INTR | Errno::NOMEM | Errno::MFILE | Errno::NFILE | Errno::TXTBSY)
}

/// How long the checks may take if they are to count: less than what a driver writes a call off after.
const LATE_NS: u64 = 3_000_000_000;
/// How long a process is given after SIGTERM.
const TERM_NS: u64 = 5_000_000_000;
/// How long after SIGTERM it must have ended, one way or another.
const END_NS: u64 = 12_000_000_000;
/// How long an agent may take to come back.
const RETURN_NS: u64 = 12_000_000_000;
/// How often is looked: soon at first, as most processes end and begin at once.
const FIRST_PAUSE_NS: u64 = 10_000_000;
const LONGEST_PAUSE_NS: u64 = 100_000_000;
const _: () = assert!(TERM_NS < END_NS && LONGEST_PAUSE_NS < TERM_NS);
