//! Frames that are none, however bytes are cut, and clients that go away.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use proto::frame::{self, Next};
use proto::message::{Rmessage as R, Tmessage as T};
use proto::{Dialect, NOFID, NONUNAME, NOTAG, Tmessage};

use crate::cases::{NOTES, small};
use crate::check::{BULK, Client, Ending, How, PATIENCE, ROOT, pack};
use crate::rig::{Need, Received};
use crate::slow::LATE_READ;
use crate::suite::{Arena, Case, Stage};

pub(super) const CASES: &[Case] = &[
    Case::new("41", "an impossible size closes the connection", impossible_sizes),
    Case::new("42", "a malformed message is refused or closes the connection", malformed_messages),
    Case::new("43", "an unknown type is refused or closes the connection", unknown_types),
    Case::new("44", "however requests are cut, the answers are the same", cuts_do_not_matter),
    Case::new("44p", "walk, open, read and clunk of a new fid in one piece work in order", pipelines),
    Case::new("45", "a client that goes away takes its fids with it", forgets_the_gone)
        .needs(&[Need::Counts]),
    Case::new("45w", "a client that goes away stops what it waits for", stops_waiting)
        .needs(&[Need::Waiting]),
];

fn impossible_sizes(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    for size in [0, 1, 4, 6, 8193, 65_536, 0x7fff_ffff, u32::MAX] {
        let mut client = arena.client_of(8192);
        client.send_bytes(&[&size.to_le_bytes()[..], &[proto::message::TCLUNK, 1, 0, 0, 0]].concat());
        client.expect_closed();
    }
    for size in [6, 16_384, u32::MAX] {
        let mut client = arena.stranger();
        client.send_bytes(&[&size.to_le_bytes()[..], &[proto::message::TVERSION, 255, 255]].concat());
        client.expect_closed();
    }
    let mut client = arena.stranger();
    let (_, version) =
        client.version(8192, "x".repeat(8000)).expect("a long version fits what is taken before one");
    assert_eq!(version, "unknown");
    arena.client().expect_alive();
}

fn malformed_messages(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let mut endings = [0, 0];
    for (kind, body) in samples(stage.dialect) {
        let cut = (0..body.len()).map(|len| body[..len].to_vec());
        let longer = [[&body[..], &[0]].concat(), [&body[..], &[0xff; 20]].concat()];
        for body in cut.chain(longer) {
            let mut client = arena.client_of(8192);
            send_raw(&mut client, kind, 3, &body);
            endings[usize::from(client.expect_refused_or_closed() == Ending::Closed)] += 1;
        }
    }
    assert!(endings[0] + endings[1] > 200, "{endings:?}");
    // A string, a list and data whose counts lie about a frame that is whole.
    for (kind, body) in [
        (proto::message::TATTACH, [&[1, 0, 0, 0, 255, 255, 255, 255, 255, 255][..], b"glenda"].concat()),
        (proto::message::TWALK, [&[0, 0, 0, 0, 9, 0, 0, 0, 255, 255][..], b"\x01\0a"].concat()),
        (proto::message::TWRITE, [&[0; 12][..], &[255, 255, 255, 255], b"data"].concat()),
    ] {
        let mut client = arena.client_of(8192);
        send_raw(&mut client, kind, 3, &body);
        client.expect_refused_or_closed();
    }
    arena.client().expect_alive();
}

fn unknown_types(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let known: Vec<u8> =
        T::KINDS.iter().filter(|kind| kind.1.contains(&stage.dialect)).map(|kind| kind.0).collect();
    let replies = R::KINDS.iter().map(|kind| kind.0).filter(|kind| !known.contains(kind)).count();
    assert!(replies > 20, "the types of replies are among the unknown");
    for kind in (0..=u8::MAX).filter(|kind| !known.contains(kind)) {
        let mut client = arena.client_of(8192);
        send_raw(&mut client, kind, 3, &[0; 16]);
        client.expect_refused_or_closed();
    }
    arena.client().expect_alive();
}

fn cuts_do_not_matter(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    let script = script(stage.dialect);
    let mut whole = Whole::new(&arena);
    whole.say(&script.concat());
    let mut bytewise = Whole::new(&arena);
    script.concat().iter().for_each(|byte| bytewise.say(&[*byte]));
    let mut apart = Whole::new(&arena);
    script.iter().for_each(|message| apart.say(message));
    let answers = whole.answers(script.len());
    assert_eq!(bytewise.answers(script.len()), answers, "one byte at a time");
    assert_eq!(apart.answers(script.len()), answers, "one message at a time");
}

fn pipelines(stage: &Stage<'_>) {
    let (_arena, mut client) = stage.client(&small());
    let mut space = Vec::new();
    let names = pack(&["hermes", "notes.txt"], &mut space);
    let walk = Tmessage::Walk { fid: ROOT, newfid: 900, names };
    let opening = client.opening(900, How::Read);
    let read = Tmessage::Read { fid: 900, offset: 0, count: 100 };
    let clunk = Tmessage::Clunk { fid: 900 };
    for _ in 0..20 {
        client.post(&[(1, walk), (2, opening), (3, read), (4, clunk), (5, walk), (6, clunk)]);
        let replies = client.receive_all(6);
        assert_eq!(replies.iter().map(|reply| reply.tag()).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert!(replies.iter().all(|reply| reply.refused().is_none()), "{replies:?}");
        assert_eq!(replies[2].data(), NOTES);
    }
}

fn forgets_the_gone(stage: &Stage<'_>) {
    let arena = stage.start(&small());
    for _ in 0..5 {
        let mut client = arena.client();
        client.open_path("hermes/notes.txt");
        client.open_path("hermes/dir");
        assert!(arena.fids() >= 3);
        let half = client.encode(1, &Tmessage::Clunk { fid: ROOT });
        client.send_bytes(&half[..half.len() - 2]);
    }
    eventually("every fid is free", || arena.fids() == 0);
}

fn stops_waiting(stage: &Stage<'_>) {
    let path = format!("hermes/{LATE_READ}");
    let arena = stage.start(&small().file(&path, NOTES));
    for _ in 0..3 {
        let mut client = arena.client();
        let fid = client.open_path(&path);
        for tag in 1..10 {
            client.send(tag, &Tmessage::Read { fid, offset: 0, count: 10 });
        }
        eventually("the reads wait", || arena.gate().held() == 9);
        drop(client);
        eventually("nothing waits", || arena.gate().held() == 0);
    }
    assert_eq!(arena.gate().passed(), 0, "what nobody waits for is not done");
}

/// A client that only looks at bytes.
struct Whole {
    client: Client,
}

impl Whole {
    fn new(arena: &Arena) -> Self {
        Self { client: arena.stranger() }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.client.send_bytes(bytes);
    }

    /// So many replies by their tags: those to requests that need not wait for each other may come in any order.
    fn answers(mut self, count: usize) -> BTreeMap<u16, Vec<u8>> {
        let (mut bytes, mut answers) = (Vec::new(), BTreeMap::new());
        while answers.len() < count {
            match self.client.wire().receive(PATIENCE) {
                Received::Bytes(more) => bytes.extend(more),
                other => panic!("{other:?} after {} replies of {count}", answers.len()),
            }
            while let Next::Frame(size) = frame::next(&bytes, BULK) {
                let reply: Vec<u8> = bytes.drain(..size).collect();
                let tag = frame::tag(&reply).expect("a whole frame");
                assert_eq!(answers.insert(tag, reply), None, "two replies to {tag}");
            }
        }
        answers
    }
}

/// A small session as it travels, message by message.
fn script(dialect: Dialect) -> Vec<Vec<u8>> {
    let mut spaces = [Vec::new(), Vec::new()];
    let [file, dir] = &mut spaces;
    let client = Client::new(Box::new(Nowhere), dialect);
    let names = pack(&["hermes", "notes.txt"], file);
    let version = Tmessage::Version { msize: 8192, version: dialect.name().as_bytes() };
    let n_uname = client.numeric(NONUNAME);
    let attach = Tmessage::Attach { fid: ROOT, afid: NOFID, uname: b"glenda", aname: b"", n_uname };
    let list = match dialect {
        Dialect::Linux => Tmessage::Readdir { fid: 2, offset: 0, count: 4000 },
        Dialect::Plain | Dialect::Unix => Tmessage::Read { fid: 2, offset: 0, count: 4000 },
    };
    [
        (NOTAG, version),
        (1, attach),
        (2, Tmessage::Walk { fid: ROOT, newfid: 1, names }),
        (3, client.opening(1, How::Read)),
        (4, Tmessage::Read { fid: 1, offset: 0, count: 100 }),
        (5, client.stating(1)),
        (6, Tmessage::Walk { fid: ROOT, newfid: 2, names: pack(&["hermes", "dir"], dir) }),
        (7, client.opening(2, How::Read)),
        (8, list),
        (9, Tmessage::Flush { oldtag: 99 }),
        (10, Tmessage::Clunk { fid: 77 }),
        (11, Tmessage::Clunk { fid: 1 }),
        (12, Tmessage::Remove { fid: 2 }),
    ]
    .iter()
    .map(|(tag, message)| client.encode(*tag, message))
    .collect()
}

/// A message of every type that has a body, each well formed: type and body.
fn samples(dialect: Dialect) -> Vec<(u8, Vec<u8>)> {
    let mut bodies: Vec<(u8, Vec<u8>)> =
        script(dialect).iter().skip(1).map(|m| (m[4], m[7..].to_vec())).collect();
    let client = Client::new(Box::new(Nowhere), dialect);
    let n_uname = client.numeric(0);
    let mut more = vec![
        Tmessage::Auth { afid: 9, uname: b"glenda", aname: b"", n_uname },
        Tmessage::Write { fid: 9, offset: 0, data: b"data" },
    ];
    if dialect == Dialect::Linux {
        more.extend([
            Tmessage::Statfs { fid: 9 },
            Tmessage::Xattrwalk { fid: 9, newfid: 10, name: b"user.x" },
            Tmessage::Mkdir { dfid: 9, name: b"new", mode: 0, gid: 0 },
            Tmessage::Fsync { fid: 9, datasync: 0 },
            Tmessage::Readlink { fid: 9 },
        ]);
    } else {
        more.push(Tmessage::Wstat { fid: 9, stat: proto::Stat::UNTOUCHED });
        more.push(Tmessage::Create {
            fid: 9,
            name: b"new",
            perm: 0,
            mode: 0,
            extension: (dialect == Dialect::Unix).then_some(b""),
        });
    }
    bodies.extend(more.iter().map(|message| {
        let bytes = client.encode(1, message);
        (bytes[4], bytes[7..].to_vec())
    }));
    bodies
}

/// Sends a frame of a type with a body, whatever they are. A reply is expected with its tag.
fn send_raw(client: &mut Client, kind: u8, tag: u16, body: &[u8]) {
    let size = (7 + body.len()) as u32;
    let mut frame = size.to_le_bytes().to_vec();
    frame.push(kind);
    frame.extend(tag.to_le_bytes());
    frame.extend(body);
    client.expect_answer(tag, &Tmessage::Clunk { fid: 0 });
    client.send_bytes(&frame);
}

#[track_caller]
fn eventually(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "this never became true: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// For a client that only encodes.
struct Nowhere;

impl crate::rig::Wire for Nowhere {
    fn send(&mut self, _: &[u8], _: Duration) -> usize {
        0
    }

    fn receive(&mut self, _: Duration) -> Received {
        Received::Closed
    }
}
