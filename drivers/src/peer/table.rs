//! The lines of `/proc/net/tcp` and `/proc/net/tcp6` (net/ipv4/tcp_ipv4.c, `get_tcp4_sock`;
//! proc_net_tcp.txt).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Owner, Pair, canonical};

/// One socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) pair: Pair,
    pub(super) owner: Owner,
}

/// Reads a line of either table; `None` for the heading, and for anything else that is not a socket.
pub(super) fn parse(line: &[u8]) -> Option<Row> {
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let _slot = fields.next()?;
    let local = address(fields.next()?)?;
    let remote = address(fields.next()?)?;
    let state = u8::from_str_radix(digits(fields.next()?)?, 16).ok()?;
    // Skipped: the queues, the timer, retransmits.
    let uid = digits(fields.nth(3)?)?.parse().ok()?;
    let inode = digits(fields.nth(1)?)?.parse().ok()?;
    Some(Row { pair: Pair { local, remote }, owner: Owner { uid, inode, state } })
}

/// `0100007F:1F90`, or four such words: each word of the address is printed as a number of the machine's byte
/// order, the port as what it is.
fn address(text: &str) -> Option<SocketAddr> {
    let (words, port) = text.split_once(':')?;
    let port = u16::from_str_radix(digits(port)?, 16).ok()?;
    let word = |at: usize| -> Option<[u8; 4]> {
        let word = digits(words.get(at * 8..at * 8 + 8)?)?;
        u32::from_str_radix(word, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match words.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            Ipv6Addr::from(bytes).into()
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

/// The text if it holds digits only: the standard library's parsers also take a sign.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_v4_line_is_read() {
        let row = parse(V4.as_bytes()).unwrap();
        assert_eq!(row.pair.local, "127.0.0.1:40218".parse().unwrap());
        assert_eq!(row.pair.remote, "127.0.0.1:5640".parse().unwrap());
        assert_eq!(row.owner, Owner { uid: 1000, inode: 98765, state: 1 });
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_v6_line_is_read_and_a_mapped_address_is_v4() {
        let row = parse(V6.as_bytes()).unwrap();
        assert_eq!(row.pair.local, "[::1]:40218".parse().unwrap());
        assert_eq!(row.pair.remote, "[2001:db8::1]:5640".parse().unwrap());
        assert_eq!(row.owner, Owner { uid: 0, inode: 5, state: 6 });
        let row = parse(MAPPED.as_bytes()).unwrap();
        assert_eq!(row.pair.local, "127.0.0.1:40218".parse().unwrap());
        assert_eq!(row.pair.remote, "127.0.0.1:5640".parse().unwrap());
    }

    #[test]
    fn a_line_that_is_not_a_socket_is_none() {
        let heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(parse(heading.as_bytes()), None);
        assert_eq!(parse(b""), None);
        for (good, bad) in
            [(":9D1A", ":"), ("0100007F:9D1A", "0100007:9D1A"), (" 01 ", " +1 "), ("1000", "-1000")]
        {
            let line = V4.replacen(good, bad, 1);
            assert_ne!(line, V4);
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
        for end in 0..V4.find("98765").unwrap() {
            assert_eq!(parse(&V4.as_bytes()[..end]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(parse(&bytes), None);
        }

        #[test]
        fn a_damaged_line_is_read_without_a_panic(at in 0..V4.len(), byte in any::<u8>(), keep in 0..V4.len()) {
            let mut line = V4.as_bytes().to_vec();
            line[at] = byte;
            line.truncate(keep);
            let _ = parse(&line);
        }
    }

    const V4: &str = "   7: 0100007F:9D1A 0100007F:1608 01 00000000:00000000 00:00000000 00000000  1000        0 98765 1 0000000000000000 20 4 30 10 -1";
    const V6: &str = "   0: 00000000000000000000000001000000:9D1A B80D0120000000000000000001000000:1608 06 00000000:00000000 03:00000F3C 00000000     0        0 5 3 0000000000000000";
    const MAPPED: &str = "   1: 0000000000000000FFFF00000100007F:9D1A 0000000000000000FFFF00000100007F:1608 01 00000000:00000000 00:00000000 00000000  1000        0 7 1 0000000000000000 20 4 30 10 -1";
}
