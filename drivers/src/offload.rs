//! The worker pool: asks that may wait for a disk, and jobs.
//!
//! Owns: a few threads, the queue in front of them, the jobs that sleep until a time or a change, and what is done about a
//! call that never returns. Must not know: sessions or sockets; results go to a [`Mailbox`].
//!
//! Threads are started when they are first needed and then wait without waking. No lock is held while the backend works.
//! A call that takes too long is written off: its client gets an error, its thread is replaced, and its
//! late result is thrown away. That happens at most 8 times at once; then asks are refused in words.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use engine::Apart;
use engine::port::{Ask, Backend, Effort, Job, Kinds, Progress, Step, Ticket};
use proto::Refusal;

use crate::clock;
use crate::pump::{End, Finished};

/// Takes what a pool finished, on the pool's thread.
pub trait Mailbox<K: Kinds>: Send + Sync {
    /// Takes it and wakes whoever owns the session. Called without a lock held.
    fn deliver(&self, finished: Finished<K>);
}

/// Names an ask among all connections.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Key {
    /// The connection, by a number that is never used twice.
    pub connection: u64,
    /// The ask.
    pub ticket: Ticket,
}

/// The pool. Dropping it ends its threads as soon as they are idle; what is queued then is never performed.
pub struct Pool<K: Kinds> {
    shared: Arc<Shared<K>>,
}

struct Shared<K: Kinds> {
    backend: Arc<dyn Backend<K>>,
    stuck_ns: u64,
    state: Mutex<State<K>>,
    work: Condvar,
    watch: Condvar,
}

struct State<K: Kinds> {
    queue: VecDeque<Task<K>>,
    /// Jobs that sleep until a time, by that time and the order in which they lay down.
    timers: BTreeMap<(u64, u64), Task<K>>,
    /// Jobs that sleep until the backend's epoch is another.
    rung: Vec<(u64, Task<K>)>,
    workers: Vec<Worker<K>>,
    idle: usize,
    lost: usize,
    laid_down: u64,
    watcher: Watcher,
    stopping: bool,
}

struct Task<K: Kinds> {
    key: Key,
    work: Work<K>,
    apart: Apart,
    mailbox: Arc<dyn Mailbox<K>>,
}

enum Work<K: Kinds> {
    Ask(Ask<K>),
    Job(Box<dyn Job<K>>),
}

enum Worker<K: Kinds> {
    Free,
    Busy {
        since_ns: u64,
        key: Key,
        mailbox: Arc<dyn Mailbox<K>>,
        is_job: bool,
        abandoned: bool,
    },
    /// In a call that did not return in time; its client has been told.
    Lost,
    /// No thread: the place may be taken again.
    Gone,
}

#[derive(Copy, Clone, Eq, PartialEq)]
enum Watcher {
    Absent,
    /// Waits until something is busy.
    Resting,
    /// Waits until the oldest busy call is overdue.
    Timing,
}

impl<K: Kinds> Pool<K> {
    /// A pool without a thread yet. A call that takes longer than `stuck_after` is written off.
    pub fn new(backend: Arc<dyn Backend<K>>, stuck_after: Duration) -> Self {
        let state = State {
            queue: VecDeque::new(),
            timers: BTreeMap::new(),
            rung: Vec::new(),
            workers: Vec::new(),
            idle: 0,
            lost: 0,
            laid_down: 0,
            watcher: Watcher::Absent,
            stopping: false,
        };
        let shared = Shared {
            backend,
            stuck_ns: stuck_after.as_nanos() as u64,
            state: Mutex::new(state),
            work: Condvar::new(),
            watch: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Has an ask performed with [`Effort::Full`].
    pub fn ask(&self, key: Key, ask: Ask<K>, apart: Apart, mailbox: &Arc<dyn Mailbox<K>>) {
        self.submit(Task { key, work: Work::Ask(ask), apart, mailbox: Arc::clone(mailbox) });
    }

    /// Has a job stepped to its end.
    pub fn job(&self, key: Key, job: Box<dyn Job<K>>, apart: Apart, mailbox: &Arc<dyn Mailbox<K>>) {
        self.submit(Task { key, work: Work::Job(job), apart, mailbox: Arc::clone(mailbox) });
    }

    /// Nobody waits any more for an ask that has not been completed. `true`: nothing of it will be delivered, or what is
    /// delivered is late, and nothing came of it. `false`: its end is delivered, or has been: it is a job that may be past undoing,
    /// or it ended while the mailbox was not looked at, and what it did is done.
    pub fn abandon(&self, key: Key) -> bool {
        let mut state = self.shared.lock();
        if let Some(task) = state.take_out(key) {
            drop(state);
            return self.shared.abandon_task(task);
        }
        for worker in &mut state.workers {
            if let Worker::Busy { key: busy, is_job, abandoned, .. } = worker
                && *busy == key
            {
                *abandoned = true;
                // A plain ask has no effect that its client would have to hear of.
                return !*is_job;
            }
        }
        // It has come to its end, which lies in the mailbox or is on its way there.
        false
    }

    /// The backend's epoch may have moved on another thread: looks whether a job waited for that.
    pub fn ring(&self) {
        let state = self.shared.lock();
        if !state.rung.is_empty() {
            self.shared.work.notify_one();
        }
    }

    /// Jobs that have not ended.
    pub fn jobs(&self) -> usize {
        let state = self.shared.lock();
        let queued = state.queue.iter().filter(|task| matches!(task.work, Work::Job(_))).count();
        let busy = state.workers.iter().filter(|worker| matches!(worker, Worker::Busy { is_job: true, .. }));
        queued + state.timers.len() + state.rung.len() + busy.count()
    }

    fn submit(&self, task: Task<K>) {
        let mut state = self.shared.lock();
        if state.idle == 0 && !self.shared.add_worker(&mut state) && state.live() == 0 {
            drop(state);
            task.refuse(Refusal::WORKERS_STUCK);
            return;
        }
        if state.queue.len() >= MAX_QUEUED {
            drop(state);
            task.refuse(Refusal::AGAIN);
            return;
        }
        state.queue.push_back(task);
        self.shared.work.notify_one();
    }
}

impl<K: Kinds> Drop for Pool<K> {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.work.notify_all();
        self.shared.watch.notify_all();
    }
}

impl<K: Kinds> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // The state is changed in small steps that do not panic; a panic of a backend happens outside the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more worker if there may be one.
    fn add_worker(self: &Arc<Self>, state: &mut State<K>) -> bool {
        if state.live() >= WORKERS || state.lost > MAX_LOST {
            return false;
        }
        let place = state.workers.iter().position(|worker| matches!(worker, Worker::Gone));
        let place = place.unwrap_or_else(|| {
            state.workers.push(Worker::Gone);
            state.workers.len() - 1
        });
        let shared = Arc::clone(self);
        let started = thread::Builder::new().name("worker".into()).spawn(move || shared.run_worker(place));
        match started {
            Ok(_) => state.workers[place] = Worker::Free,
            Err(error) => tracing::warn!("cannot start a worker: {error}"),
        }
        matches!(state.workers[place], Worker::Free)
    }

    fn run_worker(self: Arc<Self>, place: usize) {
        let mut state = self.lock();
        loop {
            if state.stopping {
                state.workers[place] = Worker::Gone;
                return;
            }
            let now = clock::now();
            state.wake_sleepers(now.mono_ns, self.backend.epoch());
            let Some(task) = state.queue.pop_front() else {
                state = self.rest(state, now.mono_ns);
                continue;
            };
            if !state.queue.is_empty() && state.idle > 0 {
                self.work.notify_one();
            }
            state.workers[place] = Worker::busy(&task, now.mono_ns);
            self.watch_over(&mut state);
            drop(state);
            let done = self.work_on(task);
            state = self.lock();
            match std::mem::replace(&mut state.workers[place], Worker::Free) {
                Worker::Lost => {
                    // The client was told long ago, so what came of it is of no use; but a job past undoing is stepped to its
                    // end. The thread goes on if it is still needed.
                    state.lost -= 1;
                    state = self.settle_late(state, done);
                    if state.live() > WORKERS {
                        state.workers[place] = Worker::Gone;
                        return;
                    }
                }
                Worker::Busy { abandoned, .. } => state = self.settle(state, done, abandoned),
                Worker::Free | Worker::Gone => {}
            }
        }
    }

    /// Waits for work, or for the first timer.
    fn rest<'s>(&self, mut state: MutexGuard<'s, State<K>>, mono_ns: u64) -> MutexGuard<'s, State<K>> {
        let pause = state.timers.first_key_value().map(|((at, _), _)| at.saturating_sub(mono_ns));
        state.idle += 1;
        let mut state = match pause {
            None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(ns) => {
                let waited = self.work.wait_timeout(state, Duration::from_nanos(ns));
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.idle -= 1;
        state
    }

    /// Does one piece of work, with no lock held.
    fn work_on(&self, task: Task<K>) -> Worked<K> {
        let Task { key, work, mut apart, mailbox } = task;
        let now = clock::now();
        let (end, apart) = match work {
            Work::Ask(ask) => match self.backend.perform(ask, apart.room(), Effort::Full, now) {
                Progress::Done(outcome) => (End::Outcome(Some(outcome)), apart),
                Progress::Later(job) => (End::Job(job), apart),
                Progress::Cold(_) => {
                    debug_assert!(false, "a backend found an ask cold that it may wait for");
                    (End::Outcome(Some(Err(Refusal::IO))), apart)
                }
            },
            Work::Job(mut job) => {
                let sleep = match job.step(apart.room(), now) {
                    Step::Done(outcome) => {
                        let end = End::Outcome(Some(outcome));
                        return Worked::Finished(
                            Finished { ticket: key.ticket, end, apart: Some(apart) },
                            mailbox,
                        );
                    }
                    Step::Again => Sleep::None,
                    Step::At(at) => Sleep::Until(at),
                    Step::WhenRung(epoch) => Sleep::Rung(epoch),
                };
                return Worked::Unfinished(Task { key, work: Work::Job(job), apart, mailbox }, sleep);
            }
        };
        Worked::Finished(Finished { ticket: key.ticket, end, apart: Some(apart) }, mailbox)
    }

    /// Delivers what is finished, and lays down what is not.
    fn settle<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<K>>,
        done: Worked<K>,
        abandoned: bool,
    ) -> MutexGuard<'s, State<K>> {
        match done {
            Worked::Finished(finished, mailbox) => {
                drop(state);
                mailbox.deliver(finished);
                self.lock()
            }
            Worked::Unfinished(task, sleep) if abandoned => {
                drop(state);
                let (ticket, mailbox) = (task.key.ticket, Arc::clone(&task.mailbox));
                if self.abandon_task_into(task, sleep) {
                    mailbox.deliver(Finished { ticket, end: End::Outcome(None), apart: None });
                }
                self.lock()
            }
            Worked::Unfinished(task, sleep) => {
                state.lay_down(task, sleep);
                state
            }
        }
    }

    /// The same for what is no longer waited for, and will not be delivered.
    fn settle_late<'s>(
        &'s self,
        state: MutexGuard<'s, State<K>>,
        done: Worked<K>,
    ) -> MutexGuard<'s, State<K>> {
        drop(state);
        match done {
            Worked::Unfinished(task, sleep) => drop(self.abandon_task_into(task, sleep)),
            Worked::Finished(..) => {}
        }
        self.lock()
    }

    /// Abandons a task that was taken out: `true` if it is gone, `false` if it had to be put back.
    fn abandon_task(&self, task: Task<K>) -> bool {
        self.abandon_task_into(task, Sleep::None)
    }

    fn abandon_task_into(&self, mut task: Task<K>, sleep: Sleep) -> bool {
        let gone = task.abandon();
        if gone {
            drop(task);
        } else {
            self.lock().lay_down(task, sleep);
        }
        self.work.notify_one();
        gone
    }

    /// No thread is left, and none may be started: whoever waits is told so. A job past undoing waits on.
    fn refuse_all<'s>(&'s self, mut state: MutexGuard<'s, State<K>>) -> MutexGuard<'s, State<K>> {
        let mut waiting: Vec<_> = state.queue.drain(..).collect();
        waiting.extend(std::mem::take(&mut state.timers).into_values());
        waiting.extend(state.rung.drain(..).map(|(_, task)| task));
        drop(state);
        for mut task in waiting {
            if task.abandon() {
                task.refuse(Refusal::WORKERS_STUCK);
            } else {
                self.lock().lay_down(task, Sleep::None);
            }
        }
        self.lock()
    }

    /// Makes sure that somebody looks after a call that may not return.
    fn watch_over(self: &Arc<Self>, state: &mut State<K>) {
        match state.watcher {
            Watcher::Timing => {}
            Watcher::Resting => self.watch.notify_one(),
            Watcher::Absent => {
                let shared = Arc::clone(self);
                match thread::Builder::new().name("watcher".into()).spawn(move || shared.run_watcher()) {
                    Ok(_) => state.watcher = Watcher::Timing,
                    Err(error) => tracing::warn!("cannot start the watcher of the workers: {error}"),
                }
            }
        }
    }

    fn run_watcher(self: Arc<Self>) {
        let mut state = self.lock();
        while !state.stopping {
            let now = clock::now().mono_ns;
            for (key, mailbox) in state.write_off(now, self.stuck_ns) {
                tracing::warn!(
                    "a call has not returned for {} ms: its worker is written off, and replaced if it may be",
                    self.stuck_ns / 1_000_000
                );
                self.add_worker(&mut state);
                drop(state);
                let end = End::Outcome(Some(Err(Refusal::IO)));
                mailbox.deliver(Finished { ticket: key.ticket, end, apart: None });
                state = self.lock();
            }
            if state.live() == 0 {
                state = self.refuse_all(state);
            }
            state = match state.oldest_busy() {
                None => {
                    state.watcher = Watcher::Resting;
                    self.watch.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Some(since) => {
                    state.watcher = Watcher::Timing;
                    let pause = Duration::from_nanos((since + self.stuck_ns).saturating_sub(now));
                    self.watch.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.watcher = Watcher::Absent;
    }
}

impl<K: Kinds> State<K> {
    /// Threads that can take work, now or soon.
    fn live(&self) -> usize {
        self.workers.iter().filter(|worker| matches!(worker, Worker::Free | Worker::Busy { .. })).count()
    }

    fn oldest_busy(&self) -> Option<u64> {
        let since = self.workers.iter().filter_map(|worker| match worker {
            Worker::Busy { since_ns, .. } => Some(*since_ns),
            _ => None,
        });
        since.min()
    }

    /// Gives up the workers whose call is overdue: whom to tell.
    fn write_off(&mut self, mono_ns: u64, stuck_ns: u64) -> Vec<(Key, Arc<dyn Mailbox<K>>)> {
        let mut told = Vec::new();
        for worker in &mut self.workers {
            let Worker::Busy { since_ns, key, mailbox, .. } = worker else { continue };
            if mono_ns.saturating_sub(*since_ns) >= stuck_ns {
                told.push((*key, Arc::clone(mailbox)));
                *worker = Worker::Lost;
                self.lost += 1;
            }
        }
        told
    }

    /// Queues the jobs whose time has come, and those that wait for an epoch that is past.
    fn wake_sleepers(&mut self, mono_ns: u64, epoch: u64) {
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= mono_ns) {
            self.queue.push_back(first.remove());
        }
        let mut at = 0;
        while at < self.rung.len() {
            if self.rung[at].0 == epoch {
                at += 1;
            } else {
                self.queue.push_back(self.rung.swap_remove(at).1);
            }
        }
    }

    fn lay_down(&mut self, task: Task<K>, sleep: Sleep) {
        match sleep {
            Sleep::None => self.queue.push_back(task),
            Sleep::Until(at) => {
                self.laid_down += 1;
                self.timers.insert((at, self.laid_down), task);
            }
            Sleep::Rung(epoch) => self.rung.push((epoch, task)),
        }
    }

    /// Takes a task out of wherever it waits.
    fn take_out(&mut self, key: Key) -> Option<Task<K>> {
        if let Some(at) = self.queue.iter().position(|task| task.key == key) {
            return self.queue.remove(at);
        }
        if let Some(at) = self.rung.iter().position(|(_, task)| task.key == key) {
            return Some(self.rung.swap_remove(at).1);
        }
        let at = self.timers.iter().find(|(_, task)| task.key == key).map(|(at, _)| *at)?;
        self.timers.remove(&at)
    }
}

impl<K: Kinds> Task<K> {
    /// Whether it is undone, or never began.
    fn abandon(&mut self) -> bool {
        match &mut self.work {
            Work::Ask(_) => true,
            Work::Job(job) => job.abandon(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        let end = End::Outcome(Some(Err(refusal)));
        self.mailbox.deliver(Finished { ticket: self.key.ticket, end, apart: None });
    }
}

impl<K: Kinds> Worker<K> {
    fn busy(task: &Task<K>, since_ns: u64) -> Self {
        let is_job = matches!(task.work, Work::Job(_));
        Self::Busy { since_ns, key: task.key, mailbox: Arc::clone(&task.mailbox), is_job, abandoned: false }
    }
}

/// What a piece of work came to.
enum Worked<K: Kinds> {
    Finished(Finished<K>, Arc<dyn Mailbox<K>>),
    Unfinished(Task<K>, Sleep),
}

/// How long a job need not be stepped.
#[derive(Copy, Clone)]
enum Sleep {
    None,
    Until(u64),
    Rung(u64),
}

/// Threads that work.
const WORKERS: usize = 4;
/// Threads that may be lost in calls that do not return before asks are refused.
const MAX_LOST: usize = 8;
/// Asks that may wait for a thread: as many as all connections may have in flight.
const MAX_QUEUED: usize = 256 * engine::limits::MAX_REQUESTS;
