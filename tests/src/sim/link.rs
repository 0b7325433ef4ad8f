//! The server's end of one simulated connection.
//!
//! Owns: a session, what its turns leave to be done (the `Bench`), and the replies on their way out. Must not know: what
//! comes next. Every piece of work is there to be picked by whoever holds the link: nothing happens by itself.

use std::collections::VecDeque;
use std::sync::Arc;

use drivers::pump::{End, Finished, Hand, Turn, finish, pump};
use engine::port::{Ask, Backend, Effort, Job, Kinds, Now, Outcome, Progress, Step, Ticket};
use engine::{Apart, Budget, Buf, Limits, Session};

/// One connection, as its driver has it.
pub struct Link<K: Kinds> {
    session: Session<K>,
    bench: Bench<K>,
    /// Replies handed to the wire, in order, and not yet taken by it.
    sending: VecDeque<Buf>,
    hung_up: bool,
}

impl<K: Kinds> Link<K> {
    /// A fresh connection.
    pub fn new(backend: Arc<dyn Backend<K>>, limits: Limits, budget: Budget, seed: u64) -> Self {
        Self {
            session: Session::new(limits, budget, seed),
            bench: Bench { backend, tasks: Vec::new(), given_up: Vec::new() },
            sending: VecDeque::new(),
            hung_up: false,
        }
    }

    /// The same, for a client that came by a way on which requests may change something.
    #[must_use]
    pub fn local(self) -> Self {
        Self { session: self.session.local(), ..self }
    }

    /// The session, to be looked at.
    pub fn session(&self) -> &Session<K> {
        &self.session
    }

    /// Whether the session has asked for the connection to be closed. What is sent by then still goes out.
    pub fn has_hung_up(&self) -> bool {
        self.hung_up
    }

    /// Whether the session takes bytes now.
    pub fn wants_input(&self) -> bool {
        !self.hung_up && self.session.wants_input()
    }

    /// Bytes come from the client.
    pub fn receive(&mut self, bytes: &[u8], now: Now) {
        self.session.receive(bytes);
        self.turn(now);
    }

    /// The next replies that the wire has not taken.
    pub fn outgoing(&self) -> Option<&[u8]> {
        self.sending.front().map(Buf::as_slice)
    }

    /// The wire has taken what [`Link::outgoing`] showed.
    pub fn sent(&mut self, now: Now) {
        if let Some(buf) = self.sending.pop_front() {
            self.session.sent(buf);
            self.turn(now);
        }
    }

    /// What is left to be done, in the order in which it came up.
    pub fn tasks(&self) -> &[Task<K>] {
        &self.bench.tasks
    }

    /// How many tasks can go on.
    pub fn ready(&self, now: Now, epoch: u64) -> usize {
        self.bench.tasks.iter().filter(|task| task.is_ready(now, epoch)).count()
    }

    /// Does one piece of work: at the task of this number among those that can go on.
    pub fn work_ready(&mut self, number: usize, now: Now, epoch: u64) {
        let mut ready = self.bench.tasks.iter().enumerate().filter(|(_, task)| task.is_ready(now, epoch));
        if let Some((at, _)) = ready.nth(number) {
            self.work(at, now);
        }
    }

    /// When the next task goes on that waits for a time ([`Now::mono_ns`]).
    pub fn next_ns(&self) -> Option<u64> {
        let times = self.bench.tasks.iter().filter_map(|task| match task.when() {
            When::At(at_ns) => Some(at_ns),
            When::Now | When::Rung(_) => None,
        });
        times.min()
    }

    /// Does one piece of what [`Link::tasks`] shows: asks once more, with every effort; gives a job a step; or takes an
    /// answer to the session.
    pub fn work(&mut self, at: usize, now: Now) {
        let Task { ticket, mut apart, stage } = self.bench.tasks.remove(at);
        let stage = match stage {
            Stage::Cold(ask) => match self.bench.backend.perform(ask, apart.room(), Effort::Full, now) {
                Progress::Done(outcome) => Stage::Asked(End::Outcome(Some(outcome))),
                Progress::Later(job) => Stage::Asked(End::Job(job)),
                Progress::Cold(_) => panic!("an ask is cold although every effort was allowed"),
            },
            Stage::Job(mut job, _) => match job.step(apart.room(), now) {
                Step::Done(outcome) => Stage::Stepped(outcome),
                Step::Again => Stage::Job(job, When::Now),
                Step::At(at) => Stage::Job(job, When::At(at)),
                Step::WhenRung(epoch) => Stage::Job(job, When::Rung(epoch)),
            },
            Stage::Asked(end) => return self.finish(Finished { ticket, end, apart: Some(apart) }, now),
            Stage::Stepped(outcome) => {
                let end = End::Outcome(Some(outcome));
                return self.finish(Finished { ticket, end, apart: Some(apart) }, now);
            }
        };
        // Its place in the line stays: a schedule that picks the first of all is then first come, first served.
        self.bench.tasks.insert(at, Task { ticket, apart, stage });
    }

    /// The client is gone, and with it whatever is on its way to it.
    pub fn disconnect(&mut self, now: Now) {
        self.hung_up = true;
        self.session.disconnect();
        while let Some(buf) = self.sending.pop_front() {
            self.session.sent(buf);
        }
        self.turn(now);
    }

    /// Gives memory back, as a driver does with a connection that is quiet.
    pub fn shed(&mut self) {
        self.session.shed();
    }

    fn finish(&mut self, finished: Finished<K>, now: Now) {
        finish(&mut self.session, finished, &mut self.bench);
        self.turn(now);
    }

    fn turn(&mut self, now: Now) {
        loop {
            let backend = Arc::clone(&self.bench.backend);
            let turn = pump(&mut self.session, &*backend, Effort::Cached, now, &mut self.bench);
            while let Some(buf) = self.session.take() {
                self.sending.push_back(buf);
            }
            match turn {
                Turn::Flush => {}
                Turn::Idle => return,
                Turn::Hangup(_) => {
                    self.hung_up = true;
                    return;
                }
            }
        }
    }
}

/// Asks that a turn could not finish.
struct Bench<K: Kinds> {
    backend: Arc<dyn Backend<K>>,
    tasks: Vec<Task<K>>,
    /// Asks that were given up while they were asked: what still comes of them is late.
    given_up: Vec<Ticket>,
}

/// One of them.
pub struct Task<K: Kinds> {
    ticket: Ticket,
    apart: Apart,
    stage: Stage<K>,
}

enum Stage<K: Kinds> {
    /// To be asked again, with every effort.
    Cold(Ask<K>),
    /// To be stepped.
    Job(Box<dyn Job<K>>, When),
    /// Asked, and the session does not know the end yet.
    Asked(End<K>),
    /// Stepped to its end, and the session does not know.
    Stepped(Outcome<K>),
}

/// When a task can go on.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum When {
    /// At any time.
    Now,
    /// From this [`Now::mono_ns`] on.
    At(u64),
    /// Once the backend's epoch is another.
    Rung(u64),
}

impl<K: Kinds> Task<K> {
    /// When it can go on.
    pub fn when(&self) -> When {
        match self.stage {
            Stage::Job(_, when) => when,
            Stage::Cold(_) | Stage::Asked(_) | Stage::Stepped(_) => When::Now,
        }
    }

    fn is_ready(&self, now: Now, epoch: u64) -> bool {
        match self.when() {
            When::Now => true,
            When::At(at_ns) => at_ns <= now.mono_ns,
            When::Rung(seen) => seen != epoch,
        }
    }

    /// Whether it is a job.
    pub fn is_job(&self) -> bool {
        matches!(self.stage, Stage::Job(..))
    }
}

impl<K: Kinds> Hand<K> for Bench<K> {
    fn cold(&mut self, ticket: Ticket, ask: Ask<K>, apart: Apart) {
        self.tasks.push(Task { ticket, apart, stage: Stage::Cold(ask) });
    }

    fn job(&mut self, ticket: Ticket, job: Box<dyn Job<K>>, apart: Apart) {
        assert!(!self.given_up.contains(&ticket), "a job begins although nobody waits for it any more");
        self.tasks.push(Task { ticket, apart, stage: Stage::Job(job, When::Now) });
    }

    fn abandon(&mut self, ticket: Ticket) -> bool {
        let Some(at) = self.tasks.iter().position(|task| task.ticket == ticket) else { return true };
        let gone = match &mut self.tasks[at].stage {
            Stage::Cold(_) => true,
            Stage::Job(job, _) => job.abandon(),
            // A worker is in the middle of it: the session is told that nothing will come, and what comes is late.
            Stage::Asked(_) => {
                self.given_up.push(ticket);
                return true;
            }
            // The answer is on its way.
            Stage::Stepped(_) => return false,
        };
        if gone {
            self.tasks.remove(at);
        }
        gone
    }
}
