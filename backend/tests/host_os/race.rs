//! A path that changes while it is walked.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use std::time::Instant;

use backend::host::{Errno, Host, Kind};
use backend::name::Root;
use engine::port::Effort::{Cached, Full};
use rustix::fs::RenameFlags;

use crate::world::{both, rel};

/// A directory is exchanged for a link, to a directory outside and to one inside by turns, as fast as a thread can, while
/// others go through its name by every call there is. What comes back is of the directory itself, or nothing.
#[test]
fn a_directory_swapped_for_a_link_never_redirects() {
    let time = std::env::var("NINEAGENTS_HAMMER_SECS").ok().and_then(|s| s.parse().ok()).unwrap_or(2);
    both(|w| {
        w.write("p/x/f", b"inside");
        fs::create_dir(w.base.join("p/x/inside")).unwrap();
        let barred: Vec<u64> = [w.outside.clone(), w.base.join("p/elsewhere")]
            .iter()
            .flat_map(|dir| {
                fs::create_dir_all(dir.join("outside")).unwrap();
                fs::write(dir.join("f"), b"outside").unwrap();
                [dir.clone(), dir.join("f")].map(|path| fs::metadata(path).unwrap().ino())
            })
            .collect();
        symlink(&w.outside, w.base.join("p/out")).unwrap();
        symlink("elsewhere", w.base.join("p/in")).unwrap();
        let (stop, reads, misses) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let (path, dir) = (rel("p/x/f"), rel("p/x"));
        let tell = |answer: Result<(), Errno>| match answer {
            Ok(()) => drop(reads.fetch_add(1, SeqCst)),
            Err(Errno::NOENT | Errno::AGAIN) => drop(misses.fetch_add(1, SeqCst)),
            Err(other) => panic!("{other}"),
        };
        let read = |effort| {
            let (file, meta) = w.os.open(Root::Hermes, &path, effort)?;
            assert!(!barred.contains(&meta.ino));
            let mut buf = [0; 16];
            let bytes = file.read_at(&mut buf, 0, Full)?;
            assert_eq!(&buf[..bytes], b"inside");
            Ok(())
        };
        let list = || {
            let (dir, _) = w.os.open_dir(Root::Hermes, &dir)?;
            dir.names(&mut |name| {
                assert_ne!(name, b"outside");
                true
            })
        };
        let stat = || {
            let meta = w.os.stat(Root::Hermes, &path, Full)?;
            assert!(!barred.contains(&meta.ino));
            Ok(())
        };
        let walk = || {
            w.os.walk(Root::Hermes, &path, 0, Full, &mut |meta| {
                assert!(!barred.contains(&meta.ino));
                assert_ne!(meta.kind, Kind::Link);
            })
        };
        thread::scope(|scope| {
            for reader in 0..4 {
                let (stop, tell, read, list, stat, walk) = (&stop, &tell, &read, &list, &stat, &walk);
                scope.spawn(move || {
                    while !stop.load(SeqCst) {
                        match reader {
                            0 => tell(read(Full)),
                            1 => tell(list()),
                            2 => tell(stat()),
                            _ => tell(walk()),
                        }
                        tell(read(Cached));
                    }
                });
            }
            let parent = fs::File::open(w.base.join("p")).unwrap();
            let (start, mut swaps) = (Instant::now(), 0_u64);
            while start.elapsed() < Duration::from_secs(time) {
                for link in ["out", "out", "in", "in"].repeat(16) {
                    rustix::fs::renameat_with(&parent, "x", &parent, link, RenameFlags::EXCHANGE).unwrap();
                    swaps += 1;
                }
            }
            stop.store(true, SeqCst);
            println!(
                "{:?}: {} swaps/s, {} reads, {} misses",
                w.resolving,
                swaps / time,
                reads.load(SeqCst),
                misses.load(SeqCst)
            );
        });
        assert!(reads.load(SeqCst) > 100 && misses.load(SeqCst) > 100, "both sides of the race were met");
    });
}
