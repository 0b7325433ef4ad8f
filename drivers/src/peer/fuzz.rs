//! The laws of the tables of sockets.

use std::net::{IpAddr, SocketAddr};

use backend::host::fixture::Tcp;

use super::table::{Row, parse};
use super::{Owner, Pair, canonical};

/// A line of anything is read or it is none, however its fields stand apart; and the lines of sockets that the bytes
/// spell, as the machine in memory renders them, are read as those sockets.
pub(crate) fn tables(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let row = parse(line);
        let fields = String::from_utf8_lossy(line);
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        if str::from_utf8(line).is_ok() {
            assert_eq!(parse(fields.join("\t ").as_bytes()), row);
        }
        assert!(row.is_none() || fields.len() >= 10, "a row of too few fields");
    }
    let sockets: Vec<Tcp> = bytes.chunks_exact(SPELT).map(socket).collect();
    let [v4, v6] = backend::fuzz::tables(&sockets);
    for (table, is_of) in [(v4, SocketAddr::is_ipv4 as fn(&SocketAddr) -> bool), (v6, SocketAddr::is_ipv6)] {
        let read: Vec<Row> = table.split(|byte| *byte == b'\n').filter_map(parse).collect();
        let rows: Vec<Row> = sockets.iter().filter(|socket| is_of(&socket.local)).map(row).collect();
        assert_eq!(read, rows);
    }
}

fn socket(spelt: &[u8]) -> Tcp {
    let word = |at: usize| u32::from_le_bytes([spelt[at], spelt[at + 1], spelt[at + 2], spelt[at + 3]]);
    let end = |at: usize| {
        let bits = word(at);
        let ip: IpAddr = match spelt[0] % 3 {
            0 => IpAddr::V4(bits.into()),
            1 => std::net::Ipv4Addr::from(bits).to_ipv6_mapped().into(),
            _ => IpAddr::V6((u128::from(bits) << 96 | u128::from(bits)).into()),
        };
        SocketAddr::new(ip, bits as u16)
    };
    Tcp { local: end(2), remote: end(6), state: spelt[1], uid: word(10), ino: u64::from(word(10)) << 20 }
}

fn row(socket: &Tcp) -> Row {
    let pair = Pair { local: canonical(socket.local), remote: canonical(socket.remote) };
    Row { pair, owner: Owner { uid: socket.uid, inode: socket.ino, state: socket.state } }
}

/// Bytes that spell a socket.
const SPELT: usize = 14;
