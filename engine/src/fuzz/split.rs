//! Bytes come in any pieces: what is answered does not depend on where they were cut.

use alloc::vec::Vec;

use proto::frame::{self, Next};

use super::script::Script;
use super::{Bytes, answer};
use crate::limits::{Budget, Limits};
use crate::port::Ask;
use crate::session::{Action, Session};

/// The law of frames ([`proto::fuzz::frame`]), and that of what comes of them: a session that gets bytes at once answers as one
/// that gets them byte by byte, or cut anywhere. The first two bytes say how large a frame may be, and where the others are cut.
///
/// # Panics
/// If it is broken.
pub fn frame(bytes: &[u8]) {
    proto::fuzz::frame(bytes);
    let Some(([first, second], stream)) = bytes.split_first_chunk::<2>() else { return };
    let whole = replies(stream, stream.len());
    assert_eq!(replies(stream, 1), whole, "byte by byte");
    for size in [first, second].map(|byte| usize::from(*byte) + 2) {
        assert_eq!(replies(stream, size), whole, "in pieces of {size}");
    }
    // Each reply is a whole frame.
    let mut rest = &whole.0[..];
    while let Next::Frame(size) = frame::next(rest, MSIZE) {
        rest = &rest[size..];
    }
    assert!(rest.is_empty(), "a torn reply");
}

/// What a session sends in answer to bytes that come in pieces of a size, and whether it hangs up.
fn replies(bytes: &[u8], size: usize) -> (Vec<u8>, bool) {
    let limits = Limits { msize: MSIZE, fids: 8, requests: 8, parked: 4, queued_bytes: 64 * 1024 };
    let mut session: Session<Bytes> = Session::new(limits, Budget::new(8, 1 << 20), 1);
    let (mut sent, mut hung_up) = (Vec::new(), false);
    for piece in bytes.chunks(size.max(1)) {
        session.receive(piece);
        loop {
            while let Some(action) = session.poll() {
                match action {
                    Action::Perform(ticket, ask) => {
                        let mut room = session.room(ticket);
                        if matches!(ask, Ask::Read { .. }) {
                            // Whatever was there before is not sent.
                            room.bytes().fill(b'x');
                        }
                        let outcome = answer(&ask, room, &mut Script::new(&[1; 64]));
                        assert!(session.complete(ticket, Some(outcome), None));
                    }
                    Action::Abandon(_) => panic!("nothing is waited for"),
                    Action::Hangup(_) => hung_up = true,
                }
            }
            let Some(buf) = session.take() else { break };
            sent.extend_from_slice(buf.as_slice());
            session.sent(buf);
        }
        assert!(hung_up || session.wants_input(), "it stalls");
    }
    (sent, hung_up)
}

/// What the session agrees to at most.
const MSIZE: u32 = 8192;

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;
    use proto::{Dialect, NOTAG, Tmessage};

    use super::super::script::{Script, encoded};

    proptest! {
        #[test]
        fn requests_in_any_pieces_are_answered_alike(
            cuts: [u8; 2],
            dialect in 0..3_usize,
            scripts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..12),
            end in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let dialect = Dialect::ALL[dialect];
            let version = Tmessage::Version { msize: 8192, version: dialect.name().as_bytes() };
            let mut bytes = [&cuts[..], &encoded(&version, NOTAG, Dialect::Plain)].concat();
            for (tag, script) in (1..).zip(&scripts) {
                bytes.extend::<Vec<u8>>(Script::new(script).frame(tag, dialect));
            }
            bytes.extend_from_slice(&end);
            super::frame(&bytes);
        }
    }
}
