//! Who is at the other end of a connection, and whether they may be there.
//!
//! Owns the rule (our own user, or root) and the ways of finding the user: credentials that the kernel keeps
//! for a unix socket, and for a loopback TCP connection the owner of the *peer's* socket, which the kernel
//! tells by sock_diag(7) or, where that is not available, by `/proc/net/tcp` and `tcp6`. Knows nothing of
//! listeners or of what is served.
//!
//! Whatever cannot be found out is refused.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;

use rustix::fd::BorrowedFd;
use rustix::process::geteuid;

mod diag;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod table;

/// Why a peer may not connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Stranger {
    /// The peer is another user.
    #[error("the peer's uid is {0}")]
    User(u32),
    /// The peer is the overflow user, which stands for anybody that this user namespace has no number for.
    #[error("the peer's uid is unknown here ({OVERFLOW_UID})")]
    Unmapped,
    /// No socket with an owner is at the other end.
    #[error("the peer's socket was not found")]
    NotFound,
    /// The peer is not on this machine, and that was not allowed.
    #[error("the peer's address is not a loopback address")]
    Remote,
    /// The kernel would not say.
    #[error("cannot tell who the peer is: {0}")]
    Unknown(#[from] io::Error),
}

/// Admits the peer of a connected unix socket (SO_PEERCRED, see unix(7)) and says its uid.
///
/// The credentials are those of the time of connect(2), or of socketpair(2).
pub fn admit_unix(socket: BorrowedFd<'_>) -> Result<u32, Stranger> {
    let credentials = nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::PeerCredentials)
        .map_err(io::Error::from)?;
    admit_uid(credentials.uid())
}

/// Admits the peer of a connected TCP socket with these two ends, and says its uid; `None` for a peer
/// elsewhere, whose uid nobody knows, which only `allow_remote` lets in.
pub fn admit_tcp(local: SocketAddr, peer: SocketAddr, allow_remote: bool) -> Result<Option<u32>, Stranger> {
    let pair = Pair::of_peer(local, peer);
    if !pair.local.ip().is_loopback() {
        return if allow_remote { Ok(None) } else { Err(Stranger::Remote) };
    }
    // The first may be missing (no such kernel module, a seccomp filter) or not see a socket that is bound to
    // a device.
    let owner = match diag::owner(pair) {
        Ok(Some(owner)) => Some(owner),
        Ok(None) | Err(_) => owner_by_table(pair)?,
    };
    let owner = owner.and_then(Owner::of_live).ok_or(Stranger::NotFound)?;
    admit_uid(owner).map(Some)
}

/// The rule: our own user, or root, who mounts for everybody.
fn admit_uid(uid: u32) -> Result<u32, Stranger> {
    if uid == OVERFLOW_UID {
        Err(Stranger::Unmapped)
    } else if uid == 0 || uid == geteuid().as_raw() {
        Ok(uid)
    } else {
        Err(Stranger::User(uid))
    }
}

/// The two ends of the peer's own socket, in canonical form: a v4-mapped address is its v4 address, as the
/// kernel connects the two families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    local: SocketAddr,
    remote: SocketAddr,
}

impl Pair {
    /// The peer's socket for our socket's two ends: what is local to it is remote to us.
    fn of_peer(our_local: SocketAddr, our_peer: SocketAddr) -> Self {
        Self { local: canonical(our_peer), remote: canonical(our_local) }
    }
}

/// Without flow label and scope too, which are not part of a loopback address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// What the kernel says of a TCP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    uid: u32,
    /// 0 for a socket that no process has open any more; its uid then reads 0, which is not root's.
    inode: u64,
    state: u8,
}

impl Owner {
    /// The uid, if somebody holds the socket and it is connected both ways. A peer that has shut its way down before it is
    /// looked at is not: the kernel still knows whose it is, but one rule without exceptions is easier to be sure of.
    fn of_live(self) -> Option<u32> {
        (self.state == ESTABLISHED && self.inode != 0).then_some(self.uid)
    }
}

fn owner_by_table(pair: Pair) -> io::Result<Option<Owner>> {
    // A v4 connection may have been made through a v6 socket: it is then in the other table.
    for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let lines = match File::open(path) {
            Ok(file) => BufReader::new(file).split(b'\n'),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for line in lines {
            if let Some(row) = table::parse(&line?).filter(|row| row.pair == pair) {
                return Ok(Some(row.owner));
            }
        }
    }
    Ok(None)
}

/// TCP_ESTABLISHED of the kernel's include/net/tcp_states.h.
const ESTABLISHED: u8 = 1;

/// `/proc/sys/kernel/overflowuid` as it is unless somebody changed it; see user_namespaces(7).
const OVERFLOW_UID: u32 = 65534;

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::fitness::skip;

    #[test]
    fn our_own_unix_peer_is_admitted() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert_eq!(admit_unix(ours.as_fd()).unwrap(), geteuid().as_raw());
    }

    #[test]
    fn another_users_unix_peer_is_refused() {
        if !geteuid().is_root() {
            return skip("only root can become another user");
        }
        for (uid, unmapped) in [(12345, false), (OVERFLOW_UID, true)] {
            // The credentials of a pair are those of the thread that made it.
            let (ours, _theirs) = std::thread::spawn(move || {
                let uid = rustix::process::Uid::from_raw(uid);
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                UnixStream::pair().unwrap()
            })
            .join()
            .unwrap();
            match admit_unix(ours.as_fd()) {
                Err(Stranger::User(12345)) => assert!(!unmapped),
                Err(Stranger::Unmapped) => assert!(unmapped),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn the_rule_admits_ourselves_and_root_only() {
        let own = geteuid().as_raw();
        assert_eq!(admit_uid(own).unwrap(), own);
        assert_eq!(admit_uid(0).unwrap(), 0);
        assert!(matches!(admit_uid(own + 1), Err(Stranger::User(_))));
        assert!(matches!(admit_uid(OVERFLOW_UID), Err(Stranger::Unmapped)));
        assert!(matches!(admit_uid(u32::MAX), Err(Stranger::User(_))));
    }

    #[test]
    fn our_own_loopback_peer_is_found_both_ways() {
        for (listen, connect) in CONNECTIONS {
            let (_listener, client, server) = connected(listen, connect);
            let (local, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
            let pair = Pair::of_peer(local, peer);
            for owner in [diag::owner(pair), owner_by_table(pair)] {
                let owner = owner.unwrap().unwrap_or_else(|| panic!("{listen} from {connect}: not found"));
                assert_eq!(owner.of_live(), Some(geteuid().as_raw()));
                assert_eq!(
                    owner.inode,
                    rustix::fs::fstat(&client).unwrap().st_ino,
                    "the peer's socket, not ours"
                );
            }
            assert_eq!(admit_tcp(local, peer, false).unwrap(), Some(geteuid().as_raw()));
        }
    }

    #[test]
    fn another_users_loopback_peer_is_refused() {
        if !geteuid().is_root() {
            return skip("only root can give a socket away");
        }
        for (listen, connect) in CONNECTIONS {
            let (_listener, client, server) = connected(listen, connect);
            std::os::unix::fs::fchown(&client, Some(12345), None).unwrap();
            let (local, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
            for allow_remote in [false, true] {
                assert!(matches!(admit_tcp(local, peer, allow_remote), Err(Stranger::User(12345))));
            }
            let by_table = owner_by_table(Pair::of_peer(local, peer)).unwrap().unwrap();
            assert_eq!(by_table.of_live(), Some(12345));
            std::os::unix::fs::fchown(&client, Some(OVERFLOW_UID), None).unwrap();
            assert!(matches!(admit_tcp(local, peer, false), Err(Stranger::Unmapped)));
        }
    }

    #[test]
    fn a_peer_that_has_gone_is_not_root() {
        for (listen, connect) in CONNECTIONS {
            let (_listener, client, server) = connected(listen, connect);
            let (local, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
            drop(client);
            assert!(matches!(admit_tcp(local, peer, false), Err(Stranger::NotFound)));
        }
    }

    #[test]
    fn a_peer_that_will_say_nothing_more_is_let_in_only_if_it_was_before() {
        for (listen, connect) in CONNECTIONS {
            let (_listener, client, server) = connected(listen, connect);
            let (local, peer) = (server.local_addr().unwrap(), server.peer_addr().unwrap());
            assert!(admit_tcp(local, peer, false).is_ok());
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert!(matches!(admit_tcp(local, peer, false), Err(Stranger::NotFound)));
        }
    }

    #[test]
    fn a_listening_socket_is_not_a_peer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = "127.0.0.1:1".parse().unwrap();
        let pair = Pair::of_peer(nobody, listener.local_addr().unwrap());
        assert_eq!(diag::owner(pair).unwrap(), None);
        assert_eq!(owner_by_table(pair).unwrap(), None);
    }

    #[test]
    fn a_peer_elsewhere_needs_permission() {
        let local = "192.0.2.1:5640".parse().unwrap();
        for peer in ["192.0.2.7:40000", "[2001:db8::7]:40000", "[::ffff:192.0.2.7]:40000", "0.0.0.0:1"] {
            let peer = peer.parse().unwrap();
            assert!(matches!(admit_tcp(local, peer, false), Err(Stranger::Remote)));
            assert_eq!(admit_tcp(local, peer, true).unwrap(), None);
        }
    }

    /// A connection between these two addresses: the listener, the connecting end and the accepted one.
    fn connected(listen: &str, connect: &str) -> (TcpListener, TcpStream, TcpStream) {
        let listener = TcpListener::bind(format!("{listen}:0")).unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(format!("{connect}:{port}")).unwrap();
        let (server, _) = listener.accept().unwrap();
        (listener, client, server)
    }

    /// The families of the two sockets: v4 and v4, v6 and v6, v6 (mapped) and v4, v4 and v6 (mapped), both v6
    /// (mapped).
    const CONNECTIONS: [(&str, &str); 5] = [
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[::]", "127.0.0.1"),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
        ("[::]", "[::ffff:127.0.0.1]"),
    ];
}
