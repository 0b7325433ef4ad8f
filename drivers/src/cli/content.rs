//! `cat`, `read` and `write`: the content of files.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use drivers::client::{Client, Error, Escaped, Pace, TreePath};

use super::arguments::{Dial, OnePath, Paths};
use super::connect::connect;
use super::desk::Desk;
use super::glob::expand;

/// Prints files, one after the other.
pub(super) fn cat(desk: &mut Desk, options: &Paths) -> io::Result<()> {
    let Some(mut client) = connected(desk, &options.dial) else { return Ok(()) };
    let mut progress = Progress::new();
    for spelled in &options.paths {
        let bytes = spelled.as_encoded_bytes();
        match expand(&mut client, bytes) {
            Ok(paths) => {
                for path in paths {
                    copy(desk, &mut client, &path, Pace::Ahead, &mut progress)?;
                    if client.is_lost() {
                        break;
                    }
                }
            }
            Err(error) => desk.complain(&Escaped(bytes), &error)?,
        }
    }
    Ok(())
}

/// Prints one file, in the pieces in which it comes.
pub(super) fn read(desk: &mut Desk, options: &OnePath) -> io::Result<()> {
    let Some(mut client) = connected(desk, &options.dial) else { return Ok(()) };
    copy(desk, &mut client, &literal(&options.path), Pace::Step, &mut Progress::none())
}

/// Replaces the content of one file with stdin.
pub(super) fn write(desk: &mut Desk, options: &OnePath) -> io::Result<()> {
    let Some(mut client) = connected(desk, &options.dial) else { return Ok(()) };
    let path = literal(&options.path);
    match client.write(&path, &mut io::stdin().lock()) {
        Ok(_) => Ok(()),
        Err(error) => desk.complain(&path, &error),
    }
}

fn copy(
    desk: &mut Desk,
    client: &mut Client,
    path: &TreePath,
    pace: Pace,
    progress: &mut Progress,
) -> io::Result<()> {
    let copied = client.read(path, pace, &mut |bytes| {
        desk.pass(bytes)?;
        progress.advance(bytes.len());
        Ok(())
    });
    progress.clear();
    match copied {
        Ok(_) => Ok(()),
        Err(Error::Sink(error)) => Err(error),
        Err(error) => desk.complain(path, &error),
    }
}

fn connected(desk: &mut Desk, dial: &Dial) -> Option<Client> {
    connect(desk, dial).map_err(|error| desk.lament(&error)).ok()
}

fn literal(path: &OsStr) -> TreePath {
    TreePath::parse(path.as_encoded_bytes())
}

/// How far a long copy has come, on stderr.
struct Progress {
    /// None is shown if this is none.
    began: Option<Instant>,
    shown: Option<Instant>,
    bytes: u64,
}

impl Progress {
    /// Shown only to somebody who does not see the content itself go by.
    fn new() -> Self {
        let watched = io::stderr().is_terminal() && !io::stdout().is_terminal();
        Self { began: watched.then(Instant::now), shown: None, bytes: 0 }
    }

    const fn none() -> Self {
        Self { began: None, shown: None, bytes: 0 }
    }

    fn advance(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        let Some(began) = self.began else { return };
        if began.elapsed() < QUIET_TIME || self.shown.is_some_and(|shown| shown.elapsed() < SHOW_TIME) {
            return;
        }
        self.shown = Some(Instant::now());
        let mib = self.bytes as f64 / f64::from(1 << 20);
        let _ =
            write!(io::stderr(), "\r{mib:.1} MiB, {:.1} MiB/s\x1b[K", mib / began.elapsed().as_secs_f64());
    }

    /// Leaves the line to whatever comes next.
    fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// How long a copy takes before anybody wonders.
const QUIET_TIME: Duration = Duration::from_secs(1);
/// How long a figure stands.
const SHOW_TIME: Duration = Duration::from_millis(200);
