//! Flushes, tags, order: what is said of a request, when, and how often.

use proto::{Dialect, Refusal, Rmessage, Tmessage};

use crate::rig::{self, Rig, open, read, stat, walk};

#[test]
fn pipelined_requests_on_one_new_fid_are_answered_in_order() {
    for dialect in Dialect::ALL {
        for (piece, hold) in [(1, false), (7, false), (usize::MAX, false), (1, true), (usize::MAX, true)] {
            let mut rig = Rig::new(dialect);
            let mut space = [0; 64];
            let mut bytes = rig.frame(1, &walk(0, 1, "hello", &mut space));
            bytes.extend(rig.frame(2, &open(dialect, 1, proto::OREAD)));
            bytes.extend(rig.frame(3, &read(1, 0, 100)));
            bytes.extend(rig.frame(4, &Tmessage::Clunk { fid: 1 }));
            rig.hold = hold;
            for piece in bytes.chunks(piece.min(bytes.len())) {
                rig.send_bytes(piece);
                while !rig.held.is_empty() {
                    assert_eq!(rig.held.len(), 1, "each waits for the one before it");
                    rig.answer(0);
                }
            }
            let replies = rig.replies();
            assert_eq!(replies.iter().map(rig::Reply::tag).collect::<Vec<_>>(), [1, 2, 3, 4]);
            assert_eq!(replies[2].data(), b"hello, world\n");
            assert_eq!(replies[3].message(), Rmessage::Clunk);
            assert_eq!((rig.session.fids(), rig.tree.opens()), (1, 0));
        }
    }
}

#[test]
fn reads_of_a_file_run_side_by_side_and_reads_of_a_directory_do_not() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.open(1);
        rig.walk(0, 2, "dir");
        rig.open(2);
        rig.hold = true;
        for tag in 1..=3 {
            rig.send(tag, &read(1, 0, 5));
        }
        rig.send(4, &stat(dialect, 1));
        assert_eq!(rig.held.len(), 4);
        for tag in 5..=7 {
            rig.send(tag, &rig::list(dialect, 2, 0, 1000));
        }
        assert_eq!(rig.held.len(), 5, "the second listing waits");
        for at in [2, 0, 1, 0] {
            rig.answer(at);
        }
        assert_eq!(rig.tags(), [3, 1, 4, 2]);
        rig.send(8, &Tmessage::Clunk { fid: 2 });
        for _ in 0..3 {
            assert_eq!(rig.held.len(), 1);
            rig.answer(0);
        }
        assert_eq!(rig.tags(), [5, 6, 7, 8]);
    }
}

#[test]
fn a_request_dropped_without_a_flush_is_still_answered() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.hold = true;
        rig.send(1, &stat(dialect, 0));
        rig.answer_with(0, None);
        let replies = rig.replies();
        assert!(replies.len() == 1 && replies[0].is_refusal(Refusal::INTERRUPTED));
    }
}

#[test]
fn a_flush_is_never_refused() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        for oldtag in [1, 2, 77, proto::NOTAG] {
            assert_eq!(rig.call(&Tmessage::Flush { oldtag }).message(), Rmessage::Flush);
        }
        // Even under the tag it flushes, while that is in flight.
        rig.hold = true;
        rig.send(5, &stat(dialect, 0));
        rig.deaf = true;
        rig.send(5, &Tmessage::Flush { oldtag: 5 });
        rig.send(6, &Tmessage::Flush { oldtag: 5 });
        assert_eq!(rig.tags(), []);
        rig.answer(0);
        assert_eq!(rig.tags(), [5, 5, 6]);
    }
}

#[test]
fn a_flush_waits_for_the_answer_or_takes_its_place() {
    for dialect in Dialect::ALL {
        for answered in [false, true] {
            let mut rig = Rig::new(dialect);
            rig.hold = true;
            rig.deaf = true;
            rig.send(1, &stat(dialect, 0));
            rig.send(2, &Tmessage::Flush { oldtag: 1 });
            rig.send(3, &Tmessage::Flush { oldtag: 1 });
            rig.send(4, &Tmessage::Flush { oldtag: 2 });
            rig.send(5, &Tmessage::Flush { oldtag: 1 });
            assert_eq!((rig.tags(), rig.abandoned.len()), (vec![], 1));
            if answered {
                rig.answer(0);
                assert_eq!(rig.tags(), [1, 2, 4, 3, 5]);
            } else {
                rig.answer_with(0, None);
                assert_eq!(rig.tags(), [2, 4, 3, 5]);
            }
            assert!(!rig.session.is_busy());
        }
    }
}

#[test]
fn a_flush_of_what_has_ended_changes_nothing() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        assert_eq!(rig.call_as(2, &Tmessage::Flush { oldtag: 1 }).message(), Rmessage::Flush);
        rig.open(1);
        assert_eq!(rig.call_as(2, &Tmessage::Flush { oldtag: 1 }).message(), Rmessage::Flush);
        assert_eq!(rig.call(&read(1, 0, 5)).data(), b"hello");
    }
}

#[test]
fn a_flushed_walk_or_open_leaves_the_fid_as_it_was() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        let mut space = [0; 64];
        rig.walk(0, 1, "dir");
        rig.hold = true;
        for message in [walk(0, 2, "dir", &mut space), open(dialect, 1, proto::OREAD), rig::attach(3, b"")] {
            rig.send(1, &message);
            rig.send(2, &Tmessage::Flush { oldtag: 1 });
            assert_eq!((rig.tags(), rig.held.len()), (vec![2], 0));
        }
        rig.send(1, &walk(1, 1, "sub", &mut [0; 64]));
        rig.send(2, &Tmessage::Flush { oldtag: 1 });
        rig.hold = false;
        assert_eq!((rig.tags(), rig.session.fids()), (vec![2], 2));
        rig.walk(1, 1, "sub");
        rig.open(1);
    }
}

#[test]
fn a_flush_of_a_waiting_request_takes_it_out_of_the_line() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        let mut space = [0; 64];
        rig.hold = true;
        rig.send(1, &walk(0, 1, "hello", &mut space));
        rig.send(2, &Tmessage::Clunk { fid: 1 });
        rig.send(3, &open(dialect, 1, proto::OREAD));
        rig.send(4, &Tmessage::Flush { oldtag: 2 });
        assert_eq!((rig.tags(), rig.abandoned.len()), (vec![4], 0));
        rig.answer(0);
        rig.answer(0);
        let replies = rig.replies();
        assert!(replies.len() == 2 && replies[1].tag() == 3);
        assert!(matches!(replies[1].message(), Rmessage::Open { .. } | Rmessage::Lopen { .. }));
    }
}

#[test]
fn a_flush_lets_those_behind_go_on() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.hold = true;
        rig.send(1, &stat(dialect, 1));
        rig.send(2, &open(dialect, 1, proto::OREAD));
        rig.send(3, &stat(dialect, 1));
        assert_eq!(rig.held.len(), 1);
        rig.send(4, &Tmessage::Flush { oldtag: 2 });
        assert_eq!((rig.tags(), rig.held.len()), (vec![4], 2));
        rig.send(5, &Tmessage::Clunk { fid: 1 });
        rig.send(6, &Tmessage::Flush { oldtag: 1 });
        rig.send(7, &Tmessage::Flush { oldtag: 3 });
        assert_eq!(rig.tags(), [6, 7, 5]);
    }
}

#[test]
fn a_tag_names_one_request_at_a_time() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.hold = true;
        rig.send(1, &stat(dialect, 0));
        rig.send(1, &stat(dialect, 0));
        rig.send(2, &Tmessage::Flush { oldtag: 77 });
        rig.send(proto::NOTAG, &stat(dialect, 0));
        let replies = rig.replies();
        assert_eq!(replies.iter().map(rig::Reply::tag).collect::<Vec<_>>(), [1, 2, proto::NOTAG]);
        assert!(replies[0].is_refusal(Refusal::DUPLICATE_TAG));
        assert!(replies[2].is_refusal(Refusal::DUPLICATE_TAG));
        rig.answer(0);
        rig.send(1, &stat(dialect, 0));
        rig.answer(0);
        assert_eq!(rig.tags(), [1, 1]);
    }
}

#[test]
fn a_ticket_is_completed_once() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        rig.hold = true;
        rig.send(1, &stat(dialect, 0));
        let (ticket, _) = rig.held[0];
        rig.answer(0);
        rig.send(2, &stat(dialect, 0));
        assert!(!rig.session.complete(ticket, None, None));
        assert!(!rig.session.complete(ticket, Some(Err(Refusal::IO)), None));
        assert_eq!(rig.tags(), [1]);
        rig.answer(0);
        assert_eq!(rig.tags(), [2]);
    }
}

/// What a fid is may change while a read of it waits: whether it may run beside others is decided when it starts.
#[test]
fn reads_that_were_sent_for_a_file_and_meet_a_directory_run_alone() {
    for dialect in [Dialect::Plain, Dialect::Unix] {
        let mut rig = Rig::new(dialect);
        rig.walk(0, 1, "hello");
        rig.open(1);
        rig.hold = true;
        rig.send(1, &read(1, 0, 5));
        rig.send(2, &Tmessage::Clunk { fid: 1 });
        rig.send(3, &rig::attach(1, b""));
        rig.send(4, &open(dialect, 1, proto::OREAD));
        rig.send(5, &read(1, 0, 1000));
        rig.send(6, &read(1, 0, 1000));
        for left in [1, 1, 1, 1, 0] {
            rig.answer(0);
            assert_eq!(rig.held.len(), left);
        }
        assert_eq!(rig.tags(), [1, 2, 3, 4, 5, 6]);
    }
}

/// A read that waited because it was not known what it reads shares its fid once that is known.
#[test]
fn a_read_sent_behind_its_walk_does_not_hold_up_those_that_come_later() {
    for dialect in Dialect::ALL {
        let mut rig = Rig::new(dialect);
        let mut space = [0; 64];
        rig.hold = true;
        rig.send(1, &walk(0, 1, "hello", &mut space));
        rig.send(2, &open(dialect, 1, proto::OREAD));
        rig.send(3, &read(1, 0, 5));
        rig.answer(0);
        rig.answer(0);
        rig.send(4, &read(1, 0, 5));
        rig.send(5, &stat(dialect, 1));
        assert_eq!(rig.held.len(), 3);
        for at in [2, 1, 0] {
            rig.answer(at);
        }
        assert_eq!(rig.tags(), [1, 2, 5, 4, 3]);
    }
}
