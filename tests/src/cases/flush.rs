//! Flushes, tags and the order of replies.

use proto::{NOTAG, Rmessage, Tmessage};

use crate::cases::{NOTES, small};
use crate::check::{Client, Event, Frame, How, PATIENCE, ROOT, pack, refused, why};
use crate::rig::Need;
use crate::slow::{LATE_OPEN, LATE_READ, LATE_WALK};
use crate::suite::{Arena, Case, Stage};
use crate::world::{WorldSpec, fill};

pub(super) const CASES: &[Case] = &[
    Case::new("35", "a flush is always answered, and never refused", flush_is_answered),
    Case::new("36", "after an Rflush nothing is said of the old tag", flushes_a_waiting_read)
        .needs(&[Need::Waiting]),
    Case::new("37", "several flushes of one tag are answered in order", flushes_in_order)
        .needs(&[Need::Waiting]),
    Case::new("38", "a flush of what is done changes nothing", flush_of_done),
    Case::new("38w", "a flushed walk or open leaves the fid as it was", flushes_a_waiting_walk)
        .needs(&[Need::Waiting]),
    Case::new("39", "NOTAG is for Tversion alone", refuses_notag),
    Case::new("39w", "a tag in flight cannot be used again", refuses_duplicate_tags).needs(&[Need::Waiting]),
    Case::new("40", "two thousand reads in flight on one fid are all answered", answers_two_thousand),
];

fn flush_is_answered(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    for (tag, oldtag) in [(5, 99), (5, 5), (5, NOTAG), (0, 0), (7, 0)] {
        client.send(tag, &Tmessage::Flush { oldtag });
        expect_flush(&client.receive(), tag);
    }
    client.expect_alive();
}

fn flushes_a_waiting_read(stage: &Stage<'_>) {
    let (arena, mut client) = waiting(stage);
    let fid = client.open_path(late_read());
    client.send(0x9001, &Tmessage::Read { fid, offset: 0, count: 100 });
    client.expect_quiet();
    client.send(0x9002, &Tmessage::Flush { oldtag: 0x9001 });
    let first = client.receive();
    if first.tag() == 0x9001 {
        assert_eq!(first.data(), NOTES);
        expect_flush(&client.receive(), 0x9002);
    } else {
        expect_flush(&first, 0x9002);
    }
    // The tag is free. The client would complain of a late answer to the first read.
    client.send(0x9001, &Tmessage::Read { fid, offset: 7, count: 100 });
    client.expect_quiet();
    arena.gate().open();
    assert_eq!(client.receive().data(), NOTES[7..]);
    client.expect_quiet();
}

fn flushes_in_order(stage: &Stage<'_>) {
    let (arena, mut client) = waiting(stage);
    let fid = client.open_path(late_read());
    client.send(1, &Tmessage::Read { fid, offset: 0, count: 100 });
    client.post(&[
        (0x9002, Tmessage::Flush { oldtag: 1 }),
        (0x9003, Tmessage::Flush { oldtag: 1 }),
        (0x9004, Tmessage::Flush { oldtag: 0x9003 }),
        (0x9005, Tmessage::Flush { oldtag: 1 }),
        (0x9006, client.stating(ROOT)),
    ]);
    let mut tags = Vec::new();
    while tags.len() < 5 {
        match client.event(PATIENCE) {
            Event::Frame(frame) => tags.push(frame.tag()),
            Event::Quiet | Event::Closed => panic!("only {tags:x?} were answered"),
        }
    }
    let place = |tag: u16| tags.iter().position(|&told| told == tag);
    for (earlier, later) in [(0x9002, 0x9003), (0x9003, 0x9005)] {
        // A flush that was flushed itself may stay unanswered, but what is answered keeps its order.
        if let (Some(earlier), Some(later)) = (place(earlier), place(later)) {
            assert!(earlier < later, "{tags:x?}");
        }
    }
    for tag in [0x9002, 0x9004, 0x9005, 0x9006] {
        assert!(place(tag).is_some(), "{tag:x} is not answered: {tags:x?}");
    }
    arena.gate().open();
    client.expect_quiet();
    client.expect_alive();
}

fn flush_of_done(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let hermes = client.go("hermes");
    let mut space = Vec::new();
    let walk = Tmessage::Walk { fid: hermes, newfid: 900, names: pack(&["notes.txt"], &mut space) };
    client.send(3, &walk);
    assert_eq!(client.receive().tag(), 3);
    client.send(4, &Tmessage::Flush { oldtag: 3 });
    expect_flush(&client.receive(), 4);
    let opening = client.opening(900, How::Read);
    client.send(3, &opening);
    assert_eq!(client.receive().tag(), 3);
    client.send(4, &Tmessage::Flush { oldtag: 3 });
    expect_flush(&client.receive(), 4);
    assert_eq!(client.read_from(900, 0, 100), NOTES);
}

fn flushes_a_waiting_walk(stage: &Stage<'_>) {
    let (arena, mut client) = waiting(stage);
    let hermes = client.go("hermes");
    let file = client.go(format!("hermes/{LATE_OPEN}"));
    let mut space = Vec::new();
    let walk = Tmessage::Walk { fid: hermes, newfid: 900, names: pack(&[LATE_WALK], &mut space) };
    let mut space = Vec::new();
    let onto_itself = Tmessage::Walk { fid: hermes, newfid: hermes, names: pack(&[LATE_WALK], &mut space) };
    let before = client.stat(hermes).expect("a stat");
    let opening = client.opening(file, How::Read);
    for (tag, message) in [(3, walk), (4, opening), (5, onto_itself)] {
        client.send(tag, &message);
        client.expect_quiet();
        client.send(tag + 10, &Tmessage::Flush { oldtag: tag });
        expect_flush(&client.receive(), tag + 10);
    }
    refused(client.stat(900), why::UNKNOWN_FID);
    refused(client.read(file, 0, 10), why::BAD_FID_USE);
    assert_eq!(client.stat(hermes).expect("the fid has not moved"), before);
    arena.gate().open();
    client.expect_quiet();
    refused(client.stat(900), why::UNKNOWN_FID);
    client.walk(hermes, 900, &[LATE_WALK]).expect("the number is free");
    client.open(file).expect("the file is not open yet");
}

fn refuses_notag(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let stating = client.stating(ROOT);
    client.send(NOTAG, &stating);
    client.expect_refused_or_closed();
}

fn refuses_duplicate_tags(stage: &Stage<'_>) {
    let (arena, mut client) = waiting(stage);
    let fid = client.open_path(late_read());
    client.send(7, &Tmessage::Read { fid, offset: 0, count: 100 });
    let stating = client.stating(ROOT);
    client.send(7, &stating);
    let frame = client.receive();
    assert_eq!(frame.tag(), 7);
    refused(frame.refused().map_or(Ok(()), Err), why::DUPLICATE_TAG);
    arena.gate().open();
    let frame = client.receive();
    assert_eq!((frame.tag(), frame.data()), (7, NOTES.to_vec()), "the first request is served");
}

fn answers_two_thousand(stage: &Stage<'_>) {
    let arena = stage.start(&WorldSpec::new().pattern("hermes/large", 5, 1 << 20));
    let mut client = arena.client_of(8192 + 24);
    let fid = client.open_path("hermes/large");
    let offset = |tag: u16| u64::from(tag) * 131;
    let reads: Vec<_> =
        (0..2000).map(|tag| (tag, Tmessage::Read { fid, offset: offset(tag), count: 8192 })).collect();
    client.post(&reads);
    let mut answered = vec![false; 2000];
    let mut expected = vec![0; 8192];
    for _ in 0..2000 {
        let frame = client.receive();
        fill(5, offset(frame.tag()), &mut expected);
        assert!(frame.data() == expected, "a read of another place, tag {}", frame.tag());
        assert!(!std::mem::replace(&mut answered[usize::from(frame.tag())], true));
    }
    client.expect_alive();
}

fn waiting(stage: &Stage<'_>) -> (Arena, Client) {
    let spec = [LATE_READ, LATE_OPEN, LATE_WALK]
        .iter()
        .fold(small(), |spec, name| spec.file(format!("hermes/{name}"), NOTES));
    stage.client(&spec)
}

fn late_read() -> String {
    format!("hermes/{LATE_READ}")
}

#[track_caller]
fn expect_flush(frame: &Frame, tag: u16) {
    assert!(matches!(frame.message(), Rmessage::Flush), "{frame:?}");
    assert_eq!(frame.tag(), tag);
}
