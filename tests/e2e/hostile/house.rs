//! A home full of traps, and the list of what shows of it.
//!
//! Owns: what lies there and what may be seen of each thing. Must not know: how the tree is looked at.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, FileType, Mode, makedev};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use tests::names::{self, Line};

use crate::home::Home;

/// What shows of a place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Shown {
    pub(super) dir: bool,
    pub(super) length: u64,
    /// The first and last bytes of a file, nothing of a directory, or the number that an open or listing is refused with.
    pub(super) opens: Result<Vec<u8>, u32>,
}

/// The home, while it stands.
pub(super) struct House {
    pub(super) home: Home,
    /// What shows, by its path in the tree, and nothing else does.
    pub(super) shows: BTreeMap<Vec<u8>, Shown>,
    /// What must not resolve, though there is something.
    pub(super) hides: Vec<Vec<u8>>,
    /// What resolves though it cannot be listed, and holds [`INNOCENT`].
    pub(super) unlisted: Vec<Vec<u8>>,
    /// Pipes that nobody may ever open.
    pub(super) pipes: Vec<PathBuf>,
    mounts: Vec<(PathBuf, Mounted)>,
}

/// What is mounted on a place.
enum Mounted {
    /// Another directory or file.
    Bound(PathBuf),
    /// A filesystem of a type.
    New(&'static str),
}

/// A mirrored directory: where it is below the home, and in the tree.
struct Spot {
    root: &'static str,
    below: &'static str,
    trees: &'static [&'static str],
}

impl House {
    /// Builds it; `as_root` with what only root can make.
    pub(super) fn build(as_root: bool) -> Self {
        let mut house = Self {
            home: Home::empty(),
            shows: BTreeMap::new(),
            hides: Vec::new(),
            unlisted: Vec::new(),
            pipes: Vec::new(),
            mounts: Vec::new(),
        };
        house.outside();
        for spot in SPOTS {
            for tree in spot.trees {
                house.add(tree, DIRECTORY);
            }
            house.names(spot);
            house.odd_names(spot);
            house.links(spot);
            house.kinds(spot);
            house.closed(spot);
            if as_root {
                house.devices(spot);
                house.mounted(spot);
            }
        }
        house.roots();
        house
    }

    /// Mounts what is to be mounted, for this thread and what it starts from now on.
    pub(super) fn mount(&self) {
        unshare(CloneFlags::CLONE_NEWNS).expect("root may");
        let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        mount_change("/", private).expect("a namespace of our own");
        for (at, what) in &self.mounts {
            match what {
                Mounted::Bound(source) => mount_bind(source, at).expect("a mount"),
                Mounted::New(kind) => {
                    mount(*kind, at, *kind, MountFlags::empty(), None).expect("a mount");
                    if *kind == "tmpfs" {
                        fs::write(at.join("inside"), INNOCENT).expect("a file");
                        fs::write(at.join("id_rsa"), CANARY).expect("a file");
                        symlink(self.home.beside("outside"), at.join("link")).expect("a link");
                    }
                }
            }
        }
    }

    /// What no byte may come from.
    fn outside(&self) {
        let outside = self.home.beside("outside");
        fs::create_dir(&outside).expect("a directory");
        fs::write(outside.join("f"), CANARY).expect("a file");
        fs::create_dir(self.home.beside("neighbour")).expect("a directory");
        fs::write(self.home.beside("neighbour/inside"), INNOCENT).expect("a file");
        fs::write(self.home.beside("neighbour/.netrc"), CANARY).expect("a file");
    }

    /// Every name of the tables; hidden ones by turns as a file and as a directory with an innocent file inside.
    fn names(&mut self, spot: &Spot) {
        self.directory(spot, b"names");
        let (hidden, innocent) = (names::hidden(), names::innocent());
        let real = |lines: &[Line]| {
            let lines = names::of(lines, spot.root).into_iter().filter(|line| line.exists);
            lines.map(|line| [b"names/", &line.name[..]].concat()).collect::<Vec<_>>()
        };
        for (number, name) in real(&hidden).into_iter().enumerate() {
            let path = self.disk(spot, &name);
            if number % 2 == 0 {
                fs::write(path, CANARY).expect("a file");
                self.hide(spot, &name);
            } else {
                fs::create_dir(&path).expect("a directory");
                fs::write(path.join("inside"), CANARY).expect("a file");
                self.hide(spot, &[&name, &b"/inside"[..]].concat());
            }
        }
        for name in real(&innocent) {
            fs::write(self.disk(spot, &name), INNOCENT).expect("a file");
            self.show(spot, &name, file(INNOCENT));
        }
    }

    /// Names that programs stumble over. What is UTF-8 can be spoken.
    fn odd_names(&mut self, spot: &Spot) {
        self.directory(spot, b"odd");
        let long = [b'n'; 255];
        let wide = "é".repeat(127);
        for name in [
            &b"line\nfeed"[..],
            b"\x1b[31mred\x1b[0m",
            b"\x07\x08\x7f\x01",
            b"carriage\rreturn",
            "\u{9b}2J\u{202e}txt".as_bytes(),
            b"-rf",
            b"--help",
            b" ",
            b"*",
            b"%s%n",
            b"\\..\\..",
            b"...",
            b"'\"`$(id)",
            b"CON",
            b"c:\\x:y",
            &long,
            wide.as_bytes(),
        ] {
            let path = [b"odd/", name].concat();
            fs::write(self.disk(spot, &path), INNOCENT).expect("a file");
            self.show(spot, &path, file(INNOCENT));
        }
        for name in [&b"\xff"[..], b"odd-\xc0\xaf", b"\xed\xa0\x80", &[0xfe; 255]] {
            let path = [b"odd/", name].concat();
            fs::write(self.disk(spot, &path), CANARY).expect("a file");
            self.hide(spot, &path);
        }
    }

    /// Links of every kind, and the hard ones, which are files like any other.
    fn links(&mut self, spot: &Spot) {
        self.directory(spot, b"links");
        let outside = self.home.beside("outside");
        let target = |name: &str| outside.join(name).into_os_string().into_encoded_bytes();
        let links: [(&str, &[u8]); 15] = [
            ("absolute", &target("f")),
            ("directory", &target("")),
            ("shadow", b"/etc/shadow"),
            ("process", b"/proc/self"),
            ("environment", b"/proc/self/environ"),
            ("descriptor", b"/proc/self/fd/0"),
            ("root", b"/"),
            ("up", b"../.."),
            ("sibling", b"real"),
            ("here", b"."),
            ("dangling", b"nowhere"),
            ("itself", b"itself"),
            ("loop-a", b"loop-b"),
            ("loop-b", b"loop-a"),
            ("chain", b"absolute"),
        ];
        for (name, to) in links {
            let path = [b"links/", name.as_bytes()].concat();
            symlink(OsStr::from_bytes(to), self.disk(spot, &path)).expect("a link");
            self.hide(spot, &path);
            self.hide(spot, &[&path[..], b"/f"].concat());
        }
        fs::write(self.disk(spot, b"links/real"), INNOCENT).expect("a file");
        self.show(spot, b"links/real", file(INNOCENT));
        let hard = |this: &Self, from: &[u8], to: &[u8]| {
            fs::hard_link(this.disk(spot, from), this.disk(spot, to)).expect("a hard link");
        };
        hard(self, b"links/real", b"links/again");
        self.show(spot, b"links/again", file(INNOCENT));
        hard(self, b"links/real", b"links/.credentials.json");
        self.hide(spot, b"links/.credentials.json");
    }

    /// What is no plain small file.
    fn kinds(&mut self, spot: &Spot) {
        self.directory(spot, b"kinds");
        let made = [("pipe.jsonl", FileType::Fifo), ("socket.jsonl", FileType::Socket)];
        for (name, kind) in made {
            let path = [b"kinds/", name.as_bytes()].concat();
            rustix::fs::mknodat(CWD, self.disk(spot, &path), kind, Mode::RWXU, 0).expect("anyone may");
            self.show(spot, &path, refused(0, EPERM));
        }
        self.pipes.push(self.disk(spot, b"kinds/pipe.jsonl"));
        for (name, magic) in DATABASES {
            let path = [b"kinds/", name.as_bytes()].concat();
            let content = [magic, CANARY].concat();
            fs::write(self.disk(spot, &path), &content).expect("a file");
            self.show(spot, &path, refused(content.len() as u64, EPERM));
        }
        let sparse = File::create(self.disk(spot, b"kinds/vast.jsonl")).expect("a file");
        if sparse.write_all_at(b"the end", VAST).is_ok() {
            let mut ends = vec![0; 2 * END as usize];
            ends[2 * END as usize - 7..].copy_from_slice(b"the end");
            let shown = Shown { dir: false, length: VAST + 7, opens: Ok(ends) };
            self.show(spot, b"kinds/vast.jsonl", shown);
        } else {
            // The filesystem has no such sizes.
            fs::remove_file(self.disk(spot, b"kinds/vast.jsonl")).expect("it is there");
        }
    }

    /// What the server has no right to.
    fn closed(&mut self, spot: &Spot) {
        self.directory(spot, b"closed");
        let close = |this: &Self, path: &[u8], mode| {
            fs::set_permissions(this.disk(spot, path), fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        for path in [&b"closed/file"[..], b"closed/dir/f", b"closed/mute/f", b"closed/barred/f"] {
            let disk = self.disk(spot, path);
            fs::create_dir_all(disk.parent().expect("a directory")).expect("a directory");
            fs::write(disk, INNOCENT).expect("a file");
        }
        close(self, b"closed/file", 0o000);
        self.show(spot, b"closed/file", refused(INNOCENT.len() as u64, EACCES));
        // May neither be listed nor entered; be entered alone; be listed alone, and what is listed may not be looked at.
        for (path, mode) in [(&b"closed/dir"[..], 0o000), (b"closed/mute", 0o111), (b"closed/barred", 0o444)]
        {
            close(self, path, mode);
            self.show(spot, path, Shown { dir: true, ..refused(0, EACCES) });
        }
        self.hide(spot, b"closed/dir/f");
        self.hide(spot, b"closed/barred/f");
        self.unlisted.extend(spot.trees.iter().map(|tree| format!("{tree}/closed/mute/f").into_bytes()));
    }

    fn devices(&mut self, spot: &Spot) {
        self.directory(spot, b"devices");
        let devices: [(&[u8], FileType, (u32, u32)); 3] = [
            (b"devices/zero", FileType::CharacterDevice, (1, 5)),
            (b"devices/tty", FileType::CharacterDevice, (5, 0)),
            (b"devices/disk", FileType::BlockDevice, (7, 0)),
        ];
        for (path, kind, (major, minor)) in devices {
            let made =
                rustix::fs::mknodat(CWD, self.disk(spot, path), kind, Mode::all(), makedev(major, minor));
            if made.is_ok() {
                self.show(spot, path, refused(0, EPERM));
            }
        }
    }

    /// Mount points: of disks and memory they are entered, of the kernel's own they are not there.
    fn mounted(&mut self, spot: &Spot) {
        self.directory(spot, b"mounts");
        let point = |this: &mut Self, name: &[u8], what: Mounted| {
            let path = [b"mounts/", name].concat();
            let disk = this.disk(spot, &path);
            fs::create_dir(&disk).expect("a directory");
            fs::write(disk.join("underneath"), CANARY).expect("a file");
            this.mounts.push((disk, what));
            path
        };
        let bound = Mounted::Bound(self.home.beside("neighbour"));
        for path in [point(self, b"bound", bound), point(self, b"memory", Mounted::New("tmpfs"))] {
            self.show(spot, &path, DIRECTORY);
            self.show(spot, &[&path[..], b"/inside"].concat(), file(INNOCENT));
            for hidden in [&b"/.netrc"[..], b"/id_rsa", b"/link", b"/link/f", b"/underneath"] {
                self.hide(spot, &[&path[..], hidden].concat());
            }
        }
        for kind in ["proc", "sysfs", "devpts"] {
            let path = point(self, kind.as_bytes(), Mounted::New(kind));
            for below in ["", "/self", "/self/environ", "/kernel", "/ptmx"] {
                self.hide(spot, &[&path[..], below.as_bytes()].concat());
            }
        }
        let path = point(self, b"machine", Mounted::Bound("/proc".into()));
        self.hide(spot, &[&path[..], b"/self"].concat());
        // A single file, in place of another.
        fs::write(self.disk(spot, b"mounts/file"), CANARY).expect("a file");
        self.mounts
            .push((self.disk(spot, b"mounts/file"), Mounted::Bound(self.home.beside("neighbour/inside"))));
        self.show(spot, b"mounts/file", file(INNOCENT));
    }

    /// What stands beside the mirrored directories.
    fn roots(&mut self) {
        for below in [
            ".claude/.credentials.json",
            ".claude/settings.json",
            ".claude/todos/x",
            ".claude/sessions/1.json",
            ".claude.json",
            ".codex/auth.json",
            ".codex/config.toml",
            ".codex/projects/x",
            ".omp/x",
        ] {
            self.home.write(below, CANARY);
        }
        for path in [
            "/claude/.credentials.json",
            "/claude/todos",
            "/claude/sessions",
            "/codex/auth.json",
            "/codex/projects",
            "/omp/agent",
            "/.claude",
        ] {
            self.hides.push(path.into());
        }
        // What the tree has an entry for must be a file, if it is there at all.
        self.home.write("history", CANARY);
        symlink("../history", self.home.path(".claude/history.jsonl")).expect("a link");
        fs::create_dir(self.home.path(".codex/session_index.jsonl")).expect("a directory");
        let pipe = self.home.path(".codex/history.jsonl");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("anyone may");
        self.pipes.push(pipe);
        for path in ["/claude/history", "/codex/session-index", "/codex/history"] {
            self.hides.push(path.into());
        }
        // A base is configuration and may be a link.
        fs::rename(self.home.path(".dsh"), self.home.beside("dsh")).expect("a new name");
        symlink("../dsh", self.home.path(".dsh")).expect("a link");
        for fixed in ["", "/claude", "/codex", "/skills", "/active"] {
            self.add(fixed, DIRECTORY);
        }
        for harness in ["claude", "codex", "dsh", "hermes", "omp"] {
            self.add(&format!("/active/{harness}"), DIRECTORY);
        }
    }

    /// Makes a directory that shows.
    fn directory(&mut self, spot: &Spot, path: &[u8]) {
        fs::create_dir_all(self.disk(spot, path)).expect("a directory");
        self.show(spot, path, DIRECTORY);
    }

    fn show(&mut self, spot: &Spot, path: &[u8], shown: Shown) {
        for tree in spot.trees {
            self.shows.insert([tree.as_bytes(), b"/", path].concat(), shown.clone());
        }
    }

    fn hide(&mut self, spot: &Spot, path: &[u8]) {
        for tree in spot.trees {
            self.hides.push([tree.as_bytes(), b"/", path].concat());
        }
    }

    fn add(&mut self, path: &str, shown: Shown) {
        self.shows.insert(path.into(), shown);
    }

    fn disk(&self, spot: &Spot, path: &[u8]) -> PathBuf {
        self.home.path(spot.below).join(OsStr::from_bytes(path))
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // A user other than root may not empty what is closed, before it is opened again.
        let spots = SPOTS.iter().map(|spot| self.home.path(spot.below).join("closed"));
        let _ = Command::new("chmod").args(["-R", "u+rwx"]).args(spots).status();
    }
}

fn file(content: &[u8]) -> Shown {
    Shown { dir: false, length: content.len() as u64, opens: Ok(content.to_vec()) }
}

fn refused(length: u64, errno: u32) -> Shown {
    Shown { dir: false, length, opens: Err(errno) }
}

const DIRECTORY: Shown = Shown { dir: true, length: 0, opens: Ok(Vec::new()) };

const SPOTS: &[Spot] = &[
    Spot { root: "claude", below: ".claude/projects", trees: &["/claude/projects"] },
    Spot { root: "claude", below: ".claude/skills", trees: &["/claude/skills", "/skills/claude"] },
    Spot { root: "codex", below: ".codex/sessions", trees: &["/codex/sessions"] },
    Spot { root: "codex", below: ".codex/skills", trees: &["/skills/codex"] },
    Spot { root: "omp", below: ".omp/agent", trees: &["/omp"] },
    Spot { root: "omp", below: ".omp/agent/skills", trees: &["/omp/skills", "/skills/omp"] },
    Spot { root: "hermes", below: ".hermes", trees: &["/hermes"] },
    Spot { root: "dsh", below: ".dsh", trees: &["/dsh"] },
];

/// Begins with the magic of a database, a write-ahead log of either kind, or a journal.
const DATABASES: [(&str, &[u8]); 4] = [
    ("notes.md", b"SQLite format 3\0"),
    ("wal", b"\x37\x7f\x06\x82"),
    ("wal.jsonl", b"\x37\x7f\x06\x83"),
    ("journal.txt", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"),
];

/// What innocent files hold.
pub(super) const INNOCENT: &[u8] = b"seen\n";
/// What nobody may ever be sent.
pub(super) const CANARY: &[u8] = b"a canary that must not leave\n";
/// As much of a file is read at either end.
pub(super) const END: u32 = 4096;
/// Where the data of a file begins that is otherwise a hole.
const VAST: u64 = 1 << 40;
const EPERM: u32 = 1;
const EACCES: u32 = 13;
