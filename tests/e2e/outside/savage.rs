//! A peer that keeps to no frame: sizes that lie, frames cut anywhere, much too much, nothing at all, and a hang-up in the
//! middle.
//!
//! Owns: what is done to valid frames. Must not know: what they say.

use std::time::Duration;

use engine::fuzz::{Client, Script};
use proto::HEADER_SIZE;
use tests::choices::{Choices, Seeded};
use tests::line::Line;
use tests::rig::{Received, Wire};
use tests::world::fill;

use super::{Done, PATHS};

pub(super) struct Savage {
    line: Line,
    script: Vec<u8>,
    turns: u32,
    done: Done,
}

impl Savage {
    pub(super) fn new(line: Line, script: Vec<u8>) -> Self {
        Self { line, script, turns: 0, done: Done { sent: 0, answered: 0, closed: false } }
    }

    /// Says something broken, and may or may not listen; `false` when it hangs up, or was closed.
    pub(super) fn turn(&mut self, choices: &mut Seeded) -> bool {
        let bytes = self.broken(choices);
        // What is not taken at once never comes: a frame half sent.
        self.line.send(&bytes, Duration::from_micros(u64::from(choices.below(300))));
        if choices.below(3) > 0 {
            self.listen();
        }
        if choices.below(16) == 0 {
            self.line.half_close();
        }
        self.turns += 1;
        !self.done.closed && choices.below(LIFE) >= self.turns
    }

    pub(super) fn end(self) -> Done {
        self.done
    }

    fn listen(&mut self) {
        // Whatever comes is no answer to anything that it understands.
        while !self.done.closed {
            match self.line.receive(Duration::ZERO) {
                Received::Bytes(_) => {}
                Received::Closed => self.done.closed = true,
                Received::Nothing => return,
            }
        }
    }

    /// Frames of a conversation, of which something was broken.
    fn broken(&mut self, choices: &mut Seeded) -> Vec<u8> {
        let mut client = Client::default();
        let mut script = Script::along(&self.script, PATHS);
        if self.turns == 0 && choices.below(8) > 0 {
            client.begin(&mut script);
        }
        for _ in 0..choices.below(40) {
            self.done.sent += 1;
            client.send(&mut script);
        }
        let mut bytes: Vec<u8> = client.wire.into();
        let at = choices.below(1 + bytes.len() as u32) as usize;
        match choices.below(10) {
            // A size that lies, of some frame.
            0..=2 => lie(&mut bytes, choices),
            // The end is missing, or the beginning.
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(..at)),
            // Something comes in between, or something else.
            5 => {
                let mut noise = vec![0; choices.below(3000) as usize];
                fill(choices.word(), 0, &mut noise);
                bytes.splice(at..at, noise);
            }
            6 => {
                for _ in 0..=choices.below(20) {
                    let at = choices.below(1 + bytes.len() as u32) as usize;
                    bytes.get_mut(at).into_iter().for_each(|byte| *byte = choices.below(256) as u8);
                }
            }
            // The same again and again: more than may be in flight.
            7 => bytes = bytes.repeat(choices.below(8) as usize),
            // One flush after another, of everything and nothing.
            8 => bytes.extend((0..choices.below(2000)).flat_map(|_| {
                let (tag, oldtag) = (choices.below(100) as u16, choices.below(100) as u16);
                [&[9, 0, 0, 0, proto::message::TFLUSH][..], &tag.to_le_bytes(), &oldtag.to_le_bytes()]
                    .concat()
            })),
            _ => {}
        }
        bytes
    }
}

/// Overwrites the size of some frame.
fn lie(bytes: &mut [u8], choices: &mut Seeded) {
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(size) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        starts.push(at);
        at += (u32::from_le_bytes(*size) as usize).max(HEADER_SIZE);
    }
    let Some(at) = starts.get(choices.below(1 + starts.len() as u32) as usize) else { return };
    let size = u32::from_le_bytes(bytes[*at..*at + 4].try_into().expect("four bytes"));
    let sizes =
        [0, 1, 6, 7, size - 1, size + 1, 2 * size, 8192, 8193, 1 << 20, (1 << 20) + 1, 1 << 31, u32::MAX];
    let size = sizes[choices.below(sizes.len() as u32) as usize];
    bytes[*at..*at + 4].copy_from_slice(&size.to_le_bytes());
}

/// Turns after which it has hung up for sure.
const LIFE: u32 = 12;
