//! The text of a message, read from the file its spans are in.
//!
//! Owns: the place a reader has come to. Must not know: how the spans were found.

use rustix::io::Errno;

use super::Source;
use super::index::{Entry, Piece, What};
use super::text::{self, Spelling};

/// A message open for reading, and where the last read stopped: reading on from there costs the bytes read, whatever
/// lies before.
#[derive(Clone, Debug)]
pub struct Reader {
    pieces: Box<[Piece]>,
    length: u64,
    version: u32,
    bases: Box<[u64]>,
    place: Place,
}

/// A place in a text, never within a character.
#[derive(Copy, Clone, Debug, Default)]
struct Place {
    /// Which piece.
    piece: usize,
    /// Bytes of the piece that are behind, as it is spelt.
    spelt: u64,
    /// Bytes of the text that are behind.
    text: u64,
}

/// What a call of [`Reader::read`] came to.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Read {
    /// So many bytes of the buffer are filled: all of it, or the text ends.
    Done(usize),
    /// The offset is not reached yet: the budget was used up on the way there.
    Again,
}

/// What comes next in a text.
enum Next {
    /// So much of the room was filled, from so many bytes of the file.
    Filled(usize, usize),
    /// A character that does not fit the room, and the bytes that spell it.
    Wide(char, usize),
    /// Nothing.
    End,
}

impl Reader {
    /// A reader at the front of a message.
    pub fn new(message: &Entry<'_>) -> Self {
        Self {
            pieces: message.pieces().collect(),
            length: message.length(),
            version: message.version(),
            bases: message.index().bases().into(),
            place: Place::default(),
        }
    }

    /// The same at the place where another one of the same message stands.
    pub(crate) fn at_place_of(self, other: &Self) -> Self {
        Self { place: other.place, ..self }
    }

    /// Bytes of the text that are behind: where the next read costs the least.
    pub(crate) fn place(&self) -> u64 {
        self.place.text
    }

    /// Lets go of the spans. What is left can be asked nothing but its version, and where it stands.
    pub(crate) fn forget_spans(&mut self) {
        self.pieces = Box::default();
    }

    /// Bytes that the spans take.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.pieces)
    }

    /// The message's version when this was made.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The lengths of the files that its transcript continues, the oldest first.
    pub fn bases(&self) -> &[u64] {
        &self.bases
    }

    /// Whether any of it is in one of those.
    pub fn is_in_base(&self) -> bool {
        let own: u64 = self.bases.iter().sum();
        self.pieces.iter().any(|piece| match piece.what {
            What::Text(start, _) | What::Json(start, _) => start < own,
            What::Word(_) => false,
        })
    }

    /// Bytes of the message's text.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Fills `buf` with the text from `offset` on. On the way to an offset that is not where the last read stopped, it
    /// reads `budget` bytes, and a few KiB at most, before it answers [`Read::Again`]: call it again then.
    ///
    /// # Errors
    /// Those of the source.
    pub fn read(
        &mut self,
        source: &dyn Source,
        offset: u64,
        buf: &mut [u8],
        budget: usize,
    ) -> Result<Read, Errno> {
        let room = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let buf = &mut buf[..room];
        if offset < self.place.text {
            self.place = Place::default();
        }
        let mut dropped = [0; DROPPED];
        let (mut left, mut done) = (budget, 0);
        while done < room {
            let skip = usize::try_from(offset.saturating_sub(self.place.text)).unwrap_or(DROPPED);
            if skip > 0 && left == 0 {
                return Ok(Read::Again);
            }
            let out = if skip > 0 { &mut dropped[..skip.min(DROPPED)] } else { &mut buf[done..] };
            match self.next(source, out)? {
                Next::Filled(written, read) => {
                    left = left.saturating_sub(read);
                    done += if skip > 0 { 0 } else { written };
                }
                Next::Wide(char, spelt) => {
                    // A part of it is wanted. Unless it is the last one, the place stays before the character: the
                    // next read may begin in the middle of it.
                    let mut utf8 = [0; 4];
                    let text = char.encode_utf8(&mut utf8).as_bytes();
                    let part = (text.len() - skip).min(room - done);
                    buf[done..done + part].copy_from_slice(&text[skip..skip + part]);
                    done += part;
                    if skip + part == text.len() {
                        self.place.spelt += spelt as u64;
                        self.place.text += text.len() as u64;
                    } else {
                        break;
                    }
                }
                Next::End => break,
            }
        }
        Ok(Read::Done(done))
    }

    /// Fills `out`, which is not empty, with the characters at the place, and moves behind them.
    fn next(&mut self, source: &dyn Source, out: &mut [u8]) -> Result<Next, Errno> {
        loop {
            let Some(piece) = self.pieces.get(self.place.piece).copied() else { return Ok(Next::End) };
            let (start, length, spelling) = match piece.what {
                What::Text(start, length) => (start, length, Spelling::Escaped),
                What::Json(start, length) => (start, length, Spelling::Plain),
                What::Word(word) => (0, word.text().len() as u64, Spelling::Plain),
            };
            let rest = length.saturating_sub(self.place.spelt);
            if rest > 0 {
                return match piece.what {
                    What::Word(word) => {
                        let text = &word.text().as_bytes()[self.place.spelt as usize..];
                        let length = text.len().min(out.len());
                        out[..length].copy_from_slice(&text[..length]);
                        self.place.spelt += length as u64;
                        self.place.text += length as u64;
                        Ok(Next::Filled(length, 0))
                    }
                    _ => self.span(source, start, rest, spelling, out),
                };
            }
            self.place.piece += 1;
            self.place.spelt = 0;
            if piece.newline {
                out[0] = b'\n';
                self.place.text += 1;
                return Ok(Next::Filled(1, 0));
            }
        }
    }

    /// The same in a span that begins at `start` and of which `rest` bytes are ahead.
    fn span(
        &mut self,
        source: &dyn Source,
        start: u64,
        rest: u64,
        spelling: Spelling,
        out: &mut [u8],
    ) -> Result<Next, Errno> {
        let mut raw = [0; RAW];
        // A quarter more than is wanted, for the escapes.
        let want = (out.len() + out.len() / 4 + LONGEST).min(RAW);
        let want = want.min(usize::try_from(rest).unwrap_or(RAW));
        let got = source.read_at(&mut raw[..want], start + self.place.spelt)?;
        let raw = &raw[..got];
        let more = got == want && (want as u64) < rest;
        let (read, written) = text::decode(raw, spelling, more, out);
        self.place.spelt += read as u64;
        self.place.text += written as u64;
        if read > 0 {
            return Ok(Next::Filled(written, read));
        }
        // Nothing at all: the file was cut since its spans were found.
        Ok(match text::character(raw, spelling, more) {
            Some((char, length)) if !raw.is_empty() => Next::Wide(char, length),
            _ => Next::End,
        })
    }
}

/// Bytes of a file read at once.
const RAW: usize = 16 * 1024;
/// Bytes of a text decoded at once on the way to an offset.
const DROPPED: usize = 4096;
/// No character takes more bytes to spell: a pair of surrogates takes 12.
const LONGEST: usize = 16;
