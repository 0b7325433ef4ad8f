//! The names of users and groups.
//!
//! Owns: `/etc/passwd` or `/etc/group` (passwd(5), group(5)), as they are. Names from a directory service are not known
//! here: to ask one would mean to load it into this process.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, StatxFlags};

use super::coarse_ns;
use crate::host::Time;

/// One table of names, read again when its file has changed; that is looked for once a second at most.
#[derive(Debug)]
pub(super) struct Users {
    path: PathBuf,
    looked_ns: AtomicU64,
    table: RwLock<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Inode and time of the last change of what was read.
    version: Option<(u64, Time)>,
    /// Sorted by number; the first line with a number counts.
    names: Vec<(u32, Arc<str>)>,
}

impl Users {
    /// Nothing is read yet.
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), looked_ns: AtomicU64::new(0), table: RwLock::default() }
    }

    /// The name that goes with a number.
    pub(super) fn name(&self, id: u32) -> Option<Arc<str>> {
        self.refresh();
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let at = table.names.binary_search_by_key(&id, |&(number, _)| number).ok()?;
        Some(table.names[at].1.clone())
    }

    fn refresh(&self) {
        let now_ns = coarse_ns();
        let looked_ns = self.looked_ns.load(Relaxed);
        if looked_ns != 0 && now_ns.saturating_sub(looked_ns) < FRESH_NS {
            return;
        }
        let version = self.version();
        if self.table.read().unwrap_or_else(PoisonError::into_inner).version != version || looked_ns == 0 {
            let names = version.and_then(|_| self.read()).unwrap_or_default();
            *self.table.write().unwrap_or_else(PoisonError::into_inner) = Table { version, names };
        }
        self.looked_ns.store(now_ns.max(1), Relaxed);
    }

    fn version(&self) -> Option<(u64, Time)> {
        let asked = StatxFlags::INO | StatxFlags::MTIME;
        let stat = rustix::fs::statx(CWD, &self.path, AtFlags::empty(), asked).ok()?;
        Some((stat.stx_ino, super::time(stat.stx_mtime)))
    }

    fn read(&self) -> Option<Vec<(u32, Arc<str>)>> {
        let mut text = Vec::new();
        File::open(&self.path).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
        Some(parse(&text))
    }
}

/// `name:password:number:…`, one a line. A line that is not of this form, or whose name could not be shown, is left out.
fn parse(text: &[u8]) -> Vec<(u32, Arc<str>)> {
    let mut names: Vec<(u32, Arc<str>)> = text.split(|&byte| byte == b'\n').filter_map(entry).collect();
    names.sort_by_key(|&(number, _)| number);
    names.dedup_by_key(|&mut (number, _)| number);
    names
}

fn entry(line: &[u8]) -> Option<(u32, Arc<str>)> {
    let mut fields = str::from_utf8(line).ok()?.split(':');
    let name = fields.next()?;
    let number = fields.nth(1)?.parse().ok()?;
    let shown = !name.is_empty() && name.len() <= NAME_BYTES && !name.contains(char::is_control);
    shown.then(|| (number, name.into()))
}

/// How long a table is taken to be what its file says.
const FRESH_NS: u64 = 1_000_000_000;
/// Where reading stops. Some 200,000 users.
const MOST_BYTES: u64 = 16 << 20;
/// `LOGIN_NAME_MAX` of `<limits.h>`.
const NAME_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_names_and_bad_lines_nothing() {
        let text =
            b"root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\ntwin:x:1000:1::/:/bin/sh\n\
            bad\n:x:7::\nnobody:x:notanumber:\n\xff:x:8:\nbell\x07:x:9:\n+::::::\nlast:x:4294967294:";
        let names = parse(text);
        let names: Vec<(u32, &str)> = names.iter().map(|(number, name)| (*number, &**name)).collect();
        assert_eq!(names, [(0, "root"), (1000, "me"), (4_294_967_294, "last")]);
    }
}
