//! Where a server is, and how to reach it.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};

use super::wire::Socket;

/// The address of a server, as `dial(3)` of Plan 9 spells it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// A unix socket: `unix!PATH`, or a path with a slash in it.
    Unix(PathBuf),
    /// `tcp!HOST!PORT`.
    Tcp {
        /// A name, or an IPv4 or IPv6 address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Address {
    /// The address that this spells.
    ///
    /// # Errors
    /// It spells none; the text says what would.
    pub fn parse(text: &OsStr) -> Result<Self, AddressError> {
        let bytes = text.as_bytes();
        if let Some(path) = bytes.strip_prefix(b"unix!") {
            if path.is_empty() {
                return Err(AddressError::NoPath);
            }
            return Ok(Self::Unix(OsString::from_vec(path.to_vec()).into()));
        }
        if let Some(rest) = bytes.strip_prefix(b"tcp!") {
            let rest = str::from_utf8(rest).map_err(|_| AddressError::Tcp)?;
            let (host, port) = rest.rsplit_once('!').ok_or(AddressError::Tcp)?;
            let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            if host.is_empty() || host.contains('!') {
                return Err(AddressError::Tcp);
            }
            let port = u16::from_str(port).ok().filter(|port| *port != 0).ok_or(AddressError::Port)?;
            return Ok(Self::Tcp { host: host.to_owned(), port });
        }
        if bytes.contains(&b'/') { Ok(Self::Unix(text.into())) } else { Err(AddressError::Form) }
    }

    /// Connects.
    ///
    /// # Errors
    /// Nobody is there, or nobody who takes the connection within `patience`: then it is `TimedOut`.
    pub fn dial(&self, patience: Duration) -> io::Result<Socket> {
        match self {
            Self::Unix(path) => dial_unix(path, patience),
            Self::Tcp { host, port } => dial_tcp(host, *port, patience),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(out, "unix!{}", path.display()),
            Self::Tcp { host, port } => write!(out, "tcp!{host}!{port}"),
        }
    }
}

fn dial_unix(path: &Path, patience: Duration) -> io::Result<Socket> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // With a full backlog connect(2) waits for as long as a send would (unix(7)).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    connect(&socket, &address).map_err(|errno| if errno == Errno::AGAIN { full() } else { errno.into() })?;
    Ok(Socket::new(socket))
}

fn dial_tcp(host: &str, port: u16, patience: Duration) -> io::Result<Socket> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                // Requests are sent whole; waiting for more of them would cost a round trip each.
                stream.set_nodelay(true)?;
                return Ok(Socket::new(stream.into()));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A server that is there and accepts nothing, until no more wait to be accepted than may.
fn full() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the server accepts no connections, and its backlog is full")
}

/// Why a text is no address.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It has none of the forms.
    #[error("not an address: it must be unix!PATH, tcp!HOST!PORT, or the path of a socket with a `/` in it")]
    Form,
    /// `unix!` and nothing.
    #[error("not an address: `unix!` must be followed by the path of a socket")]
    NoPath,
    /// `tcp!` and something else than a host and a port.
    #[error("not an address: `tcp!` must be followed by HOST!PORT")]
    Tcp,
    /// The port is no number.
    #[error("not an address: the port must be a number from 1 to 65535")]
    Port,
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::{Address, AddressError};

    #[test]
    fn addresses_are_told_apart() {
        let parse = |text| Address::parse(OsStr::new(text));
        let unix = |path: &str| Ok(Address::Unix(path.into()));
        let tcp = |host: &str, port| Ok(Address::Tcp { host: host.to_owned(), port });
        assert_eq!(parse("unix!/run/s"), unix("/run/s"));
        assert_eq!(parse("unix!s"), unix("s"));
        assert_eq!(parse("./s"), unix("./s"));
        assert_eq!(parse("/run/tcp!x"), unix("/run/tcp!x"));
        assert_eq!(parse("tcp!localhost!564"), tcp("localhost", 564));
        assert_eq!(parse("tcp!::1!5640"), tcp("::1", 5640));
        assert_eq!(parse("tcp![::1]!5640"), tcp("::1", 5640));
    }

    #[test]
    fn what_is_no_address_is_told_what_would_be() {
        for (text, error) in [
            ("", AddressError::Form),
            ("agents", AddressError::Form),
            ("udp!a!1", AddressError::Form),
            ("unix!", AddressError::NoPath),
            ("tcp!", AddressError::Tcp),
            ("tcp!host", AddressError::Tcp),
            ("tcp!!1", AddressError::Tcp),
            ("tcp!a!b!1", AddressError::Tcp),
            ("tcp!a!", AddressError::Port),
            ("tcp!a!0", AddressError::Port),
            ("tcp!a!65536", AddressError::Port),
            ("tcp!a!9fs", AddressError::Port),
        ] {
            assert_eq!(Address::parse(OsStr::new(text)), Err(error), "{text:?}");
        }
    }

    #[test]
    fn an_address_prints_as_it_is_spelled() {
        for text in ["unix!/run/s", "tcp!localhost!564", "tcp!::1!5640"] {
            assert_eq!(Address::parse(OsStr::new(text)).unwrap().to_string(), text);
        }
    }
}
