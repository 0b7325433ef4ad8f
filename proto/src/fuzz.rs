//! The bodies of the fuzz targets: each panics if what it is given breaks a law.

use alloc::vec;

use crate::frame::{self, Next};
use crate::{Dialect, Rmessage, Tmessage};

/// A law of messages: what decodes encodes to the same bytes, in every dialect and both directions. The bytes are looked at
/// as they stand, and as a frame that tells its true size.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
    coded(bytes);
    let mut frame = bytes.to_vec();
    if let Some(size) = frame.first_chunk_mut() {
        *size = (bytes.len() as u32).to_le_bytes();
        coded(&frame);
    }
}

fn coded(bytes: &[u8]) {
    for dialect in Dialect::ALL {
        let mut again = vec![0; bytes.len()];
        if let Ok((tag, message)) = Tmessage::decode(bytes, dialect) {
            assert_eq!(message.encode(tag, dialect, &mut again), Ok(bytes.len()));
            assert_eq!(again, bytes, "{message:?}");
        }
        if let Ok((tag, message)) = Rmessage::decode(bytes, dialect) {
            assert_eq!(message.encode(tag, dialect, &mut again), Ok(bytes.len()));
            assert_eq!(again, bytes, "{message:?}");
        }
    }
}

/// A law of frames: what is said of a front of the bytes is never taken back when more arrive, and [`Next::More`] never
/// asks for more than it takes.
///
/// # Panics
/// If it is.
pub fn frame(bytes: &[u8]) {
    let (bound, bytes) = match bytes.split_first_chunk::<2>() {
        Some((bound, bytes)) => (u32::from(u16::from_le_bytes(*bound)), bytes),
        None => (u32::MAX, bytes),
    };
    let whole = frame::next(bytes, bound);
    for split in 0..bytes.len() {
        match frame::next(&bytes[..split], bound) {
            Next::More(missing) => {
                assert_ne!(missing, 0);
                assert!(!matches!(whole, Next::Frame(size) if split + missing > size));
            }
            said => assert_eq!(said, whole),
        }
    }
    if let Next::Frame(size) = whole {
        assert!(size <= bytes.len() && size <= bound as usize);
        assert!(frame::kind(bytes).is_some() && frame::tag(&bytes[..size]).is_some());
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use crate::{Dialect, Rmessage, Tmessage};

    proptest! {
        #[test]
        fn random_bytes_break_no_law_of_messages(bytes in vec(any::<u8>(), 0..200)) {
            super::message(&bytes);
        }

        #[test]
        fn random_fields_behind_a_header_break_no_law_of_messages(body in vec(prop_oneof![Just(0), any::<u8>()], 0..200)) {
            for kind in 0..=u8::MAX {
                super::message(&framed(kind, &body));
            }
        }

        #[test]
        fn random_bytes_break_no_law_of_frames(bytes in vec(prop_oneof![Just(0), any::<u8>()], 0..60)) {
            super::frame(&bytes);
        }
    }

    #[test]
    fn only_the_bytes_of_a_table_are_types() {
        for dialect in Dialect::ALL {
            for kind in 0..=u8::MAX {
                let known = |kinds: &[(u8, &[Dialect])]| {
                    kinds.iter().any(|(k, d)| *k == kind && d.contains(&dialect))
                };
                let unknown =
                    |error| matches!(error, Some(crate::DecodeError::Unknown { kind: of }) if of == kind);
                let frame = framed(kind, &[]);
                assert_ne!(unknown(Tmessage::decode(&frame, dialect).err()), known(Tmessage::KINDS));
                assert_ne!(unknown(Rmessage::decode(&frame, dialect).err()), known(Rmessage::KINDS));
            }
        }
        for never in [6, 106] {
            assert!(!Tmessage::KINDS.iter().any(|(kind, _)| *kind == never));
        }
        assert!(Tmessage::KINDS.iter().all(|(kind, _)| kind % 2 == 0));
        assert!(Rmessage::KINDS.iter().all(|(kind, _)| kind % 2 == 1));
    }

    fn framed(kind: u8, body: &[u8]) -> Vec<u8> {
        let size = (body.len() + 7) as u32;
        [&size.to_le_bytes()[..], &[kind, 1, 0], body].concat()
    }
}
