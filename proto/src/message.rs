//! The messages: one table for each direction, from which the enum, its decoder and its encoder are made.
//!
//! A line of a table ([`t.rs`](Tmessage), [`r.rs`](Rmessage)) reads like the manual's: the type byte, who speaks it, and
//! the fields in the order in which they travel. A field is declared with the name of the function that takes it off
//! the wire (in `read.rs`) and puts it there (in `write.rs`), which is also the name of its type below.

use crate::read::Reader;
use crate::write::{EncodeError, Writer};
use crate::{Dialect, QID_SIZE, Qid};

/// The Rust type of each kind of field.
macro_rules! field {
    ($a:lifetime u8) => { u8 };
    ($a:lifetime u16) => { u16 };
    ($a:lifetime u32) => { u32 };
    ($a:lifetime u64) => { u64 };
    ($a:lifetime qid) => { $crate::Qid };
    ($a:lifetime string) => { &$a [u8] };
    ($a:lifetime data) => { &$a [u8] };
    ($a:lifetime n_uname) => { Option<u32> };
    ($a:lifetime errno) => { Option<u32> };
    ($a:lifetime extension) => { Option<&$a [u8]> };
    ($a:lifetime names) => { $crate::message::Names<$a> };
    ($a:lifetime qids) => { $crate::message::Qids<$a> };
    ($a:lifetime stat) => { $crate::stat::Stat<$a> };
    ($a:lifetime attr) => { $crate::stat::Attr };
    ($a:lifetime statfs) => { $crate::stat::Statfs };
}

/// Makes the enum, the type bytes, the decoder and the encoder of one direction from its table.
macro_rules! messages {
    (
        $(#[$meta:meta])*
        $Message:ident<$a:lifetime>
        $(
            $(#[$doc:meta])*
            $CODE:ident = $code:literal $speakers:ident $Name:ident
            $({ $( $(#[$fdoc:meta])* $field:ident: $kind:ident, )+ })?
        )+
    ) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, Eq, PartialEq)]
        pub enum $Message<$a> {
            $( $(#[$doc])* $Name $({ $( $(#[$fdoc])* $field: field!($a $kind), )+ })?, )+
        }

        $(
            #[doc = concat!("The type byte of [`", stringify!($Message), "::", stringify!($Name), "`].")]
            pub const $CODE: u8 = $code;
        )+

        impl<$a> $Message<$a> {
            /// Every type byte of this direction, with the dialects that speak it.
            pub const KINDS: &'static [(u8, &'static [Dialect])] = &[ $( ($CODE, speakers::$speakers) ),+ ];

            /// The type byte.
            pub const fn kind(&self) -> u8 {
                match self { $( Self::$Name { .. } => $CODE, )+ }
            }

            /// Reads one whole frame, its size field included; yields its tag and message.
            ///
            /// # Errors
            /// See [`DecodeError`]. The tag of a frame that is not understood is [`frame::tag`](crate::frame::tag).
            pub fn decode(frame: &$a [u8], dialect: Dialect) -> Result<(u16, Self), DecodeError> {
                let (kind, tag, mut reader) = Reader::frame(frame, dialect)?;
                let message = match kind {
                    $(
                        $CODE if speakers::$speakers.contains(&dialect) => {
                            Self::$Name $({ $( $field: reader.$kind()?, )+ })?
                        }
                    )+
                    kind => return Err(DecodeError::Unknown { kind }),
                };
                reader.finish()?;
                Ok((tag, message))
            }

            /// Writes the whole frame at the front of `out`; yields its size.
            ///
            /// A field that the dialect does not have is left out; one that it has and the message does not takes the
            /// value that says nothing.
            ///
            /// # Errors
            /// See [`EncodeError`].
            pub fn encode(&self, tag: u16, dialect: Dialect, out: &mut [u8]) -> Result<usize, EncodeError> {
                let mut writer = Writer::frame(self.kind(), tag, dialect, out)?;
                match *self {
                    $(
                        Self::$Name $({ $( $field, )+ })? => {
                            if !speakers::$speakers.contains(&dialect) {
                                return Err(EncodeError::Foreign);
                            }
                            $( $( writer.$kind($field)?; )+ )?
                        }
                    )+
                }
                writer.finish_frame()
            }
        }
    };
}

pub mod bits;
mod r;
mod t;

pub use self::r::*;
pub use self::t::*;

/// Who speaks a message.
mod speakers {
    use crate::Dialect;

    /// 9P2000 and its extensions.
    pub(super) const EVERY: &[Dialect] = &Dialect::ALL;
    /// 9P2000 and 9P2000.u; 9P2000.L has a message of its own instead.
    pub(super) const LEGACY: &[Dialect] = &[Dialect::Plain, Dialect::Unix];
    /// 9P2000.L alone.
    pub(super) const LINUX: &[Dialect] = &[Dialect::Linux];
}

/// The names of a walk, where they are: in a frame, or in bytes copied from one with [`Names::wire`].
///
/// There may be more than [`MAX_WALK`](crate::MAX_WALK): that is for the receiver to refuse in words.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Names<'a> {
    count: u16,
    wire: &'a [u8],
}

impl<'a> Names<'a> {
    /// No names: the walk that clones a fid.
    pub const EMPTY: Names<'static> = Names { count: 0, wire: &[] };

    /// A view of `wire`, or `None` if that is not exactly `count` names, each led by its length in two bytes.
    pub fn new(count: u16, wire: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(wire, Dialect::Plain);
        for _ in 0..count {
            reader.string().ok()?;
        }
        reader.is_empty().then_some(Self { count, wire })
    }

    /// Writes names into `out`, as a client needs it for a Twalk.
    ///
    /// # Errors
    /// [`EncodeError::Full`] if `out` is too small, [`EncodeError::TooLong`] if a name or the list passes 65,535.
    pub fn pack<'n>(
        names: impl IntoIterator<Item = &'n [u8]>,
        out: &'a mut [u8],
    ) -> Result<Self, EncodeError> {
        let mut writer = Writer::new(out, Dialect::Plain);
        let mut count = 0_u16;
        for name in names {
            writer.string(name)?;
            count = count.checked_add(1).ok_or(EncodeError::TooLong)?;
        }
        Ok(Self { count, wire: writer.into_written() })
    }

    /// A view of bytes just found to be `count` names.
    pub(crate) const fn known(count: u16, wire: &'a [u8]) -> Self {
        Self { count, wire }
    }

    /// How many names there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many names there are, as a Twalk counts them.
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The names as they travel, each led by its length; [`Names::new`] takes it back.
    pub const fn wire(&self) -> &'a [u8] {
        self.wire
    }

    /// The names, in order. Nothing is known of them but their length.
    pub fn iter(&self) -> NamesIter<'a> {
        NamesIter { left: self.count, reader: Reader::new(self.wire, Dialect::Plain) }
    }
}

impl<'a> IntoIterator for Names<'a> {
    type Item = &'a [u8];
    type IntoIter = NamesIter<'a>;

    fn into_iter(self) -> NamesIter<'a> {
        self.iter()
    }
}

/// The names of a walk, in order.
#[derive(Clone, Debug)]
pub struct NamesIter<'a> {
    left: u16,
    reader: Reader<'a>,
}

impl<'a> Iterator for NamesIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        self.reader.string().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for NamesIter<'_> {}

/// The qids of an Rwalk, where they are.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Qids<'a> {
    wire: &'a [[u8; QID_SIZE]],
}

impl<'a> Qids<'a> {
    /// Writes qids into `out`, from which the view borrows.
    ///
    /// # Errors
    /// [`EncodeError::Full`] if there are more than `out` holds.
    pub fn pack(qids: &[Qid], out: &'a mut [[u8; QID_SIZE]]) -> Result<Self, EncodeError> {
        let places = out.get_mut(..qids.len()).ok_or(EncodeError::Full)?;
        for (place, qid) in places.iter_mut().zip(qids) {
            *place = qid.to_bytes();
        }
        Ok(Self { wire: places })
    }

    /// A view of qids as they travel.
    pub const fn new(wire: &'a [[u8; QID_SIZE]]) -> Self {
        Self { wire }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.wire.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.wire.is_empty()
    }

    /// The qids as they travel.
    pub const fn wire(&self) -> &'a [[u8; QID_SIZE]] {
        self.wire
    }

    /// The qids, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Qid> + use<'a> {
        self.wire.iter().map(|bytes| Qid::from_bytes(*bytes))
    }
}
