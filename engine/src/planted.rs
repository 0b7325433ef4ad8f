//! Bugs on purpose.
//!
//! Owns: a list of bugs, and which of them is there. Each is one line where it does harm, and a test sees each of them found:
//! what would not find these could not be trusted to find others. Nothing of it is compiled without the feature `planted`,
//! which no package turns on by default.

use core::sync::atomic::{AtomicU8, Ordering};

macro_rules! bugs {
    ($( $(#[doc = $doc:literal])+ $Bug:ident )+) => {
        /// A bug.
        #[derive(Copy, Clone, Debug, Eq, PartialEq)]
        #[repr(u8)]
        pub enum Bug { $( $(#[doc = $doc])+ $Bug, )+ }

        impl Bug {
            /// All of them, each with what it does.
            pub const ALL: &'static [(Self, &'static str)] = &[ $( (Self::$Bug, concat!($($doc),+)) ),+ ];
        }
    };
}

bugs! {
    /// A reply that was made elsewhere is lost when another request is in flight.
    ReplyLost
    /// A flush is answered before what it flushes has ended.
    FlushEarly
    /// Flushes of one request are answered last first.
    FlushOrder
    /// A clunked fid keeps its place in the table.
    FidLeaked
    /// The count of all fids keeps one when a session ends.
    BudgetLeaked
    /// Two opens of one fid run at once.
    OpenShared
    /// A walk binds its fid though only some of its names resolved.
    WalkBinds
    /// A job that nobody waits for any more runs on.
    JobRevived
    /// A hidden name resolves.
    HiddenWalked
    /// A hidden name is listed.
    HiddenListed
    /// A link is listed as a file.
    LinkListed
    /// A database is served once it is open.
    DatabaseServed
    /// An open file is never checked.
    PinStale
    /// An open file that was replaced is not closed.
    FileLeaked
    /// A listing lacks its last entry.
    ListingShort
    /// A listing that failed half-way is taken for complete.
    ListingTorn
    /// Files that differ in their handles only have one qid path.
    QidCollision
    /// The version of a file does not count its size.
    VersionStuck
    /// A text is never made anew, and read without its first byte.
    TextStale
    /// The name of a process ends at its first bracket.
    NameCut
    /// A lock that is waited for is taken for held.
    LockWaits
    /// Half a line is forgotten once the rest of it comes.
    LineTorn
    /// A character that is spelt as a pair of surrogates is taken for two.
    PairSplit
    /// A move asks its agent to end before everything is looked at.
    MoveEager
    /// A move kills without giving time.
    MoveHasty
    /// A move that nobody waits for is dropped after its first signal.
    MoveDropped
    /// Two moves of one agent are made at once.
    MoveTwice
    /// A move does not look whether another session has taken the name.
    MoveBlind
    /// A move brings an agent back that has not ended.
    MoveDoubled
    /// A move that has ended is still counted.
    MoveCounted
    /// A connection from afar may move.
    MoveRemote
    /// A process that has the pid of another is taken for it.
    PidReused
    /// A record counts for whoever has the pid in it.
    RecordStale
    /// This process's own ancestors are listed.
    AncestorListed
    /// A line of a transcript counts before its end is written.
    HalfLineTold
    /// A line that was met half written is gone on with at its second half.
    LineCut
    /// A record that a transcript repeats is told again, and moves the ids behind it.
    RecordTwice
    /// A transcript that is another by now is told from the old places.
    ChatStale
}

/// Plants a bug in place of the one before, or none.
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(NONE, |bug| bug as u8), Ordering::SeqCst);
}

/// Whether a bug is there.
pub fn is(bug: Bug) -> bool {
    PLANTED.load(Ordering::SeqCst) == bug as u8
}

static PLANTED: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = u8::MAX;
