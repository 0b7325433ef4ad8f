//! A server in a process of its own, with few descriptors.
//!
//! The process is this very program, started again with a variable in its environment: whoever wants to start children
//! calls [`play`] first thing.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use drivers::listen::Listener;
use drivers::server::Options;
use drivers::signals::Stop;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::disk::Disk;
use crate::line::Line;
use crate::rig::{Wire, World};
use crate::rigs::driver::Driver;
use crate::rigs::tree::tree;
use crate::world::Edit;

/// Serves, if this process was started to; returns at once otherwise, and after the end of the server `true`.
///
/// # Panics
/// If it cannot serve: the parent then sees that the child has ended.
pub fn play() -> bool {
    let Some(base) = std::env::var_os(BASE) else { return false };
    let limit = std::env::var(DESCRIPTORS).expect("a limit").parse().expect("a number");
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum: Some(limit) })
        .expect("a lower limit");
    let driver = std::env::var(DRIVER).ok().and_then(|name| Driver::named(&name)).expect("a driver");
    let disk = Disk::of_another(PathBuf::from(base));
    let listener = Listener::unix(&disk.socket()).expect("a socket");
    let stop = Arc::new(Stop::new().expect("a pipe"));
    let asked = Arc::clone(&stop);
    thread::spawn(move || {
        // The parent says nothing; its end, or its will, closes the pipe.
        let _ = std::io::stdin().read(&mut [0]);
        stop.ask();
    });
    println!("listening");
    driver.serve(&tree(&disk, limit as usize / 4), &[listener], &asked, &Options::default());
    true
}

/// The parent's side.
pub(super) struct Child {
    process: std::process::Child,
    disk: Disk,
}

impl Child {
    /// Starts a server over a world, and waits until it listens.
    pub(super) fn start(disk: Disk, descriptors: u64, driver: Driver) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this program"))
            .env(BASE, disk.base())
            .env(DESCRIPTORS, descriptors.to_string())
            .env(DRIVER, driver.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut said = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut said).expect("a line of the child");
        assert_eq!(said, "listening\n", "the child does not play the server");
        Self { process, disk }
    }
}

impl World for Child {
    fn connect(&self) -> Box<dyn Wire> {
        Box::new(Line::unix(&self.disk.socket()))
    }

    fn edit(&self, edit: &Edit) {
        self.disk.edit(edit);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.stdin = None;
        let ended = self.process.wait();
        if !thread::panicking() {
            assert!(ended.is_ok_and(|status| status.success()), "the server did not end well");
        }
    }
}

const BASE: &str = "NINEAGENTS_TEST_SERVER_BASE";
const DESCRIPTORS: &str = "NINEAGENTS_TEST_SERVER_DESCRIPTORS";
const DRIVER: &str = "NINEAGENTS_TEST_SERVER_DRIVER";
