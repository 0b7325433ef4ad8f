//! Asks the tree as an engine does: first for what is at hand, then, if that is cold, with full effort.

use std::sync::Arc;

use backend::host::Host;
use backend::{Agents, Limits, Node, Open, Tree};
use engine::port::{Answer, Ask, Backend, Effort, Mode, Now, Outcome, Path, Progress, Room};
use proto::{Dialect, Names, Qid, Refusal};

use crate::machine::Machine;

pub(crate) struct Client {
    tree: Agents,
    pub(crate) now: Now,
    /// How often an answer took full effort.
    pub(crate) cold: u32,
    pub(crate) dialect: Dialect,
}

/// A stat record with its own strings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Record {
    pub(crate) qid: Qid,
    pub(crate) mode: u32,
    pub(crate) atime: u32,
    pub(crate) mtime: u32,
    pub(crate) length: u64,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) gid: String,
    pub(crate) muid: String,
    pub(crate) wire: Vec<u8>,
}

pub(crate) const READ: Mode = Mode { read: true, write: false, truncate: false };

impl Client {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self::with_pins(machine, 64)
    }

    pub(crate) fn with_pins(machine: &Machine, pinned_descriptors: usize) -> Self {
        Self::over(Arc::new(machine.clone()), pinned_descriptors)
    }

    pub(crate) fn over(host: Arc<dyn Host>, pinned_descriptors: usize) -> Self {
        let now = host.now();
        let tree = Agents::new(host, Limits { pinned_descriptors });
        Self { tree, now, cold: 0, dialect: Dialect::Plain }
    }

    /// Lets time go by.
    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.now.mono_ns += ms * 1_000_000;
        self.now.wall_ns += ms as i64 * 1_000_000;
    }

    pub(crate) fn perform(&mut self, ask: Ask<Tree>, mut room: Room<'_>) -> Outcome<Tree> {
        let ask = match self.tree.perform(ask, room.reborrow(), Effort::Cached, self.now) {
            Progress::Done(outcome) => return outcome,
            Progress::Cold(ask) => ask,
            Progress::Later(_) => panic!("a job"),
        };
        self.cold += 1;
        match self.tree.perform(ask, room, Effort::Full, self.now) {
            Progress::Done(outcome) => outcome,
            Progress::Cold(_) | Progress::Later(_) => panic!("full effort is not enough"),
        }
    }

    pub(crate) fn attach(&mut self, aname: &str) -> Result<(Qid, Node), Refusal> {
        let ask = Ask::Attach { uname: Box::default(), aname: aname.as_bytes().into(), local: true };
        match self.perform(ask, Room::of_bytes(&mut []))? {
            Answer::Attached { qid, root } => Ok((qid, root)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn root(&mut self) -> Node {
        self.attach("").unwrap().1
    }

    /// Walks names with `/` between them. A partial walk has no end.
    pub(crate) fn walk(&mut self, from: &Node, names: &str) -> Result<(Vec<Qid>, Option<Node>), Refusal> {
        let names: Vec<&[u8]> = names.split('/').map(str::as_bytes).collect();
        self.walk_names(from, &names)
    }

    pub(crate) fn walk_names(
        &mut self,
        from: &Node,
        names: &[&[u8]],
    ) -> Result<(Vec<Qid>, Option<Node>), Refusal> {
        let mut wire = vec![0; 70_000];
        let names = Path::copy(Names::pack(names.iter().copied(), &mut wire).unwrap());
        let ask = Ask::Walk { from: from.clone(), names };
        match self.perform(ask, Room::of_bytes(&mut []))? {
            Answer::Walked { qids, end } => {
                Ok((qids.wire().iter().map(|bytes| Qid::from_bytes(*bytes)).collect(), end))
            }
            other => panic!("{other:?}"),
        }
    }

    /// The node at a path of the tree, and its qid.
    pub(crate) fn find(&mut self, path: &str) -> Result<(Qid, Node), Refusal> {
        let root = self.root();
        let (qids, end) = self.walk(&root, path)?;
        end.map(|node| (*qids.last().unwrap(), node)).ok_or(Refusal::NOT_FOUND)
    }

    pub(crate) fn node(&mut self, path: &str) -> Node {
        self.find(path).unwrap().1
    }

    pub(crate) fn stat(&mut self, node: &Node) -> Result<Record, Refusal> {
        let mut space = [0; 4096];
        let dialect = self.dialect;
        let ask = Ask::Stat { node: node.clone() };
        match self.perform(ask, Room::of_stat(dialect, &mut space))? {
            Answer::Stat { bytes } => Ok(record(&space[..bytes as usize], dialect)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stat_path(&mut self, path: &str) -> Result<Record, Refusal> {
        let (_, node) = self.find(path)?;
        self.stat(&node)
    }

    pub(crate) fn open(&mut self, node: &Node, mode: Mode) -> Result<(Qid, Open, bool), Refusal> {
        match self.perform(Ask::Open { node: node.clone(), mode }, Room::of_bytes(&mut []))? {
            Answer::Opened { qid, open, list } => Ok((qid, open, list)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn open_path(&mut self, path: &str) -> Result<Open, Refusal> {
        let (_, node) = self.find(path)?;
        Ok(self.open(&node, READ)?.1)
    }

    pub(crate) fn read(&mut self, open: &Open, offset: u64, count: usize) -> Result<Vec<u8>, Refusal> {
        let mut space = vec![0xee; count];
        let ask = Ask::Read { open: open.clone(), offset };
        match self.perform(ask, Room::of_bytes(&mut space))? {
            Answer::Bytes(bytes) => {
                space.truncate(bytes as usize);
                Ok(space)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The whole of a file, as text.
    pub(crate) fn cat(&mut self, path: &str) -> Result<String, Refusal> {
        let open = self.open_path(path)?;
        let mut text = Vec::new();
        loop {
            let piece = self.read(&open, text.len() as u64, 7)?;
            if piece.is_empty() {
                return Ok(String::from_utf8(text).unwrap());
            }
            text.extend(piece);
        }
    }

    /// One directory read of at most `count` bytes: its records, the next index, and the handle from then on.
    pub(crate) fn list(
        &mut self,
        open: &Open,
        from: u32,
        count: usize,
    ) -> Result<(Vec<Record>, u32, Open), Refusal> {
        let mut space = vec![0; count];
        let dialect = self.dialect;
        let ask = Ask::List { open: open.clone(), from };
        match self.perform(ask, Room::of_entries(dialect, &mut space))? {
            Answer::Listed { bytes, next, open: anew } => {
                let mut rest = &space[..bytes as usize];
                let mut records = Vec::new();
                while let [low, high, ..] = rest {
                    let (one, others) = rest.split_at(2 + usize::from(u16::from_le_bytes([*low, *high])));
                    records.push(record(one, dialect));
                    rest = others;
                }
                Ok((records, next, anew.unwrap_or_else(|| open.clone())))
            }
            other => panic!("{other:?}"),
        }
    }

    /// All records of a directory, in reads of `count` bytes.
    pub(crate) fn ls(&mut self, path: &str, count: usize) -> Result<Vec<Record>, Refusal> {
        let mut open = if path.is_empty() {
            let root = self.root();
            self.open(&root, READ)?.1
        } else {
            self.open_path(path)?
        };
        let (mut all, mut from) = (Vec::new(), 0);
        loop {
            let (records, next, anew) = self.list(&open, from, count)?;
            if records.is_empty() {
                return Ok(all);
            }
            all.extend(records);
            (from, open) = (next, anew);
        }
    }

    pub(crate) fn names(&mut self, path: &str) -> Vec<String> {
        self.ls(path, 8192).unwrap().into_iter().map(|record| record.name).collect()
    }
}

fn record(wire: &[u8], dialect: Dialect) -> Record {
    let stat = proto::Stat::decode(wire, dialect).unwrap();
    let text = |bytes: &[u8]| str::from_utf8(bytes).unwrap().to_owned();
    Record {
        qid: stat.qid,
        mode: stat.mode,
        atime: stat.atime,
        mtime: stat.mtime,
        length: stat.length,
        name: text(stat.name),
        uid: text(stat.uid),
        gid: text(stat.gid),
        muid: text(stat.muid),
        wire: wire.to_vec(),
    }
}
