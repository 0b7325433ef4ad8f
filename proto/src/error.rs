//! Every refusal there is, in one table: its error number, and the words it is told in.
//!
//! 9P2000 sends the `plain` words alone, 9P2000.u the `unix` words and the number, 9P2000.L the number alone.
//!
//! How the words are chosen:
//! - Linux's client maps the words of 9P2000 to a number by exact match with a table of its own (`net/9p/error.c`) and
//!   takes anything else for errno 526. Where a text of that table says the thing, it is used to the letter.
//! - Other clients look for phrases inside. Words of our own therefore hold the phrase of their number ("not permitted"
//!   for EPERM) and none that stands for another one ("denied" for EACCES, "fid" for EBADF).
//! - Linux drops a mount over an Rerror of more than 139 bytes, so `plain` is at most [`PLAIN_MAX`] bytes long and `unix`
//!   at most [`UNIX_MAX`].
//! - No text holds anything a client sent, or a path of the machine.

use core::fmt;

/// Why a request is not done. Only the entries of the table exist: no other crate can make one.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// The error number, as Linux has it on most machines.
    pub errno: u32,
    /// The words of 9P2000.
    pub plain: &'static str,
    /// The words of 9P2000.u, and of the log.
    pub unix: &'static str,
}

/// The most bytes of [`Refusal::plain`].
pub const PLAIN_MAX: usize = 120;
/// The most bytes of [`Refusal::unix`]: an errno follows it in the same message.
pub const UNIX_MAX: usize = 116;

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.unix)
    }
}

impl core::error::Error for Refusal {}

impl Refusal {
    /// The entry for an error number of the host, used where nothing more particular is known. A number that the table
    /// does not have is [`Refusal::IO`].
    pub const fn from_errno(errno: u32) -> Self {
        let mut at = 0;
        while at < Self::HOST.len() {
            if Self::HOST[at].errno == errno {
                return Self::HOST[at];
            }
            at += 1;
        }
        Self::IO
    }
}

/// Makes the constants and the two lists of them from the table. One text serves both dialects where only one is given.
macro_rules! refusals {
    (
        host { $( $(#[$hdoc:meta])* $HOST:ident = $herrno:ident $hplain:literal $(, $hunix:literal)?; )+ }
        own { $( $(#[$doc:meta])* $OWN:ident = $errno:ident $plain:literal $(, $unix:literal)?; )+ }
    ) => {
        impl Refusal {
            $( $(#[$hdoc])* pub const $HOST: Self = refusals!(@entry $herrno $hplain $($hunix)?); )+
            $( $(#[$doc])* pub const $OWN: Self = refusals!(@entry $errno $plain $($unix)?); )+

            /// The entries that stand for an error number of the host, each number once.
            const HOST: &'static [Self] = &[ $( Self::$HOST ),+ ];

            /// The whole table.
            pub const ALL: &'static [Self] = &[ $( Self::$HOST, )+ $( Self::$OWN ),+ ];
        }
    };
    (@entry $errno:ident $both:literal) => { Self { errno: errno::$errno, plain: $both, unix: $both } };
    (@entry $errno:ident $plain:literal $unix:literal) => {
        Self { errno: errno::$errno, plain: $plain, unix: $unix }
    };
}

refusals! {
    host {
        /// The host does not permit it.
        NOT_PERMITTED = EPERM "Operation not permitted";
        /// No such name, or one that cannot be spoken or may not be.
        NOT_FOUND = ENOENT "file does not exist";
        /// No such process. Linux's table has no text for it.
        NO_PROCESS = ESRCH "No such process";
        /// Given up: flushed, or the daemon ends.
        INTERRUPTED = EINTR "Interrupted system call";
        /// The host could not do it.
        IO = EIO "i/o error";
        /// No such device or address.
        NO_ADDRESS = ENXIO "No such device or address";
        /// A descriptor of the daemon went bad.
        BAD_DESCRIPTOR = EBADF "Bad file descriptor";
        /// It would wait where nobody may.
        AGAIN = EAGAIN "Resource temporarily unavailable";
        /// The host is out of memory.
        NO_MEMORY = ENOMEM "Cannot allocate memory";
        /// The host refuses, or a file that may only be read was opened for writing.
        PERMISSION_DENIED = EACCES "permission denied";
        /// In use by something else.
        BUSY = EBUSY "Device or resource busy";
        /// It is there already.
        EXISTS = EEXIST "File exists";
        /// It would cross from one filesystem to another.
        CROSS_DEVICE = EXDEV "Invalid cross-device link";
        /// No such device.
        NO_DEVICE = ENODEV "No such device";
        /// A name below something that is no directory, or O_DIRECTORY on a file.
        NOT_A_DIRECTORY = ENOTDIR "not a directory";
        /// A directory opened for more than reading.
        IS_A_DIRECTORY = EISDIR "Is a directory";
        /// A value that means nothing, such as what a file that is no link says.
        INVALID = EINVAL "Invalid argument";
        /// The host is out of open files.
        HOST_FILES = ENFILE "Too many open files in system";
        /// The daemon is out of open files.
        DAEMON_FILES = EMFILE "Too many open files";
        /// A program that is running.
        TEXT_BUSY = ETXTBSY "Text file busy";
        /// Larger than can be dealt with.
        TOO_LARGE = EFBIG "File too large";
        /// The host's disk is full.
        NO_SPACE = ENOSPC "No space left on device";
        /// A directory read at an offset where no earlier one ended.
        BAD_OFFSET = ESPIPE "bad offset in directory read";
        /// The host's filesystem may not be written.
        READ_ONLY = EROFS "read only file system";
        /// Nobody reads the other end.
        BROKEN_PIPE = EPIPE "Broken pipe";
        /// A number out of range.
        OUT_OF_RANGE = ERANGE "Numerical result out of range";
        /// A name longer than the host takes.
        NAME_TOO_LONG = ENAMETOOLONG "File name too long";
        /// The host has no such call.
        NO_CALL = ENOSYS "Function not implemented";
        /// A directory that still holds something.
        NOT_EMPTY = ENOTEMPTY "Directory not empty";
        /// A symbolic link, where none is followed.
        LINK = ELOOP "Too many levels of symbolic links";
        /// No extended attribute of that name.
        NO_DATA = ENODATA "No data available";
        /// Not done here.
        NOT_SUPPORTED = EOPNOTSUPP "Operation not supported";
        /// It took too long.
        TIMED_OUT = ETIMEDOUT "Connection timed out";
    }
    own {
        /// A fid that is not bound.
        UNKNOWN_FID = EBADF "fid unknown or out of range";
        /// A new fid that is bound already.
        FID_IN_USE = EBADF "fid already in use";
        /// A read of a fid that is not open, an open of one that is, a walk from one onto itself, and the like.
        BAD_FID_USE = EBADF "bad use of fid";
        /// Tauth, and an attach with an afid. The number is 0 because a client of 9P2000.L (diod's) takes an Rlerror of 0,
        /// and nothing else, for "attach without"; Linux's table has 0 for such texts, too.
        NO_AUTH = NONE "authentication not required";
        /// A tag that is in flight, or NOTAG on anything but Tversion.
        DUPLICATE_TAG = EPROTO "duplicate tag", "duplicate tag: protocol error";
        /// Anything before an agreement on the version.
        NO_VERSION = EPROTO "protocol error: no version has been agreed on";
        /// A Tversion whose msize would not hold our largest fixed answer.
        SMALL_MSIZE = EINVAL "invalid msize: the least is 512 bytes in 9P2000, 4096 in 9P2000.u and 9P2000.L";
        /// A message that cannot be decoded.
        MALFORMED = EPROTO "protocol error: malformed message";
        /// A message that the dialect does not have.
        UNKNOWN_MESSAGE = EOPNOTSUPP "Operation not supported", "unknown message: operation not supported";
        /// More than 16 names in one walk.
        TOO_MANY_NAMES = EINVAL "invalid walk: the limit is 16 names";
        /// More fids than one connection may hold.
        CONNECTION_FIDS = EMFILE "too many files held by this connection: the limit is 32768";
        /// More fids than the daemon may hold.
        DAEMON_FIDS = ENFILE "too many files held by all connections: the limit is 262144";
        /// More requests of one connection that wait than may.
        TOO_MANY_PARKED = EBUSY "busy: the limit is 32 waiting requests for each connection";
        /// A large request, when the daemon has no memory for the rest of it.
        INPUT_MEMORY = ENOMEM "no memory for the request: the limit is 32 MiB for requests of all connections";
        /// A wait for a worker, when too many were lost in calls of the host that never return.
        WORKERS_STUCK = EIO "i/o error: 8 workers hang in calls that never return, which is the limit";
        /// Anything that would change the tree: write, create, remove, wstat.
        VIEW = EPERM "Operation not permitted", "this is a view and not a store: writing is not permitted";
        /// An open of a fifo, a socket, a device or a link.
        NOT_REGULAR = EPERM "not a regular file: opening is not permitted";
        /// An open of a file that turned out to be a database that may not be served.
        HIDDEN_DATABASE = EPERM "a database that is not on the list: opening is not permitted";
        /// A directory whose names take more than one listing may.
        LISTING_TOO_LARGE = EFBIG "directory too large: the limit is 16 MiB of names";
        /// A directory whose names take more than is left of what all listings may.
        LISTINGS_TOO_LARGE = ENFILE "too many listings are open: the limit is 64 MiB of names in all";
        /// A session with more files of subagents, or deeper ones, than are looked at.
        TOO_MANY_SUBAGENTS = EFBIG "session too large: the limit is 65536 files of subagents, 16 directories deep";
        /// A transcript whose index takes more than all indexes may.
        CHAT_TOO_LARGE = EFBIG "transcript too large: the limit is 64 MiB of index";
        /// A transcript with more tool names than a chat can number.
        CHAT_TOO_MANY_TOOLS = EFBIG "transcript too large: the limit is 65535 distinct tool names";
        /// A move: not the name of a session.
        MOVE_NAME = EINVAL "invalid session name: 1 to 64 of A-Z a-z 0-9 . _ - and not . or .. or beginning with -";
        /// A move: a name whose socket could not be bound.
        MOVE_LONG_NAME = EINVAL "invalid session name: the limit is 107 bytes with its directory";
        /// A move: a write that does not begin at offset 0.
        MOVE_OFFSET = EINVAL "invalid offset: a session name is written whole, at offset 0";
        /// A move: a live session has the name.
        MOVE_NAME_TAKEN = EEXIST "a live session of that name exists";
        /// A move: no session, but something that keeps one from having its socket there.
        MOVE_NAME_OBSTRUCTED = EEXIST "something else than a session exists where one of that name would be";
        /// A move: it is not known which session to resume.
        MOVE_UNRESOLVED = EPERM "the session of this agent is not known: moving is not permitted";
        /// A move: it is not known where to resume, or the place is gone.
        MOVE_NO_CWD = EPERM "the working directory of this agent is gone or not known: moving is not permitted";
        /// A move: the harness has no command that resumes such a session.
        MOVE_NO_RESUME = EPERM "this agent has no way to resume its session: moving is not permitted";
        /// A move: a path or id that no command line should carry.
        MOVE_CONTROL_BYTE = EPERM "a path or id of this agent holds a control byte or no UTF-8: moving is not permitted";
        /// A move: zmx was not found at start.
        MOVE_NO_ZMX = EPERM "no zmx executable was found at start: moving is not permitted";
        /// A move: the harness was not found at start.
        MOVE_NO_HARNESS = EPERM "no executable of this harness was found at start: moving is not permitted";
        /// A move: the daemon runs inside the agent.
        MOVE_ANCESTOR = EPERM "the daemon runs inside this agent: moving is not permitted";
        /// A move: the process is no longer the one that was listed.
        MOVE_GONE = ESRCH "the agent is gone: no such process";
        /// A move: another one of this agent, or to this name, is under way.
        MOVE_BUSY = EBUSY "busy: another move of this agent or to this name is under way";
        /// A move: the process outlived its signals.
        MOVE_SURVIVED = EIO "i/o error: the agent did not end within 12 s";
        /// A move: the agent has ended, and its new session is not there.
        MOVE_LOST = EIO "i/o error: the agent ended, and its new session did not answer within 12 s";
        /// A move: the agent has ended, and another session has taken the name before its own could begin.
        MOVE_NAME_LOST = EIO "i/o error: the agent ended, and meanwhile another session began under that name";
        /// A move: the agent has ended, and zmx cannot be started.
        MOVE_NOT_STARTED = EIO "i/o error: the agent ended, and zmx could not be started";
        /// A move: asked for over TCP.
        MOVE_REMOTE = EPERM "over TCP moving is not permitted";
    }
}

/// Error numbers, as Linux has them on most machines (`include/uapi/asm-generic/errno.h`).
pub mod errno {
    /// Says "no error" to a client for which that means something.
    pub const NONE: u32 = 0;
    /// Operation not permitted.
    pub const EPERM: u32 = 1;
    /// No such file or directory.
    pub const ENOENT: u32 = 2;
    /// No such process.
    pub const ESRCH: u32 = 3;
    /// Interrupted system call.
    pub const EINTR: u32 = 4;
    /// Input/output error.
    pub const EIO: u32 = 5;
    /// No such device or address.
    pub const ENXIO: u32 = 6;
    /// Bad file descriptor.
    pub const EBADF: u32 = 9;
    /// Resource temporarily unavailable.
    pub const EAGAIN: u32 = 11;
    /// Cannot allocate memory.
    pub const ENOMEM: u32 = 12;
    /// Permission denied.
    pub const EACCES: u32 = 13;
    /// Device or resource busy.
    pub const EBUSY: u32 = 16;
    /// File exists.
    pub const EEXIST: u32 = 17;
    /// Invalid cross-device link.
    pub const EXDEV: u32 = 18;
    /// No such device.
    pub const ENODEV: u32 = 19;
    /// Not a directory.
    pub const ENOTDIR: u32 = 20;
    /// Is a directory.
    pub const EISDIR: u32 = 21;
    /// Invalid argument.
    pub const EINVAL: u32 = 22;
    /// Too many open files in system.
    pub const ENFILE: u32 = 23;
    /// Too many open files.
    pub const EMFILE: u32 = 24;
    /// Text file busy.
    pub const ETXTBSY: u32 = 26;
    /// File too large.
    pub const EFBIG: u32 = 27;
    /// No space left on device.
    pub const ENOSPC: u32 = 28;
    /// Illegal seek.
    pub const ESPIPE: u32 = 29;
    /// Read-only file system.
    pub const EROFS: u32 = 30;
    /// Broken pipe.
    pub const EPIPE: u32 = 32;
    /// Numerical result out of range.
    pub const ERANGE: u32 = 34;
    /// File name too long.
    pub const ENAMETOOLONG: u32 = 36;
    /// Function not implemented.
    pub const ENOSYS: u32 = 38;
    /// Directory not empty.
    pub const ENOTEMPTY: u32 = 39;
    /// Too many levels of symbolic links.
    pub const ELOOP: u32 = 40;
    /// No data available.
    pub const ENODATA: u32 = 61;
    /// Protocol error.
    pub const EPROTO: u32 = 71;
    /// Operation not supported.
    pub const EOPNOTSUPP: u32 = 95;
    /// Connection timed out.
    pub const ETIMEDOUT: u32 = 110;
}
