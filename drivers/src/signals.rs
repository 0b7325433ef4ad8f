//! Signals: what asks the daemon to stop, and what must not end it.
//!
//! Owns the handlers. What is done about a stop is the drivers' business; this only tells them.
//!
//! Handlers, not a signalfd: a child starts with the mask of the thread that made it and with every handled
//! signal back at its default, so nothing of this reaches one. That is also why a signal that must not end us
//! gets a handler that does nothing, unless it is ignored already: ignoring is what a child would inherit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::pipe::PipeFlags;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};

use crate::limits::Inherited;

/// Makes SIGHUP and SIGPIPE do nothing, whatever they would do now. Calls they interrupt are restarted where
/// signal(7) says so.
pub fn ignore_hangups(inherited: &Inherited) -> io::Result<()> {
    for signal in [SIGHUP, SIGPIPE] {
        if !inherited.ignored.has(signal) {
            signal_hook::flag::register(signal, Arc::default())?;
        }
    }
    Ok(())
}

/// Whether the daemon has been asked to stop. Once it has, that stays so.
///
/// Its descriptor becomes readable then, and stays readable because nobody may read from it: any number of
/// threads can poll it.
#[derive(Debug)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    readable: OwnedFd,
    wake: OwnedFd,
}

impl Stop {
    /// One that only [`ask`](Self::ask) asks.
    pub fn new() -> io::Result<Self> {
        let (readable, wake) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(Self { asked: Arc::default(), readable, wake })
    }

    /// One that SIGTERM and SIGINT ask too, from now on and for good.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::new()?;
        for signal in [SIGTERM, SIGINT] {
            // In this order: who is woken finds the flag.
            signal_hook::flag::register(signal, Arc::clone(&stop.asked))?;
            signal_hook::low_level::pipe::register(signal, stop.wake.try_clone()?)?;
        }
        Ok(stop)
    }

    /// Asks, as a signal would.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::SeqCst);
        // A full pipe is as readable as it can be.
        let _ = rustix::io::write(&self.wake, &[1]);
    }

    /// Another descriptor that becomes readable with this one.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn watch(&self) -> io::Result<OwnedFd> {
        self.readable.try_clone()
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}
