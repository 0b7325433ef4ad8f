//! The content of files, in and out.

use std::collections::VecDeque;
use std::io::{self, Read};

use proto::{Rmessage, Tmessage};

use super::{
    ANSWER_TIME, Client, Error, IO_HEADER_BYTES, Place, Purpose, TreePath, UNEXPECTED, accepted, is_directory,
};

/// How a file is read.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Pace {
    /// Several reads in flight, as far as the file is long by its stat: for throughput.
    Ahead,
    /// One read at a time: nothing is asked of the file that is not passed on. For files that hold an answer back, or whose
    /// content is used up by reading.
    Step,
}

impl Client {
    /// Reads a file from front to back, and hands its bytes to `sink` as they come; yields how many there were.
    ///
    /// # Errors
    /// See [`Error`]; what `sink` refuses is [`Error::Sink`].
    pub fn read(
        &mut self,
        path: &TreePath,
        pace: Pace,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, Error> {
        self.visit(path, |client, place| {
            if is_directory(place.qid) {
                return Err(Error::Directory);
            }
            let length = match pace {
                Pace::Ahead => client.attributes(place)?.length,
                Pace::Step => 0,
            };
            let unit = client.open(place.fid, Purpose::Read)?;
            client.patiently(|client| client.copy_out(&mut Ahead::new(place, unit, length), sink))
        })
    }

    /// Replaces a file's content with what `source` holds: the file is cut to nothing, and written in pieces as large as the
    /// server takes, each one Twrite. Yields how many bytes were written.
    ///
    /// # Errors
    /// See [`Error`]; what `source` refuses is [`Error::Source`].
    pub fn write(&mut self, path: &TreePath, source: &mut dyn Read) -> Result<u64, Error> {
        self.visit(path, |client, place| {
            if is_directory(place.qid) {
                return Err(Error::Directory);
            }
            let unit = client.open(place.fid, Purpose::Rewrite)?;
            client.patiently(|client| client.copy_in(place, unit, source))
        })
    }

    /// Acts with no limit on how long the server takes.
    fn patiently<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        self.wire.set_patience(None).map_err(Error::Failed)?;
        let outcome = act(self);
        let restored = self.wire.set_patience(Some(ANSWER_TIME)).map_err(Error::Failed);
        outcome.and_then(|value| restored.map(|()| value))
    }

    fn copy_out(
        &mut self,
        ahead: &mut Ahead,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<u64, Error> {
        loop {
            if let Err(error) = self.ask_ahead(ahead) {
                return self.drain(ahead, error);
            }
            let passed = match ahead.take_kept() {
                Some(kept) => kept.and_then(|bytes| sink(&bytes).map(|()| bytes.len()).map_err(Error::Sink)),
                None => self.await_front(ahead, sink),
            };
            match passed {
                Ok(0) => {
                    self.drain_all(ahead)?;
                    return Ok(ahead.position);
                }
                Ok(passed) => {
                    ahead.position += passed as u64;
                    if ahead.position != ahead.front_offset() {
                        // A short read: those behind it are of other bytes than it was thought.
                        self.drain_all(ahead)?;
                        ahead.restart();
                    }
                }
                Err(error) => return self.drain(ahead, error),
            }
        }
    }

    /// Sends reads for as far ahead as makes sense. Waits until half of those in flight are used up, so that several go out at once.
    fn ask_ahead(&mut self, ahead: &mut Ahead) -> Result<(), Error> {
        if ahead.asked.len() > AHEAD / 2 {
            return Ok(());
        }
        while let Some((tag, request)) = ahead.next() {
            self.queue(tag, &request)?;
        }
        self.flush()
    }

    /// Waits for the answer to the oldest read, and passes it on. Answers to later ones are kept.
    fn await_front(
        &mut self,
        ahead: &mut Ahead,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<usize, Error> {
        loop {
            let (tag, answer) = self.answer()?;
            let place = ahead.place_of(tag).ok_or(UNEXPECTED)?;
            let answer = match accepted(answer) {
                Ok(Rmessage::Read { data }) if data.len() <= ahead.unit as usize => Ok(data),
                Ok(_) => return Err(UNEXPECTED),
                Err(refused) => Err(refused),
            };
            if place > 0 {
                ahead.asked[place].answer = Some(answer.map(Box::from));
                continue;
            }
            ahead.asked.pop_front();
            return match answer {
                Ok(data) => sink(data).map(|()| data.len()).map_err(Error::Sink),
                Err(refused) => Err(refused),
            };
        }
    }

    /// Waits until no read is in flight, then yields `error`, or what ended the connection meanwhile.
    fn drain<T>(&mut self, ahead: &mut Ahead, error: Error) -> Result<T, Error> {
        if !error.is_fatal() {
            self.drain_all(ahead)?;
        }
        Err(error)
    }

    /// Waits until no read is in flight, and forgets the answers.
    fn drain_all(&mut self, ahead: &mut Ahead) -> Result<(), Error> {
        while ahead.asked.iter().any(|asked| asked.answer.is_none()) {
            let (tag, _) = self.answer()?;
            let place = ahead.place_of(tag).ok_or(UNEXPECTED)?;
            ahead.asked.remove(place);
        }
        ahead.asked.clear();
        Ok(())
    }

    fn copy_in(&mut self, place: &Place<'_>, unit: u32, source: &mut dyn Read) -> Result<u64, Error> {
        let mut piece = vec![0; unit as usize];
        let mut offset = 0;
        loop {
            let filled = fill(source, &mut piece).map_err(Error::Source)?;
            let mut rest = &piece[..filled];
            while !rest.is_empty() {
                let request = Tmessage::Write { fid: place.fid, offset, data: rest };
                let Rmessage::Write { count } = self.call(&request)? else { return Err(UNEXPECTED) };
                rest = match rest.get(count as usize..) {
                    Some(left) if count > 0 => left,
                    _ => {
                        return Err(Error::Protocol(
                            "a write of none of the bytes, or of more than there were",
                        ));
                    }
                };
                offset += u64::from(count);
            }
            if filled < piece.len() {
                return Ok(offset);
            }
        }
    }
}

/// Reads of one file that are in flight, in the order of the file.
#[derive(Debug)]
struct Ahead {
    fid: u32,
    /// The most bytes of one read.
    unit: u32,
    /// How long the file is, by its stat. Beyond it only one read at a time is sent.
    length: u64,
    /// How much has been passed on.
    position: u64,
    asked: VecDeque<Asked>,
    /// Where the next read will begin.
    next_offset: u64,
    next_tag: u16,
}

/// A read that was sent.
#[derive(Debug)]
struct Asked {
    tag: u16,
    offset: u64,
    /// Its answer, if it came before that of an earlier one.
    answer: Option<Result<Box<[u8]>, Error>>,
}

impl Ahead {
    fn new(place: &Place<'_>, unit: u32, length: u64) -> Self {
        let (fid, asked) = (place.fid, VecDeque::with_capacity(AHEAD));
        Self { fid, unit, length, position: 0, asked, next_offset: 0, next_tag: 0 }
    }

    /// The next read to send, if one should be.
    fn next(&mut self) -> Option<(u16, Tmessage<'static>)> {
        let sensible = self.asked.is_empty() || self.next_offset < self.length;
        if self.asked.len() >= AHEAD || !sensible {
            return None;
        }
        let (tag, offset) = (FIRST_TAG + self.next_tag, self.next_offset);
        // At most half of the numbers are in use at any time, and they are used in turn.
        self.next_tag = (self.next_tag + 1) % (2 * AHEAD as u16);
        self.next_offset += u64::from(self.unit);
        self.asked.push_back(Asked { tag, offset, answer: None });
        Some((tag, Tmessage::Read { fid: self.fid, offset, count: self.unit }))
    }

    /// Where in the order a read without an answer is.
    fn place_of(&self, tag: u16) -> Option<usize> {
        self.asked.iter().position(|asked| asked.tag == tag && asked.answer.is_none())
    }

    /// The answer to the oldest read, if it has come.
    fn take_kept(&mut self) -> Option<Result<Box<[u8]>, Error>> {
        self.asked.front()?.answer.as_ref()?;
        self.asked.pop_front()?.answer
    }

    /// Where the oldest read in flight begins, or else the next one to send.
    fn front_offset(&self) -> u64 {
        self.asked.front().map_or(self.next_offset, |asked| asked.offset)
    }

    /// Goes on from what has been passed on.
    fn restart(&mut self) {
        self.next_offset = self.position;
    }
}

/// Reads until `piece` is full or the source ends.
fn fill(source: &mut dyn Read, piece: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match source.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads in flight. More gain nothing: with this many the server is never idle.
const AHEAD: usize = 4;
/// The lowest tag of a read.
const FIRST_TAG: u16 = super::CALL_TAG + 1;

// All the requests for reads fit the outbox, whatever msize is.
const _: () = assert!(AHEAD * IO_HEADER_BYTES as usize <= super::MSIZE as usize);
