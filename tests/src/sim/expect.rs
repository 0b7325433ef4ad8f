//! What the answer to a request has to be while nothing changes.
//!
//! Owns: the expectation of one answer, worked out before it is asked for, and the comparison. It covers what is asked of
//! files and fids; what is only refused is for the conformance cases. Must not know: how the answer comes.

use proto::stat::{dirents, records};
use proto::{Dialect, QTDIR, Qid, Refusal, Rmessage, Tmessage};

use super::client::{Client, Held};
use super::oracle::{Oracle, Qids, Seen};

/// An expectation.
#[derive(Debug)]
pub(super) enum Expected {
    /// An attach or an open of this.
    One(Seen),
    /// A walk through these.
    Walk(Vec<Seen>),
    /// The record of this, under a name.
    Record(Seen, String),
    /// These bytes.
    Bytes(Vec<u8>),
    /// Entries: their numbers, names and what they are.
    Entries(Vec<(u32, String, Seen)>),
    /// A clunk.
    Clunked,
    /// No, because.
    Refused(Refusal),
}

impl Expected {
    /// Whether the answer is this one or a refusal even where calls of the machine fail. (A walk may then end early, and
    /// what stands in for a target that cannot be reached is an empty directory.)
    pub(super) fn holds_in_rough(&self) -> bool {
        match self {
            Self::Bytes(_) | Self::Clunked => true,
            Self::Record(seen, _) => !seen.may_stand_in(),
            Self::Entries(entries) => {
                !entries.iter().any(|(_, _, seen)| seen.may_stand_in()) && !entries.is_empty()
            }
            Self::One(_) | Self::Walk(_) | Self::Refused(_) => false,
        }
    }
}

/// What the answer has to be, if that can be told.
pub(super) fn expect(
    oracle: &Oracle<'_>,
    qids: &Qids,
    client: &Client,
    message: &Tmessage<'_>,
) -> Option<Expected> {
    match fid_of(message).and_then(|fid| client.fids.get(&fid)) {
        Some(held) if oracle.is_unsure(&held.path) => return None,
        Some(held) => match (oracle.is_same_agent(qids, held), message) {
            (Some(true), _) => {}
            // Another has its pid now, or nobody.
            (Some(false), Tmessage::Stat { .. } | Tmessage::Getattr { .. }) => {
                return Some(Expected::Refused(Refusal::NOT_FOUND));
            }
            _ => return None,
        },
        None => {}
    }
    let expected = match *message {
        Tmessage::Walk { fid, newfid, names } => {
            let names: Vec<&[u8]> = names.iter().collect();
            walk(oracle, client, fid, newfid, &names)?
        }
        Tmessage::Attach { fid, .. } if client.fids.contains_key(&fid) => Err(Refusal::FID_IN_USE),
        Tmessage::Attach { aname, .. } => attach(oracle, aname)?,
        Tmessage::Stat { fid } | Tmessage::Getattr { fid, .. } => stat(oracle, client, fid),
        Tmessage::Open { fid, mode: proto::OREAD } => open(oracle, client, fid),
        Tmessage::Lopen { fid, flags: proto::O_RDONLY } => open(oracle, client, fid),
        Tmessage::Read { fid, offset, count } => match client.fids.get(&fid) {
            Some(Held { open: Some(open), dir: true, .. }) if open.reads => {
                if client.dialect == Dialect::Linux {
                    Err(Refusal::IS_A_DIRECTORY)
                } else if offset == 0 {
                    list(oracle, client, fid, count)
                } else {
                    return None;
                }
            }
            Some(held) => return read(oracle, client, held, offset, count),
            None => Err(Refusal::UNKNOWN_FID),
        },
        Tmessage::Readdir { fid, offset: 0, count } => match client.fids.get(&fid) {
            Some(Held { open: Some(_), dir: true, .. }) => list(oracle, client, fid, count),
            Some(Held { open: Some(_), .. }) => Err(Refusal::NOT_A_DIRECTORY),
            Some(_) => Err(Refusal::BAD_FID_USE),
            None => Err(Refusal::UNKNOWN_FID),
        },
        Tmessage::Clunk { fid } if client.fids.contains_key(&fid) => Ok(Expected::Clunked),
        Tmessage::Clunk { .. } => Err(Refusal::UNKNOWN_FID),
        _ => return None,
    };
    Some(expected.unwrap_or_else(Expected::Refused))
}

type Answer = Result<Expected, Refusal>;

/// What is below a file is not there, or the file is no directory: the contract does not say which.
fn attach(oracle: &Oracle<'_>, aname: &[u8]) -> Option<Answer> {
    let names = aname.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
    if names.clone().any(|name| name == b"..") {
        return Some(Err(Refusal::NOT_FOUND));
    }
    let mut held = Held { path: Vec::new(), floor: 0, dir: true, agent: None, open: None };
    let mut last = oracle.see(&[]);
    for name in names {
        if oracle.is_unsure(&held.path) {
            return None;
        }
        last = match last {
            Ok(_) if !held.dir => return None,
            Ok(_) => step(oracle, &mut held, name),
            Err(why) => Err(why),
        };
    }
    Some(match last {
        Ok(seen) if seen.dir => Ok(Expected::One(seen)),
        Ok(_) => Err(Refusal::NOT_A_DIRECTORY),
        Err(why) => Err(why),
    })
}

/// The fid that a request is about.
fn fid_of(message: &Tmessage<'_>) -> Option<u32> {
    match *message {
        Tmessage::Walk { fid, .. }
        | Tmessage::Stat { fid }
        | Tmessage::Getattr { fid, .. }
        | Tmessage::Open { fid, .. }
        | Tmessage::Lopen { fid, .. }
        | Tmessage::Read { fid, .. }
        | Tmessage::Readdir { fid, .. } => Some(fid),
        _ => None,
    }
}

/// `None`: on the way is something that cannot be told.
fn walk(oracle: &Oracle<'_>, client: &Client, fid: u32, newfid: u32, names: &[&[u8]]) -> Option<Answer> {
    if let Some(from) = client.fids.get(&fid) {
        let mut at = from.clone();
        for name in names {
            at.step(name);
            if oracle.is_unsure(&at.path) {
                return None;
            }
        }
    }
    Some(walk_told(oracle, client, fid, newfid, names))
}

fn walk_told(oracle: &Oracle<'_>, client: &Client, fid: u32, newfid: u32, names: &[&[u8]]) -> Answer {
    let from = client.fids.get(&fid).ok_or(Refusal::UNKNOWN_FID)?;
    if names.len() > proto::MAX_WALK {
        return Err(Refusal::TOO_MANY_NAMES);
    }
    if fid == newfid && from.open.is_some() {
        return Err(Refusal::BAD_FID_USE);
    }
    if fid != newfid && client.fids.contains_key(&newfid) {
        return Err(Refusal::FID_IN_USE);
    }
    let (mut at, mut seen) = (from.clone(), Vec::new());
    for name in names {
        match step(oracle, &mut at, name) {
            Ok(next) => seen.push(next),
            Err(why) if seen.is_empty() => return Err(why),
            Err(_) => break,
        }
    }
    Ok(Expected::Walk(seen))
}

/// One step of a walk: what is there.
fn step(oracle: &Oracle<'_>, at: &mut Held, name: &[u8]) -> Result<Seen, Refusal> {
    if !at.dir {
        return Err(Refusal::NOT_A_DIRECTORY);
    }
    if name != b".." && (str::from_utf8(name).is_err() || name.len() > 255) {
        return Err(Refusal::NOT_FOUND);
    }
    at.step(name);
    let seen = oracle.see(&at.path)?;
    if name == b".." && !seen.dir {
        return Err(Refusal::NOT_FOUND);
    }
    at.dir = seen.dir;
    Ok(seen)
}

/// What is at a fid's path, if it is of the kind that was walked to.
fn found(oracle: &Oracle<'_>, held: &Held) -> Result<Seen, Refusal> {
    let seen = oracle.see(&held.path)?;
    if seen.dir == held.dir { Ok(seen) } else { Err(Refusal::NOT_FOUND) }
}

fn stat(oracle: &Oracle<'_>, client: &Client, fid: u32) -> Answer {
    let held = client.fids.get(&fid).ok_or(Refusal::UNKNOWN_FID)?;
    Ok(Expected::Record(found(oracle, held)?, held.name().to_owned()))
}

fn open(oracle: &Oracle<'_>, client: &Client, fid: u32) -> Answer {
    let held = client.fids.get(&fid).ok_or(Refusal::UNKNOWN_FID)?;
    if held.open.is_some() {
        return Err(Refusal::BAD_FID_USE);
    }
    if held.dir {
        return Ok(Expected::One(found(oracle, held)?));
    }
    let seen = oracle.open(&held.path)?;
    if seen.dir { Err(Refusal::NOT_FOUND) } else { Ok(Expected::One(seen)) }
}

fn read(oracle: &Oracle<'_>, client: &Client, held: &Held, offset: u64, count: u32) -> Option<Expected> {
    if !held.open.is_some_and(|open| open.reads) {
        return Some(Expected::Refused(Refusal::BAD_FID_USE));
    }
    if count == 0 || i64::try_from(offset).is_err() {
        return Some(Expected::Bytes(Vec::new()));
    }
    // A text that is made goes on as it began, and what an agent has said is of the session it was in.
    if offset > 0 && oracle.is_derived(&held.path)
        || oracle
            .session(&held.path)
            .is_some_and(|session| held.open.and_then(|open| open.session) != Some(session))
    {
        return None;
    }
    let content = match oracle.content(&held.path) {
        Ok(content) => content,
        // What is open stays open when its permissions change.
        Err(why) if why == Refusal::PERMISSION_DENIED => return None,
        Err(why) if why == Refusal::NOT_A_DIRECTORY || why == Refusal::NOT_REGULAR => {
            return Some(Expected::Refused(Refusal::NOT_FOUND));
        }
        Err(why) => return Some(Expected::Refused(why)),
    };
    let rest = usize::try_from(offset).ok().and_then(|offset| content.get(offset..)).unwrap_or_default();
    let most = count.min(client.msize - 24) as usize;
    Some(Expected::Bytes(rest[..rest.len().min(most)].to_vec()))
}

fn list(oracle: &Oracle<'_>, client: &Client, fid: u32, count: u32) -> Answer {
    let held = client.fids.get(&fid).ok_or(Refusal::UNKNOWN_FID)?;
    let mut room = count.min(client.msize - 24) as usize;
    let mut fitting = Vec::new();
    for (number, name, seen) in oracle.entries(&held.path)? {
        let seen = seen?;
        let size = size(oracle, &seen, &name, client.dialect);
        match room.checked_sub(size) {
            Some(less) => room = less,
            None => break,
        }
        fitting.push((number, name, seen));
    }
    Ok(Expected::Entries(fitting))
}

fn size(oracle: &Oracle<'_>, seen: &Seen, name: &str, dialect: Dialect) -> usize {
    let mut bytes = Vec::new();
    let qid = Qid { kind: 0, version: 0, path: 0 };
    entry(oracle, seen, 0, name, qid, dialect, &mut bytes);
    bytes.len()
}

/// An entry as it travels in a directory.
fn entry(
    oracle: &Oracle<'_>,
    seen: &Seen,
    number: u32,
    name: &str,
    qid: Qid,
    dialect: Dialect,
    into: &mut Vec<u8>,
) {
    if dialect != Dialect::Linux {
        return oracle.record(seen, name, qid, dialect, into);
    }
    let kind = if seen.dir { proto::DT_DIR } else { proto::DT_REG };
    let entry = proto::stat::Dirent { qid, offset: u64::from(number) + 1, kind, name: name.as_bytes() };
    let start = into.len();
    into.resize(start + entry.encoded_len(), 0);
    entry.encode(&mut into[start..]).expect("an entry that fits");
}

/// Holds an answer to what it should be, to the byte.
///
/// # Panics
/// If it is anything else.
pub(super) fn compare(
    oracle: &Oracle<'_>,
    qids: &mut Qids,
    dialect: Dialect,
    expected: &Expected,
    frame: &[u8],
) {
    let (tag, message) = Rmessage::decode(frame, dialect).expect("it was decoded before");
    match (expected, message) {
        (Expected::One(seen), Rmessage::Attach { qid }) => qids.hold(seen, qid),
        (Expected::One(seen), Rmessage::Open { qid, iounit: 0 } | Rmessage::Lopen { qid, iounit: 0 }) => {
            qids.hold(seen, qid);
        }
        (Expected::Walk(all), Rmessage::Walk { qids: told }) => {
            assert_eq!(told.len(), all.len(), "a walk of {all:?}");
            all.iter().zip(told.iter()).for_each(|(seen, qid)| qids.hold(seen, qid));
        }
        (Expected::Record(seen, name), Rmessage::Stat { stat }) => {
            qids.hold(seen, stat.qid);
            let (mut wanted, mut told) = (Vec::new(), vec![0; stat.encoded_len(dialect)]);
            oracle.record(seen, name, stat.qid, dialect, &mut wanted);
            stat.encode(dialect, &mut told).expect("a record that fits");
            assert!(told == wanted, "the record of {name}: {stat:?}, but should be {seen:?}");
        }
        (Expected::Record(seen, _), Rmessage::Getattr { attr }) => {
            qids.hold(seen, attr.qid);
            assert_eq!(attr, seen.attr(attr.qid));
        }
        (Expected::Bytes(wanted), Rmessage::Read { data }) => {
            assert!(
                data == wanted,
                "read {:?}, but it is {:?}",
                data[..data.len().min(64)].escape_ascii().to_string(),
                wanted[..wanted.len().min(64)].escape_ascii().to_string()
            );
        }
        (Expected::Entries(wanted), Rmessage::Read { data } | Rmessage::Readdir { data }) => {
            compare_entries(oracle, qids, dialect, wanted, data);
        }
        (Expected::Clunked, Rmessage::Clunk) => {}
        (Expected::Refused(why), message) => {
            let wanted = Rmessage::refusal(*why, dialect);
            assert_eq!(message, wanted, "tag {tag}");
        }
        (expected, message) => panic!("{message:?}, but should be {expected:?}"),
    }
}

fn compare_entries(
    oracle: &Oracle<'_>,
    qids: &mut Qids,
    dialect: Dialect,
    wanted: &[(u32, String, Seen)],
    data: &[u8],
) {
    let told: Vec<(Vec<u8>, Qid)> = if dialect == Dialect::Linux {
        dirents(data).map(|entry| entry.expect("whole entries")).map(|e| (e.name.to_vec(), e.qid)).collect()
    } else {
        records(data, dialect)
            .map(|stat| stat.expect("whole records"))
            .map(|s| (s.name.to_vec(), s.qid))
            .collect()
    };
    let names = |all: &mut dyn Iterator<Item = &[u8]>| {
        all.map(|name| name.escape_ascii().to_string()).collect::<Vec<_>>()
    };
    let told_names = names(&mut told.iter().map(|(name, _)| &name[..]));
    let wanted_names = names(&mut wanted.iter().map(|(_, name, _)| name.as_bytes()));
    assert_eq!(told_names, wanted_names, "the names of a listing");
    let mut bytes = Vec::new();
    for ((number, name, seen), (_, qid)) in wanted.iter().zip(&told) {
        assert_eq!(qid.kind & QTDIR != 0, seen.dir, "the kind of {name}");
        qids.hold(seen, *qid);
        entry(oracle, seen, *number, name, *qid, dialect, &mut bytes);
    }
    assert!(bytes == data, "the entries {wanted_names:?} are told otherwise than a stat tells them");
}
