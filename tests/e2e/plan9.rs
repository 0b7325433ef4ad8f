//! plan9port's `9p`, request for request, against the posted name.
//!
//! The frames are made and taken apart here by hand, from the manual pages of section 5 alone, so that no mistake of the
//! codec can hide by being made twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::daemon::{Daemon, PATIENCE};
use crate::home::Home;

#[test]
fn every_entry_of_a_posted_tree_is_read_as_plan9port_reads_it() {
    let mut home = Home::furnished();
    home.serve(
        ".hermes/long.txt",
        "/hermes/long.txt",
        &(0..200_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>(),
    );
    for number in 0..300 {
        let path = format!("many/{number:03}{}", "n".repeat(number % 60));
        home.serve(&format!(".hermes/{path}"), &format!("/hermes/{path}"), path.as_bytes());
    }
    let deep = "deep/".repeat(40) + "end";
    home.serve(&format!(".dsh/{deep}"), &format!("/dsh/{deep}"), b"the end");
    home.write(".claude/skills/draw/api_key.txt", b"no");
    home.write(".claude/settings.json", b"no");
    home.write(".hermes/auth.json", b"no");
    symlink("long.txt", home.path(".hermes/link.txt")).unwrap();
    mknodat(CWD, home.path(".hermes/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _daemon = Daemon::start(&mut home.command(&["--proc", "/nonexistent"]));

    let mut found = Found::default();
    Plan9::dial(&home.posted("agents")).visit("/", &mut found);

    assert_eq!(found.unopened, ["/hermes/pipe"], "what is no file is listed, and not read");
    let own = ["/README", "/pid", "/uptime"];
    let (own, files): (BTreeMap<_, _>, BTreeMap<_, _>) =
        found.files.into_iter().partition(|(path, _)| own.contains(&path.as_str()));
    assert_eq!(own.len(), 3);
    let mut expected = home.served().clone();
    expected.insert("/skills/claude/draw/SKILL.md".to_owned(), b"draw\n".to_vec());
    assert_eq!(files.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (path, content) in &expected {
        assert!(files[path] == *content, "{path} is read byte for byte");
    }
    for directory in
        ["/claude", "/codex", "/omp", "/hermes", "/dsh", "/skills", "/active/claude", "/active/dsh"]
    {
        assert!(found.directories.contains(directory), "{directory}");
    }
}

#[test]
fn the_first_frames_are_these_bytes() {
    let home = Home::empty();
    let _daemon = Daemon::start(&mut home.command(&[]));
    let mut stream = connect(&home.posted("agents"));
    // size[4] Tversion tag[2] msize[4] version[s]
    let version = b"\x13\0\0\0\x64\xff\xff\0\x20\0\0\x06\x009P2000";
    stream.write_all(version).unwrap();
    assert_eq!(frame(&mut stream), b"\x13\0\0\0\x65\xff\xff\0\x20\0\0\x06\x009P2000");
    // size[4] Tauth tag[2] afid[4] uname[s] aname[s]
    stream.write_all(b"\x12\0\0\0\x66\x01\0\x07\0\0\0\x03\0bob\0\0").unwrap();
    assert_eq!(frame(&mut stream), b"\x24\0\0\0\x6b\x01\0\x1b\0authentication not required");
    // size[4] Tattach tag[2] fid[4] afid[4] uname[s] aname[s]
    stream.write_all(b"\x16\0\0\0\x68\x02\0\0\0\0\0\xff\xff\xff\xff\x03\0bob\0\0").unwrap();
    let attached = frame(&mut stream);
    assert_eq!(attached[..8], *b"\x14\0\0\0\x69\x02\0\x80");
    assert_eq!(attached.len(), 20);
}

/// What there is in a tree.
#[derive(Default)]
struct Found {
    directories: BTreeSet<String>,
    files: BTreeMap<String, Vec<u8>>,
    unopened: Vec<String>,
}

/// The client of `9p`: one request at a time, on tag 1, and fids that count up. It never clunks the root.
struct Plan9 {
    stream: UnixStream,
    next: u32,
}

impl Plan9 {
    /// What `9p` does first, with `-a`.
    fn dial(socket: &Path) -> Self {
        let mut client = Self { stream: connect(socket), next: 1 };
        let version = client.call(TVERSION, NOTAG, &[&8192_u32.to_le_bytes(), &string("9P2000")]);
        assert_eq!(version, [&8192_u32.to_le_bytes()[..], &string("9P2000")].concat());
        let names = [string("glenda"), string("")].concat();
        client.refused(TAUTH, &[&1_u32.to_le_bytes(), &names]);
        client.call(TATTACH, 1, &[&ROOT.to_le_bytes(), &NOFID.to_le_bytes(), &names]);
        client
    }

    /// Reads whatever is at `path` and below.
    fn visit(&mut self, path: &str, found: &mut Found) {
        let stat = self.stat(path);
        assert!(path.ends_with(&stat.name), "{} at {path}", stat.name);
        if stat.mode & DMDIR == 0 {
            match self.read(path) {
                Ok(content) => {
                    let moves = path == "/uptime";
                    assert!(
                        moves || stat.length == content.len() as u64,
                        "{path} is as long as its stat says"
                    );
                    found.files.insert(path.to_owned(), content);
                }
                Err(words) => {
                    assert_eq!(words, "not a regular file: opening is not permitted");
                    found.unopened.push(path.to_owned());
                }
            }
            return;
        }
        found.directories.insert(path.to_owned());
        for entry in self.list(path) {
            let below = format!("{}/{}", path.trim_end_matches('/'), entry.name);
            let stat = self.stat(&below);
            assert!(
                stat == entry || below == "/uptime",
                "a listing has what a stat tells: {stat:?} {entry:?}"
            );
            self.visit(&below, found);
        }
    }

    /// `9p stat`: walk, stat, clunk.
    fn stat(&mut self, path: &str) -> Stat {
        let fid = self.walk(path);
        let reply = self.call(TSTAT, 1, &[&fid.to_le_bytes()]);
        self.call(TCLUNK, 1, &[&fid.to_le_bytes()]);
        let (size, record) = reply.split_at(2);
        assert_eq!(u16::from_le_bytes([size[0], size[1]]) as usize, record.len());
        let mut rest = record;
        let stat = Stat::take(&mut rest);
        assert!(rest.is_empty());
        stat
    }

    /// `9p read`: walk, open, 4096 bytes at a time until there are none, clunk.
    fn read(&mut self, path: &str) -> Result<Vec<u8>, String> {
        let fid = self.walk(path);
        let content = self.open(fid).map(|()| self.read_all(fid, 4096));
        self.call(TCLUNK, 1, &[&fid.to_le_bytes()]);
        content
    }

    /// `9p ls` of a directory.
    fn list(&mut self, path: &str) -> Vec<Stat> {
        let fid = self.walk(path);
        self.open(fid).expect("a directory opens");
        let content = self.read_all(fid, 8168);
        self.call(TCLUNK, 1, &[&fid.to_le_bytes()]);
        let mut rest = &content[..];
        let mut entries = Vec::new();
        while !rest.is_empty() {
            entries.push(Stat::take(&mut rest));
        }
        entries
    }

    /// One Twalk of all the names, or of 16 at a time.
    fn walk(&mut self, path: &str) -> u32 {
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let newfid = self.next;
        self.next += 1;
        let mut fid = ROOT;
        let mut legs = names.chunks(16).collect::<Vec<_>>();
        if legs.is_empty() {
            legs.push(&[]);
        }
        for leg in legs {
            let mut body = [fid.to_le_bytes(), newfid.to_le_bytes()].concat();
            body.extend((leg.len() as u16).to_le_bytes());
            leg.iter().for_each(|name| body.extend(string(name)));
            let reply = self.call(TWALK, 1, &[&body]);
            assert_eq!(reply.len(), 2 + 13 * leg.len(), "{path} is walked to its end");
            fid = newfid;
        }
        newfid
    }

    fn open(&mut self, fid: u32) -> Result<(), String> {
        let reply = self.ask(TOPEN, 1, &[&fid.to_le_bytes(), &[OREAD]])?;
        assert_eq!(reply.len(), 13 + 4);
        Ok(())
    }

    fn read_all(&mut self, fid: u32, count: u32) -> Vec<u8> {
        let mut content = Vec::new();
        loop {
            let offset = (content.len() as u64).to_le_bytes();
            let reply = self.call(TREAD, 1, &[&fid.to_le_bytes(), &offset, &count.to_le_bytes()]);
            let (length, data) = reply.split_first_chunk::<4>().unwrap();
            assert_eq!(u32::from_le_bytes(*length) as usize, data.len());
            assert!(data.len() <= count as usize);
            if data.is_empty() {
                return content;
            }
            content.extend_from_slice(data);
        }
    }

    fn refused(&mut self, kind: u8, body: &[&[u8]]) {
        self.ask(kind, 1, body).expect_err("it is refused");
    }

    #[track_caller]
    fn call(&mut self, kind: u8, tag: u16, body: &[&[u8]]) -> Vec<u8> {
        self.ask(kind, tag, body)
            .unwrap_or_else(|words| panic!("a request of type {kind} is refused: {words}"))
    }

    /// One request; yields the body of its reply, or the words of an Rerror.
    #[track_caller]
    fn ask(&mut self, kind: u8, tag: u16, body: &[&[u8]]) -> Result<Vec<u8>, String> {
        let body = body.concat();
        let mut request = ((7 + body.len()) as u32).to_le_bytes().to_vec();
        request.push(kind);
        request.extend(tag.to_le_bytes());
        request.extend(body);
        self.stream.write_all(&request).unwrap();
        let reply = frame(&mut self.stream);
        assert_eq!(reply[5..7], tag.to_le_bytes());
        match reply[4] {
            RERROR => Err(take_string(&mut &reply[7..])),
            answer => {
                assert_eq!(answer, kind + 1);
                Ok(reply[7..].to_vec())
            }
        }
    }
}

/// A stat record, stat(5).
#[derive(Debug, Eq, PartialEq)]
struct Stat {
    qid: [u8; 13],
    mode: u32,
    mtime: u32,
    length: u64,
    name: String,
    names: [String; 3],
}

impl Stat {
    /// Takes a record off the front: size[2] type[2] dev[4] qid[13] mode[4] atime[4] mtime[4] length[8], and four strings
    /// that fill the rest of it.
    fn take(bytes: &mut &[u8]) -> Self {
        let size = usize::from(u16::from_le_bytes(take(bytes)));
        let (record, rest) = bytes.split_at(size);
        *bytes = rest;
        let mut record = &record[6..];
        let qid = take(&mut record);
        let mode = u32::from_le_bytes(take(&mut record));
        record = &record[4..];
        let mtime = u32::from_le_bytes(take(&mut record));
        let length = u64::from_le_bytes(take(&mut record));
        let [name, uid, gid, muid] = [(); 4].map(|()| take_string(&mut record));
        assert!(record.is_empty(), "exactly four strings");
        Self { qid, mode, mtime, length, name, names: [uid, gid, muid] }
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The next frame, whole.
fn frame(stream: &mut UnixStream) -> Vec<u8> {
    let mut size = [0; 4];
    stream.read_exact(&mut size).expect("a reply");
    let mut frame = size.to_vec();
    frame.resize(u32::from_le_bytes(size) as usize, 0);
    stream.read_exact(&mut frame[4..]).expect("the rest of a reply");
    frame
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

fn take_string(bytes: &mut &[u8]) -> String {
    let length = usize::from(u16::from_le_bytes(take(bytes)));
    let (text, rest) = bytes.split_at(length);
    *bytes = rest;
    String::from_utf8(text.to_vec()).unwrap()
}

fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (head, rest) = bytes.split_first_chunk().unwrap();
    *bytes = rest;
    *head
}

const ROOT: u32 = 0;
const NOFID: u32 = !0;
const NOTAG: u16 = !0;
const OREAD: u8 = 0;
const DMDIR: u32 = 0x8000_0000;

const TVERSION: u8 = 100;
const TAUTH: u8 = 102;
const TATTACH: u8 = 104;
const RERROR: u8 = 107;
const TWALK: u8 = 110;
const TOPEN: u8 = 112;
const TREAD: u8 = 116;
const TCLUNK: u8 = 120;
const TSTAT: u8 = 124;
