//! The blocking driver: a thread per connection.
//!
//! Owns: accepting, one thread and one session per connection, the waits of that thread, and an orderly stop. Must not
//! know: the tree, or who may connect (`listen`, `peer`).
//!
//! A connection's thread alone owns its session. It waits in a plain recv(2) while nothing is with the workers, and in
//! poll(2) on the socket and its mailbox while something is. Its buffers are given back after a second of quiet; then it
//! waits without waking.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use engine::port::{Backend, Kinds};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::clock;
use crate::listen::{Accepted, Gate, Listener, Stream};
use crate::log::Seldom;
use crate::offload::Mailbox;
use crate::pump::{Finished, Turn};
use crate::server::{Conversation, Ending, Options, QUIET, Shared, Stopping, log_left_behind, log_refused};
use crate::signals::Stop;

/// Serves every connection of the listeners, and those already there, until asked to stop.
///
/// # Errors
/// What keeps it from starting. Once it serves, failures are logged and cost at most a connection.
pub fn serve<K: Kinds>(
    backend: &Arc<dyn Backend<K>>,
    listeners: &[Listener],
    streams: Vec<Stream>,
    stop: &Stop,
    options: &Options,
) -> io::Result<()> {
    let mut gate = Gate::new()?;
    let server = Server::new(backend, options);
    for stream in streams {
        server.connect(stream);
    }
    for listener in listeners {
        listener.set_nonblocking(true)?;
    }
    let mut pause = None;
    while !stop.is_asked() {
        for listener in announced(listeners, stop, pause.take())? {
            match gate.accept(listener) {
                Accepted::Stream(stream) => server.connect(stream),
                Accepted::Nothing => {}
                Accepted::Pause(time) => pause = Some(time),
            }
        }
    }
    server.drain();
    Ok(())
}

/// Serves one connection until it ends, or until asked to stop.
///
/// # Errors
/// What keeps it from starting.
pub fn serve_one<K: Kinds>(
    backend: &Arc<dyn Backend<K>>,
    stream: Stream,
    stop: &Stop,
    options: &Options,
) -> io::Result<()> {
    let server = Server::new(backend, options);
    let ended = Arc::new(Stop::new()?);
    server.registry.lock().ended = Some(Arc::clone(&ended));
    server.connect(stream);
    let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(&*ended, PollFlags::IN)];
    while !stop.is_asked() && !ended.is_asked() {
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    server.drain();
    Ok(())
}

/// The listeners that have a connection to accept, once there is one or the stop is asked. While accepting pauses only
/// the stop is looked at.
fn announced<'l>(
    listeners: &'l [Listener],
    stop: &Stop,
    pause: Option<Duration>,
) -> io::Result<Vec<&'l Listener>> {
    let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
    if pause.is_none() {
        fds.extend(listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)));
    }
    let timeout = pause.and_then(|time| time.try_into().ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Vec::new()),
        Err(errno) => return Err(errno.into()),
    }
    let ready = fds[1..].iter().zip(listeners).filter(|(fd, _)| !fd.revents().is_empty());
    Ok(ready.map(|(_, listener)| listener).collect())
}

/// The server: what its connections share, and which there are.
struct Server<K: Kinds> {
    shared: Shared<K>,
    registry: Arc<Registry>,
}

impl<K: Kinds> Server<K> {
    fn new(backend: &Arc<dyn Backend<K>>, options: &Options) -> Self {
        Self { shared: Shared::new(backend, options), registry: Arc::default() }
    }

    /// Gives a connection its thread, or closes it if there are too many.
    fn connect(&self, stream: Stream) {
        let stream = Arc::new(stream);
        let Some(entry) = self.registry.enter(&stream, self.shared.options.connections) else { return };
        let connection = match Connection::new(&self.shared, stream, entry) {
            Ok(connection) => connection,
            Err(error) => return self.registry.lock().log_failed(&error),
        };
        let thread = thread::Builder::new().name("connection".into()).stack_size(STACK);
        if let Err(error) = thread.spawn(move || connection.run()) {
            self.registry.lock().log_failed(&error);
        }
    }

    /// Takes no more requests, and waits until what is in flight is answered, within bounds.
    fn drain(&self) {
        let mut stopping = Stopping::new(clock::now().mono_ns, &self.shared.options);
        let mut connections = self.registry.lock();
        for (_, stream) in &connections.streams {
            if stream.is_socket() {
                // A peer that is gone already needs no telling.
                let _ = shutdown(stream.input(), Shutdown::Read);
            }
        }
        while !connections.streams.is_empty() {
            let now_ns = clock::now().mono_ns;
            if stopping.is_over(now_ns, || self.shared.must_finish()) {
                log_left_behind(connections.streams.len());
                return;
            }
            let left = Duration::from_nanos(stopping.look_ns().saturating_sub(now_ns));
            let waited = self.registry.left.wait_timeout(connections, left);
            connections = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The connections there are.
#[derive(Default)]
struct Registry {
    connections: Mutex<Connections>,
    left: Condvar,
}

#[derive(Default)]
struct Connections {
    streams: Vec<(u64, Arc<Stream>)>,
    next: u64,
    refused: Seldom,
    ended: Option<Arc<Stop>>,
}

impl Connections {
    /// Says that a connection was closed because it could not be served.
    fn log_failed(&mut self, why: &io::Error) {
        self.refused.log(|more| tracing::warn!(more, "refused a connection: {why}"));
    }
}

impl Registry {
    fn lock(&self) -> std::sync::MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, stream: &Arc<Stream>, limit: usize) -> Option<Entry> {
        let mut connections = self.lock();
        if connections.streams.len() >= limit {
            log_refused(&mut connections.refused, limit);
            return None;
        }
        let number = connections.next;
        connections.next += 1;
        connections.streams.push((number, Arc::clone(stream)));
        Some(Entry { registry: Arc::clone(self), number })
    }
}

/// A connection's place among the others; dropping it gives the place up.
struct Entry {
    registry: Arc<Registry>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut connections = self.registry.lock();
        connections.streams.retain(|(number, _)| *number != self.number);
        if let Some(ended) = &connections.ended {
            ended.ask();
        }
        self.registry.left.notify_all();
    }
}

/// One connection, on its thread.
struct Connection<K: Kinds> {
    conversation: Conversation<K>,
    letters: Arc<Letters<K>>,
    stream: Arc<Stream>,
    scratch: Vec<u8>,
    unread: Duration,
    /// How long a recv(2) waits; `None` without end.
    patience: Option<Duration>,
    eof: bool,
    /// Last, so that the place is given up when everything else is.
    _entry: Entry,
}

impl<K: Kinds> Connection<K> {
    fn new(shared: &Shared<K>, stream: Arc<Stream>, entry: Entry) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let letters = Arc::new(Letters { finished: Mutex::default(), wake });
        let mailbox = Arc::<Letters<K>>::clone(&letters);
        Ok(Self {
            conversation: Conversation::new(shared, entry.number, mailbox, stream.transport(), clock::now()),
            letters,
            stream,
            scratch: Vec::new(),
            unread: shared.options.unread,
            patience: None,
            eof: false,
            _entry: entry,
        })
    }

    fn run(mut self) {
        tracing::debug!("a connection came: {}", self.stream.transport());
        let ending = match self.converse() {
            Ok(ending) | Err(ending) => ending,
        };
        self.conversation.log_end(ending);
        self.end();
    }

    /// Serves until the connection ends, and says why it does.
    fn converse(&mut self) -> Result<Ending, Ending> {
        loop {
            let turn = self.conversation.turn(clock::now());
            let sent = self.send()?;
            match turn {
                Turn::Idle if !sent => {
                    if !self.wait()? {
                        return Ok(Ending::Over);
                    }
                }
                // What is sent makes place, and may have been all that the session waited for.
                Turn::Idle | Turn::Flush => {}
                Turn::Hangup(why) => return Ok(Ending::Hangup(why)),
            }
        }
    }

    /// Lets the session go: nothing of it stays with the workers.
    fn end(mut self) {
        self.conversation.disconnect();
        loop {
            self.conversation.turn(clock::now());
            if self.conversation.session.is_drained() {
                return;
            }
            let mut fds = [PollFd::new(&self.letters.wake, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            self.collect();
        }
    }

    /// Waits until there is something to do; `false` once there never will be.
    fn wait(&mut self) -> Result<bool, Ending> {
        if self.collect() {
            return Ok(true);
        }
        let left = self.time_left()?;
        if !self.conversation.session.is_busy() {
            return if self.eof { Ok(false) } else { self.read(left) };
        }
        let wanted = if self.eof || !self.conversation.session.wants_input() {
            PollFlags::empty()
        } else {
            PollFlags::IN
        };
        let input = self.stream.input();
        let mut fds = [PollFd::new(&self.letters.wake, PollFlags::IN), PollFd::new(&input, wanted)];
        if !poll_for(&mut fds, left)? {
            return Ok(true);
        }
        let socket = fds[1].revents();
        if self.collect() {
            return Ok(true);
        }
        if socket.contains(PollFlags::IN) {
            return self.read(left);
        }
        // Both ways are closed: nobody will read what is still to be answered.
        Ok(!socket.intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// How long the peer may still take to say what it owes us; `None` where it owes nothing.
    fn time_left(&self) -> Result<Option<Duration>, Ending> {
        let Some((at, ending)) = self.conversation.due() else { return Ok(None) };
        match at.saturating_sub(clock::now().mono_ns) {
            0 => Err(ending),
            left => Ok(Some(Duration::from_nanos(left))),
        }
    }

    /// Takes what the workers finished. Whether there was anything.
    fn collect(&mut self) -> bool {
        let finished = self.letters.take();
        let any = !finished.is_empty();
        for one in finished {
            self.conversation.finish(one);
        }
        any
    }

    /// Reads what the peer sent, waiting for it, for so long at most; `false` if nothing more will come and nothing is left to
    /// be done.
    fn read(&mut self, left: Option<Duration>) -> Result<bool, Ending> {
        let warm = !self.scratch.is_empty();
        let patience = if warm { Some(left.map_or(QUIET, |left| left.min(QUIET))) } else { left };
        if !warm {
            self.scratch = vec![0; SCRATCH];
        }
        match self.receive(patience)? {
            Ok(0) => self.eof = true,
            Ok(count) => self.conversation.session.receive(&self.scratch[..count]),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => self.trim(),
            Err(errno) => return Err(errno.into()),
        }
        Ok(!self.eof || self.conversation.session.is_busy() || self.conversation.session.has_output())
    }

    /// Reads into the scratch, waiting for so long at most: then it is EAGAIN.
    fn receive(&mut self, patience: Option<Duration>) -> Result<Result<usize, Errno>, Ending> {
        let input = self.stream.input();
        if !self.stream.is_socket() {
            // A pipe knows no timeouts.
            let comes = patience.is_none() || poll_for(&mut [PollFd::new(&input, PollFlags::IN)], patience)?;
            return Ok(if comes {
                rustix::io::read(input, &mut self.scratch[..])
            } else {
                Err(Errno::AGAIN)
            });
        }
        if self.patience != patience {
            // Less than the kernel counts in would be no timeout at all.
            let timeout = patience.map(|time| time.max(Duration::from_millis(1)));
            set_socket_timeout(input, Timeout::Recv, timeout)?;
            self.patience = patience;
        }
        Ok(recv(input, &mut self.scratch[..], RecvFlags::empty()).map(|(count, _)| count))
    }

    /// Sends all replies there are. Whether there were any.
    fn send(&mut self) -> Result<bool, Ending> {
        let any = self.conversation.session.has_output();
        while let Some(buf) = self.conversation.session.take() {
            let sent = self.send_all(buf.as_slice());
            self.conversation.session.sent(buf);
            sent?;
        }
        Ok(any)
    }

    fn send_all(&self, mut bytes: &[u8]) -> Result<(), Ending> {
        while !bytes.is_empty() {
            let sent = if self.stream.is_socket() {
                // Without waiting: a send(2) that waits does not tell when it last sent something.
                send(self.stream.output(), bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
            } else {
                rustix::io::write(self.stream.output(), bytes)
            };
            match sent {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.await_reader()?,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Waits until the peer has read some of its replies.
    fn await_reader(&self) -> Result<(), Ending> {
        let deadline = Instant::now() + self.unread;
        let output = self.stream.output();
        let mut fds = [PollFd::new(&output, PollFlags::OUT)];
        while !poll_for(&mut fds, Some(deadline.saturating_duration_since(Instant::now())))? {
            if Instant::now() >= deadline {
                return Err(Ending::Unread);
            }
        }
        Ok(())
    }

    /// Gives memory back.
    fn trim(&mut self) {
        drop(self.conversation.session.shed());
        self.scratch = Vec::new();
    }
}

/// Waits for one of these, for so long at most; `false` if it was for nothing.
fn poll_for(fds: &mut [PollFd<'_>], time: Option<Duration>) -> Result<bool, Errno> {
    let timeout = time.and_then(|time| time.try_into().ok());
    match poll(fds, timeout.as_ref()) {
        Ok(0) | Err(Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(errno) => Err(errno),
    }
}

/// Where the workers leave what they finished for one connection.
struct Letters<K: Kinds> {
    finished: Mutex<Vec<Finished<K>>>,
    wake: OwnedFd,
}

impl<K: Kinds> Letters<K> {
    fn take(&self) -> Vec<Finished<K>> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if finished.is_empty() {
            return Vec::new();
        }
        // Under the lock, so that no wake-up is read away whose letter is not taken.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut finished)
    }
}

impl<K: Kinds> Mailbox<K> for Letters<K> {
    fn deliver(&self, finished: Finished<K>) {
        let mut letters = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push(finished);
        if letters.len() == 1 {
            // An eventfd takes 2^64 - 2 of these before it refuses one.
            let _ = rustix::io::write(self.wake.as_fd(), &1_u64.to_ne_bytes());
        }
    }
}

/// Bytes asked of one recv(2): some hundred requests, which is more than may be in flight. A connection holds as much until it is
/// quiet.
const SCRATCH: usize = 16 * 1024;
/// A connection's stack. The deepest path through the backend takes a fraction of it.
const STACK: usize = 512 * 1024;
