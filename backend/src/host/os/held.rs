//! Processes that are held, and sockets that are knocked at.
//!
//! Owns: that a signal goes to the process that was meant. Must not know: why anybody sends one.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::host::{Held, Host, Signal};
use crate::process::{Process, Stat};

/// A process by its descriptor (pidfd_open(2)).
#[derive(Debug)]
pub(super) struct OsHeld {
    pidfd: OwnedFd,
}

impl OsHeld {
    /// Opens the descriptor, and looks at the start of the process *after* that. Whoever has the number is the held one as long
    /// as that has not ended, which is asked last: so it was the held one whose start was looked at.
    pub(super) fn take(host: &dyn Host, process: Process) -> Result<Self, Errno> {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        let held = Self { pidfd };
        match Stat::read(host, process.pid) {
            Ok((stat, _)) if stat.process == process && stat.is_alive() && !held.has_ended() => Ok(held),
            Ok(_) | Err(Errno::NOENT) => Err(Errno::SRCH),
            Err(errno) => Err(errno),
        }
    }
}

impl Held for OsHeld {
    fn signal(&self, what: Signal) -> Result<(), Errno> {
        let signal = match what {
            Signal::Term => rustix::process::Signal::TERM,
            Signal::Kill => rustix::process::Signal::KILL,
        };
        pidfd_send_signal(&self.pidfd, signal)
    }

    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// Whether a Unix socket takes a connection. One whose queue is full would.
pub(super) fn is_live(path: &[u8]) -> bool {
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let connected = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .and_then(|socket| rustix::net::connect(&socket, &address));
    matches!(connected, Ok(()) | Err(Errno::AGAIN))
}
