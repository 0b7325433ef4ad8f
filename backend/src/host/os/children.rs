//! Programs that this process starts.
//!
//! Owns: how they are started, and that each is waited for. Must not know: what they are.
//!
//! One thread waits for all of them, by descriptor and not by SIGCHLD, so that nobody else's children are taken and no handler is
//! needed. It is there only as long as there is anybody to wait for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::host::Launch;

/// The programs that were started and have not been waited for.
#[derive(Debug, Default)]
pub(super) struct Children {
    launcher: Vec<OsString>,
    shared: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Those that the thread does not know of yet.
    new: Vec<Running>,
    /// What wakes the thread, while there is one.
    bell: Option<Arc<OwnedFd>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// None where no descriptor was to be had: then it is asked after from time to time.
    pidfd: Option<OwnedFd>,
}

impl Children {
    /// None yet; each will be started through a command that becomes it, and that writes a byte to its standard output as soon as
    /// it has a session of its own.
    pub(super) fn launched_by(launcher: Vec<OsString>) -> Self {
        Self { launcher, shared: Arc::default() }
    }

    /// Starts a program.
    pub(super) fn spawn(&self, launch: &Launch<'_>) -> Result<(), Errno> {
        let args = launch.args.iter().map(|arg| OsStr::from_bytes(arg));
        let mut words = self.launcher.iter().map(OsString::as_os_str).chain(args);
        let mut command = Command::new(words.next().ok_or(Errno::INVAL)?);
        command.args(words).env_clear().current_dir(OsStr::from_bytes(launch.cwd));
        for variable in launch.env {
            if let Some(at) = memchr::memchr(b'=', variable) {
                command.env(OsStr::from_bytes(&variable[..at]), OsStr::from_bytes(&variable[at + 1..]));
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let sign = if self.launcher.is_empty() {
            None
        } else {
            let (sign, pen) = pipe_with(PipeFlags::CLOEXEC)?;
            command.stdout(pen);
            Some(sign)
        };
        let child = command.spawn().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        self.adopt(Running { child, pidfd });
        // And with it our end of what it signs.
        drop(command);
        sign.map_or(Ok(()), |sign| await_sign(&sign))
    }

    fn adopt(&self, running: Running) {
        let mut state = lock(&self.shared);
        state.new.push(running);
        if let Some(bell) = &state.bell {
            // An eventfd takes 2^64 - 2 of these before it refuses one.
            let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
            return;
        }
        let Ok(bell) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new) else {
            return;
        };
        let (shared, heard) = (Arc::clone(&self.shared), Arc::clone(&bell));
        // Where no thread can be had, the next program that is started brings one, and that waits for this one too.
        let started = thread::Builder::new().name("children".into()).spawn(move || wait(&shared, &heard));
        state.bell = started.ok().map(|_| bell);
    }
}

/// Waits until a launcher says that it has a session of its own. One that ends without a word was ended by what is sent to our
/// whole group, as a terminal sends an interrupt, and has started nothing: it may be tried again.
fn await_sign(sign: &OwnedFd) -> Result<(), Errno> {
    let bytes = retry_on_intr(|| rustix::io::read(sign, &mut [0; 1]))?;
    if bytes == 0 { Err(Errno::AGAIN) } else { Ok(()) }
}

/// Waits for all there are, and for those that come meanwhile.
fn wait(shared: &Mutex<State>, bell: &OwnedFd) {
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut state = lock(shared);
        running.append(&mut state.new);
        running.retain_mut(|one| matches!(one.child.try_wait(), Ok(None)));
        if running.is_empty() {
            state.bell = None;
            return;
        }
        drop(state);
        let mut fds = vec![PollFd::new(bell, PollFlags::IN)];
        fds.extend(running.iter().filter_map(|one| Some(PollFd::new(one.pidfd.as_ref()?, PollFlags::IN))));
        let all_are_seen = fds.len() == running.len() + 1;
        let _ = poll(&mut fds, if all_are_seen { None } else { Some(&ASK_AGAIN) });
        let _ = rustix::io::read(bell, &mut [0; 8]);
    }
}

fn lock(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often those are asked after that no descriptor tells of.
const ASK_AGAIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
