//! A user's home, with files of every harness, and a runtime directory.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::binary::program;

/// A home of a test's own, which goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    base: PathBuf,
    /// What is to be served, by its path in the tree.
    served: BTreeMap<String, Vec<u8>>,
}

impl Home {
    /// One with nothing in it.
    pub(crate) fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // In another pid namespace may be a test of the same number.
        let base = loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            // Short, because the path of a socket is at most 107 bytes long.
            let base = std::env::temp_dir().join(format!("9e-{}-{number}", std::process::id()));
            match fs::create_dir(&base) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    made.expect("a temporary directory");
                    break base;
                }
            }
        };
        for directory in ["home", "run"] {
            fs::create_dir(base.join(directory)).expect("a directory");
        }
        fs::set_permissions(base.join("run"), fs::Permissions::from_mode(0o700)).expect("it is ours");
        Self { base, served: BTreeMap::new() }
    }

    /// One with some files.
    pub(crate) fn furnished() -> Self {
        let mut home = Self::empty();
        for (below, path, content) in FILES {
            home.serve(below, path, content.as_bytes());
        }
        home
    }

    /// Makes a file that is to be served as `path`, where it is `below` the home.
    pub(crate) fn serve(&mut self, below: &str, path: &str, content: &[u8]) {
        self.write(below, content);
        self.served.insert(path.to_owned(), content.to_vec());
    }

    /// Makes a file.
    pub(crate) fn write(&self, below: &str, content: &[u8]) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("a directory");
        fs::write(path, content).expect("a file");
    }

    /// What is to be served, by its path in the tree.
    pub(crate) fn served(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.served
    }

    /// A path in the home.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.base.join("home").join(below)
    }

    /// The runtime directory.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.base.join("run")
    }

    /// The socket of a posted name.
    pub(crate) fn posted(&self, name: &str) -> PathBuf {
        self.runtime().join("9p").join(name)
    }

    /// A place beside the home, for what a test makes itself.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// The command that runs the program here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.args(arguments).env("HOME", self.path("")).env("XDG_RUNTIME_DIR", self.runtime());
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the temporary directory.
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Where it is below the home, where it is in the tree, and what it holds.
const FILES: &[(&str, &str, &str)] = &[
    (
        ".claude/projects/-home-me-shop/5a1c.jsonl",
        "/claude/projects/-home-me-shop/5a1c.jsonl",
        "{\"n\":1}\n{\"n\":2}\n",
    ),
    (
        ".claude/projects/-home-me-shop/memory/notes.md",
        "/claude/projects/-home-me-shop/memory/notes.md",
        "# notes\n",
    ),
    (".claude/projects/-home-me-shop/empty.jsonl", "/claude/projects/-home-me-shop/empty.jsonl", ""),
    (".claude/history.jsonl", "/claude/history", "{\"display\":\"hello\"}\n"),
    (".claude/skills/draw/SKILL.md", "/claude/skills/draw/SKILL.md", "draw\n"),
    (
        ".codex/sessions/2025/01/31/rollout-2025-01-31T10-00-00-x.jsonl",
        "/codex/sessions/2025/01/31/rollout-2025-01-31T10-00-00-x.jsonl",
        "{}\n",
    ),
    (".codex/session_index.jsonl", "/codex/session-index", "{\"id\":\"x\"}\n"),
    (".codex/history.jsonl", "/codex/history", "{}\n"),
    (".omp/agent/sessions/-shop/s.jsonl", "/omp/sessions/-shop/s.jsonl", "{\"type\":\"session\"}\n"),
    (".hermes/logs/agent.log", "/hermes/logs/agent.log", "started\n"),
    (".dsh/ünï/日本語.txt", "/dsh/ünï/日本語.txt", "naïve\n"),
];
