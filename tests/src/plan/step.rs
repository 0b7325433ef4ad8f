//! One thing that happens.

use super::Bits;

/// A step.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// A client sends something.
    Ask {
        /// Which client.
        client: u8,
        /// What else goes on meanwhile.
        mood: Mood,
        /// What it sends.
        request: Request,
        /// It is sent twice at once, if anything else may go on.
        twice: bool,
    },
    /// The world changes.
    Change(Happening),
    /// The world changes in the middle of a request: just before so many more calls of the machine.
    Race {
        /// How many pass before it.
        calls: u8,
        /// The change.
        change: Happening,
    },
    /// Time passes.
    Pass {
        /// How much.
        ms: u16,
    },
    /// Requests on the files that wait are held back, or no longer.
    Gate {
        /// No longer.
        open: bool,
    },
    /// A client goes away, in whatever state things are; if it asks again, it comes back.
    HangUp {
        /// Which client.
        client: u8,
    },
    /// A connection gives memory back.
    Shed {
        /// Of which client.
        client: u8,
    },
}

/// Which change happens.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct Happening {
    /// At one of the two spots that the run is about, or at one by number.
    pub spot: Near,
    /// Which of that spot's changes.
    pub change: u8,
}

/// Which spot of the scene.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Near {
    /// One of those the run is about.
    Focus(u8),
    /// Any.
    Any(u8),
}

/// What else goes on while a request is answered.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Mood {
    /// Nothing: first everything in flight ends, and nothing fails. The answer has to be the one that the contract says.
    Calm,
    /// Nothing, but calls of the machine may fail. The answer is that one, or a refusal.
    Rough,
    /// Anything.
    Busy,
}

/// What a client sends. Fids are small numbers, so that they meet; 0 is the attach's.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// Walk, open, read to the end and clunk, on a fid of its own.
    Pass {
        /// From fid 0.
        route: Route,
        /// Bytes asked for at a time.
        count: u32,
    },
    /// Tstat or Tgetattr.
    Stat {
        /// Whose.
        fid: u8,
    },
    /// Twalk.
    Walk {
        /// From where.
        fid: u8,
        /// To where.
        newfid: u8,
        /// By which names.
        route: Route,
    },
    /// Lets a fid go and binds it anew: Tclunk, Twalk from fid 0, and an open for reading.
    Grab {
        /// Which fid.
        fid: u8,
        /// To what.
        route: Route,
    },
    /// Topen or Tlopen.
    Open {
        /// What.
        fid: u8,
        /// How.
        how: How,
    },
    /// Tread.
    Read {
        /// Of what.
        fid: u8,
        /// From where.
        offset: u64,
        /// How much.
        count: u32,
    },
    /// Tread of a directory, or Treaddir.
    List {
        /// Of what.
        fid: u8,
        /// From where the last one ended; else from the beginning.
        goes_on: bool,
        /// How much.
        count: u32,
    },
    /// Tclunk.
    Clunk {
        /// What.
        fid: u8,
    },
    /// Tflush.
    Flush(Which),
    /// Tattach.
    Attach {
        /// The new fid.
        fid: u8,
        /// Where.
        route: Route,
    },
    /// Something that would change the tree, or that the dialect does not have, by number.
    Other {
        /// On which fid.
        fid: u8,
        /// Which.
        which: u8,
    },
    /// Tversion, in another dialect for all anyone knows; and an attach.
    Version {
        /// By number; one of them is spoken by nobody.
        dialect: u8,
    },
    /// Tstat under a tag that may be in flight.
    SameTag {
        /// Whose stat.
        fid: u8,
    },
    /// Bytes that are no request.
    Noise {
        /// Which.
        which: u8,
    },
}

/// Which request is flushed.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Which {
    /// The one sent last that waits.
    Last,
    /// The one that has waited longest.
    First,
    /// One in between, by number.
    Some(u8),
    /// One that is not there.
    None,
}

/// Names of a walk.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Route {
    /// To a spot, or near it.
    Near(Near, u8),
    /// One of the scene's paths.
    Path(u8),
    /// One of its words.
    Word(u8),
    /// A path, up again by so many, and a word.
    Around {
        /// The path.
        path: u8,
        /// How often `..`.
        up: u8,
        /// The word.
        word: u8,
    },
    /// The same word, more often than a walk may have names.
    Long(u8),
}

/// How a file is opened.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum How {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To read, cut to nothing first.
    Truncate,
    /// In a way that is none.
    Odd,
}

/// How often each step comes, of 256; the first is what zero means.
const STEPS: &[(u8, What)] = &[
    (150, What::Ask),
    (56, What::Change),
    (18, What::Race),
    (12, What::Pass),
    (8, What::Gate),
    (8, What::HangUp),
    (4, What::Shed),
];

/// What a step is of.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "each is the step of this name")]
pub enum What {
    Ask,
    Change,
    Race,
    Pass,
    Gate,
    HangUp,
    Shed,
}

/// How often each request comes, of 256.
const REQUESTS: &[(u8, Kind)] = &[
    (48, Kind::Pass),
    (14, Kind::Stat),
    (26, Kind::Walk),
    (44, Kind::Grab),
    (18, Kind::Open),
    (36, Kind::Read),
    (18, Kind::List),
    (8, Kind::Clunk),
    (24, Kind::Flush),
    (6, Kind::Attach),
    (6, Kind::Other),
    (3, Kind::Version),
    (3, Kind::SameTag),
    (2, Kind::Noise),
];

#[derive(Copy, Clone)]
enum Kind {
    Pass,
    Stat,
    Walk,
    Grab,
    Open,
    Read,
    List,
    Clunk,
    Flush,
    Attach,
    Other,
    Version,
    SameTag,
    Noise,
}

impl Step {
    /// The step that a number stands for.
    pub fn of(number: u64) -> Self {
        let mut bits = Bits(number);
        let what = weighed(STEPS, bits.take(8));
        let client = bits.take(2) as u8;
        match what {
            What::Ask => {
                let mood = bits.pick(2, &[Mood::Calm, Mood::Busy, Mood::Busy, Mood::Rough]);
                let twice = bits.take(1) == 1;
                Self::Ask { client, mood, twice, request: Request::take(&mut bits) }
            }
            What::Change => Self::Change(Happening::take(&mut bits)),
            What::Race => Self::Race { calls: bits.take(4) as u8, change: Happening::take(&mut bits) },
            What::Pass => Self::Pass { ms: bits.pick(2, &[1, 60, 101, 3000]) },
            What::Gate => Self::Gate { open: bits.take(1) == 1 },
            What::HangUp => Self::HangUp { client },
            What::Shed => Self::Shed { client },
        }
    }
}

impl Happening {
    fn take(bits: &mut Bits) -> Self {
        Self { spot: Near::take(bits), change: bits.take(8) as u8 }
    }
}

impl Near {
    fn take(bits: &mut Bits) -> Self {
        match bits.take(3) {
            0..=3 => Self::Focus(0),
            4 | 5 => Self::Focus(1),
            _ => Self::Any(bits.take(4) as u8),
        }
    }
}

impl Request {
    fn take(bits: &mut Bits) -> Self {
        let kind = weighed(REQUESTS, bits.take(8));
        let fid = bits.pick(3, &[0, 1, 2, 3, 4, 1, 2, 3]);
        match kind {
            Kind::Pass => Self::Pass { route: Route::take(bits), count: count(bits) },
            Kind::Stat => Self::Stat { fid },
            Kind::Walk => {
                // Mostly from the root, because there most routes lead somewhere.
                let from = if bits.take(2) < 3 { 0 } else { fid };
                Self::Walk {
                    fid: from,
                    newfid: bits.pick(3, &[1, 2, 3, 4, 1, 2, 3, 0]),
                    route: Route::take(bits),
                }
            }
            Kind::Grab => Self::Grab { fid: fid.max(1), route: Route::take(bits) },
            Kind::Open => Self::Open {
                fid,
                how: bits.pick(
                    3,
                    &[
                        How::Read,
                        How::Read,
                        How::Read,
                        How::Read,
                        How::Read,
                        How::Write,
                        How::Truncate,
                        How::Odd,
                    ],
                ),
            },
            Kind::Read => {
                let offset = bits.pick(3, &[0, 0, 0, 1, 100, 8000, 1 << 40, u64::MAX]);
                Self::Read { fid, offset, count: count(bits) }
            }
            Kind::List => Self::List { fid, goes_on: bits.take(1) == 1, count: count(bits) },
            Kind::Clunk => Self::Clunk { fid },
            Kind::Flush => Self::Flush(match bits.take(2) {
                0 => Which::Last,
                1 => Which::First,
                2 => Which::Some(bits.take(4) as u8),
                _ => Which::None,
            }),
            Kind::Attach => Self::Attach { fid, route: Route::take(bits) },
            Kind::Other => Self::Other { fid, which: bits.take(4) as u8 },
            Kind::Version => Self::Version { dialect: bits.take(2) as u8 },
            Kind::SameTag => Self::SameTag { fid },
            Kind::Noise => Self::Noise { which: bits.take(3) as u8 },
        }
    }
}

impl Route {
    fn take(bits: &mut Bits) -> Self {
        match bits.take(4) {
            0..=6 => Self::Near(Near::take(bits), bits.take(5) as u8),
            7..=11 => Self::Path(bits.take(8) as u8),
            12 => Self::Word(bits.take(8) as u8),
            13 | 14 => {
                Self::Around { path: bits.take(8) as u8, up: bits.take(2) as u8, word: bits.take(8) as u8 }
            }
            _ => Self::Long(bits.take(8) as u8),
        }
    }
}

/// How many bytes are asked for at a time.
fn count(bits: &mut Bits) -> u32 {
    bits.pick(3, &[8192, 8192, 65536, u32::MAX, 300, 150, 17, 0])
}

fn weighed<T: Copy>(table: &[(u8, T)], drawn: u32) -> T {
    let mut rest = drawn;
    for &(weight, of) in table {
        match rest.checked_sub(u32::from(weight)) {
            Some(less) => rest = less,
            None => return of,
        }
    }
    table[0].1
}

const fn total<T>(table: &[(u8, T)]) -> u32 {
    let (mut sum, mut at) = (0, 0);
    while at < table.len() {
        sum += table[at].0 as u32;
        at += 1;
    }
    sum
}

const _: () = assert!(total(STEPS) == 256 && total(REQUESTS) == 256);

#[cfg(test)]
mod tests {
    use super::{Mood, Near, Request, Route, Step};
    use crate::choices::Seeded;

    #[test]
    fn zero_is_the_simplest_step() {
        let request = Request::Pass { route: Route::Near(Near::Focus(0), 0), count: 8192 };
        assert_eq!(Step::of(0), Step::Ask { client: 0, mood: Mood::Calm, twice: false, request });
    }

    #[test]
    fn every_sort_of_step_comes() {
        let mut choices = Seeded::new(1);
        let sorts: std::collections::BTreeSet<String> = (0..5000)
            .map(|_| format!("{:?}", Step::of(choices.word())))
            .map(|text| {
                text.split_inclusive("request: ")
                    .map(|part| part.split([' ', '(']).next().unwrap_or(""))
                    .collect()
            })
            .collect();
        assert_eq!(sorts.len(), 6 + 14, "{sorts:?}");
    }
}
