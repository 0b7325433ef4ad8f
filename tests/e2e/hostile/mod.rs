//! A home that means harm: whatever lies in it, what shows is exactly what may, no byte comes from elsewhere, nothing waits.
//!
//! Owns: the whole look at a tree, from outside. What lies in the home, and what is to show, is in `house`; what cannot be
//! listed once and compared, because of its size or because it changes, is in `sizes` and `changes`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use memchr::memmem;
use proto::Dialect;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use tests::check::{Answer, BULK, Client, Entry, Info};
use tests::fitness::skip;

use crate::daemon::{Daemon, client};
use crate::tell;
use house::{CANARY, END, House, INNOCENT, Shown};

mod changes;
mod house;
mod sizes;

#[test]
fn what_shows_of_a_hostile_home_is_exactly_what_may() {
    let as_root = geteuid().is_root();
    if !as_root {
        skip("only root can make devices, mount, and become another user; the rest is tested");
    }
    let house = House::build(as_root);
    let start = Instant::now();
    let daemon = serve(&house, as_root);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| watch(&house, &done));
        let looked = scope.spawn(|| {
            for dialect in [Dialect::Unix, Dialect::Linux, Dialect::Plain] {
                compare(&house, dialect);
            }
        });
        let looked = looked.join();
        done.store(true, Ordering::SeqCst);
        looked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    print_all(&house);
    let taken = start.elapsed();
    tell(&format!(
        "hostile home: {} places show and {} do not, in each dialect; looked at in {taken:.1?}, {} KiB at most",
        house.shows.len(),
        house.hides.len(),
        daemon.memory_kib("VmHWM"),
    ));
    assert!(taken < TIME_MAX, "{taken:?}");
}

/// Starts a server that reads the home as somebody with few rights: another user if we are root, who has every right.
fn serve(house: &House, as_root: bool) -> Daemon {
    let mut command = house.home.command(&["--proc", "/nonexistent"]);
    if !as_root {
        return Daemon::start(&mut command);
    }
    for directory in [house.home.runtime(), house.home.beside("neighbour")] {
        std::os::unix::fs::chown(directory, Some(STRANGER), Some(STRANGER)).expect("root may");
    }
    // Mounts are the thread's and of what it starts, and end with that.
    let start = || {
        house.mount();
        Daemon::start(command.uid(STRANGER).gid(STRANGER))
    };
    thread::scope(|scope| scope.spawn(start).join().expect("a server"))
}

/// Looks at everything there is, and asks for what there is not.
fn compare(house: &House, dialect: Dialect) {
    let mut client = client(&house.home.posted("agents"), dialect);
    let mut seen = BTreeMap::new();
    look(&mut client, &mut seen);
    for fixed in ["/README", "/pid", "/uptime"] {
        assert!(seen.remove(fixed.as_bytes()).is_some_and(|shown| shown.opens.is_ok()), "{fixed}");
    }
    let numbers = dialect != Dialect::Plain;
    for (path, expected) in &house.shows {
        let expected = match &expected.opens {
            // Words only: that there are some is seen by the client.
            Err(_) if !numbers => Shown { opens: Err(0), ..expected.clone() },
            _ => expected.clone(),
        };
        assert_eq!(seen.remove(path), Some(expected), "{dialect:?} {}", path.escape_ascii());
    }
    let more: Vec<_> = seen.keys().map(|path| path.escape_ascii().to_string()).collect();
    assert!(more.is_empty(), "{dialect:?} shows what it should not: {more:?}");
    for path in &house.hides {
        assert!(client.try_go(path).is_err(), "{dialect:?} {} resolves", path.escape_ascii());
    }
    for path in &house.unlisted {
        assert_eq!(client.contents(path), INNOCENT, "{dialect:?} {}", path.escape_ascii());
    }
}

/// Everything below the root, as it is listed, with what it says of itself and what can be read of it.
fn look(client: &mut Client, seen: &mut BTreeMap<Vec<u8>, Shown>) {
    let mut left = vec![(Vec::new(), None)];
    while let Some((path, entry)) = left.pop() {
        let fid = client.go(&path);
        let info = client.stat(fid).expect("what is listed can be asked what it is");
        assert_eq!(info.perm, if info.dir { 0o555 } else { 0o444 }, "{}", path.escape_ascii());
        agree(&path, entry, &info);
        let opens = client.open(fid).and_then(|_| match info.dir {
            true => {
                let below = |entry: Entry| ([&path[..], b"/", &entry.name].concat(), Some(entry));
                left.extend(listed(client, fid)?.into_iter().map(below));
                Ok(Vec::new())
            }
            false => ends(client, fid, info.length),
        });
        let opens = opens.map_err(|refused| refused.errno.unwrap_or_default());
        let foreign = opens.as_ref().is_ok_and(|bytes| memmem::find(bytes, CANARY).is_some());
        assert!(!foreign, "{}", path.escape_ascii());
        client.clunk(fid).expect("a bound fid is clunked");
        let shown = Shown { dir: info.dir, length: info.length, opens };
        assert_eq!(seen.insert(path, shown), None, "it is listed once");
    }
}

/// An entry is what the file says of itself.
fn agree(path: &[u8], entry: Option<Entry>, info: &Info) {
    let Some(entry) = entry else { return };
    assert_eq!(entry.qid.path, info.qid.path, "{}", path.escape_ascii());
    // What is made anew for each look may be another by now, and whatever is read, under any name, was accessed.
    if path != b"/uptime" && !path.starts_with(b"/active") {
        let but_access = |record: &[u8]| [&record[..ATIME.start], &record[ATIME.end..]].concat();
        let same = entry.record.is_none_or(|record| but_access(&record) == but_access(&info.record));
        assert!(same, "{}", path.escape_ascii());
    }
}

/// All entries of an open directory, or why there are none.
pub(super) fn listed(client: &mut Client, fid: u32) -> Answer<Vec<Entry>> {
    let (mut all, mut offset) = (Vec::new(), 0);
    loop {
        let (entries, next) = client.list(fid, offset, BULK)?;
        if entries.is_empty() {
            return Ok(all);
        }
        (offset, _) = (next, all.extend(entries));
    }
}

/// The first and the last bytes of an open file, or all of a short one.
fn ends(client: &mut Client, fid: u32, length: u64) -> Answer<Vec<u8>> {
    let mut bytes = client.read(fid, 0, END)?;
    if length > u64::from(END) {
        bytes.extend(client.read(fid, length - u64::from(END), END)?);
    }
    assert_eq!(client.read(fid, length.max(1), END)?, b"", "nothing is behind the end");
    Ok(bytes)
}

/// Sees that nobody opens a pipe to read from it, for its writer would notice.
fn watch(house: &House, done: &AtomicBool) {
    while !done.load(Ordering::SeqCst) {
        for pipe in &house.pipes {
            let writer = open(pipe, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
            assert_eq!(writer.err(), Some(Errno::NXIO), "{} has a reader", pipe.display());
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// What `ls -lR` prints of it is lines that a terminal does not obey, and it says what it could not list.
fn print_all(house: &House) {
    let output = house.home.command(&["ls", "-lR"]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(1), "some directories cannot be listed");
    for bytes in [&output.stdout, &output.stderr] {
        let text = str::from_utf8(bytes).expect("text");
        assert!(!text.lines().any(|line| line.contains(char::is_control)));
    }
    let closed = house.shows.iter().filter(|(_, shown)| shown.dir && shown.opens.is_err()).count();
    assert_eq!(output.stderr.split(|byte| *byte == b'\n').count() - 1, closed, "a line for each");
}

/// Where the time of the last access stands in a record: stat(5), size[2] type[2] dev[4] qid[13] mode[4] atime[4].
const ATIME: Range<usize> = 25..29;
/// What all of it may take on a busy machine: several times what it takes by itself.
const TIME_MAX: Duration = Duration::from_secs(60);
/// A user who is nobody here.
const STRANGER: u32 = 12345;
