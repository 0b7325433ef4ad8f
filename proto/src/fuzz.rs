//! The bodies of the fuzz targets: each panics if what it is given breaks a law.

use alloc::vec;

use crate::frame::{self, Next};
use crate::{Dialect, Rmessage, Tmessage};

/// A law of messages: what decodes encodes to the same bytes, in every dialect and both directions.
///
/// # Panics
/// If it does not.
pub fn message(bytes: &[u8]) {
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
