//! The turn of one session, the same for every driver.
//!
//! Owns: carrying asks from a session to the backend and answers back, and when to stop and send. Must not know: sockets,
//! threads, or where an ask goes that cannot be answered at once (the [`Hand`]).

use engine::port::{Ask, Backend, Effort, Job, Kinds, Now, Outcome, Progress, Ticket};
use engine::{Action, Apart, Hangup, Session};

/// What a driver does with the asks that its turn cannot finish.
pub trait Hand<K: Kinds> {
    /// Has an ask performed with [`Effort::Full`] elsewhere. Its [`Finished`] comes later.
    fn cold(&mut self, ticket: Ticket, ask: Ask<K>, apart: Apart);

    /// Has a job stepped to its end. Its [`Finished`] comes later.
    fn job(&mut self, ticket: Ticket, job: Box<dyn Job<K>>, apart: Apart);

    /// The client no longer waits for a ticket. `true`: complete it with `None` now; whatever may still come of it is
    /// late, and had no effect. `false`: its [`Finished`] comes, or is there already.
    fn abandon(&mut self, ticket: Ticket) -> bool;
}

/// What comes back from a [`Hand`].
pub struct Finished<K: Kinds> {
    /// Which ask.
    pub ticket: Ticket,
    /// What became of it.
    pub end: End<K>,
    /// Where its payload is.
    pub apart: Option<Apart>,
}

/// How a handed ask came back.
pub enum End<K: Kinds> {
    /// Answered, or abandoned (`None`).
    Outcome(Option<Outcome<K>>),
    /// A cold ask turned out to be a job: it may run on if the session has room for one more.
    Job(Box<dyn Job<K>>),
}

/// How a turn ended.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Turn {
    /// Nothing more can be done before something arrives. There may be replies to send.
    Idle,
    /// Enough replies are gathered: send them, and take another turn.
    Flush,
    /// Send what there is, and close.
    Hangup(Hangup),
}

/// Does everything the session has to do until it waits, or until enough is gathered to be sent.
pub fn pump<K: Kinds>(
    session: &mut Session<K>,
    backend: &dyn Backend<K>,
    effort: Effort,
    now: Now,
    hand: &mut impl Hand<K>,
) -> Turn {
    while !session.is_worth_sending() {
        match session.poll() {
            None => return Turn::Idle,
            Some(Action::Perform(ticket, ask)) => {
                match backend.perform(ask, session.room(ticket), effort, now) {
                    Progress::Done(outcome) => {
                        session.complete(ticket, Some(outcome), None);
                    }
                    Progress::Cold(ask) => hand.cold(ticket, ask, session.apart(ticket)),
                    Progress::Later(job) => park(session, ticket, job, hand),
                }
            }
            Some(Action::Abandon(ticket)) => {
                if hand.abandon(ticket) {
                    session.complete(ticket, None, None);
                }
            }
            Some(Action::Hangup(why)) => return Turn::Hangup(why),
        }
    }
    Turn::Flush
}

/// Takes back what a hand finished.
pub fn finish<K: Kinds>(session: &mut Session<K>, finished: Finished<K>, hand: &mut impl Hand<K>) {
    match finished.end {
        End::Outcome(outcome) => {
            session.complete(finished.ticket, outcome, finished.apart);
        }
        End::Job(job) => park(session, finished.ticket, job, hand),
    }
}

/// Lets a job run, or refuses it when too many of the connection's requests are jobs.
fn park<K: Kinds>(
    session: &mut Session<K>,
    ticket: Ticket,
    mut job: Box<dyn Job<K>>,
    hand: &mut impl Hand<K>,
) {
    if !session.awaits(ticket) {
        // It was flushed while it was being asked, and its client has been told that nothing happened.
        job.abandon();
        return;
    }
    if session.is_given_up(ticket) && job.abandon() {
        // It was flushed while it came: it has not begun, and never will.
        session.complete(ticket, None, None);
        return;
    }
    match session.park(ticket) {
        // A job is lent a smaller room than what it came from, because it may keep it for long.
        Ok(()) => hand.job(ticket, job, session.apart(ticket)),
        Err(refusal) => {
            job.abandon();
            session.complete(ticket, Some(Err(refusal)), None);
        }
    }
}
