//! The client against servers of every kind, honest and not.

mod cli_toy;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cli_toy::{Frames, Item, Offer, Offering, dir, file, locked, many, ouroboros, session, slot};
use drivers::client::{Client, Error, Pace, TreePath, Wire};
use drivers::inproc::Inproc;
use proptest::prelude::*;
use proto::{Dialect, Names, Qid, Qids, Refusal, Rmessage, Stat, Tmessage};

#[test]
fn every_dialect_that_a_server_may_offer_is_spoken() {
    for (offer, dialect) in
        [(Offer::Every, Dialect::Unix), (Offer::Plain, Dialect::Plain), (Offer::LinuxOnly, Dialect::Linux)]
    {
        let mut client = connect(Offering::new(session(&tree(), MSIZE), offer)).unwrap();
        assert_eq!(client.dialect(), dialect);
        let stat = client.stat(&path("/a/text")).unwrap();
        assert_eq!((stat.name.as_slice(), stat.length, stat.mode), (&b"text"[..], 5, 0o444));
        assert_eq!(stat.mtime.sec, 1_732_914_180);
        let (user, nsec) = if dialect == Dialect::Linux { ("7", 5) } else { ("glenda", 0) };
        assert_eq!((stat.user.as_slice(), stat.mtime.nsec), (user.as_bytes(), nsec));
        assert_eq!(client.stat(&path("/")).unwrap().name, b"/");
        let names: Vec<_> = client.list(&path("a")).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, [&b"text"[..], b"empty", b"deep", b"slot", b"locked"]);
        let stats = client.list_stats(&path("a")).unwrap();
        assert_eq!(stats[0], stat);
        assert_eq!(content(&mut client, "/a/text", Pace::Ahead).unwrap(), b"hello");
        assert_eq!(content(&mut client, "/a/text", Pace::Step).unwrap(), b"hello");
        assert!(client.stat(&path("/nope")).unwrap_err().is_absence());
        assert!(client.stat(&path("/a/text/x")).unwrap_err().is_absence());
    }
}

#[test]
fn a_server_without_a_dialect_is_told_from_a_broken_one() {
    for offer in [Offer::Nothing, Offer::Error] {
        let error = connect(Offering::new(session(&tree(), MSIZE), offer)).unwrap_err();
        assert!(matches!(error, Error::Dialect), "{error}");
    }
    assert!(matches!(connect(Silent).unwrap_err(), Error::TurnedAway));
}

#[test]
fn the_words_are_the_servers() {
    let mut client = connect(session(&tree(), MSIZE)).unwrap();
    let words = |error: Error| error.to_string();
    assert_eq!(words(client.stat(&path("/nope")).unwrap_err()), "file does not exist");
    // Part of the way there is: the walk is partial, which has no words of its own.
    assert_eq!(words(client.stat(&path("/a/nope/more")).unwrap_err()), "file does not exist");
    assert_eq!(words(client.stat(&path("/a/text/more")).unwrap_err()), "not a directory");
    let locked = content(&mut client, "/a/locked", Pace::Ahead).unwrap_err();
    assert_eq!(words(locked), "a database that is not on the list: opening is not permitted");
    assert_eq!(words(content(&mut client, "/a", Pace::Ahead).unwrap_err()), "is a directory");
    assert_eq!(words(client.list(&path("/a/text")).unwrap_err()), "not a directory");
    let write = client.write(&path("/a/text"), &mut &b"x"[..]).unwrap_err();
    assert_eq!(words(write), "permission denied");
}

#[test]
fn a_walk_of_any_length_is_made_in_steps() {
    let names: Vec<String> = (0..50).map(|at| format!("d{at}")).collect();
    let root = names.iter().rev().fold(file("end", "x"), |inner, name| many(name, vec![inner]));
    let root = dir("/", [root]);
    for msize in [MSIZE, 512] {
        // 512 bytes of msize are for 9P2000 alone.
        let mut client = connect(Offering::new(session(&root, msize), Offer::Plain)).unwrap();
        for length in [15, 16, 17, 32, 33, 50] {
            let path = path(&names[..length].join("/"));
            assert_eq!(client.stat(&path).unwrap().name, names[length - 1].as_bytes());
        }
        assert_eq!(client.stat(&path(&names.join("/")).join(b"end")).unwrap().length, 1);
        for length in [15, 16, 17, 32, 40] {
            let path = path(&names[..length].join("/")).join(b"nope").join(b"x");
            assert!(client.stat(&path).unwrap_err().is_absence());
        }
        assert!(client.list(&path(&names.join("/"))).is_ok(), "the connection goes on");
    }
}

#[test]
fn a_name_that_no_frame_carries_is_refused_here() {
    let mut client = connect(session(&tree(), 4096)).unwrap();
    for length in [4096, 70_000] {
        let error = client.stat(&path("a").join(&vec![b'x'; length])).unwrap_err();
        assert!(matches!(error, Error::NameTooLong), "{error}");
    }
    client.stat(&path("a")).unwrap();
}

#[test]
fn a_write_goes_out_in_pieces_of_what_the_server_takes() {
    let slot = slot("slot");
    let mut client = connect(session(&dir("/", [Arc::clone(&slot)]), 4096)).unwrap();
    assert_eq!(client.write(&path("slot"), &mut Halting(Some(b"in two parts"))).unwrap(), 12);
    assert_eq!(slot.written(), [(0, b"in two parts".to_vec())], "one write, however it came");
    let long = vec![7; 10_000];
    assert_eq!(client.write(&path("slot"), &mut &long[..]).unwrap(), 10_000);
    let pieces: Vec<_> = slot.written().iter().map(|(offset, bytes)| (*offset, bytes.len())).collect();
    assert_eq!(pieces, [(0, 4072), (4072, 4072), (8144, 1856)]);
    assert_eq!(client.write(&path("slot"), &mut io::empty()).unwrap(), 0);
    assert_eq!(slot.written(), []);
    assert!(matches!(client.write(&path("slot"), &mut Failing).unwrap_err(), Error::Source(_)));
    client.stat(&path("slot")).unwrap();
}

#[test]
fn fids_are_given_back_whatever_happens() {
    let (wire, account) = Account::new(session(&tree(), 4096));
    let mut client = connect(wire).unwrap();
    client.stat(&path("/a/text")).unwrap();
    client.list(&path("/a/deep")).unwrap();
    client.list(&path("/a/text")).unwrap_err();
    client.stat(&path("/a/nope/x")).unwrap_err();
    client.stat(&path(&"loop/".repeat(20)).join(b"nope")).unwrap_err();
    content(&mut client, "/a/locked", Pace::Ahead).unwrap_err();
    content(&mut client, "/a/deep/long", Pace::Ahead).unwrap();
    let mut calls = 0;
    let stopped = client.read(&path("/a/deep/long"), Pace::Ahead, &mut |_| {
        calls += 1;
        if calls == 3 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    });
    assert!(matches!(stopped.unwrap_err(), Error::Sink(_)));
    client.stat(&path("/a/text")).unwrap();
    let account = account.borrow();
    assert_eq!(account.bound.len(), 1, "the root alone: {:?}", account.bound);
    assert!(account.highest_fid <= 1, "numbers are used again: {}", account.highest_fid);
    assert!(account.most_in_flight > 1, "reads overlap");
}

#[test]
fn many_small_files_take_few_round_trips() {
    let agent = |pid: usize| {
        dir(&pid.to_string(), [file("cwd", format!("/{pid}\n")), file("title", "x".repeat(300))])
    };
    let root = dir("/", [many("active", (0..40).map(agent).collect())]);
    let (wire, account) = Account::new(session(&root, MSIZE));
    let mut client = connect(wire).unwrap();
    let before = account.borrow().sends;
    let paths: Vec<_> = (0..40).map(|pid| path(&format!("active/{pid}"))).collect();
    let gathered = client.gather(&paths, &["title", "nope", "cwd"], 200).unwrap();
    assert_eq!(gathered.len(), 40);
    for (pid, files) in gathered.into_iter().enumerate() {
        let files = files.unwrap();
        assert_eq!(files[0].as_deref().unwrap(), [b'x'; 200]);
        assert!(files[1].as_ref().unwrap_err().is_absence());
        assert_eq!(files[2].as_deref().unwrap(), format!("/{pid}\n").as_bytes());
    }
    // To the directories, to the files, open, read, clunk.
    assert_eq!(account.borrow().sends - before, 5);
    assert_eq!(account.borrow().bound.len(), 1, "the root alone");
    client.gather(&vec![path("active/7"); 300], &["cwd"; 3], 200).unwrap();
    assert_eq!(account.borrow().bound.len(), 1, "more than go out at once");
    assert!(account.borrow().highest_fid <= 400, "numbers are used again");
}

#[test]
fn what_cannot_be_gathered_is_told_in_its_place() {
    for offer in [Offer::Every, Offer::Plain, Offer::LinuxOnly] {
        let mut client = connect(Offering::new(session(&tree(), 4096), offer)).unwrap();
        let long = path("a").join(&[b'x'; 70_000]);
        let paths = [path("a"), path("nope"), path("a/nope"), path("a/text"), long, path("/")];
        let mut gathered = client.gather(&paths, &["text", "deep", "locked", "a"], 4).unwrap().into_iter();
        let a = gathered.next().unwrap().unwrap();
        assert_eq!(a[0].as_deref().unwrap(), b"hell");
        assert!(matches!(a[1], Err(Error::Directory)));
        assert!(matches!(a[2], Err(Error::Refused { .. })) && !a[2].as_ref().unwrap_err().is_absence());
        assert!(a[3].as_ref().unwrap_err().is_absence());
        assert!(gathered.next().unwrap().unwrap_err().is_absence());
        assert!(gathered.next().unwrap().unwrap_err().is_absence());
        assert!(gathered.next().unwrap().unwrap().iter().all(|file| file.as_ref().unwrap_err().is_absence()));
        assert!(matches!(gathered.next().unwrap(), Err(Error::NameTooLong)));
        assert!(matches!(gathered.next().unwrap().unwrap()[3], Err(Error::Directory)));
        assert!(gathered.next().is_none());
        assert_eq!(client.gather(&paths[..1], &[], 4).unwrap()[0].as_deref().unwrap().len(), 0);
        client.stat(&path("/")).unwrap();
    }
}

#[test]
fn a_file_without_a_length_is_read_one_step_at_a_time() {
    for pace in [Pace::Ahead, Pace::Step] {
        let (wire, account) = Account::new(session(&dir("/", [slot("slot"), file("long", LONG)]), 4096));
        let mut client = connect(wire).unwrap();
        content(&mut client, "slot", pace).unwrap();
        assert_eq!(account.borrow().most_in_flight, 1);
        assert_eq!(content(&mut client, "long", pace).unwrap(), LONG);
        assert_eq!(account.borrow().most_in_flight > 1, pace == Pace::Ahead);
    }
}

#[test]
fn a_listing_of_any_size_is_whole() {
    let names: Vec<_> = (0..3000).map(|at| format!("name-{at:06}")).collect();
    let root = many("/", names.iter().map(|name| file(name, "")).collect());
    for offer in [Offer::Every, Offer::Plain, Offer::LinuxOnly] {
        let mut client = connect(Offering::new(session(&root, 4096), offer)).unwrap();
        let listed = client.list(&path("/")).unwrap();
        assert!(listed.iter().map(|entry| entry.name.as_slice()).eq(names.iter().map(String::as_bytes)));
    }
}

#[test]
fn a_directory_may_list_itself_but_nothing_impossible() {
    for (name, listed) in [(&b"."[..], true), (b"..", true), (b"", false), (b"a/b", false), (b"a\0", false)] {
        let mut client = connect(Fixed::listing(name)).unwrap();
        match client.list(&path("/")) {
            Ok(entries) => assert!(listed && entries.is_empty(), "{name:?}"),
            Err(error) => assert!(!listed && matches!(error, Error::Protocol(_)), "{name:?}: {error}"),
        }
    }
}

#[test]
fn an_msize_that_was_not_offered_or_holds_nothing_is_refused() {
    for msize in [0, 7, 24, 255, 256 * 1024 + 25, u32::MAX] {
        let error = connect(Fixed::new(msize, 0, Vec::new())).unwrap_err();
        assert!(matches!(error, Error::Protocol(_)), "{msize}: {error}");
    }
    connect(Fixed::new(256, 0, Vec::new())).unwrap();
}

#[test]
fn a_read_of_more_than_was_asked_for_is_refused() {
    for (length, fits) in [(300, true), (301, false)] {
        let mut client = connect(Fixed::new(8192, 0, vec![b'x'; length])).unwrap();
        let read = content(&mut client, "/", Pace::Step);
        assert_eq!(read.is_ok(), fits);
        assert!(fits || matches!(read.unwrap_err(), Error::Protocol(_)));
        // As many bytes of whole records: a name of the length that is left.
        let empty = Stat { name: b"", ..Stat::UNTOUCHED }.encoded_len(Dialect::Plain);
        let mut client = connect(Fixed::listing(&vec![b'x'; length - empty])).unwrap();
        assert_eq!(client.list(&path("/")).is_ok(), fits);
    }
}

#[test]
fn nothing_is_asked_of_a_connection_that_was_lost() {
    let mut client = connect(Fixed::listing(b"")).unwrap();
    client.list(&path("/")).unwrap_err();
    assert!(matches!(client.list(&path("/")).unwrap_err(), Error::Lost));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn answers_in_any_order_and_of_any_size_make_the_file(choices in proptest::collection::vec(any::<u16>(), 1..60)) {
        let root = dir("/", [file("long", LONG)]);
        let wire = Restless { inner: session(&root, 4096), choices: Choices::new(choices), requests: Frames::default(), replies: Frames::default() };
        let mut client = connect(wire).unwrap();
        prop_assert!(content(&mut client, "long", Pace::Ahead).unwrap() == LONG);
        prop_assert_eq!(client.stat(&path("long")).unwrap().length, LONG.len() as u64);
    }

    #[test]
    fn no_reply_is_worse_than_an_error(choices in proptest::collection::vec(any::<u16>(), 1..80), linux: bool) {
        let offer = if linux { Offer::LinuxOnly } else { Offer::Every };
        let wire = Hostile { inner: Offering::new(session(&tree(), 4096), offer), choices: Choices::new(choices), replies: Frames::default(), left: 200 };
        if let Ok(mut client) = connect(wire) {
            let _ = client.list_stats(&path("/a"));
            let _ = content(&mut client, "/a/deep/long", Pace::Ahead);
            let _ = client.stat(&path("/a/nope/x"));
            let _ = client.write(&path("/a/slot"), &mut io::Cursor::new(LONG));
            let _ = client.list(&path("/a/deep"));
        }
    }
}

fn tree() -> Arc<Item> {
    let deep = dir("deep", [file("long", LONG)]);
    let a = dir(
        "a",
        [
            file("text", "hello"),
            file("empty", ""),
            deep,
            slot("slot"),
            locked("locked", Refusal::HIDDEN_DATABASE),
        ],
    );
    dir("/", [a, ouroboros("loop")])
}

fn connect(wire: impl Wire + 'static) -> Result<Client, Error> {
    Client::connect(Box::new(wire), b"glenda", 7, Duration::from_secs(10))
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes())
}

fn content(client: &mut Client, at: &str, pace: Pace) -> Result<Vec<u8>, Error> {
    let mut all = Vec::new();
    let count = client.read(&path(at), pace, &mut |bytes| {
        all.extend_from_slice(bytes);
        Ok(())
    })?;
    assert_eq!(count, all.len() as u64);
    Ok(all)
}

/// A source that comes byte by byte, and must not be asked again once it has ended: a terminal would wait.
struct Halting(Option<&'static [u8]>);

impl io::Read for Halting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let rest = self.0.expect("it has ended");
        let count = rest.len().min(buf.len()).min(1);
        buf[..count].copy_from_slice(&rest[..count]);
        self.0 = Some(&rest[count..]).filter(|_| count > 0);
        Ok(count)
    }
}

struct Failing;

impl io::Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Hangs up at once.
struct Silent;

impl Wire for Silent {
    fn send(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, _: &mut Vec<u8>) -> io::Result<usize> {
        Ok(0)
    }

    fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

/// What a client did.
#[derive(Debug, Default)]
struct Ledger {
    bound: Vec<u32>,
    highest_fid: u32,
    /// Tag, the fid it binds, the fid it frees, and of a walk how many names it has.
    in_flight: Vec<(u16, Option<u32>, Option<u32>, usize)>,
    most_in_flight: usize,
    sends: usize,
}

/// A wire that keeps account of fids and requests. Speaks 9P2000.u.
struct Account {
    inner: Inproc<cli_toy::Toy>,
    requests: Frames,
    replies: Frames,
    ledger: Rc<RefCell<Ledger>>,
}

impl Account {
    fn new(inner: Inproc<cli_toy::Toy>) -> (Self, Rc<RefCell<Ledger>>) {
        let ledger = Rc::<RefCell<Ledger>>::default();
        let (requests, replies) = Default::default();
        (Self { inner, requests, replies, ledger: Rc::clone(&ledger) }, ledger)
    }
}

impl Wire for Account {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut ledger = self.ledger.borrow_mut();
        ledger.sends += 1;
        for request in self.requests.cut(bytes) {
            let (tag, message) = Tmessage::decode(&request, Dialect::Unix).unwrap();
            let (binds, frees, names) = match message {
                Tmessage::Attach { fid, .. } => (Some(fid), None, 0),
                Tmessage::Walk { fid, newfid, names } if fid != newfid => (Some(newfid), None, names.len()),
                Tmessage::Clunk { fid } => (None, Some(fid), 0),
                _ => (None, None, 0),
            };
            assert!(ledger.in_flight.iter().all(|(other, ..)| *other != tag), "tag {tag} is in flight");
            ledger.in_flight.push((tag, binds, frees, names));
            ledger.most_in_flight = ledger.most_in_flight.max(ledger.in_flight.len());
            ledger.highest_fid = ledger.highest_fid.max(binds.unwrap_or(0));
        }
        self.inner.send(bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let before = into.len();
        self.inner.receive(into);
        let mut ledger = self.ledger.borrow_mut();
        for reply in self.replies.cut(&into[before..]) {
            let (tag, message) = Rmessage::decode(&reply, Dialect::Unix).unwrap();
            let at = ledger.in_flight.iter().position(|(other, ..)| *other == tag).unwrap();
            let (_, binds, frees, names) = ledger.in_flight.remove(at);
            if !matches!(message, Rmessage::Error { .. }) {
                let partial = matches!(message, Rmessage::Walk { qids } if qids.len() < names);
                ledger.bound.extend(binds.filter(|_| !partial));
                ledger.bound.retain(|fid| Some(*fid) != frees);
            }
        }
        Ok(into.len() - before)
    }

    fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

/// Numbers that a property test chose, over and over.
struct Choices {
    numbers: Vec<u16>,
    at: usize,
}

impl Choices {
    fn new(numbers: Vec<u16>) -> Self {
        Self { numbers, at: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.at += 1;
        // Going round with another offset each time, so that a short list is no short cycle.
        let round = self.at / self.numbers.len();
        (usize::from(self.numbers[self.at % self.numbers.len()]) + round * 7) % bound
    }
}

/// Gives less than was asked for, and answers reads in any order.
struct Restless {
    inner: Inproc<cli_toy::Toy>,
    choices: Choices,
    requests: Frames,
    replies: Frames,
}

impl Wire for Restless {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for request in self.requests.cut(bytes) {
            let shorter = match Tmessage::decode(&request, Dialect::Unix) {
                Ok((tag, Tmessage::Read { fid, offset, count })) if self.choices.below(3) == 0 => {
                    let count = 1 + self.choices.below(count as usize) as u32;
                    let mut shorter = vec![0; 64];
                    let size = Tmessage::Read { fid, offset, count }.encode(tag, Dialect::Unix, &mut shorter);
                    shorter.truncate(size.unwrap());
                    shorter
                }
                _ => request,
            };
            self.inner.send(&shorter)?;
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut bytes = Vec::new();
        self.inner.receive(&mut bytes);
        let mut frames = self.replies.cut(&bytes);
        while !frames.is_empty() {
            let at = self.choices.below(frames.len());
            into.extend_from_slice(&frames.remove(at));
        }
        Ok(bytes.len())
    }

    fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

/// Answers well for a while, then wrongly in every way.
struct Hostile {
    inner: Offering,
    choices: Choices,
    replies: Frames,
    /// Answers before it hangs up.
    left: usize,
}

impl Hostile {
    fn spoil(&mut self, mut reply: Vec<u8>) -> Vec<u8> {
        match self.choices.below(24) {
            0 => {
                let at = self.choices.below(reply.len());
                reply[at] ^= 1 << self.choices.below(8);
            }
            1 => {
                let length = self.choices.below(reply.len());
                reply.truncate(length);
            }
            2 => {
                // Shorter, and honest about it.
                let length = 7 + self.choices.below(reply.len() - 6);
                reply.truncate(length);
                reply[..4].copy_from_slice(&(length as u32).to_le_bytes());
            }
            3 => {
                let more = self.choices.below(300);
                reply.resize(reply.len() + more, 0xff);
                let length = reply.len() as u32;
                reply[..4].copy_from_slice(&length.to_le_bytes());
            }
            4 => reply.extend_from_within(..),
            5 => reply[5] = reply[5].wrapping_add(1),
            6 => reply[4] = self.choices.below(256) as u8,
            7 => reply.iter_mut().skip(7).for_each(|byte| *byte = 0xff),
            8 => reply = vec![0xff; 64],
            _ => {}
        }
        reply
    }
}

impl Wire for Hostile {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.inner.send(bytes)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let before = into.len();
        while into.len() == before {
            if self.left == 0 {
                return Ok(0);
            }
            self.left -= 1;
            let mut bytes = Vec::new();
            if self.inner.receive(&mut bytes)? == 0 {
                return Ok(0);
            }
            for reply in self.replies.cut(&bytes) {
                let spoiled = self.spoil(reply);
                into.extend_from_slice(&spoiled);
            }
        }
        Ok(into.len() - before)
    }

    fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

/// A 9P2000 server of one file or directory, which every read gives the same bytes of, however many were asked for.
struct Fixed {
    msize: u32,
    kind: u8,
    data: Vec<u8>,
    requests: Frames,
    replies: VecDeque<Vec<u8>>,
}

impl Fixed {
    fn new(msize: u32, kind: u8, data: Vec<u8>) -> Self {
        Self { msize, kind, data, requests: Frames::default(), replies: VecDeque::new() }
    }

    /// A directory of one entry, of any name.
    fn listing(name: &[u8]) -> Self {
        let qid = Qid { kind: proto::QTDIR, version: 0, path: 1 };
        let stat = Stat { kind: 0, dev: 0, mode: 0, length: 0, qid, name, ..Stat::UNTOUCHED };
        let mut record = vec![0; stat.encoded_len(Dialect::Plain)];
        stat.encode(Dialect::Plain, &mut record).unwrap();
        Self::new(8192, proto::QTDIR, record)
    }

    fn answer(&mut self, tag: u16, request: Tmessage<'_>) {
        let qid = Qid { kind: self.kind, version: 0, path: 1 };
        let answer = match request {
            Tmessage::Version { .. } => Rmessage::Version { msize: self.msize, version: b"9P2000" },
            Tmessage::Attach { .. } => Rmessage::Attach { qid },
            Tmessage::Walk { names: Names::EMPTY, .. } => Rmessage::Walk { qids: Qids::new(&[]) },
            Tmessage::Open { .. } => Rmessage::Open { qid, iounit: 300 },
            Tmessage::Read { offset: 0, .. } => Rmessage::Read { data: &self.data },
            Tmessage::Read { .. } => Rmessage::Read { data: b"" },
            Tmessage::Clunk { .. } => Rmessage::Clunk,
            other => panic!("not expected: {other:?}"),
        };
        let mut reply = vec![0; 1000];
        let size = answer.encode(tag, Dialect::Plain, &mut reply).unwrap();
        reply.truncate(size);
        self.replies.push_back(reply);
    }
}

impl Wire for Fixed {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for request in self.requests.cut(bytes) {
            let (tag, request) = Tmessage::decode(&request, Dialect::Plain).unwrap();
            self.answer(tag, request);
        }
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
        let reply = self.replies.pop_front().unwrap_or_default();
        into.extend_from_slice(&reply);
        Ok(reply.len())
    }

    fn set_patience(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

const MSIZE: u32 = 64 * 1024;
/// Ten reads and a bit, at an msize of 4096.
const LONG: &[u8] = &{
    let mut bytes = [0; 41_111];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at % 251) as u8;
        at += 1;
    }
    bytes
};
