//! A client and a driver in one, around one session on the toy tree.
//!
//! Frames are made and read by the codec. A test either lets every ask be answered at once ([`Rig::call`]), or holds asks
//! back ([`Rig::hold`]) and answers them in an order of its own.

use std::collections::VecDeque;

use engine::port::{Ask, Backend, Effort, Job, Now, Outcome, Progress, Room, Step, Ticket};
use engine::{Action, Apart, Budget, Hangup, Limits, Session};
use proto::frame::{self, Next};
use proto::{Dialect, EncodeError, NOFID, NOTAG, Names, Refusal, Rmessage, Stat, Tmessage};

use crate::toy::{Toy, Tree};

/// A client, a driver and a session.
pub(crate) struct Rig {
    pub(crate) dialect: Dialect,
    pub(crate) session: Session<Toy>,
    pub(crate) tree: Tree,
    /// Asks are kept in `held` instead of being answered.
    pub(crate) hold: bool,
    pub(crate) held: VecDeque<(Ticket, Ask<Toy>)>,
    /// Answers are made apart, as by a worker.
    pub(crate) apart: bool,
    /// Abandoned asks that are held stay held, as though the driver were slow.
    pub(crate) deaf: bool,
    pub(crate) jobs: Vec<(Ticket, Box<dyn Job<Toy>>)>,
    pub(crate) abandoned: Vec<Ticket>,
    pub(crate) hangup: Option<Hangup>,
    /// Nothing is sent: the peer does not read.
    pub(crate) blocked: bool,
    sent: Vec<u8>,
}

/// A reply, as it came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Reply {
    pub(crate) frame: Vec<u8>,
    dialect: Dialect,
}

impl Reply {
    pub(crate) fn tag(&self) -> u16 {
        frame::tag(&self.frame).expect("a whole frame")
    }

    pub(crate) fn message(&self) -> Rmessage<'_> {
        Rmessage::decode(&self.frame, self.dialect).expect("a valid reply").1
    }

    /// The words of an Rerror; panics if it is none. For 9P2000.L use [`Reply::is_refusal`].
    pub(crate) fn is_refusal(&self, refusal: Refusal) -> bool {
        self.message() == Rmessage::refusal(refusal, self.dialect)
    }

    /// The data of an Rread or Rreaddir.
    pub(crate) fn data(&self) -> &[u8] {
        match self.message() {
            Rmessage::Read { data } | Rmessage::Readdir { data } => data,
            other => panic!("not data: {other:?}"),
        }
    }
}

impl Rig {
    /// A session that has spoken a Tversion of 8 KiB and attached fid 0.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self::with(dialect, 8192, Limits::DEFAULT, Budget::default())
    }

    pub(crate) fn with(dialect: Dialect, msize: u32, limits: Limits, budget: Budget) -> Self {
        let mut rig = Self::silent(dialect, limits, budget);
        rig.version(msize);
        rig.attach(0);
        rig
    }

    /// A session that has said nothing.
    pub(crate) fn silent(dialect: Dialect, limits: Limits, budget: Budget) -> Self {
        Self {
            dialect,
            session: Session::new(limits, budget, 42),
            tree: Tree::default(),
            hold: false,
            held: VecDeque::new(),
            apart: false,
            deaf: false,
            jobs: Vec::new(),
            abandoned: Vec::new(),
            hangup: None,
            blocked: false,
            sent: Vec::new(),
        }
    }

    pub(crate) fn version(&mut self, msize: u32) {
        let version = self.dialect.name().as_bytes();
        let reply = self.call_as(NOTAG, &Tmessage::Version { msize, version });
        assert_eq!(reply.message(), Rmessage::Version { msize, version });
    }

    pub(crate) fn attach(&mut self, fid: u32) {
        let reply = self.call(&attach(fid, b""));
        assert!(matches!(reply.message(), Rmessage::Attach { .. }), "{:?}", reply.message());
    }

    /// Encodes a message.
    pub(crate) fn frame(&self, tag: u16, message: &Tmessage<'_>) -> Vec<u8> {
        let mut frame = vec![0; 1024];
        loop {
            match message.encode(tag, self.dialect, &mut frame) {
                Ok(size) => {
                    frame.truncate(size);
                    return frame;
                }
                Err(EncodeError::Full) => frame.resize(2 * frame.len(), 0),
                Err(error) => panic!("{message:?}: {error}"),
            }
        }
    }

    /// Sends a message and lets the session act on it.
    pub(crate) fn send(&mut self, tag: u16, message: &Tmessage<'_>) {
        let frame = self.frame(tag, message);
        self.send_bytes(&frame);
    }

    /// Sends bytes and lets the session act on them.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.session.receive(bytes);
        self.run();
    }

    /// Sends a message and takes the one reply there is.
    pub(crate) fn call(&mut self, message: &Tmessage<'_>) -> Reply {
        self.call_as(1, message)
    }

    pub(crate) fn call_as(&mut self, tag: u16, message: &Tmessage<'_>) -> Reply {
        self.send(tag, message);
        let mut replies = self.replies();
        assert_eq!(replies.len(), 1, "to {message:?} came {replies:?}");
        let reply = replies.remove(0);
        assert_eq!(reply.tag(), tag);
        reply
    }

    /// Walks to a path, `newfid` becoming its end.
    pub(crate) fn walk(&mut self, fid: u32, newfid: u32, path: &str) {
        let mut space = [0; 4096];
        let reply = self.call(&walk(fid, newfid, path, &mut space));
        let Rmessage::Walk { qids } = reply.message() else { panic!("{:?}", reply.message()) };
        assert_eq!(qids.len(), path.split_terminator('/').count(), "{path}");
    }

    /// Opens a fid for reading.
    pub(crate) fn open(&mut self, fid: u32) {
        self.open_as(fid, proto::OREAD);
    }

    pub(crate) fn open_as(&mut self, fid: u32, mode: u8) {
        let reply = self.call(&open(self.dialect, fid, mode));
        assert!(
            matches!(reply.message(), Rmessage::Open { .. } | Rmessage::Lopen { .. }),
            "{:?}",
            reply.message()
        );
    }

    /// Everything that has been sent since the last call.
    pub(crate) fn replies(&mut self) -> Vec<Reply> {
        let mut replies = Vec::new();
        let mut rest = &self.sent[..];
        while let Next::Frame(size) = frame::next(rest, u32::MAX) {
            replies.push(Reply { frame: rest[..size].to_vec(), dialect: self.dialect });
            rest = &rest[size..];
        }
        assert!(rest.is_empty(), "a torn reply");
        self.sent.clear();
        replies
    }

    /// The tags of [`Rig::replies`].
    pub(crate) fn tags(&mut self) -> Vec<u16> {
        self.replies().iter().map(Reply::tag).collect()
    }

    /// Does all there is to do.
    pub(crate) fn run(&mut self) {
        loop {
            while let Some(action) = self.session.poll() {
                match action {
                    Action::Perform(ticket, ask) if self.hold => self.held.push_back((ticket, ask)),
                    Action::Perform(ticket, ask) => self.perform(ticket, ask),
                    Action::Abandon(ticket) => self.abandon(ticket),
                    Action::Hangup(why) => self.hangup = Some(why),
                }
            }
            if !self.blocked && self.session.has_output() {
                self.flush();
            } else {
                return;
            }
        }
    }

    /// Answers the held ask at this place.
    pub(crate) fn answer(&mut self, at: usize) {
        let (ticket, ask) = self.held.remove(at).expect("an ask at this place");
        self.perform(ticket, ask);
        self.run();
    }

    /// Completes the held ask at this place without the backend.
    pub(crate) fn answer_with(&mut self, at: usize, outcome: Option<Outcome<Toy>>) {
        let (ticket, _) = self.held.remove(at).expect("an ask at this place");
        assert!(self.session.complete(ticket, outcome, None));
        self.run();
    }

    /// Steps every job once.
    pub(crate) fn step(&mut self) {
        for (ticket, mut job) in std::mem::take(&mut self.jobs) {
            let (step, apart) = self.lend(ticket, |room| job.step(room, Now::default()));
            match step {
                Step::Done(outcome) => assert!(self.session.complete(ticket, Some(outcome), apart)),
                Step::Again | Step::At(_) | Step::WhenRung(_) => self.jobs.push((ticket, job)),
            }
        }
        self.run();
    }

    /// The peer is gone.
    pub(crate) fn disconnect(&mut self) {
        self.session.disconnect();
        self.run();
    }

    fn perform(&mut self, ticket: Ticket, ask: Ask<Toy>) {
        let tree = self.tree.clone();
        let perform = |room: Room<'_>| tree.perform(ask, room, Effort::Full, Now::default());
        let (progress, apart) = self.lend(ticket, perform);
        match progress {
            Progress::Done(outcome) => assert!(self.session.complete(ticket, Some(outcome), apart)),
            Progress::Cold(_) => panic!("the toy is never cold"),
            Progress::Later(mut job) => match self.session.park(ticket) {
                Ok(()) => self.jobs.push((ticket, job)),
                Err(refusal) => {
                    assert!(job.abandon());
                    assert!(self.session.complete(ticket, Some(Err(refusal)), None));
                }
            },
        }
    }

    fn lend<T>(&mut self, ticket: Ticket, work: impl FnOnce(Room<'_>) -> T) -> (T, Option<Apart>) {
        if self.apart {
            let mut apart = self.session.apart(ticket);
            (work(apart.room()), Some(apart))
        } else {
            (work(self.session.room(ticket)), None)
        }
    }

    fn abandon(&mut self, ticket: Ticket) {
        assert!(!self.abandoned.contains(&ticket), "told twice that nobody waits");
        self.abandoned.push(ticket);
        if let Some(at) = self.held.iter().position(|(held, _)| *held == ticket).filter(|_| !self.deaf) {
            self.held.remove(at);
            assert!(self.session.complete(ticket, None, None));
        }
        if let Some(at) = self.jobs.iter().position(|(job, _)| *job == ticket)
            && self.jobs[at].1.abandon()
        {
            self.jobs.remove(at);
            assert!(self.session.complete(ticket, None, None));
        }
    }

    /// Sends all that is queued.
    pub(crate) fn flush(&mut self) {
        while let Some(buf) = self.session.take() {
            self.sent.extend_from_slice(buf.as_slice());
            self.session.sent(buf);
        }
    }
}

pub(crate) fn attach(fid: u32, aname: &[u8]) -> Tmessage<'_> {
    Tmessage::Attach { fid, afid: NOFID, uname: b"glenda", aname, n_uname: Some(1000) }
}

pub(crate) fn walk<'a>(fid: u32, newfid: u32, path: &str, space: &'a mut [u8]) -> Tmessage<'a> {
    let names = Names::pack(path.split_terminator('/').map(str::as_bytes), space).expect("short names");
    Tmessage::Walk { fid, newfid, names }
}

/// Opens with a mode of open(5) in any dialect.
pub(crate) fn open(dialect: Dialect, fid: u32, mode: u8) -> Tmessage<'static> {
    if dialect != Dialect::Linux {
        return Tmessage::Open { fid, mode };
    }
    let truncate = if mode & proto::OTRUNC != 0 { proto::O_TRUNC } else { 0 };
    Tmessage::Lopen { fid, flags: u32::from(mode & proto::OMASK) | truncate }
}

pub(crate) fn read(fid: u32, offset: u64, count: u32) -> Tmessage<'static> {
    Tmessage::Read { fid, offset, count }
}

/// Reads a directory in any dialect.
pub(crate) fn list(dialect: Dialect, fid: u32, offset: u64, count: u32) -> Tmessage<'static> {
    match dialect {
        Dialect::Linux => Tmessage::Readdir { fid, offset, count },
        Dialect::Plain | Dialect::Unix => Tmessage::Read { fid, offset, count },
    }
}

/// Asks for attributes in any dialect.
pub(crate) fn stat(dialect: Dialect, fid: u32) -> Tmessage<'static> {
    match dialect {
        Dialect::Linux => Tmessage::Getattr { fid, mask: proto::GETATTR_BASIC },
        Dialect::Plain | Dialect::Unix => Tmessage::Stat { fid },
    }
}

/// Sets a length in any dialect; `None` changes nothing.
pub(crate) fn set_length(dialect: Dialect, fid: u32, length: Option<u64>) -> Tmessage<'static> {
    match dialect {
        Dialect::Plain | Dialect::Unix => {
            Tmessage::Wstat { fid, stat: Stat { length: length.unwrap_or(!0), ..Stat::UNTOUCHED } }
        }
        Dialect::Linux => Tmessage::Setattr {
            fid,
            valid: length.map_or(0, |_| proto::SETATTR_SIZE),
            mode: 0,
            uid: 0,
            gid: 0,
            size: length.unwrap_or(0),
            atime_sec: 0,
            atime_nsec: 0,
            mtime_sec: 0,
            mtime_nsec: 0,
        },
    }
}
