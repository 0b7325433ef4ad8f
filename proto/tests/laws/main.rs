//! Laws of the codec, over generated messages of every kind in every dialect.
//!
//! A message is built from a string of bytes (`Choices`), so that one case exercises every kind and shrinks well.

mod choices;

use choices::Choices;
use proptest::collection::vec;
use proptest::prelude::*;
use proto::stat::{dirents, records};
use proto::*;

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_itself(bytes in vec(any::<u8>(), 0..600), tag: u16) {
        each_request(&bytes, |message, dialect| {
            let frame = encoded(|out| message.encode(tag, dialect, out));
            assert_eq!(Tmessage::decode(&frame, dialect), Ok((tag, *message)));
            assert_eq!(frame::kind(&frame), Some(message.kind()));
            assert_eq!(frame::tag(&frame), Some(tag));
            assert_eq!(frame::next(&frame, frame.len() as u32), frame::Next::Frame(frame.len()));
        });
        each_answer(&bytes, |message, dialect| {
            let frame = encoded(|out| message.encode(tag, dialect, out));
            assert_eq!(Rmessage::decode(&frame, dialect), Ok((tag, *message)));
            assert_eq!(frame::kind(&frame), Some(message.kind()));
        });
    }

    #[test]
    fn a_frame_with_bytes_left_over_does_not_decode(bytes in vec(any::<u8>(), 0..300), more in vec(any::<u8>(), 1..9)) {
        each_request(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            frame.extend(&more);
            assert_eq!(Tmessage::decode(&frame, dialect), Err(DecodeError::Size));
            resized(&mut frame);
            assert_eq!(Tmessage::decode(&frame, dialect), Err(DecodeError::Trailing), "{message:?}");
        });
        each_answer(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            frame.extend(&more);
            assert_eq!(Rmessage::decode(&frame, dialect), Err(DecodeError::Size));
            resized(&mut frame);
            assert_eq!(Rmessage::decode(&frame, dialect), Err(DecodeError::Trailing), "{message:?}");
        });
    }

    #[test]
    fn a_dialect_knows_its_own_messages_alone(bytes in vec(any::<u8>(), 0..300)) {
        each_request(&bytes, |message, dialect| {
            let frame = encoded(|out| message.encode(1, dialect, out));
            for other in Dialect::ALL {
                if !speaks(Tmessage::KINDS, message.kind(), other) {
                    assert_eq!(message.encode(1, other, &mut [0; 4096]), Err(EncodeError::Foreign));
                    assert_eq!(Tmessage::decode(&frame, other), Err(DecodeError::Unknown { kind: message.kind() }));
                }
            }
            assert_eq!(Rmessage::decode(&frame, dialect), Err(DecodeError::Unknown { kind: message.kind() }));
        });
        each_answer(&bytes, |message, dialect| {
            let frame = encoded(|out| message.encode(1, dialect, out));
            for other in Dialect::ALL {
                if !speaks(Rmessage::KINDS, message.kind(), other) {
                    assert_eq!(message.encode(1, other, &mut [0; 4096]), Err(EncodeError::Foreign));
                    assert_eq!(Rmessage::decode(&frame, other), Err(DecodeError::Unknown { kind: message.kind() }));
                }
            }
            assert_eq!(Tmessage::decode(&frame, dialect), Err(DecodeError::Unknown { kind: message.kind() }));
        });
    }

    #[test]
    fn one_wrong_byte_decodes_to_what_encodes_to_it(bytes in vec(any::<u8>(), 0..300), at: prop::sample::Index, byte: u8) {
        let mut again = vec![0; 4096];
        each_request(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            let at = at.index(frame.len());
            frame[at] = byte;
            if let Ok((tag, other)) = Tmessage::decode(&frame, dialect) {
                assert_eq!(other.encode(tag, dialect, &mut again), Ok(frame.len()));
                assert_eq!(&again[..frame.len()], frame, "{message:?}");
            }
        });
    }

    #[test]
    fn records_come_back_one_by_one(bytes in vec(any::<u8>(), 0..900), count in 0..9_usize) {
        for dialect in [Dialect::Plain, Dialect::Unix] {
            let mut choices = Choices(&bytes);
            let stats: Vec<_> = (0..count).map(|_| choices.stat(dialect)).collect();
            let mut wire = Vec::new();
            for stat in &stats {
                let record = encoded(|out| stat.encode(dialect, out));
                assert_eq!(record.len(), stat.encoded_len(dialect));
                assert_eq!(Stat::decode(&record, dialect), Ok(*stat));
                wire.extend(record);
            }
            assert_eq!(records(&wire, dialect).collect::<Result<Vec<_>, _>>(), Ok(stats));
            if wire.pop().is_some() {
                let read: Vec<_> = records(&wire, dialect).collect();
                assert_eq!(read.len(), count);
                assert_eq!(read.last(), Some(&Err(DecodeError::Short)));
            }
        }
    }

    #[test]
    fn entries_come_back_one_by_one(bytes in vec(any::<u8>(), 0..900), count in 0..9_usize) {
        let mut choices = Choices(&bytes);
        let entries: Vec<_> = (0..count).map(|_| choices.dirent()).collect();
        let mut wire = Vec::new();
        for entry in &entries {
            let encoded = encoded(|out| entry.encode(out));
            assert_eq!(encoded.len(), entry.encoded_len());
            assert_eq!(Dirent::decode(&encoded), Ok(*entry));
            wire.extend(encoded);
        }
        assert_eq!(dirents(&wire).collect::<Result<Vec<_>, _>>(), Ok(entries));
        if wire.pop().is_some() {
            let read: Vec<_> = dirents(&wire).collect();
            assert_eq!(read.len(), count);
            assert_eq!(read.last(), Some(&Err(DecodeError::Short)));
        }
    }

    #[test]
    fn names_survive_a_copy_of_their_bytes(bytes in vec(any::<u8>(), 0..300)) {
        let mut room = vec![0; 4096];
        let names = Choices(&bytes).names(&mut room);
        let copy = names.wire().to_vec();
        prop_assert_eq!(Names::new(names.count(), &copy), Some(names));
        prop_assert_eq!(names.iter().len(), names.len());
        prop_assert!(names.iter().eq(names));
        prop_assert_eq!(Names::new(names.count() + 1, &copy), None);
        let longer = [&copy[..], b"\0"].concat();
        prop_assert_eq!(Names::new(names.count(), &longer), None);
        if let Some(fewer) = names.count().checked_sub(1) {
            prop_assert_eq!(Names::new(fewer, &copy), None);
            prop_assert_eq!(Names::new(names.count(), &copy[..copy.len() - 1]), None);
        }
    }
}

proptest! {
    // These look at every prefix of every message: fewer cases do.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_buffer_that_is_too_small_is_full(bytes in vec(any::<u8>(), 0..300)) {
        each_request(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            for size in 0..frame.len() {
                assert_eq!(message.encode(1, dialect, &mut frame[..size]), Err(EncodeError::Full));
            }
        });
        each_answer(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            for size in 0..frame.len() {
                assert_eq!(message.encode(1, dialect, &mut frame[..size]), Err(EncodeError::Full));
            }
        });
    }

    #[test]
    fn a_frame_cut_short_does_not_decode(bytes in vec(any::<u8>(), 0..300)) {
        each_request(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            for size in (0..frame.len()).rev() {
                frame.truncate(size);
                assert_eq!(Tmessage::decode(&frame, dialect), Err(DecodeError::Size));
                let expected = if resized(&mut frame) { DecodeError::Short } else { DecodeError::Size };
                assert_eq!(Tmessage::decode(&frame, dialect), Err(expected), "{message:?}");
            }
        });
        each_answer(&bytes, |message, dialect| {
            let mut frame = encoded(|out| message.encode(1, dialect, out));
            for size in (0..frame.len()).rev() {
                frame.truncate(size);
                assert_eq!(Rmessage::decode(&frame, dialect), Err(DecodeError::Size));
                let expected = if resized(&mut frame) { DecodeError::Short } else { DecodeError::Size };
                assert_eq!(Rmessage::decode(&frame, dialect), Err(expected), "{message:?}");
            }
        });
    }
}

/// Holds every request of every dialect, made from `bytes`, to a law.
fn each_request(bytes: &[u8], mut law: impl FnMut(&Tmessage<'_>, Dialect)) {
    for (kind, dialects) in Tmessage::KINDS {
        for dialect in *dialects {
            let mut room = vec![0; 4096];
            let message = Choices(bytes).request(*kind, *dialect, &mut room);
            assert_eq!(message.kind(), *kind);
            law(&message, *dialect);
        }
    }
}

/// Holds every answer of every dialect, made from `bytes`, to a law.
fn each_answer(bytes: &[u8], mut law: impl FnMut(&Rmessage<'_>, Dialect)) {
    for (kind, dialects) in Rmessage::KINDS {
        for dialect in *dialects {
            let mut room = [[0; QID_SIZE]; 20];
            let message = Choices(bytes).answer(*kind, *dialect, &mut room);
            assert_eq!(message.kind(), *kind);
            law(&message, *dialect);
        }
    }
}

/// What `encode` writes, into more room than it needs.
fn encoded(encode: impl FnOnce(&mut [u8]) -> Result<usize, EncodeError>) -> Vec<u8> {
    let mut out = vec![0xaa; 4096];
    let size = encode(&mut out).unwrap();
    assert!(out[size..].iter().all(|byte| *byte == 0xaa), "bytes past the end were touched");
    out.truncate(size);
    out
}

/// Sets a frame's size field to its length; false if it is too short to be a frame.
fn resized(frame: &mut [u8]) -> bool {
    let size = (frame.len() as u32).to_le_bytes();
    if let Some(field) = frame.first_chunk_mut() {
        *field = size;
    }
    frame.len() >= HEADER_SIZE
}

fn speaks(kinds: &[(u8, &[Dialect])], kind: u8, dialect: Dialect) -> bool {
    kinds.iter().any(|(of, dialects)| *of == kind && dialects.contains(&dialect))
}
