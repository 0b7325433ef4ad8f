//! The ring over real descriptors.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::port::Kinds;
use engine::{Budget, Limits, Session};
use nix::sys::pthread::{pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use proto::{Dialect, NOTAG, Tmessage};

use super::*;
use crate::fitness::skip;

type Tags = Ring<'static, u32>;

/// A ring, if this machine lets us have one.
fn ring(operations: u32) -> Option<Tags> {
    match Ring::open(operations) {
        Ok(ring) => Some(ring),
        Err(why) => {
            skip(&format!("there is no ring: {why}"));
            None
        }
    }
}

fn pair() -> (Source<'static>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Source::Shared(Rc::new(ours.into())), theirs)
}

/// Waits for so many completions.
fn completions(ring: &mut Tags, count: usize) -> Vec<Completion<u32>> {
    let (mut ended, start) = (Vec::new(), Instant::now());
    while ended.len() < count {
        assert!(start.elapsed() < Duration::from_secs(10), "it does not come: {ended:?}");
        ring.wait(Some(Duration::from_millis(100))).unwrap();
        ended.extend(std::iter::from_fn(|| ring.next()));
    }
    ended
}

#[derive(Debug)]
enum Nothing {}

impl Kinds for Nothing {
    type Node = ();
    type Open = ();
}

/// Replies to write, in the one form that they come in.
fn replies() -> Buf {
    let mut session = Session::<Nothing>::new(Limits::DEFAULT, Budget::default(), 1);
    let mut frame = [0; 64];
    let version = Tmessage::Version { msize: 8192, version: b"9P2000" };
    let size = version.encode(NOTAG, Dialect::Plain, &mut frame).unwrap();
    session.receive(&frame[..size]);
    assert!(session.poll().is_none());
    session.take().unwrap()
}

#[test]
fn what_is_read_and_written_comes_back_with_its_buffer() {
    let Some(mut ring) = ring(8) else { return };
    let (source, mut peer) = pair();
    ring.read(1, &source, Kind::Socket, vec![0; 4]);
    ring.write(2, &source, Kind::Socket, replies(), 13);
    peer.write_all(b"hello").unwrap();
    let mut heard = [0; 6];
    for ended in completions(&mut ring, 2) {
        match ended {
            Completion::Read { tag: 1, result, space } => {
                assert_eq!((result, &space[..]), (Ok(4), &b"hell"[..]))
            }
            Completion::Written { tag: 2, result, from: 13, .. } => assert_eq!(result, Ok(6)),
            other => panic!("{other:?}"),
        }
    }
    peer.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"9P2000", "the bytes behind the first thirteen");
}

#[test]
fn pipes_are_read_and_written_at_their_ends() {
    let Some(mut ring) = ring(8) else { return };
    let (output, input) = rustix::pipe::pipe().unwrap();
    let (output, input) = (Source::Shared(Rc::new(output)), Source::Shared(Rc::new(input)));
    ring.read(1, &output, Kind::Other, vec![0; 64]);
    ring.write(2, &input, Kind::Other, replies(), 0);
    let read = completions(&mut ring, 2).into_iter().find_map(|ended| match ended {
        Completion::Read { result, .. } => result.ok(),
        _ => None,
    });
    assert_eq!(read, Some(19));
}

#[test]
fn a_poll_tells_of_a_hang_up_without_being_asked_for_one() {
    let Some(mut ring) = ring(8) else { return };
    let (source, peer) = pair();
    ring.poll(7, &source, PollFlags::empty());
    ring.wait(Some(Duration::from_millis(20))).unwrap();
    assert!(ring.next().is_none(), "nothing has happened");
    drop(peer);
    let ended = completions(&mut ring, 1);
    let Completion::Polled { tag: 7, result: Ok(events) } = ended[0] else { panic!("{ended:?}") };
    assert!(events.contains(PollFlags::HUP));
}

#[test]
fn what_is_cancelled_ends_like_everything_else() {
    let Some(mut ring) = ring(8) else { return };
    let (source, _peer) = pair();
    ring.read(1, &source, Kind::Socket, vec![0; 16]);
    ring.poll(2, &source, PollFlags::empty());
    ring.cancel(|tag| *tag == 1);
    let ended = completions(&mut ring, 1);
    let Completion::Read { tag: 1, result: Err(Errno::CANCELED), space } = &ended[0] else {
        panic!("{ended:?}")
    };
    assert_eq!(space.len(), 16);
}

#[test]
fn more_than_fits_ends_at_once_and_nothing_overflows() {
    let Some(mut ring) = ring(1) else { return };
    let (source, mut peer) = pair();
    let capacity = ring.capacity();
    for tag in 0..capacity + 10 {
        ring.read(tag as u32, &source, Kind::Socket, vec![0; 1]);
    }
    let refused = completions(&mut ring, 10);
    for ended in refused {
        let Completion::Read { tag, result, space } = ended else { panic!("{ended:?}") };
        assert!(tag as usize >= capacity);
        assert_eq!((result, space.len()), (Err(Errno::NOBUFS), 1));
    }
    // All others end in one go, and every completion has its place.
    peer.write_all(&vec![b'x'; capacity]).unwrap();
    let mut tags: Vec<_> = completions(&mut ring, capacity)
        .into_iter()
        .map(|ended| match ended {
            Completion::Read { tag, result: Ok(1), .. } => tag as usize,
            other => panic!("{other:?}"),
        })
        .collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..capacity));
}

#[test]
fn a_ring_that_goes_leaves_nothing_in_flight_and_nothing_open() {
    let Some(mut ring) = ring(600) else { return };
    let mut peers = Vec::new();
    for tag in 0..200 {
        let (source, peer) = pair();
        ring.read(tag, &source, Kind::Socket, vec![0; 4096]);
        ring.poll(tag, &source, PollFlags::empty());
        peers.push(peer);
    }
    ring.wait(Some(Duration::ZERO)).unwrap();
    let start = Instant::now();
    drop(ring);
    assert!(start.elapsed() < QUIESCE, "it waited in vain");
    for mut peer in peers {
        assert_eq!(peer.read(&mut [0]).unwrap(), 0, "the other end is closed");
    }
}

#[test]
fn a_ring_that_goes_before_it_has_told_the_kernel_anything_goes_as_well() {
    let Some(mut ring) = ring(8) else { return };
    let (source, mut peer) = pair();
    ring.read(1, &source, Kind::Socket, vec![0; 64]);
    drop((ring, source));
    assert_eq!(peer.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_signal_is_no_error() {
    let Some(mut ring) = ring(8) else { return };
    let heard = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGURG, Arc::clone(&heard)).unwrap();
    let waiter = pthread_self();
    let sender = thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        pthread_kill(waiter, Signal::SIGURG).unwrap();
    });
    ring.wait(Some(Duration::from_secs(10))).unwrap();
    assert!(heard.load(Ordering::SeqCst), "it was the signal that ended the wait");
    sender.join().unwrap();
}

#[test]
fn every_rung_of_the_ladder_works() {
    if ring(8).is_none() {
        return;
    }
    for mode in [Mode::Deferred, Mode::Cooperative, Mode::Plain] {
        // An older kernel has not all of them.
        let Ok(built) = build(mode, 8) else { continue };
        let mut ring: Tags = Ring::try_out(built, mode).unwrap();
        let (source, mut peer) = pair();
        ring.read(1, &source, Kind::Socket, vec![0; 4]);
        ring.wait(Some(Duration::ZERO)).unwrap();
        peer.write_all(b"ping").unwrap();
        let ended = completions(&mut ring, 1);
        assert!(matches!(&ended[0], Completion::Read { result: Ok(4), .. }), "{mode:?}: {ended:?}");
    }
}
