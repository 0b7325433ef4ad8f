//! What the machine in memory does that no two hosts can be compared in: its clocks, its processes, its script.

mod disk;
mod process;
mod script;
mod time;

use backend::host::fixture::{Bytes, Edit, Fixture, Process, World};
use backend::host::{Errno, Host, Meta};
use backend::name::{Name, Rel, Root};
use engine::port::Effort::Full;

/// A machine after some edits, each of which must be possible.
fn machine(edits: impl IntoIterator<Item = Edit>) -> Fixture {
    let fixture = Fixture::new(World::new());
    fixture.apply(&Edit::Mkdir { path: at("") }).unwrap();
    for edit in edits {
        done(&fixture, edit);
    }
    fixture
}

fn done(fixture: &Fixture, edit: Edit) {
    fixture.apply(&edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
}

fn at(path: &str) -> Bytes {
    format!("/home/me/.claude/{path}").trim_end_matches('/').into()
}

fn mkdir(path: &str) -> Edit {
    Edit::Mkdir { path: at(path) }
}

fn write(path: &str, bytes: &str) -> Edit {
    Edit::Write { path: at(path), bytes: bytes.into() }
}

fn unlink(path: &str) -> Edit {
    Edit::Unlink { path: at(path) }
}

fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename { from: at(from), to: at(to) }
}

fn start(process: Process) -> Edit {
    Edit::Start(Box::new(process))
}

fn rel(path: &str) -> Rel {
    if path.is_empty() { Rel::base() } else { Rel::from_harness(path).unwrap() }
}

fn name(name: &str) -> Name<'_> {
    Name::of_harness(name).unwrap()
}

fn stat(fixture: &Fixture, path: &str) -> Result<Meta, Errno> {
    fixture.stat(Root::Claude, &rel(path), Full)
}

fn read_of(fixture: &Fixture, root: Root, path: &str) -> Result<Vec<u8>, Errno> {
    let (file, _) = fixture.open(root, &rel(path), Full)?;
    let mut bytes = vec![0; 10_000];
    let length = file.read_at(&mut bytes, 0, Full)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn read(fixture: &Fixture, path: &str) -> Result<Vec<u8>, Errno> {
    read_of(fixture, Root::Claude, path)
}

fn list(fixture: &Fixture, root: Root, path: &str) -> Result<Vec<String>, Errno> {
    let (dir, _) = fixture.open_dir(root, &rel(path))?;
    let mut names = Vec::new();
    dir.names(&mut |name| {
        names.push(String::from_utf8_lossy(name).into_owned());
        true
    })?;
    Ok(names)
}
