//! A peer that says anything a frame can say, and believes what it is told: each request gets one reply, flushes are kept in
//! order, and fids are what replies made of them.
//!
//! Owns: the connection of the engine's own fuzzing client. Must not know: what is said, which that makes of the script.

use std::time::Duration;

use engine::fuzz::{Client, Script};
use tests::check::PATIENCE;
use tests::line::Line;
use tests::rig::{Received, Wire};

use super::{Done, PATHS};

pub(super) struct Believer {
    line: Line,
    client: Client,
    script: Vec<u8>,
    /// Where the choices of the next turn begin.
    at: usize,
    done: Done,
}

impl Believer {
    pub(super) fn new(line: Line, script: Vec<u8>) -> Self {
        let mut client = Client::default();
        client.begin(&mut Script::new(&script));
        let done = Done { sent: 1, answered: 0, closed: false };
        Self { line, client, script, at: 2, done }
    }

    /// Says something, and hears what has come; `false` when it has said everything, or was closed.
    pub(super) fn turn(&mut self) -> bool {
        let choices = &self.script[self.at.min(self.script.len())..];
        let mut script = Script::along(&choices[..choices.len().min(TURN_BYTES)], PATHS);
        self.at += TURN_BYTES;
        while !script.is_empty() {
            self.done.sent += 1;
            match script.below(12) {
                0 => self.client.send_mutated(&mut script),
                1 | 2 => self.client.send_flush(&mut script),
                3 if script.below(8) == 0 => self.client.send_version(&mut script),
                _ => self.client.send(&mut script),
            }
        }
        self.exchange(Duration::ZERO);
        !self.done.closed && self.at < self.script.len()
    }

    /// Takes everything that is still to come, and sees that it has.
    pub(super) fn end(mut self, seed: u64) -> Done {
        while !self.done.closed && self.client.is_waiting() {
            assert!(self.exchange(PATIENCE), "seed {seed}: not answered: {:?}", self.client);
        }
        self.done
    }

    /// Sends what can be sent, and receives what is there; `false` if there was nothing to do in that time.
    fn exchange(&mut self, within: Duration) -> bool {
        let sent = self.line.send(self.client.wire.make_contiguous(), Duration::ZERO);
        self.client.wire.drain(..sent);
        match self.line.receive(within) {
            Received::Bytes(bytes) => {
                self.done.answered += self.client.receive(&bytes);
                true
            }
            Received::Closed => {
                self.done.closed = true;
                true
            }
            Received::Nothing => sent > 0,
        }
    }
}

/// What is chosen by in one turn.
const TURN_BYTES: usize = 60;
