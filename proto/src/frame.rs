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
