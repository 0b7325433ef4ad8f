//! What the supervisor is told, see sd_notify(3): that we serve, and that we stop.
//!
//! Owns when and in what words. Must not know: what is served, or by which driver. Without `NOTIFY_SOCKET` in the environment
//! nothing is done; a supervisor that cannot be told is a line in the log, and no reason not to serve.

use std::io;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sd_notify::NotifyState;

use crate::signals::Stop;

/// Tells the supervisor, as long as we serve.
#[derive(Debug)]
pub struct Notifier(Option<JoinHandle<()>>);

impl Notifier {
    /// Says that clients can connect, and has a thread say that we stop once we are asked to.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn ready(stop: &Stop) -> io::Result<Self> {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return Ok(Self(None));
        }
        tell(&NotifyState::Ready);
        let stop = stop.watch()?;
        let thread = thread::Builder::new().name("notify".to_owned()).spawn(move || {
            let mut asked = [PollFd::new(&stop, PollFlags::IN)];
            while let Err(Errno::INTR) = poll(&mut asked, None) {}
            tell(&NotifyState::Stopping);
        })?;
        Ok(Self(Some(thread)))
    }

    /// Sees to it that the stop has been told before we are gone, whatever ended us.
    pub fn end(self, stop: &Stop) {
        if let Some(thread) = self.0 {
            stop.ask();
            // It panics never, and if it did: we are ending.
            let _ = thread.join();
        }
    }
}

fn tell(what: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(what)) {
        tracing::warn!("the supervisor could not be told of {what}: {error}");
    }
}
