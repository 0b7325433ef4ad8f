use std::sync::atomic::AtomicUsize;

use rustix::io::Errno;

use super::super::source::Found;
use super::*;
use crate::host::Kind;

/// A file whose bytes, and reads, are counted.
#[derive(Clone, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    read: Arc<AtomicUsize>,
    ino: u64,
    ctime_s: i64,
}

impl Source for Disk {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let got = (&self.bytes.lock().unwrap()[..]).read_at(buf, offset)?;
        self.read.fetch_add(got, Ordering::Relaxed);
        Ok(got)
    }
}

struct Nothing;

impl Library for Nothing {
    fn find(&self, _: &str) -> Result<Option<Found>, Errno> {
        Ok(None)
    }
}

impl Disk {
    fn of(ino: u64, messages: std::ops::Range<usize>) -> Self {
        let disk = Self { ino, ..Self::default() };
        disk.bytes.lock().unwrap().extend(lines(messages));
        disk
    }

    fn meta(&self) -> Meta {
        let time = Time { sec: self.ctime_s, nsec: 0 };
        Meta {
            kind: Kind::File,
            dev: 1,
            ino: self.ino,
            btime: None,
            handle: 0,
            mtime: time,
            ctime: time,
            atime: time,
            size: self.bytes.lock().unwrap().len() as u64,
            uid: 0,
            gid: 0,
            nlink: 1,
        }
    }

    fn step<T>(
        &self,
        visit: &Visit,
        budget: usize,
        look: impl FnOnce(&Index) -> T,
    ) -> Result<Turn<T>, Error> {
        let asked = Asked {
            meta: &self.meta(),
            format: Format::Claude,
            open: &|| Ok(Box::new(self.clone())),
            library: &Nothing,
            now_ns: 1_000_000_000_000,
        };
        visit.step(&asked, budget, look)
    }

    /// As a job would: how many messages there are.
    fn count(&self, chats: &Arc<Chats>) -> Result<u32, Error> {
        let visit = chats.visit(&self.meta());
        loop {
            match self.step(&visit, 4 << 20, Index::len)? {
                Turn::Done(count) => return Ok(count),
                Turn::Again => {}
                Turn::WhenRung(_) => panic!("nobody else is here"),
            }
        }
    }

    fn take_read(&self) -> usize {
        self.read.swap(0, Ordering::Relaxed)
    }
}

fn lines(messages: std::ops::Range<usize>) -> Vec<u8> {
    let line =
        |at| format!("{{\"type\":\"user\",\"uuid\":\"{at}\",\"message\":{{\"content\":\"m{at}\"}}}}\n");
    messages.flat_map(|at| line(at).into_bytes()).collect()
}

#[test]
fn a_known_chat_costs_nothing_and_an_appended_one_what_was_appended() {
    let (chats, disk) = (Arc::new(Chats::new()), Disk::of(1, 0..20_000));
    assert!(chats.peek(&disk.meta(), Index::len).is_err());
    assert_eq!(disk.count(&chats), Ok(20_000));
    disk.take_read();
    assert_eq!(chats.peek(&disk.meta(), Index::len).ok(), Some(20_000));
    assert_eq!(disk.take_read(), 0);
    disk.bytes.lock().unwrap().extend(lines(20_000..20_001));
    assert!(chats.peek(&disk.meta(), Index::len).is_err());
    assert_eq!(disk.count(&chats), Ok(20_001));
    assert!(disk.take_read() < 2000);
    assert!(chats.memory() < 20_001 * 40, "{}", chats.memory());
}

#[test]
fn two_clients_share_one_scan_and_either_goes_on_where_the_other_left() {
    let (chats, disk) = (Arc::new(Chats::new()), Disk::of(1, 0..50_000));
    let (one, two) = (chats.visit(&disk.meta()), chats.visit(&disk.meta()));
    for _ in 0..3 {
        assert!(matches!(disk.step(&one, 1, Index::len), Ok(Turn::Again)));
        assert!(matches!(disk.step(&two, 1, Index::len), Ok(Turn::Again)));
    }
    drop(one);
    assert!(matches!(disk.step(&two, usize::MAX, Index::len), Ok(Turn::Done(50_000))));
    let size = disk.bytes.lock().unwrap().len();
    assert!(disk.take_read() < size + size / 20);
}

#[test]
fn who_finds_it_taken_waits_for_the_bell() {
    let (chats, disk) = (Arc::new(Chats::new()), Disk::of(1, 0..10));
    let (one, two) = (chats.visit(&disk.meta()), chats.visit(&disk.meta()));
    let before = chats.epoch();
    let inner = |_: &Index| match disk.step(&two, 1, Index::len) {
        Ok(Turn::WhenRung(epoch)) => epoch,
        turn => panic!("{turn:?}"),
    };
    let Ok(Turn::Done(epoch)) = disk.step(&one, usize::MAX, inner) else { panic!("it is a small one") };
    assert_eq!(epoch, before);
    assert_ne!(chats.epoch(), epoch);
    assert!(matches!(disk.step(&two, 1, Index::len), Ok(Turn::Done(10))));
}

#[test]
fn a_file_that_did_more_than_grow_is_read_anew() {
    let chats = Arc::new(Chats::new());
    let mut disk = Disk::of(1, 0..100);
    assert_eq!(disk.count(&chats), Ok(100));
    // Shorter.
    *disk.bytes.lock().unwrap() = lines(0..50);
    assert_eq!(disk.count(&chats), Ok(50));
    // Rewritten at the front, to the same size, at another time.
    disk.bytes.lock().unwrap()[..8].copy_from_slice(b"{\"typo\":");
    disk.ctime_s += 1;
    assert_eq!(disk.count(&chats), Ok(49));
    // Cut and grown past what it was, between two looks.
    *disk.bytes.lock().unwrap() = lines(1000..1200);
    disk.ctime_s += 1;
    assert_eq!(disk.count(&chats), Ok(200));
    // Another file under the same name, of the same size and times.
    let other = Disk { ino: 2, ..Disk::of(2, 2000..2200) };
    assert_eq!(other.count(&chats), Ok(200));
    // Rewritten so soon that its times do not tell.
    let now_s = 1000;
    disk.ctime_s = now_s;
    assert_eq!(disk.count(&chats), Ok(200));
    let last = disk.bytes.lock().unwrap().len() - 8;
    disk.bytes.lock().unwrap()[last..].copy_from_slice(b"_______\n");
    assert!(chats.peek(&disk.meta(), Index::len).is_err());
    assert_eq!(disk.count(&chats), Ok(199));
}

#[test]
fn the_budget_drops_the_least_recently_used() {
    let chats = Arc::new(Chats::with_limit(120_000));
    let disks: Vec<Disk> = (1..=6).map(|ino| Disk::of(ino, 0..1500)).collect();
    for disk in &disks {
        assert_eq!(disk.count(&chats), Ok(1500));
        assert!(chats.memory() <= 120_000);
        assert!(chats.peek(&disks[0].meta(), Index::len).is_ok(), "it is always in use");
    }
    assert!(chats.peek(&disks[1].meta(), Index::len).is_err());
    assert!(chats.peek(&disks[5].meta(), Index::len).is_ok());
}

#[test]
fn of_two_scans_that_do_not_fit_together_the_older_ends_first() {
    let chats = Arc::new(Chats::with_limit(400_000));
    let (one, two) = (Disk::of(1, 0..12_000), Disk::of(2, 0..12_000));
    let (first, second) = (chats.visit(&one.meta()), chats.visit(&two.meta()));
    let (mut ended, mut steps) = (Vec::new(), 0);
    while ended.len() < 2 {
        for (number, disk, visit) in [(1, &one, &first), (2, &two, &second)] {
            if !ended.contains(&number) && matches!(disk.step(visit, 1, Index::len), Ok(Turn::Done(12_000))) {
                ended.push(number);
            }
        }
        steps += 1;
        assert!(steps < 1000, "neither gets to its end");
    }
    assert_eq!(ended, [1, 2]);
}

#[test]
fn one_over_the_budget_is_refused_until_it_is_smaller() {
    let chats = Arc::new(Chats::new());
    let disk = Disk::of(1, 0..0);
    // A record of more blocks than a tape may hold.
    let mut line = b"{\"type\":\"user\",\"message\":{\"content\":[0".to_vec();
    line.extend(b",0".repeat(2_000_000));
    line.extend(b"]}}\n");
    *disk.bytes.lock().unwrap() = line;
    assert_eq!(disk.count(&chats), Err(Error::TooLarge));
    disk.take_read();
    assert_eq!(disk.count(&chats), Err(Error::TooLarge));
    assert_eq!(disk.take_read(), 0);
    *disk.bytes.lock().unwrap() = lines(0..5);
    assert_eq!(disk.count(&chats), Ok(5));
}
