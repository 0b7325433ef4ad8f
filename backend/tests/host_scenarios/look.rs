//! Every question there is about a path, and its answers in words that two machines can share.

use backend::host::{Dir, Errno, File, Host, Kind, Meta, Time};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::{self, Cached, Full};

/// Asks a host and writes down what it says.
pub(crate) struct Looker<'a> {
    host: &'a dyn Host,
    log: Vec<String>,
    /// Each file seen, and its times when it was last seen.
    seen: Vec<(Identity, [Time; 2])>,
    files: Vec<Box<dyn File>>,
    dirs: Vec<Box<dyn Dir>>,
}

type Identity = (u64, u64, Option<Time>);

impl<'a> Looker<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host, log: Vec::new(), seen: Vec::new(), files: Vec::new(), dirs: Vec::new() }
    }

    pub(crate) fn note(&mut self, line: String) {
        self.log.push(line);
    }

    pub(crate) fn finish(self) -> Vec<String> {
        self.log
    }

    /// Asks all there is to ask of a path, of the directory it is in, and of what was opened before.
    pub(crate) fn look(&mut self, path: &str) {
        let rel = if path.is_empty() { Rel::base() } else { Rel::from_harness(path).unwrap() };
        self.ask_handles(path);
        self.ask(path, &rel);
        if let Some(parent) = rel.parent() {
            self.list(parent.as_str(), &parent);
        }
    }

    fn ask(&mut self, path: &str, rel: &Rel) {
        let stat = self.host.stat(Root::Hermes, rel, Full);
        let stat_said = self.meta_of(&stat);
        self.note(format!("stat {path}: {stat_said}"));
        self.agrees(stat, self.host.stat(Root::Hermes, rel, Cached));

        for from in 0..=rel.depth() {
            let (answer, metas) = self.walk(rel, from, Full);
            let metas: Vec<String> = metas.iter().map(|meta| self.meta(meta)).collect();
            self.note(format!("walk {path} from {from}: {} {metas:?}", said(answer)));
        }
        let (answer, metas) = self.walk(rel, 0, Full);
        let (cached, some) = self.walk(rel, 0, Cached);
        self.agrees(answer, cached);
        assert!(metas.starts_with(&some) && (cached == Err(Errno::AGAIN) || some == metas));

        let opened = self.host.open(Root::Hermes, rel, Full);
        let meta = opened.as_ref().map(|(_, meta)| *meta).map_err(|&error| error);
        let opened_as = self.meta_of(&meta);
        self.note(format!("open {path}: {opened_as}"));
        let cached = self.host.open(Root::Hermes, rel, Cached).map(|(_, meta)| meta);
        self.agrees(meta.map(without_atime), cached.map(without_atime));
        if let Ok((file, _)) = opened {
            self.read(path, &*file);
            self.files.push(file);
        }
        self.list(path, rel);
        assert_eq!(self.host.read_link(&rel.clone()).err(), not_of_proc(rel), "{path}");
    }

    fn walk(&self, rel: &Rel, from: usize, effort: Effort) -> (Result<(), Errno>, Vec<Meta>) {
        let mut metas = Vec::new();
        let answer = self.host.walk(Root::Hermes, rel, from, effort, &mut |meta| metas.push(*meta));
        (answer, metas)
    }

    fn list(&mut self, path: &str, rel: &Rel) {
        match self.host.open_dir(Root::Hermes, rel) {
            Ok((dir, meta)) => {
                let meta = self.meta(&meta);
                self.note(format!("open_dir {path}: {meta}"));
                self.names(path, &*dir);
                self.dirs.push(dir);
            }
            Err(error) => self.note(format!("open_dir {path}: {}", said(Err(error)))),
        }
    }

    fn ask_handles(&mut self, path: &str) {
        let (files, dirs) = (std::mem::take(&mut self.files), std::mem::take(&mut self.dirs));
        for file in &files {
            let meta = self.meta_of(&file.meta());
            self.note(format!("open file {path}: {meta}"));
            self.read(path, &**file);
        }
        for dir in &dirs {
            self.names(path, &**dir);
        }
        // One of each is kept: what was opened first.
        self.files = files.into_iter().take(1).collect();
        self.dirs = dirs.into_iter().take(2).collect();
    }

    fn read(&mut self, path: &str, file: &dyn File) {
        for (offset, length) in [(0, 4096), (1, 3), (5, 1), (300_000, 10), (u64::MAX, 1), (0, 0)] {
            let mut buf = vec![0; length];
            let answer = file.read_at(&mut buf, offset, Full);
            buf.truncate(answer.unwrap_or_default());
            let mut again = vec![0; length];
            match file.read_at(&mut again, offset, Cached) {
                Err(Errno::AGAIN) => {}
                cached => {
                    assert_eq!(cached, answer, "{path}");
                    assert_eq!(again[..cached.unwrap_or_default()], buf, "{path}");
                }
            }
            self.note(format!("read {path} at {offset}: {} {}", said(answer.map(drop)), buf.escape_ascii()));
        }
    }

    fn names(&mut self, path: &str, dir: &dyn Dir) {
        let mut names = Vec::new();
        let answer = dir.names(&mut |name| {
            names.push(String::from_utf8(name.to_vec()).unwrap());
            true
        });
        names.sort();
        // Not every filesystem says that a directory was removed.
        let answer = if names.is_empty() { Ok(()) } else { answer };
        self.note(format!("names {path}: {} {names:?}", said(answer)));
        names.push("none".to_owned());
        for name in names {
            let meta = self.meta_of(&dir.stat(Name::of_harness(&name).unwrap()));
            self.note(format!("entry {name} of {path}: {meta}"));
        }
        let mut first = 0;
        let _ = dir.names(&mut |_| {
            first += 1;
            false
        });
        self.note(format!("names of {path} until the first: {first}"));
    }

    fn meta_of(&mut self, answer: &Result<Meta, Errno>) -> String {
        match answer {
            Ok(meta) => self.meta(meta),
            Err(error) => said(Err(*error)),
        }
    }

    /// What is said of a file, less what no two machines share.
    fn meta(&mut self, meta: &Meta) -> String {
        let identity = (meta.dev, meta.ino, meta.btime);
        let times = [meta.mtime, meta.ctime];
        let (number, moved) = match self.seen.iter().position(|(seen, _)| *seen == identity) {
            Some(at) => {
                let before = std::mem::replace(&mut self.seen[at].1, times);
                (at, [times[0].cmp(&before[0]), times[1].cmp(&before[1])].map(|order| order as i8))
            }
            None => {
                self.seen.push((identity, times));
                (self.seen.len() - 1, [0, 0])
            }
        };
        let kind = meta.kind;
        let size = if kind == Kind::File { meta.size } else { 0 };
        let links = if kind == Kind::Dir { meta.nlink.min(1) } else { meta.nlink };
        format!("{kind:?} #{number} size {size} links {links} moved {moved:?}")
    }

    /// What memory answers is what the disk would, or nothing.
    fn agrees<T: PartialEq + std::fmt::Debug>(&self, full: Result<T, Errno>, cached: Result<T, Errno>) {
        if cached != Err(Errno::AGAIN) {
            assert_eq!(cached, full, "{:?}", self.log.last());
        }
    }
}

fn without_atime(meta: Meta) -> Meta {
    Meta { atime: Time::default(), ..meta }
}

/// The error of asking for a link where only the process table has any.
fn not_of_proc(rel: &Rel) -> Option<Errno> {
    Some(if rel.name().is_none() { Errno::INVAL } else { Errno::NOENT })
}

/// An answer without a value, short.
pub(crate) fn said(answer: Result<(), Errno>) -> String {
    answer.map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}
