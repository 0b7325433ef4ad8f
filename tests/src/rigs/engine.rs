//! The engine alone: a session over the naive tree, driven by the few lines that a driver cannot do without.
//!
//! What passes here and fails on another rig is a fault of that rig's driver or backend, not of the engine. Everything
//! happens on the caller's thread, inside `send` and `receive`, so a wait for nothing takes no time and is certain.

use std::sync::Arc;
use std::time::Duration;

use engine::port::{Backend, Effort, Job, Kinds, Now, Progress, Step, Ticket};
use engine::{Action, Budget, Limits, Session};

use crate::model::{self, Model, Naive};
use crate::rig::{Need, Received, Rig, Wire, World};
use crate::slow::{Gate, Slow, Slowed};
use crate::world::{Edit, WorldSpec};

/// The rig.
#[derive(Debug)]
pub struct Engine;

impl Rig for Engine {
    fn name(&self) -> &'static str {
        "engine"
    }

    fn declines(&self) -> &'static [(Need, &'static str)] {
        &[
            (Need::Stream, "there is no stream: bytes are handed over by a call"),
            (Need::Process, "there is no server process: the engine runs in the test"),
            (Need::Disk, "the naive tree is in memory, and has the mirrored roots only"),
        ]
    }

    fn start(&self, spec: &WorldSpec) -> Box<dyn World> {
        assert_eq!(spec.descriptor_limit(), None, "the case did not declare that it needs a process");
        let model = Arc::new(Model::new(spec));
        let gate = Gate::default();
        let slow = Slow::new(Arc::clone(&model) as Arc<dyn Backend<Naive>>, gate.clone());
        Box::new(Table { model, gate, backend: Arc::new(slow), budget: Budget::default() })
    }
}

struct Table {
    model: Arc<Model>,
    gate: Gate,
    backend: Arc<dyn Backend<Slowed<Naive>>>,
    budget: Budget,
}

impl World for Table {
    fn connect(&self) -> Box<dyn Wire> {
        Box::new(Direct {
            session: Session::new(Limits::DEFAULT, self.budget.clone(), 1),
            backend: Arc::clone(&self.backend),
            jobs: Vec::new(),
            unread: Vec::new(),
            replies: Vec::new(),
            closed: false,
        })
    }

    fn edit(&self, edit: &Edit) {
        self.model.edit(edit);
    }

    fn gate(&self) -> &Gate {
        &self.gate
    }

    fn control(&self) -> &'static str {
        model::CONTROL
    }

    fn fids(&self) -> usize {
        self.budget.taken().0
    }
}

struct Direct<K: Kinds> {
    session: Session<K>,
    backend: Arc<dyn Backend<K>>,
    jobs: Vec<(Ticket, Box<dyn Job<K>>)>,
    /// What the session does not want yet.
    unread: Vec<u8>,
    replies: Vec<u8>,
    closed: bool,
}

impl<K: Kinds> Wire for Direct<K>
where
    Self: Send,
{
    fn send(&mut self, bytes: &[u8], _: Duration) -> usize {
        if self.closed {
            return 0;
        }
        self.unread.extend_from_slice(bytes);
        self.turn();
        bytes.len()
    }

    fn receive(&mut self, _: Duration) -> Received {
        if self.replies.is_empty() {
            self.step_jobs();
            self.turn();
        }
        match std::mem::take(&mut self.replies) {
            replies if !replies.is_empty() => Received::Bytes(replies),
            _ if self.closed => Received::Closed,
            _ => Received::Nothing,
        }
    }
}

impl<K: Kinds> Direct<K> {
    /// Goes on until the session wants neither to do, to send nor to read anything.
    fn turn(&mut self) {
        loop {
            let wanted = self.unread.len().min(CHUNK);
            let reads = wanted > 0 && !self.closed && self.session.wants_input();
            if reads {
                self.session.receive(&self.unread[..wanted]);
                self.unread.drain(..wanted);
            }
            while let Some(action) = self.session.poll() {
                self.act(action);
            }
            let sends = self.session.has_output();
            while let Some(buf) = self.session.take() {
                self.replies.extend_from_slice(buf.as_slice());
                self.session.sent(buf);
            }
            if !reads && !sends {
                return;
            }
        }
    }

    fn act(&mut self, action: Action<K>) {
        match action {
            Action::Perform(ticket, ask) => {
                match self.backend.perform(ask, self.session.room(ticket), Effort::Full, NOW) {
                    Progress::Done(outcome) => {
                        self.session.complete(ticket, Some(outcome), None);
                    }
                    Progress::Cold(_) => panic!("an ask is cold although every effort was allowed"),
                    Progress::Later(job) => match self.session.park(ticket) {
                        Ok(()) => self.jobs.push((ticket, job)),
                        Err(refusal) => {
                            self.session.complete(ticket, Some(Err(refusal)), None);
                        }
                    },
                }
            }
            Action::Abandon(ticket) => {
                if let Some(at) = self.jobs.iter().position(|(other, _)| *other == ticket)
                    && self.jobs[at].1.abandon()
                {
                    self.jobs.remove(at);
                    self.session.complete(ticket, None, None);
                }
            }
            Action::Hangup(_) => self.closed = true,
        }
    }

    /// Gives every job one step.
    fn step_jobs(&mut self) {
        for (ticket, mut job) in std::mem::take(&mut self.jobs) {
            match job.step(self.session.room(ticket), NOW) {
                Step::Done(outcome) => {
                    self.session.complete(ticket, Some(outcome), None);
                }
                Step::Again | Step::At(_) | Step::WhenRung(_) => self.jobs.push((ticket, job)),
            }
        }
    }
}

impl<K: Kinds> Drop for Direct<K> {
    fn drop(&mut self) {
        self.session.disconnect();
        while let Some(action) = self.session.poll() {
            self.act(action);
        }
        // A panic in a drop while a case fails would hide the case's own words.
        if !std::thread::panicking() {
            assert!(self.session.is_drained(), "a session kept something after its connection was gone");
        }
    }
}

/// It is always the same moment here: nothing waits for a time.
const NOW: Now = Now { mono_ns: 0, wall_ns: 0 };

/// Bytes handed to the session at a time.
const CHUNK: usize = 4096;
