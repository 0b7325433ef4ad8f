//! One question to the kernel's socket monitor: whose is the TCP socket with these two ends? (sock_diag(7),
//! linux/inet_diag.h)
//!
//! Messages are encoded and decoded by hand, field by field: there are two, and neither has a variable part
//! that is read.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::{Owner, Pair, canonical};

/// Asks for the owner; `None` if the kernel knows no such socket. Never waits: the kernel answers within the
/// send.
pub(super) fn owner(pair: Pair) -> io::Result<Option<Owner>> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(SOCK_DIAG),
    )?;
    rustix::net::connect(&socket, &SocketAddrNetlink::new(KERNEL, 0))?;
    rustix::net::send(&socket, &request(pair), SendFlags::empty())?;
    let mut answer = [0; ANSWER_BYTES_MAX];
    let (bytes, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    response(&answer[..bytes], pair)
}

/// `struct nlmsghdr`, then `struct inet_diag_req_v2`.
fn request(pair: Pair) -> [u8; REQUEST_BYTES] {
    let mut out = [0; REQUEST_BYTES];
    let mut rest = out.as_mut_slice();
    let mut put = |bytes: &[u8]| {
        let (head, tail) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        rest = tail;
    };
    put(&(REQUEST_BYTES as u32).to_ne_bytes());
    put(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(&NLM_F_REQUEST.to_ne_bytes());
    put(&SEQUENCE.to_ne_bytes());
    put(&0_u32.to_ne_bytes());
    let family = if pair.local.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    put(&[family.as_raw() as u8, IPPROTO_TCP, 0, 0]);
    put(&(1_u32 << super::ESTABLISHED).to_ne_bytes());
    put(&pair.local.port().to_be_bytes());
    put(&pair.remote.port().to_be_bytes());
    put(&address(pair.local.ip()));
    put(&address(pair.remote.ip()));
    put(&0_u32.to_ne_bytes());
    put(&[0xff; 8]); // INET_DIAG_NOCOOKIE
    out
}

/// The 16 bytes of an address: a v4 one takes the first 4.
fn address(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// `struct nlmsghdr`, then `struct inet_diag_msg` or `struct nlmsgerr`. The kernel may answer with another
/// socket (one that listens, where there is none connected), so what it says of the ends is compared.
fn response(message: &[u8], pair: Pair) -> io::Result<Option<Owner>> {
    let mut fields = Fields(message);
    let header = (fields.u32()?, fields.u16()?, fields.u16()?, fields.u32()?, fields.u32()?);
    let (_length, kind, _flags, sequence, _port) = header;
    if sequence != SEQUENCE {
        return Err(malformed());
    }
    match kind {
        NLMSG_ERROR => match fields.u32()?.cast_signed().wrapping_neg() {
            errno if errno == Errno::NOENT.raw_os_error() => Ok(None),
            errno => Err(io::Error::from_raw_os_error(errno)),
        },
        SOCK_DIAG_BY_FAMILY => {
            let [family, state, _timer, _retransmits] = fields.take()?;
            let (local_port, remote_port) = (fields.port()?, fields.port()?);
            let local = SocketAddr::new(fields.ip(family)?, local_port);
            let remote = SocketAddr::new(fields.ip(family)?, remote_port);
            let _interface_cookie_expires_queues: [u8; 24] = fields.take()?;
            let (uid, inode) = (fields.u32()?, fields.u32()?);
            let found = Pair { local: canonical(local), remote: canonical(remote) };
            Ok((found == pair).then_some(Owner { uid, inode: inode.into(), state }))
        }
        _ => Err(malformed()),
    }
}

/// What is left of a message.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.take().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn port(&mut self) -> io::Result<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn ip(&mut self, family: u8) -> io::Result<IpAddr> {
        let bytes: [u8; 16] = self.take()?;
        match AddressFamily::from_raw(family.into()) {
            AddressFamily::INET => Ok(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into()),
            AddressFamily::INET6 => Ok(Ipv6Addr::from(bytes).into()),
            _ => Err(malformed()),
        }
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "sock_diag answered something else")
}

// linux/netlink.h and linux/sock_diag.h
const KERNEL: u32 = 0;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;

/// Any number: one question is asked per socket.
const SEQUENCE: u32 = 1;

const REQUEST_BYTES: usize = 16 + 56;

/// Room for an answer with attributes behind what is read, whatever the kernel adds.
const ANSWER_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_counts_only_for_the_pair_that_was_asked() {
        let pair = pair();
        let owner = Owner { uid: 1000, inode: 77, state: 1 };
        assert_eq!(response(&answer(pair), pair).unwrap(), Some(owner));
        let other = Pair { local: pair.remote, remote: pair.local };
        assert_eq!(response(&answer(other), pair).unwrap(), None);
    }

    #[test]
    fn errors_are_told_from_not_found() {
        let mut message = answer(pair());
        message[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        message[16..20].copy_from_slice(&(-Errno::NOENT.raw_os_error()).to_ne_bytes());
        assert_eq!(response(&message, pair()).unwrap(), None);
        message[16..20].copy_from_slice(&(-Errno::PERM.raw_os_error()).to_ne_bytes());
        assert_eq!(response(&message, pair()).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_short_answer_is_an_error() {
        let whole = answer(pair());
        for end in 0..whole.len() {
            assert!(response(&whole[..end], pair()).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = response(&bytes, pair());
            let mut likely = answer(pair());
            let keep = bytes.len().min(likely.len() - 16);
            likely[16..16 + keep].copy_from_slice(&bytes[..keep]);
            let _ = response(&likely, pair());
        }
    }

    fn pair() -> Pair {
        Pair { local: "127.0.0.1:40000".parse().unwrap(), remote: "127.0.0.1:5640".parse().unwrap() }
    }

    /// What the kernel says of a socket with these ends.
    fn answer(pair: Pair) -> Vec<u8> {
        let asked = request(pair);
        let mut message = [&asked[..20], &asked[24..]].concat();
        message[17] = super::super::ESTABLISHED;
        message.extend([0; 12]);
        message.extend(1000_u32.to_ne_bytes());
        message.extend(77_u32.to_ne_bytes());
        message
    }
}
