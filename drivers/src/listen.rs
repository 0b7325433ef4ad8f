//! Listening sockets, and the streams that come out of them.
//!
//! Owns what is bound, how a connection becomes a [`Stream`], and what is done when the process runs out of
//! descriptors. Who may connect is `peer`'s business, socket files are `post`'s, and what is spoken on a
//! stream is nobody's here.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, sockopt};

use crate::log::Seldom;
use crate::peer::{self, Stranger};
use crate::post::{Name, Post, PostError};

/// A socket that listens. Dropping it closes it and, where it made a file, removes that.
#[derive(Debug)]
pub struct Listener {
    // Before the socket, so that its file goes first and nobody is refused by a name that is still posted.
    post: Option<Post>,
    socket: OwnedFd,
    address: Address,
    allow_remote: bool,
}

impl Listener {
    /// Listens under a name; see [`Post::name`].
    pub fn name(runtime_dir: Option<&OsStr>, name: &Name) -> Result<Self, ListenError> {
        Self::posted(Post::name(runtime_dir, name)?)
    }

    /// Listens at a path; see [`Post::path`].
    pub fn unix(path: &Path) -> Result<Self, ListenError> {
        Self::posted(Post::path(path)?)
    }

    /// Listens on TCP; with port 0 the kernel chooses one. An address that is not a loopback address needs
    /// `allow_remote`, and is warned of.
    pub fn tcp(address: SocketAddr, allow_remote: bool) -> Result<Self, ListenError> {
        check_loopback(address, allow_remote)?;
        let failed = |cause| ListenError::Tcp { address, cause };
        let socket = TcpListener::bind(address).map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        Self::new(socket.into(), None, Address::Tcp(bound), allow_remote)
    }

    /// Takes over a socket that listens already. Its file, if it has one, belongs to who made it.
    pub fn adopt(socket: OwnedFd, allow_remote: bool) -> Result<Self, ListenError> {
        let address = Address::of(socket.as_fd()).map_err(ListenError::Socket)?;
        if let Address::Tcp(address) = address {
            check_loopback(address, allow_remote)?;
        }
        Self::new(socket, None, address, allow_remote)
    }

    /// The address that is really bound.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether an accept(2) that has nothing to accept returns or waits. A new listener's returns.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, on)?)
    }

    /// Takes the socket's file away, if it has one and it is still ours, so that no client finds it any more.
    pub fn unpost(&mut self) {
        self.post = None;
    }

    fn posted((socket, post): (OwnedFd, Post)) -> Result<Self, ListenError> {
        let address = Address::Unix(post.location().to_owned());
        Self::new(socket, Some(post), address, false)
    }

    fn new(
        socket: OwnedFd,
        post: Option<Post>,
        address: Address,
        allow_remote: bool,
    ) -> Result<Self, ListenError> {
        let listener = Self { post, socket, address, allow_remote };
        listener.set_nonblocking(true).map_err(ListenError::Socket)?;
        tracing::info!("listening on {}", listener.address);
        Ok(listener)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Where a listener can be dialled. Shown as the command line takes it: `unix!PATH`, `tcp!HOST!PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket's path; empty for one that has none.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
}

impl Address {
    /// The address that a socket is bound to.
    fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let name = rustix::net::getsockname(socket)?;
        if name.address_family() != AddressFamily::UNIX {
            return Ok(Self::Tcp(SocketAddr::try_from(name)?));
        }
        let name = SocketAddrUnix::try_from(name)?;
        let path = name.path_bytes().map(|bytes| PathBuf::from(bytes_to_os(bytes)));
        Ok(Self::Unix(path.unwrap_or_default()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix!{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp!{}!{}", address.ip(), address.port()),
        }
    }
}

/// Why something does not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Its file could not be made.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Other machines could connect.
    #[error(
        "{0} is not a loopback address: --allow-remote would let everybody who can reach it read everything"
    )]
    NotLoopback(SocketAddr),
    /// Binding or listening failed.
    #[error("cannot listen on {address}: {cause}")]
    Tcp {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the kernel said.
        cause: io::Error,
    },
    /// A call on a socket that already listens failed.
    #[error("cannot use the listening socket: {0}")]
    Socket(io::Error),
}

/// A connected stream whose peer may be there.
#[derive(Debug)]
pub struct Stream {
    input: OwnedFd,
    output: Option<OwnedFd>,
    transport: Transport,
}

impl Stream {
    /// A stream whose two ways are two descriptors.
    pub(crate) fn two_way(input: OwnedFd, output: OwnedFd) -> Self {
        Self { input, output: Some(output), transport: Transport::Inherited }
    }

    /// A stream whose giver is trusted.
    pub(crate) fn trusted(socket: OwnedFd) -> Self {
        prepare(socket.as_fd());
        Self { input: socket, output: None, transport: Transport::Inherited }
    }

    /// Lets a connected socket in if its peer may be there.
    pub(crate) fn admit(socket: OwnedFd, allow_remote: bool) -> Result<Self, Stranger> {
        let own = rustix::net::getsockname(&socket).map_err(io::Error::from)?;
        let transport = if own.address_family() == AddressFamily::UNIX {
            Transport::Unix { uid: peer::admit_unix(socket.as_fd())? }
        } else {
            let local = SocketAddr::try_from(own).map_err(io::Error::from)?;
            let remote =
                rustix::net::getpeername(&socket).map_err(io::Error::from)?.ok_or(Stranger::NotFound)?;
            let peer = SocketAddr::try_from(remote).map_err(io::Error::from)?;
            Transport::Tcp { local, peer, uid: peer::admit_tcp(local, peer, allow_remote)? }
        };
        prepare(socket.as_fd());
        Ok(Self { input: socket, output: None, transport })
    }

    /// Where the peer's bytes come from.
    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// Where bytes for the peer go: the input itself, if that is a socket.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_ref().unwrap_or(&self.input).as_fd()
    }

    /// Whether this is a socket, for which recv(2), send(2) and shutdown(2) work; else it is a pair of pipes.
    pub fn is_socket(&self) -> bool {
        self.output.is_none()
    }

    /// What the stream came by.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The descriptors, input first; the output's only if it is another.
    pub fn into_descriptors(self) -> (OwnedFd, Option<OwnedFd>) {
        (self.input, self.output)
    }
}

/// What a stream came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A unix socket.
    Unix {
        /// Whose process connected.
        uid: u32,
    },
    /// A TCP connection. Nothing is moved over one, whoever asks.
    Tcp {
        /// Our end.
        local: SocketAddr,
        /// The other end.
        peer: SocketAddr,
        /// Whose socket the other end is; `None` if it is elsewhere.
        uid: Option<u32>,
    },
    /// A descriptor that we were started with.
    Inherited,
}

impl Transport {
    /// Whether it is a way on which requests may change something: never over TCP.
    pub fn is_local(self) -> bool {
        match self {
            Self::Unix { .. } | Self::Inherited => true,
            Self::Tcp { .. } => false,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { uid } => write!(f, "a unix socket, uid {uid}"),
            Self::Tcp { peer, uid: Some(uid), .. } => write!(f, "{peer}, uid {uid}"),
            Self::Tcp { peer, uid: None, .. } => write!(f, "{peer}"),
            Self::Inherited => f.write_str("an inherited descriptor"),
        }
    }
}

/// Accepts connections, for one thread and any number of listeners.
///
/// Without a free descriptor accept(2) fails and the connection stays queued, so a plain loop would spin.
/// This holds one descriptor back: it is given up to accept that connection and close it, which tells the
/// peer. Where even that fails it asks for a pause.
#[derive(Debug)]
pub struct Gate {
    spare: Option<OwnedFd>,
    pause: Duration,
    complaints: Seldom,
}

/// What came of an accept.
#[derive(Debug)]
pub enum Accepted {
    /// A stream whose peer may be there.
    Stream(Stream),
    /// No stream this time: there was none, or it was refused and closed, which is logged. Try again when
    /// poll(2) says so.
    Nothing,
    /// Nothing can be accepted now: try again after this time.
    Pause(Duration),
}

impl Gate {
    /// Opens the descriptor that is held back.
    pub fn new() -> io::Result<Self> {
        Ok(Self { spare: Some(open_spare()?), pause: PAUSE_MIN, complaints: Seldom::default() })
    }

    /// Accepts a connection that poll(2) announced and lets it in if its peer may be there.
    pub fn accept(&mut self, listener: &Listener) -> Accepted {
        // Another thread can have opened something in its place. The next that is free is for it and not for a connection, or
        // nobody could be told any more that there is none.
        if self.spare.is_none() {
            match open_spare() {
                Ok(spare) => self.spare = Some(spare),
                Err(errno) => return self.failed(listener, errno),
            }
        }
        match rustix::net::accept_with(&listener.socket, SocketFlags::CLOEXEC) {
            Ok(socket) => self.admit(listener, socket),
            Err(errno) => self.failed(listener, errno),
        }
    }

    /// Lets in a connection that was accepted otherwise. Its descriptor must be close-on-exec.
    pub fn admit(&mut self, listener: &Listener, socket: OwnedFd) -> Accepted {
        self.pause = PAUSE_MIN;
        match Stream::admit(socket, listener.allow_remote) {
            Ok(stream) => Accepted::Stream(stream),
            Err(stranger) => {
                self.complaints.log(|more| {
                    tracing::warn!(more, "refused a connection to {}: {stranger}", listener.address)
                });
                Accepted::Nothing
            }
        }
    }

    /// Deals with an accept that failed with `errno`.
    pub fn failed(&mut self, listener: &Listener, errno: Errno) -> Accepted {
        match errno {
            // Nothing there, or the connection ended before it was accepted; accept(2) lists the network's
            // own errors as of that kind.
            Errno::AGAIN
            | Errno::INTR
            | Errno::CONNABORTED
            | Errno::PROTO
            | Errno::PERM
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH => Accepted::Nothing,
            Errno::MFILE | Errno::NFILE if self.shed(listener) => {
                self.complaints.log(|more| {
                    tracing::warn!(
                        more,
                        "refused a connection to {}: no descriptor is free",
                        listener.address
                    );
                });
                Accepted::Nothing
            }
            errno => {
                self.complaints
                    .log(|more| tracing::warn!(more, "cannot accept on {}: {errno}", listener.address));
                let pause = self.pause;
                self.pause = (pause * 2).min(PAUSE_MAX);
                Accepted::Pause(pause)
            }
        }
    }

    /// Accepts one connection in the place of the spare descriptor, closes it, and says whether that worked.
    fn shed(&mut self, listener: &Listener) -> bool {
        let had = self.spare.take().is_some();
        // Asked first, because the listener may be one that waits.
        let accepted = had
            && is_ready(listener.as_fd())
            && rustix::net::accept_with(&listener.socket, SocketFlags::CLOEXEC).is_ok();
        self.spare = open_spare().ok();
        accepted
    }
}

fn open_spare() -> rustix::io::Result<OwnedFd> {
    rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn is_ready(socket: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

fn check_loopback(address: SocketAddr, allow_remote: bool) -> Result<(), ListenError> {
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if !allow_remote {
        return Err(ListenError::NotLoopback(address));
    }
    tracing::warn!(
        "{address} is not a loopback address: everybody who can reach it can read everything that is served"
    );
    Ok(())
}

/// Sets what only makes a connection faster; a kernel that refuses is not argued with.
fn prepare(socket: BorrowedFd<'_>) {
    let _ = sockopt::set_socket_send_buffer_size(socket, SEND_BUFFER_BYTES);
    let _ = sockopt::set_tcp_nodelay(socket, true);
}

fn bytes_to_os(bytes: &[u8]) -> &OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(bytes)
}

const SEND_BUFFER_BYTES: usize = 1 << 20;
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn tcp_says_where_it_listens_and_admits_us() {
        for ip in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let listener = Listener::tcp(SocketAddr::new(ip.parse().unwrap(), 0), false).unwrap();
            let Address::Tcp(bound) = *listener.address() else { panic!("{}", listener.address()) };
            assert_ne!(bound.port(), 0);
            assert_eq!(listener.address().to_string(), format!("tcp!{ip}!{}", bound.port()));
            let mut client = TcpStream::connect(bound).unwrap();
            let stream = accept(&listener);
            let Transport::Tcp { local, peer, uid } = stream.transport() else { panic!("{stream:?}") };
            assert_eq!((local, peer), (bound, client.local_addr().unwrap()));
            assert_eq!(uid, Some(rustix::process::geteuid().as_raw()));
            assert!(sockopt::tcp_nodelay(stream.input()).unwrap());
            echo(&mut client, &stream);
        }
    }

    #[test]
    fn the_descriptor_that_is_held_back_comes_before_a_connection() {
        let listener = Listener::tcp(SocketAddr::new("127.0.0.1".parse().unwrap(), 0), false).unwrap();
        let Address::Tcp(bound) = *listener.address() else { panic!("{}", listener.address()) };
        let _client = TcpStream::connect(bound).unwrap();
        let mut gate = Gate::new().unwrap();
        gate.spare = None;
        assert!(matches!(gate.accept(&listener), Accepted::Stream(_)));
        assert!(gate.spare.is_some());
    }

    #[test]
    fn other_than_loopback_needs_permission() {
        for refused in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "192.0.2.1:0", "[2001:db8::1]:0"] {
            let error = Listener::tcp(refused.parse().unwrap(), false).unwrap_err();
            assert!(matches!(error, ListenError::NotLoopback(_)), "{error}");
        }
        Listener::tcp("0.0.0.0:0".parse().unwrap(), true).unwrap();
        let open = TcpListener::bind("0.0.0.0:0").unwrap();
        let adopted = Listener::adopt(open.try_clone().unwrap().into(), false);
        assert!(matches!(adopted, Err(ListenError::NotLoopback(_))));
        Listener::adopt(open.into(), true).unwrap();
    }

    #[test]
    fn an_address_in_use_is_an_error_that_names_it() {
        let first = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let Address::Tcp(bound) = *first.address() else { panic!("{}", first.address()) };
        let error = Listener::tcp(bound, false).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on {bound}: ")), "{error}");
    }

    #[test]
    fn a_unix_listener_admits_us_and_takes_its_file_away() {
        let path = std::env::temp_dir().join(format!("9agents-listen-{}", std::process::id()));
        let mut listener = Listener::unix(&path).unwrap();
        assert_eq!(listener.address().to_string(), format!("unix!{}", path.display()));
        let mut client = UnixStream::connect(&path).unwrap();
        let stream = accept(&listener);
        assert_eq!(stream.transport(), Transport::Unix { uid: rustix::process::geteuid().as_raw() });
        echo(&mut client, &stream);
        listener.unpost();
        assert!(!path.exists());
        drop(Listener::unix(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn an_adopted_socket_is_never_unlinked() {
        let path = std::env::temp_dir().join(format!("9agents-adopt-{}", std::process::id()));
        let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut listener = Listener::adopt(socket.into(), false).unwrap();
        assert_eq!(*listener.address(), Address::Unix(path.clone()));
        let _client = UnixStream::connect(&path).unwrap();
        accept(&listener);
        listener.unpost();
        drop(listener);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn nothing_to_accept_is_no_error() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap();
        assert!(matches!(Gate::new().unwrap().accept(&listener), Accepted::Nothing));
    }

    #[test]
    fn a_peer_that_has_gone_is_refused() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let Address::Tcp(bound) = *listener.address() else { panic!("{}", listener.address()) };
        drop(TcpStream::connect(bound).unwrap());
        assert!(is_ready_soon(&listener));
        assert!(matches!(Gate::new().unwrap().accept(&listener), Accepted::Nothing));
        assert!(!is_ready(listener.as_fd()), "it was taken from the queue");
    }

    #[test]
    fn when_shedding_does_not_help_the_pauses_grow_to_a_bound() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let mut gate = Gate::new().unwrap();
        let mut pause = || match gate.failed(&listener, Errno::NFILE) {
            Accepted::Pause(pause) => pause,
            other => panic!("{other:?}"),
        };
        let pauses: Vec<_> = (0..10).map(|_| pause()).collect();
        assert!(pauses.is_sorted());
        assert_eq!((pauses[0], pauses[9]), (PAUSE_MIN, PAUSE_MAX));
    }

    fn accept(listener: &Listener) -> Stream {
        assert!(is_ready_soon(listener));
        match Gate::new().unwrap().accept(listener) {
            Accepted::Stream(stream) => stream,
            other => panic!("{other:?}"),
        }
    }

    fn is_ready_soon(listener: &Listener) -> bool {
        let mut polled = [PollFd::new(listener, PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap() > 0
    }

    /// Sends a byte each way.
    fn echo(client: &mut (impl Read + Write), stream: &Stream) {
        let mut byte = [0];
        client.write_all(b"x").unwrap();
        rustix::io::read(stream.input(), &mut byte).unwrap();
        rustix::io::write(stream.output(), &byte).unwrap();
        byte = [0];
        client.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
