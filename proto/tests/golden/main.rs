//! Frames byte by byte, composed apart from this crate after the manual pages and the kernel's format strings, with the
//! messages they are.
//!
//! The laws of `laws.rs` cannot see a field in the wrong place if reader and writer agree on it; these frames can.

mod linux;
mod plain;
mod unix;

use proto::*;

#[test]
fn requests() {
    for (dialect, frames) in [
        (Dialect::Plain, plain::REQUESTS),
        (Dialect::Unix, unix::REQUESTS),
        (Dialect::Linux, linux::REQUESTS),
    ] {
        for (frame, message) in frames {
            request(dialect, frame, *message);
        }
    }
}

#[test]
fn answers() {
    for (dialect, frames) in
        [(Dialect::Plain, plain::ANSWERS), (Dialect::Unix, unix::ANSWERS), (Dialect::Linux, linux::ANSWERS)]
    {
        for (frame, message) in frames {
            answer(dialect, frame, *message);
        }
    }
}

#[test]
fn every_message_has_a_frame() {
    let sent = |kind: u8| {
        [plain::REQUESTS, unix::REQUESTS, linux::REQUESTS].concat().iter().any(|(frame, _)| frame[4] == kind)
    };
    let received = |kind: u8| {
        [plain::ANSWERS, unix::ANSWERS, linux::ANSWERS].concat().iter().any(|(frame, _)| frame[4] == kind)
    };
    for (kind, _) in Tmessage::KINDS {
        assert!(sent(*kind), "{kind}");
    }
    for (kind, _) in Rmessage::KINDS {
        assert!(received(*kind), "{kind}");
    }
}

#[test]
fn a_walk_and_its_answer_in_every_dialect() {
    let mut wire = [0; 9];
    let names = Names::pack([&b"usr"[..], b".."], &mut wire).unwrap();
    let mut places = [[0; QID_SIZE]; 16];
    let qids = [
        Qid { kind: QTDIR, version: 1, path: 2 },
        Qid { kind: QTFILE, version: 0x0102_0304, path: 0x1112_1314_1516_1718 },
    ];
    let qids = Qids::pack(&qids, &mut places).unwrap();
    for dialect in Dialect::ALL {
        request(
            dialect,
            b"\x1a\0\0\0\x6e\x03\0\
              \0\0\0\0\x01\0\0\0\x02\0\
              \x03\0usr\x02\0..",
            Tmessage::Walk { fid: 0, newfid: 1, names },
        );
        answer(
            dialect,
            b"\x23\0\0\0\x6f\x03\0\
              \x02\0\
              \x80\x01\0\0\0\x02\0\0\0\0\0\0\0\
              \0\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11",
            Rmessage::Walk { qids },
        );
    }
}

#[track_caller]
fn request(dialect: Dialect, frame: &[u8], message: Tmessage<'_>) {
    let tag = frame::tag(frame).unwrap();
    assert_eq!(Tmessage::decode(frame, dialect), Ok((tag, message)));
    let mut out = [0; 512];
    let size = message.encode(tag, dialect, &mut out).unwrap();
    assert_eq!(&out[..size], frame);
}

#[track_caller]
fn answer(dialect: Dialect, frame: &[u8], message: Rmessage<'_>) {
    let tag = frame::tag(frame).unwrap();
    assert_eq!(Rmessage::decode(frame, dialect), Ok((tag, message)));
    let mut out = [0; 512];
    let size = message.encode(tag, dialect, &mut out).unwrap();
    assert_eq!(&out[..size], frame);
}
