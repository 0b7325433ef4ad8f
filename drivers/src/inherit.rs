//! Descriptors that the process was started with: systemd's sockets (LISTEN_FDS) and `--fd N`.
//!
//! Owns how a number becomes an owned descriptor, and what kinds of descriptor will do. Whoever passed them
//! is trusted with what they are, not with who is at the other end of a TCP connection.
//!
//! A number is not a descriptor until somebody says so, which in Rust is unsafe. It is done here without:
//! `listenfd` takes over the numbers of LISTEN_FDS, and a number that the user gave is duplicated.

use std::env;
use std::io;
use std::net::SocketAddr;

use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags};

use crate::listen::{ListenError, Listener, Stream};
use crate::log::Clean;
use crate::peer::Stranger;

/// Marks every descriptor but the standard three close-on-exec, so that no child of ours has one that we were
/// started with.
///
/// To be called before there is a second thread.
pub fn close_on_exec() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// A socket that systemd passed.
#[derive(Debug)]
pub enum Given {
    /// It listens.
    Listener(Listener),
    /// It is a connection, and its peer may be there.
    Stream(Stream),
}

/// The sockets of LISTEN_FDS, if LISTEN_PID is our own pid (sd_listen_fds(3)); none otherwise.
///
/// Takes them out of the environment, so it works once, and is to be called before there is a second thread.
pub fn activated(allow_remote: bool) -> Result<Vec<Given>, InheritError> {
    let [pid, count, names] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"].map(|name| env::var(name).ok());
    let Some(names) = parse(pid.as_deref(), count.as_deref(), names.as_deref(), std::process::id())? else {
        return Ok(Vec::new());
    };
    let mut sockets = listenfd::ListenFd::from_env();
    let mut given = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let named = |cause| InheritError::Activated { name: Clean(name.as_bytes()).to_string(), cause };
        let socket = take(&mut sockets, at).map_err(named)?;
        let listens = sockopt::socket_acceptconn(&socket).map_err(|errno| named(errno.into()))?;
        given.push(if listens {
            Given::Listener(Listener::adopt(socket, allow_remote)?)
        } else {
            Given::Stream(Stream::admit(socket, allow_remote)?)
        });
    }
    Ok(given)
}

/// The connected stream on descriptor `number`.
///
/// A socket is read and written. Descriptor 0 may also be a pipe, as ssh(1) and inetd-like programs give:
/// then 0 is read and 1 is written. The peer is whoever our starter says it is, except that the peer of a TCP
/// socket must be one that may connect.
pub fn stream(number: RawFd, allow_remote: bool) -> Result<Stream, InheritError> {
    let wrong = |why| InheritError::Descriptor { number, why };
    let descriptor = duplicate(number)?;
    let failed = |errno: Errno| InheritError::Number { number, cause: errno.into() };
    let stat = rustix::fs::fstat(&descriptor).map_err(failed)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket => {}
        FileType::Fifo if number == 0 => return Ok(Stream::two_way(descriptor, duplicate(1)?)),
        FileType::Fifo => {
            return Err(wrong("a pipe goes one way only; pass a socket, or two pipes as 0 and 1"));
        }
        _ => return Err(wrong("it is neither a socket nor a pipe")),
    }
    if sockopt::socket_type(&descriptor).map_err(failed)? != SocketType::STREAM {
        return Err(wrong("it is not a stream socket"));
    }
    if sockopt::socket_acceptconn(&descriptor).map_err(failed)? {
        return Err(wrong("it listens; pass a connected socket, or listening ones as systemd does"));
    }
    let own = rustix::net::getsockname(&descriptor).map_err(failed)?;
    if SocketAddr::try_from(own).is_ok() {
        return Ok(Stream::admit(descriptor, allow_remote)?);
    }
    rustix::net::getpeername(&descriptor).map_err(|_| wrong("it is not connected"))?;
    Ok(Stream::trusted(descriptor))
}

/// Why what was passed is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InheritError {
    /// A variable does not say what it should.
    #[error("{variable} is invalid: {why}")]
    Variable {
        /// Which.
        variable: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A passed socket is not of a kind that can be served on.
    #[error("the socket `{name}` passed by LISTEN_FDS cannot be used: {cause}")]
    Activated {
        /// Its name in LISTEN_FDNAMES.
        name: String,
        /// What it is or is not.
        cause: io::Error,
    },
    /// A passed socket that listens cannot be used.
    #[error(transparent)]
    Listener(#[from] ListenError),
    /// The peer of a passed connection may not be there.
    #[error("refused the connection that was passed: {0}")]
    Stranger(#[from] Stranger),
    /// A descriptor is of the wrong kind.
    #[error("cannot serve on descriptor {number}: {why}")]
    Descriptor {
        /// Its number.
        number: RawFd,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A descriptor cannot be used at all.
    #[error("cannot use descriptor {number}: {cause}")]
    Number {
        /// Its number.
        number: RawFd,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// The names of the sockets that were passed to us, one each; `None` if none were.
fn parse(
    pid: Option<&str>,
    count: Option<&str>,
    names: Option<&str>,
    own_pid: u32,
) -> Result<Option<Vec<String>>, InheritError> {
    let invalid = |variable, why| InheritError::Variable { variable, why };
    let Some(pid) = pid else { return Ok(None) };
    let pid: u32 = pid.parse().map_err(|_| invalid("LISTEN_PID", "not a number"))?;
    let Some(count) = count.filter(|_| pid == own_pid) else { return Ok(None) };
    let count: usize = count.parse().map_err(|_| invalid("LISTEN_FDS", "not a number"))?;
    if count > ACTIVATED_MAX {
        return Err(invalid("LISTEN_FDS", "too many"));
    }
    let names = match names {
        None => vec!["unknown".to_owned(); count],
        Some(names) => names.split(':').map(str::to_owned).collect(),
    };
    match (count, names.len()) {
        (0, _) => Ok(None),
        (count, named) if named == count => Ok(Some(names)),
        _ => Err(invalid("LISTEN_FDNAMES", "not one name for each of LISTEN_FDS")),
    }
}

/// Takes over the socket at this place, which must be a unix or TCP stream socket, and marks it
/// close-on-exec.
fn take(sockets: &mut listenfd::ListenFd, at: usize) -> io::Result<OwnedFd> {
    let kind = SocketType::STREAM.as_raw().cast_signed();
    // The second, which listenfd takes to mean v6 too, is asked only if the socket is not the first.
    let families =
        [(AddressFamily::UNIX, "unix stream socket"), (AddressFamily::INET, "unix or TCP stream socket")];
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for (family, hint) in families {
        match sockets.take_custom(at, family.as_raw().into(), kind, hint) {
            Ok(Some(socket)) => return Ok(socket),
            Ok(None) => break,
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A new descriptor, close-on-exec, for what is open under a number.
fn duplicate(number: RawFd) -> Result<OwnedFd, InheritError> {
    let standard = match number {
        0 => Some(rustix::stdio::stdin()),
        1 => Some(rustix::stdio::stdout()),
        2 => Some(rustix::stdio::stderr()),
        _ => None,
    };
    let failed = |errno: Errno| InheritError::Number { number, cause: errno.into() };
    let duplicate = match standard {
        None if number < 0 => return Err(failed(Errno::BADF)),
        Some(descriptor) => rustix::io::fcntl_dupfd_cloexec(descriptor, 3),
        // From ourselves, by number. (Some system call filters forbid it; none forbid 0.)
        None => rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty())
            .and_then(|own| rustix::process::pidfd_getfd(own.as_fd(), number, PidfdGetfdFlags::empty())),
    };
    duplicate.map_err(failed)
}

/// Sockets that systemd may pass at once: more are a mistake.
const ACTIVATED_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;
    use crate::listen::Transport;

    #[test]
    fn variables_count_only_when_they_are_for_us() {
        let names = |pid, count, names| parse(pid, count, names, 42).unwrap();
        assert_eq!(names(None, Some("1"), None), None);
        assert_eq!(names(Some("41"), Some("1"), None), None);
        assert_eq!(names(Some("41"), Some("rubbish"), None), None);
        assert_eq!(names(Some("42"), None, None), None);
        assert_eq!(names(Some("42"), Some("0"), None), None);
        assert_eq!(names(Some("42"), Some("2"), None), Some(vec!["unknown".to_owned(); 2]));
        let named = ["door", "", "line"].map(str::to_owned).to_vec();
        assert_eq!(names(Some("42"), Some("3"), Some("door::line")), Some(named));
    }

    #[test]
    fn variables_that_are_wrong_are_errors() {
        for (pid, count, names, variable) in [
            ("x", "1", None, "LISTEN_PID"),
            ("", "1", None, "LISTEN_PID"),
            ("-42", "1", None, "LISTEN_PID"),
            ("42", "x", None, "LISTEN_FDS"),
            ("42", "-1", None, "LISTEN_FDS"),
            ("42", "99999999999999999999", None, "LISTEN_FDS"),
            ("42", "65", None, "LISTEN_FDS"),
            ("42", "2", Some("one"), "LISTEN_FDNAMES"),
            ("42", "1", Some("one:two"), "LISTEN_FDNAMES"),
        ] {
            let error = parse(Some(pid), Some(count), names, 42).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{variable} is invalid")), "{error}");
        }
    }

    #[test]
    fn a_connected_socket_becomes_a_stream() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stream = stream(ours.as_raw_fd(), false).unwrap();
        drop(ours);
        assert_eq!(stream.transport(), Transport::Inherited);
        assert!(stream.is_socket());
        rustix::io::write(&theirs, b"x").unwrap();
        assert_eq!(rustix::io::read(stream.input(), &mut [0; 2]).unwrap(), 1);
        assert!(rustix::io::fcntl_getfd(stream.input()).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_tcp_socket_is_held_to_who_may_connect() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let admitted = stream(server.as_raw_fd(), false).unwrap();
        assert!(matches!(admitted.transport(), Transport::Tcp { peer: found, .. } if found == peer));
        drop(client);
        let gone = stream(server.as_raw_fd(), false).unwrap_err();
        assert!(matches!(gone, InheritError::Stranger(Stranger::NotFound)), "{gone}");
    }

    #[test]
    fn what_is_not_a_connected_stream_is_refused_in_words() {
        let path = env::temp_dir().join(format!("9agents-inherit-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let datagrams = UnixDatagram::unbound().unwrap();
        let unconnected = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        let (pipe, _end) = rustix::pipe::pipe().unwrap();
        let file = std::fs::File::open("/proc/self/status").unwrap();
        for (number, words) in [
            (listener.as_raw_fd(), "it listens"),
            (datagrams.as_raw_fd(), "not a stream socket"),
            (unconnected.as_raw_fd(), "not connected"),
            (pipe.as_raw_fd(), "one way only"),
            (file.as_raw_fd(), "neither a socket nor a pipe"),
            (1_000_000, "cannot use descriptor 1000000: Bad file descriptor"),
            (-1, "cannot use descriptor -1: Bad file descriptor"),
        ] {
            let error = stream(number, false).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
