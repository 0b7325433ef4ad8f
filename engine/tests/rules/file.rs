//! open(5), read(5), write, stat(5), wstat.

use engine::port::{Answer, Qids};
use proto::{Dialect, QTDIR, Refusal, Rmessage, Tmessage};

use crate::rig::{Rig, attach, list, open, read, set_length, stat, walk};
use crate::toy;

#[test]
fn an_open_answers_the_qid_of_the_walk_and_no_iounit() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        match rig.call(&open(dialect, 1, proto::OREAD)).message() {
            Rmessage::Open { qid, iounit: 0 } | Rmessage::Lopen { qid, iounit: 0 } => {
                assert_eq!(qid, toy::qid(1));
            }
            other => panic!("{other:?}"),
        }
        assert!(rig.call(&open(dialect, 1, proto::OREAD)).is_refusal(Refusal::BAD_FID_USE));
    }
}

#[test]
fn an_open_that_means_a_change_is_refused() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.walk(0, 2, "dir");
        rig.walk(0, 3, "gone");
        for mode in [proto::OWRITE, proto::ORDWR, proto::OTRUNC] {
            assert!(rig.call(&open(dialect, 1, mode)).is_refusal(Refusal::PERMISSION_DENIED));
            assert!(rig.call(&open(dialect, 2, mode)).is_refusal(Refusal::IS_A_DIRECTORY));
        }
        assert!(rig.call(&open(dialect, 3, proto::OREAD)).is_refusal(Refusal::NOT_FOUND));
        assert!(rig.call(&open(dialect, 9, proto::OREAD)).is_refusal(Refusal::UNKNOWN_FID));
        if dialect != Dialect::Linux {
            for (mode, refusal) in [
                (proto::ORCLOSE, Refusal::VIEW),
                (proto::OEXEC, Refusal::PERMISSION_DENIED),
                (0x80, Refusal::INVALID),
            ] {
                assert!(rig.call(&open(dialect, 1, mode)).is_refusal(refusal));
            }
        }
        rig.open(1);
    }
}

#[test]
fn a_file_is_read_in_pieces_no_longer_than_asked() {
    for dialect in Dialect::ALL {
        for apart in [false, true] {
            let mut rig = Rig::new(dialect);
            rig.walk(0, 1, "big");
            rig.open(1);
            rig.apart = apart;
            for count in [1, 1000, 7000, 8168, 8169, u32::MAX] {
                let mut text = Vec::new();
                while count > 1000 || text.len() < 3 {
                    let reply = rig.call(&read(1, text.len() as u64, count));
                    let data = reply.data();
                    assert!(data.len() <= count as usize && reply.frame.len() < 8192);
                    if data.is_empty() {
                        break;
                    }
                    text.extend_from_slice(data);
                }
                assert!(toy::big().starts_with(&text) && (count <= 1000 || text.len() == 200_000));
            }
        }
    }
}

#[test]
fn a_read_beyond_the_end_is_empty() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.open(1);
        for (offset, count) in
            [(0, 0), (13, 9), (1 << 40, 9), (i64::MAX as u64, 9), (1 << 63, 9), (u64::MAX, 9), (u64::MAX, 0)]
        {
            assert_eq!(rig.call(&read(1, offset, count)).data(), b"", "{offset}");
        }
    }
}

#[test]
fn reading_and_writing_need_a_fid_opened_for_it() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "ctl");
        let write = |fid| Tmessage::Write { fid, offset: 0, data: b"x" };
        assert!(rig.call(&read(1, 0, 1)).is_refusal(Refusal::BAD_FID_USE));
        assert!(rig.call(&write(1)).is_refusal(Refusal::VIEW));
        assert!(rig.call(&read(9, 0, 1)).is_refusal(Refusal::UNKNOWN_FID));
        assert!(rig.call(&write(9)).is_refusal(Refusal::UNKNOWN_FID));
        rig.open_as(1, proto::OWRITE | proto::OTRUNC);
        assert!(rig.call(&read(1, 0, 1)).is_refusal(Refusal::BAD_FID_USE));
        assert_eq!(rig.call(&write(1)).message(), Rmessage::Write { count: 1 });
        rig.walk(0, 2, "ctl");
        rig.open(2);
        assert!(rig.call(&write(2)).is_refusal(Refusal::VIEW));
        assert_eq!(rig.call(&read(2, 0, 10)).data(), b"x");
    }
}

#[test]
fn a_write_of_nothing_does_nothing_and_an_offset_has_a_sign() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "ctl");
        rig.open_as(1, proto::ORDWR);
        rig.tree.state().ctl = b"old".to_vec();
        let write = |offset, data| Tmessage::Write { fid: 1, offset, data };
        assert_eq!(rig.call(&write(0, b"")).message(), Rmessage::Write { count: 0 });
        assert!(rig.call(&write(1 << 63, b"x")).is_refusal(Refusal::INVALID));
        assert_eq!(rig.tree.state().ctl, b"old");
    }
}

#[test]
fn a_wstat_of_nothing_is_a_sync_and_any_other_is_the_backends() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.walk(0, 2, "ctl");
        for (fid, length, refused) in [
            (1, None, false),
            (1, Some(0), true),
            (1, Some(7), true),
            (2, Some(0), false),
            (2, Some(7), true),
            (2, None, false),
        ] {
            let reply = rig.call(&set_length(dialect, fid, length));
            if refused {
                assert!(reply.is_refusal(Refusal::VIEW), "{fid} {length:?}");
            } else {
                assert!(matches!(reply.message(), Rmessage::Wstat | Rmessage::Setattr));
            }
        }
        assert!(rig.call(&set_length(dialect, 9, None)).is_refusal(Refusal::UNKNOWN_FID));
    }
}

#[test]
fn a_stat_tells_kind_and_name() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "big");
        for (fid, node, mode) in [(0, 0, 0o555), (1, 2, 0o444)] {
            match rig.call(&stat(dialect, fid)).message() {
                Rmessage::Stat { stat } => {
                    assert_eq!((stat.qid, stat.name), (toy::qid(node), toy::name(node).as_bytes()));
                    let kind = if stat.qid.kind == QTDIR { proto::DMDIR } else { 0 };
                    assert_eq!((stat.mode, stat.mtime), (mode | kind, 1_700_000_000));
                }
                Rmessage::Getattr { attr } => {
                    assert_eq!((attr.qid, attr.nlink), (toy::qid(node), 1));
                    assert_eq!((attr.mtime_sec, attr.mtime_nsec), (1_700_000_000, 123_456_789));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Whatever a backend answers, the client gets one well-formed reply, and fids stay true.
#[test]
fn an_answer_that_is_none_is_an_io_error() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        rig.walk(0, 2, "hello");
        rig.open(2);
        rig.walk(0, 3, "ctl");
        rig.open_as(3, proto::OWRITE);
        rig.walk(0, 4, "dir");
        rig.open(4);
        rig.hold = true;
        let mut space = [0; 64];
        let two = {
            let mut qids = Qids::new();
            qids.push(toy::qid(4));
            qids.push(toy::qid(5));
            qids
        };
        let cases = [
            (attach(9, b""), Answer::Changed),
            (walk(0, 9, "dir", &mut space), Answer::Walked { qids: two.clone(), end: Some(5) }),
            (read(2, 0, 10), Answer::Bytes(11)),
            (read(2, 0, 10), Answer::Bytes(5)),
            (read(2, 0, 10), Answer::Wrote(5)),
            (Tmessage::Write { fid: 3, offset: 0, data: b"xyz" }, Answer::Wrote(4)),
            (stat(dialect, 2), Answer::Stat { bytes: 0 }),
            (stat(dialect, 2), Answer::Stat { bytes: 3000 }),
            (list(dialect, 4, 0, 100), Answer::Listed { bytes: 101, next: 1, open: None }),
            (open(dialect, 1, proto::OREAD), Answer::Walked { qids: two, end: None }),
        ];
        for (message, answer) in cases {
            rig.send(1, &message);
            rig.answer_with(0, Some(Ok(answer)));
            let replies = rig.replies();
            assert!(replies.len() == 1 && replies[0].is_refusal(Refusal::IO), "{message:?}: {replies:?}");
        }
        // A full walk that ends nowhere, and a partial one that ends somewhere.
        let qids = {
            let mut qids = Qids::new();
            qids.push(toy::qid(4));
            qids
        };
        for (path, end) in [("dir", None), ("dir/sub", Some(4))] {
            rig.send(1, &walk(0, 9, path, &mut [0; 64]));
            rig.answer_with(0, Some(Ok(Answer::Walked { qids: qids.clone(), end })));
            assert!(rig.replies()[0].is_refusal(Refusal::IO));
        }
        assert_eq!(rig.session.fids(), 5);
        // An empty answer needs no room.
        rig.send(1, &read(2, 0, 10));
        rig.answer_with(0, Some(Ok(Answer::Bytes(0))));
        assert_eq!(rig.replies()[0].data(), b"");
    }
}

#[test]
fn what_would_change_the_tree_is_not_permitted() {
    let mut rig = Rig::new(Dialect::Plain);
    let create = Tmessage::Create { fid: 0, name: b"x", perm: 0o644, mode: proto::OWRITE, extension: None };
    assert!(rig.call(&create).is_refusal(Refusal::VIEW));
    let create = Tmessage::Create { fid: 9, name: b"x", perm: 0o644, mode: proto::OWRITE, extension: None };
    assert!(rig.call(&create).is_refusal(Refusal::UNKNOWN_FID));
}

/// A worker answers with a room of its own: one of another request is none, and one that nobody entered holds nothing.
#[test]
fn an_answer_made_apart_is_in_the_room_of_its_request() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.walk(0, 2, "dir");
        rig.open(1);
        rig.open(2);
        rig.hold = true;
        rig.send(5, &read(1, 0, 10));
        rig.send(6, &list(dialect, 2, 0, 100));
        rig.send(7, &read(1, 0, 10));
        rig.send(8, &read(1, 0, 10));
        let tickets: Vec<_> = rig.held.drain(..).map(|(ticket, _)| ticket).collect();
        let mut complete = |ticket: usize, room: usize, bytes| {
            let apart = rig.session.apart(tickets[room]);
            assert!(rig.session.complete(tickets[ticket], Some(Ok(Answer::Bytes(bytes))), Some(apart)));
            rig.run();
            rig.replies().remove(0)
        };
        assert_eq!(complete(0, 0, 0).data(), b"");
        assert!(complete(2, 2, 11).is_refusal(Refusal::IO), "more than was asked for");
        assert!(complete(3, 1, 0).is_refusal(Refusal::IO), "the room of a listing");
    }
}
