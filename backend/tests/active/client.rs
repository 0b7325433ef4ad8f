//! Asks the tree by path, as a client would, and waits for jobs in a time of its own.

use backend::{Agents, Node, Open, Tree};
use engine::port::{Answer, Ask, Backend, Effort, Mode, Now, Outcome, Path, Progress, Room, Step};
use proto::{Dialect, Names, Qid, Refusal};

pub(crate) struct Client {
    tree: Agents,
    pub(crate) now: Now,
    /// How often an answer had to wait for a record that was being written.
    pub(crate) waits: u32,
    /// Done once, while an answer waits.
    pub(crate) meanwhile: Option<Box<dyn FnOnce()>>,
}

/// What is asked of a stat record here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) qid: Qid,
    pub(crate) mode: u32,
    pub(crate) length: u64,
    pub(crate) mtime: u32,
}

impl Client {
    pub(crate) fn new(tree: Agents) -> Self {
        let now = Now { mono_ns: 1_000_000_000, wall_ns: 1_800_000_000_000_000_000 };
        Self { tree, now, waits: 0, meanwhile: None }
    }

    fn perform(&mut self, ask: Ask<Tree>, mut room: Room<'_>) -> Outcome<Tree> {
        let ask = match self.tree.perform(ask, room.reborrow(), Effort::Cached, self.now) {
            Progress::Done(outcome) => return outcome,
            Progress::Cold(ask) => ask,
            Progress::Later(_) => panic!("a job before full effort"),
        };
        let mut job = match self.tree.perform(ask, room.reborrow(), Effort::Full, self.now) {
            Progress::Done(outcome) => return outcome,
            Progress::Later(job) => job,
            Progress::Cold(_) => panic!("full effort is not enough"),
        };
        self.waits += 1;
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile();
        }
        loop {
            match job.step(room.reborrow(), self.now) {
                Step::Done(outcome) => return outcome,
                Step::At(at_ns) => self.now.mono_ns = at_ns,
                Step::Again => {}
                Step::WhenRung(_) => panic!("nobody rings"),
            }
        }
    }

    pub(crate) fn node(&mut self, path: &str) -> Result<Node, Refusal> {
        let ask = Ask::Attach { uname: Box::default(), aname: Box::default(), local: true };
        let Answer::Attached { root, .. } = self.perform(ask, Room::of_bytes(&mut []))? else { panic!() };
        self.walk(&root, path)
    }

    pub(crate) fn walk(&mut self, from: &Node, path: &str) -> Result<Node, Refusal> {
        let mut wire = vec![0; 70_000];
        let names = path.split('/').filter(|name| !name.is_empty()).map(str::as_bytes);
        let names = Path::copy(Names::pack(names, &mut wire).unwrap());
        match self.perform(Ask::Walk { from: from.clone(), names }, Room::of_bytes(&mut []))? {
            Answer::Walked { end, .. } => end.ok_or(Refusal::NOT_FOUND),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn open(&mut self, node: &Node) -> Result<(Qid, Open), Refusal> {
        let mode = Mode { read: true, write: false, truncate: false };
        match self.perform(Ask::Open { node: node.clone(), mode }, Room::of_bytes(&mut []))? {
            Answer::Opened { qid, open, .. } => Ok((qid, open)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn read(&mut self, open: &Open) -> Result<String, Refusal> {
        let mut content = Vec::new();
        let mut buf = vec![0; 8192];
        loop {
            let ask = Ask::Read { open: open.clone(), offset: content.len() as u64 };
            match self.perform(ask, Room::of_bytes(&mut buf))? {
                Answer::Bytes(0) => return Ok(String::from_utf8(content).unwrap()),
                Answer::Bytes(bytes) => content.extend_from_slice(&buf[..bytes as usize]),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn stat_node(&mut self, node: &Node) -> Result<Record, Refusal> {
        let mut wire = vec![0; 8192];
        let ask = Ask::Stat { node: node.clone() };
        match self.perform(ask, Room::of_stat(Dialect::Plain, &mut wire))? {
            Answer::Stat { bytes } => Ok(records(&wire[..bytes as usize]).remove(0)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn stat(&mut self, path: &str) -> Result<Record, Refusal> {
        let node = self.node(path)?;
        self.stat_node(&node)
    }

    pub(crate) fn list(&mut self, path: &str) -> Result<Vec<Record>, Refusal> {
        let node = self.node(path)?;
        let (mut entries, mut from, open) = self.begin_list(&node)?;
        loop {
            let (more, next, _) = self.list_on(&open, from)?;
            if more.is_empty() {
                return Ok(entries);
            }
            entries.extend(more);
            from = next;
        }
    }

    /// Opens a directory and reads the first of it, and where the next begins. The listing is held as long as the open
    /// directory that is answered.
    pub(crate) fn begin_list(&mut self, node: &Node) -> Result<(Vec<Record>, u32, Open), Refusal> {
        let (_, open) = self.open(node)?;
        let (first, next, renewed) = self.list_on(&open, 0)?;
        Ok((first, next, renewed.unwrap_or(open)))
    }

    fn list_on(&mut self, open: &Open, from: u32) -> Result<(Vec<Record>, u32, Option<Open>), Refusal> {
        // Small, so that most directories take several reads.
        let mut wire = vec![0; 400];
        let ask = Ask::List { open: open.clone(), from };
        match self.perform(ask, Room::of_entries(Dialect::Plain, &mut wire))? {
            Answer::Listed { bytes, next, open } => Ok((records(&wire[..bytes as usize]), next, open)),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn ls(&mut self, path: &str) -> Vec<String> {
        self.list(path).unwrap().into_iter().map(|record| record.name).collect()
    }

    pub(crate) fn cat(&mut self, path: &str) -> Result<String, Refusal> {
        let node = self.node(path)?;
        let (_, open) = self.open(&node)?;
        self.read(&open)
    }

    /// The value of a field, without its newline.
    pub(crate) fn field(&mut self, harness: &str, pid: u32, field: &str) -> String {
        let text = self.cat(&format!("active/{harness}/{pid}/{field}")).unwrap();
        match text.strip_suffix('\n') {
            Some(value) => value.to_owned(),
            None => {
                assert_eq!(text, "");
                text
            }
        }
    }

    /// `via` and `session`.
    pub(crate) fn found(&mut self, harness: &str, pid: u32) -> (String, String) {
        let (via, session) = (self.field(harness, pid, "via"), self.field(harness, pid, "session"));
        assert_eq!(via == "none", session.is_empty(), "via is none if and only if there is no session");
        (via, session)
    }
}

fn records(mut wire: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    while !wire.is_empty() {
        let size = usize::from(u16::from_le_bytes([wire[0], wire[1]])) + 2;
        let (record, rest) = wire.split_at(size);
        wire = rest;
        let u32_at = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
        let name_len = usize::from(u16::from_le_bytes([record[41], record[42]]));
        found.push(Record {
            name: String::from_utf8(record[43..43 + name_len].to_vec()).unwrap(),
            qid: Qid::from_bytes(record[8..21].try_into().unwrap()),
            mode: u32_at(21),
            mtime: u32_at(29),
            length: u64::from_le_bytes(record[33..41].try_into().unwrap()),
        });
    }
    found
}
