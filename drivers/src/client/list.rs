//! Directories.

use proto::stat::{dirents, records};
use proto::{Dialect, Qid, Rmessage, Tmessage};

use super::{Client, Error, Purpose, Stat, TreePath, UNEXPECTED, is_directory};

/// A name in a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The name. Never empty, `.` or `..`, and without slash and NUL.
    pub name: Vec<u8>,
    /// What it stands for.
    pub qid: Qid,
}

impl Client {
    /// The names in the directory at `path`, in the server's order.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn list(&mut self, path: &TreePath) -> Result<Vec<Entry>, Error> {
        self.visit(path, |client, place| {
            if !is_directory(place.qid) {
                return Err(Error::NotDirectory);
            }
            let unit = client.open(place.fid, Purpose::Read)?;
            match client.dialect {
                Dialect::Linux => client.read_entries(place.fid, unit),
                Dialect::Plain | Dialect::Unix => {
                    let stats = client.read_records(place.fid, unit)?;
                    Ok(stats.into_iter().map(|stat| Entry { name: stat.name, qid: stat.qid }).collect())
                }
            }
        })
    }

    /// What the server says of each file in the directory at `path`, in the server's order. In 9P2000.L, where each has to be
    /// asked for, those that are gone by then are left out.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn list_stats(&mut self, path: &TreePath) -> Result<Vec<Stat>, Error> {
        if self.dialect != Dialect::Linux {
            return self.visit(path, |client, place| {
                if !is_directory(place.qid) {
                    return Err(Error::NotDirectory);
                }
                let unit = client.open(place.fid, Purpose::Read)?;
                client.read_records(place.fid, unit)
            });
        }
        let mut stats = Vec::new();
        for entry in self.list(path)? {
            match self.stat(&path.join(&entry.name)) {
                Ok(stat) => stats.push(stat),
                Err(error) if error.is_absence() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stats)
    }

    /// Reads a directory of 9P2000 or 9P2000.u: whole stat records, until there are none (read(5)).
    fn read_records(&mut self, fid: u32, unit: u32) -> Result<Vec<Stat>, Error> {
        let mut stats = Vec::new();
        let mut offset = 0;
        loop {
            let dialect = self.dialect;
            let Rmessage::Read { data } = self.call(&Tmessage::Read { fid, offset, count: unit })? else {
                return Err(UNEXPECTED);
            };
            offset = measured(offset, data, unit)?;
            if data.is_empty() {
                return Ok(stats);
            }
            for record in records(data, dialect) {
                let record = record.map_err(|_| TORN)?;
                if is_listed(record.name)? {
                    stats.push(Stat::from_record(&record));
                }
            }
        }
    }

    /// Reads a directory of 9P2000.L.
    fn read_entries(&mut self, fid: u32, unit: u32) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let mut seen = 0;
        let mut offset = 0;
        loop {
            let Rmessage::Readdir { data } = self.call(&Tmessage::Readdir { fid, offset, count: unit })?
            else {
                return Err(UNEXPECTED);
            };
            seen = measured(seen, data, unit)?;
            if data.is_empty() {
                return Ok(entries);
            }
            for entry in dirents(data) {
                let entry = entry.map_err(|_| TORN)?;
                offset = entry.offset;
                if is_listed(entry.name)? {
                    entries.push(Entry { name: entry.name.to_vec(), qid: entry.qid });
                }
            }
        }
    }
}

/// How many bytes of a listing there are with these.
fn measured(before: u64, data: &[u8], unit: u32) -> Result<u64, Error> {
    if data.len() > unit as usize {
        return Err(UNEXPECTED);
    }
    let now = before + data.len() as u64;
    if now > LISTING_BYTES_MAX { Err(Error::ListingTooLarge) } else { Ok(now) }
}

/// Whether a name is an entry: some servers list the directory itself and its parent.
fn is_listed(name: &[u8]) -> Result<bool, Error> {
    match name {
        b"." | b".." => Ok(false),
        [] => Err(IMPOSSIBLE),
        name if name.iter().any(|byte| matches!(byte, 0 | b'/')) => Err(IMPOSSIBLE),
        _ => Ok(true),
    }
}

const TORN: Error = Error::Protocol("a torn directory entry");
const IMPOSSIBLE: Error = Error::Protocol("a directory entry with an impossible name");

/// The most bytes of one directory: more than any of ours can be.
pub const LISTING_BYTES_MAX: u64 = 256 * 1024 * 1024;
