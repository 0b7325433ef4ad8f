//! Reading directories: read(5) in 9P2000 and 9P2000.u, Treaddir in 9P2000.L.

use proto::stat::{dirents, records};
use proto::{Dialect, Qid, Refusal, Rmessage, Tmessage};

use crate::rig::{Rig, list, read, stat};
use crate::toy;

/// Names and qids of a piece of a directory, and the offset behind it.
fn entries(rig: &Rig, offset: u64, data: &[u8]) -> (Vec<(String, Qid)>, u64) {
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).expect("UTF-8");
    if rig.dialect == Dialect::Linux {
        let entries: Vec<_> = dirents(data).map(|entry| entry.expect("whole entries")).collect();
        let end = entries.last().map_or(offset, |entry| entry.offset);
        (entries.iter().map(|entry| (text(entry.name), entry.qid)).collect(), end)
    } else {
        let records = records(data, rig.dialect).map(|record| record.expect("whole records"));
        (records.map(|record| (text(record.name), record.qid)).collect(), offset + data.len() as u64)
    }
}

/// Reads to the end; yields the members and the offsets on the way.
fn all(rig: &mut Rig, fid: u32, count: u32) -> (Vec<(String, Qid)>, Vec<u64>) {
    let (mut members, mut offsets, mut at) = (Vec::new(), vec![0], 0);
    loop {
        let reply = rig.call(&list(rig.dialect, fid, at, count));
        assert!(reply.data().len() <= count as usize);
        let (piece, end) = entries(rig, at, reply.data());
        if piece.is_empty() {
            return (members, offsets);
        }
        members.extend(piece);
        at = end;
        offsets.push(at);
    }
}

fn expected() -> Vec<(String, Qid)> {
    toy::children(4).into_iter().map(|node| (toy::name(node), toy::qid(node))).collect()
}

#[test]
fn every_member_comes_once_at_any_count() {
    for dialect in Dialect::ALL {
        for apart in [false, true] {
            let mut rig = Rig::new(dialect);
            rig.apart = apart;
            rig.walk(0, 1, "dir");
            rig.open(1);
            for count in [100, 300, 1000, 8168, u32::MAX] {
                assert_eq!(all(&mut rig, 1, count).0, expected(), "{count}");
            }
        }
    }
}

#[test]
fn a_record_is_what_a_stat_says() {
    for dialect in [Dialect::Plain, Dialect::Unix] {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        rig.walk(1, 2, "sub");
        rig.open(1);
        let reply = rig.call(&read(1, 0, 100));
        let first = records(reply.data(), dialect).next().expect("a record").expect("a whole one");
        let stat = rig.call(&stat(dialect, 2));
        assert_eq!(stat.message(), Rmessage::Stat { stat: first });
    }
}

#[test]
fn an_entry_that_does_not_fit_is_no_error() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        rig.open(1);
        for count in [0, 1, 20] {
            assert_eq!(rig.call(&list(dialect, 1, 0, count)).data(), b"");
        }
        let (_, offsets) = all(&mut rig, 1, 300);
        assert_eq!(rig.call(&list(dialect, 1, offsets[2], 20)).data(), b"");
        assert_ne!(rig.call(&list(dialect, 1, offsets[2], 200)).data(), b"");
        let end = offsets[offsets.len() - 1];
        for _ in 0..3 {
            assert_eq!(rig.call(&list(dialect, 1, end, 8168)).data(), b"");
        }
    }
}

#[test]
fn an_offset_is_one_at_which_a_read_ended() {
    for dialect in [Dialect::Plain, Dialect::Unix] {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        rig.open(1);
        assert!(rig.call(&read(1, 100, 300)).is_refusal(Refusal::BAD_OFFSET));
        let (_, offsets) = all(&mut rig, 1, 300);
        for &offset in offsets.iter().rev() {
            assert!(rig.call(&read(1, offset + 1, 300)).is_refusal(Refusal::BAD_OFFSET));
            assert!(rig.call(&read(1, u64::MAX - offset, 300)).is_refusal(Refusal::BAD_OFFSET));
        }
        let last = offsets[offsets.len() - 2];
        let reply = rig.call(&read(1, last, 8000));
        assert_eq!(entries(&rig, last, reply.data()).1, offsets[offsets.len() - 1]);
        // A rewind takes the names anew: the old offsets mean nothing.
        rig.call(&read(1, 0, 100));
        assert!(rig.call(&read(1, last, 300)).is_refusal(Refusal::BAD_OFFSET));
    }
}

#[test]
fn a_cookie_goes_on_behind_its_entry() {
    let mut rig = Rig::new(Dialect::Linux);
    rig.walk(0, 1, "dir");
    rig.open(1);
    assert!(rig.call(&list(Dialect::Linux, 1, 5, 300)).is_refusal(Refusal::BAD_OFFSET));
    all(&mut rig, 1, 8168);
    for cookie in [1, 7, 300] {
        let reply = rig.call(&list(Dialect::Linux, 1, cookie, 8168));
        assert_eq!(entries(&rig, cookie, reply.data()).0[0], expected()[cookie as usize]);
    }
    for cookie in [301, 1 << 31, 1 << 32, (1 << 32) + 5, u64::MAX] {
        assert_eq!(rig.call(&list(Dialect::Linux, 1, cookie, 8168)).data(), b"", "{cookie}");
    }
}

#[test]
fn files_and_directories_are_read_each_in_its_own_way() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        assert!(rig.call(&list(dialect, 1, 0, 300)).is_refusal(Refusal::BAD_FID_USE));
        rig.open(1);
        if dialect == Dialect::Linux {
            assert!(rig.call(&read(1, 0, 300)).is_refusal(Refusal::IS_A_DIRECTORY));
            rig.walk(0, 2, "hello");
            rig.open(2);
            assert!(rig.call(&list(dialect, 2, 0, 300)).is_refusal(Refusal::NOT_A_DIRECTORY));
        }
    }
}

#[test]
fn a_rewind_that_is_flushed_leaves_no_trace() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "dir");
        rig.open(1);
        let reply = rig.call(&list(dialect, 1, 0, 300));
        let (_, end) = entries(&rig, 0, reply.data());
        rig.hold = true;
        rig.send(2, &list(dialect, 1, 0, 8168));
        rig.send(3, &Tmessage::Flush { oldtag: 2 });
        rig.hold = false;
        assert_eq!(rig.tags(), [3]);
        let reply = rig.call(&list(dialect, 1, end, 300));
        assert_eq!(entries(&rig, end, reply.data()).0[0], expected()[entries_in(end, dialect)]);
        assert_eq!(rig.tree.opens(), 1);
    }
}

/// How many members lie before the end of a first read of 300 bytes.
fn entries_in(end: u64, dialect: Dialect) -> usize {
    if dialect == Dialect::Linux {
        return end as usize;
    }
    let mut rig = Rig::new(dialect);
    rig.walk(0, 1, "dir");
    rig.open(1);
    let reply = rig.call(&list(dialect, 1, 0, 300));
    entries(&rig, 0, reply.data()).0.len()
}
