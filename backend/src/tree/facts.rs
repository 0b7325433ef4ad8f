//! What a stat record says of a place, whichever province it is in.

use std::borrow::Cow;
use std::sync::Arc;

use engine::port::{Now, Room, Stat};
use proto::{QTDIR, QTFILE, Qid};

use crate::host::{Host, Kind, Me, Meta, Time};
use crate::qid;
use crate::tree::halt::Halt;

/// A stat record without the words: the entry's name and its owners'.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) qid: Qid,
    pub(crate) perm: u16,
    pub(crate) length: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) atime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) btime_ns: Option<i64>,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Facts {
    /// Of something on disk; `None` for a symbolic link, which is not there. What is neither file nor directory is an
    /// empty plain file.
    pub(crate) fn of_file(meta: &Meta) -> Option<Self> {
        let length = match meta.kind {
            Kind::File => meta.size,
            Kind::Dir | Kind::Other => 0,
            #[cfg(feature = "planted")]
            Kind::Link if engine::planted::is(engine::planted::Bug::LinkListed) => meta.size,
            Kind::Link => return None,
        };
        Some(Self {
            qid: qid::of_file(meta),
            perm: if meta.kind == Kind::Dir { DIRECTORY } else { FILE },
            length,
            mtime_ns: meta.mtime.ns(),
            atime_ns: meta.atime.ns(),
            ctime_ns: meta.ctime.ns(),
            btime_ns: meta.btime.map(Time::ns),
            uid: meta.uid,
            gid: meta.gid,
        })
    }

    /// Of a file that its owner may write.
    pub(crate) fn writable(self) -> Self {
        Self { perm: WRITABLE_FILE, ..self }
    }

    /// Hands the whole record to `then`, under an entry's name.
    pub(crate) fn with_record<T>(&self, name: &str, host: &dyn Host, then: impl FnOnce(&Stat<'_>) -> T) -> T {
        let user = Label::new(host.user(self.uid), self.uid);
        let group = Label::new(host.group(self.gid), self.gid);
        then(&Stat {
            qid: self.qid,
            name,
            perm: self.perm,
            length: self.length,
            mtime_ns: self.mtime_ns,
            atime_ns: self.atime_ns,
            ctime_ns: self.ctime_ns,
            btime_ns: self.btime_ns,
            uid: self.uid,
            gid: self.gid,
            user: user.as_str(),
            group: group.as_str(),
        })
    }
}

/// Who serves the derived nodes, and since when.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Daemon {
    pub(crate) me: Me,
    pub(crate) start: Now,
}

impl Daemon {
    /// The record of a derived directory that has been the same since the start. Its version is 0, which Linux takes as
    /// "never keep what was read": what a derived directory holds moves no number.
    pub(crate) fn directory(&self, path: u64) -> Facts {
        self.facts(Qid { kind: QTDIR, version: 0, path }, DIRECTORY, 0)
    }

    /// The record of a derived file with this text, that has the start as its time.
    pub(crate) fn file(&self, path: u64, text: &str) -> Facts {
        let qid = Qid { kind: QTFILE, version: qid::content(text.as_bytes()), path };
        self.facts(qid, FILE, text.len() as u64)
    }

    fn facts(&self, qid: Qid, perm: u16, length: u64) -> Facts {
        let at_ns = self.start.wall_ns;
        Facts {
            qid,
            perm,
            length,
            mtime_ns: at_ns,
            atime_ns: at_ns,
            ctime_ns: at_ns,
            btime_ns: None,
            uid: self.me.uid,
            gid: self.me.gid,
        }
    }
}

/// Packs entries of a directory into a room, from index `from` on, as many as fit. `entry` says of each index below
/// `count` what its name and record are, or `None` for one that is not there (any more). Answers the index of the first
/// that was not packed.
///
/// An entry's record is the one that a stat of it would give: both are made by [`Facts::with_record`].
pub(crate) fn pack<'n>(
    room: &mut Room<'_>,
    host: &dyn Host,
    from: u32,
    count: usize,
    mut entry: impl FnMut(usize) -> Result<Option<(Cow<'n, str>, Facts)>, Halt>,
) -> Result<u32, Halt> {
    #[cfg(feature = "planted")]
    let count = count - usize::from(count > 2 && engine::planted::is(engine::planted::Bug::ListingShort));
    let mut next = from;
    while (next as usize) < count {
        if let Some((name, facts)) = entry(next as usize)?
            && !facts.with_record(&name, host, |stat| room.pack(stat, next))
        {
            break;
        }
        next += 1;
    }
    Ok(next)
}

/// What an owner is called: by name, or by number where there is none. Made for each entry of a listing, so it does not
/// allocate.
enum Label {
    Name(Arc<str>),
    Number { digits: [u8; DIGITS], from: usize },
}

impl Label {
    fn new(name: Option<Arc<str>>, id: u32) -> Self {
        name.map_or_else(|| Self::number(id), Self::Name)
    }

    fn number(mut id: u32) -> Self {
        let mut digits = [b'0'; DIGITS];
        let mut from = DIGITS - 1;
        while id > 9 {
            digits[from] += (id % 10) as u8;
            id /= 10;
            from -= 1;
        }
        digits[from] += id as u8;
        Self::Number { digits, from }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Number { digits, from } => str::from_utf8(&digits[*from..]).unwrap_or_default(),
        }
    }
}

/// Whatever the real bits are.
const DIRECTORY: u16 = 0o555;
const FILE: u16 = 0o444;
const WRITABLE_FILE: u16 = 0o644;
/// Decimal digits of the largest id.
const DIGITS: usize = 10;

#[cfg(test)]
mod tests {
    use super::Label;

    #[test]
    fn an_owner_without_a_name_is_a_number() {
        for id in [0, 7, 10, 1000, 65534, u32::MAX] {
            assert_eq!(Label::new(None, id).as_str(), id.to_string());
        }
        assert_eq!(Label::new(Some("glenda".into()), 7).as_str(), "glenda");
    }
}
