//! Where one frame ends and the next begins.
//!
//! A frame is size\[4\] type\[1\] tag\[2\] and the message's fields; the size counts itself.

use crate::HEADER_SIZE;

/// What the front of the buffered bytes is.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Next {
    /// At least this many more bytes are needed before anything can be said. Never 0.
    More(usize),
    /// The first so many bytes are one frame: at least [`HEADER_SIZE`], at most the bound.
    Frame(usize),
    /// The size field is below [`HEADER_SIZE`] or above the bound: no later byte can be trusted.
    Broken,
}

/// Looks at the front of `bytes`. `bound` is the largest frame allowed: the agreed msize.
///
/// Says [`Next::Broken`] as soon as the size field is there, so that no hostile size is ever waited or made room for.
/// Says of any bytes what it says of those bytes and more, once it has said anything but [`Next::More`].
pub fn next(bytes: &[u8], bound: u32) -> Next {
    let Some(size) = bytes.first_chunk::<4>() else {
        return Next::More(HEADER_SIZE - bytes.len());
    };
    let size = u32::from_le_bytes(*size);
    if size > bound || (size as usize) < HEADER_SIZE {
        return Next::Broken;
    }
    match (size as usize).checked_sub(bytes.len()) {
        None | Some(0) => Next::Frame(size as usize),
        Some(missing) => Next::More(missing),
    }
}

/// The type byte of a frame, or `None` before there is one.
pub fn kind(frame: &[u8]) -> Option<u8> {
    frame.get(4).copied()
}

/// The tag of a frame, whatever else is wrong with it; `None` if it is shorter than a header.
pub fn tag(frame: &[u8]) -> Option<u16> {
    let [_, _, _, _, _, low, high] = frame.first_chunk::<HEADER_SIZE>()?;
    Some(u16::from_le_bytes([*low, *high]))
}

#[cfg(test)]
mod tests {
    use super::{Next, kind, next, tag};

    #[test]
    fn a_frame_is_as_long_as_it_says() {
        let clunk = b"\x0b\0\0\0\x78\x34\x12\x05\0\0\0";
        assert_eq!(next(clunk, 8192), Next::Frame(11));
        assert_eq!(next(&[&clunk[..], b"more"].concat(), 8192), Next::Frame(11));
        assert_eq!(next(b"\x07\0\0\0\x79\0\0", 7), Next::Frame(7));
        assert_eq!(kind(clunk), Some(0x78));
        assert_eq!(tag(clunk), Some(0x1234));
    }

    #[test]
    fn a_missing_rest_is_counted() {
        assert_eq!(next(b"", 8192), Next::More(7));
        assert_eq!(next(b"\x0b\0\0", 8192), Next::More(4));
        assert_eq!(next(b"\x0b\0\0\0", 8192), Next::More(7));
        assert_eq!(next(b"\x0b\0\0\0\x78\x34\x12\x05\0\0", 8192), Next::More(1));
        assert_eq!(kind(b"\x0b\0\0\0"), None);
        assert_eq!(tag(b"\x0b\0\0\0\x78\x34"), None);
    }

    #[test]
    fn a_size_out_of_bounds_is_broken_at_once() {
        for size in [0, 1, 6, 8193, u32::MAX] {
            assert_eq!(next(&size.to_le_bytes(), 8192), Next::Broken, "{size}");
        }
        assert_eq!(next(&8192_u32.to_le_bytes(), 8192), Next::More(8188));
        assert_eq!(next(&7_u32.to_le_bytes(), 6), Next::Broken);
    }
}
