//! The user's own home, looked at and not touched.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use proto::Dialect;
use rustix::process::Signal;
use tests::check::{BULK, Client, refused, why};
use tests::fitness::skip;

use crate::binary::program;
use crate::daemon::{Daemon, client};
use crate::home::Home;
use crate::tell;

#[test]
fn the_user_s_own_home_is_served() {
    let Some(user) = std::env::var_os("HOME").map(PathBuf::from) else {
        return skip("there is no home");
    };
    // Only a private runtime directory is made where there is none.
    let private = Home::empty();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(|| private.runtime(), PathBuf::from);
    let posted = runtime.join("9p/agents");
    if UnixStream::connect(&posted).is_ok() {
        // The user's server is at work, which is nothing to fail for.
        return tell("live: SKIPPED: the name `agents` is posted by a live server");
    }
    let mut command = program();
    command.env("HOME", &user).env("XDG_RUNTIME_DIR", &runtime);
    let moved = MOVED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let mut daemon = Daemon::start(command.envs(moved));
    let mut client = client(&posted, Dialect::Unix);

    let mut found = Found::default();
    found.walk(&mut client, "", Instant::now() + WALK_TIME);
    let compared = compare(&mut client, &user, &found);
    let secrets: Vec<&str> =
        SECRETS.iter().filter(|secret| user.join(secret.0).exists()).map(|secret| secret.0).collect();
    for (_, directory, name) in SECRETS {
        let directory = client.go(directory);
        refused(client.walk(directory, 900, &[name]), why::NOT_FOUND);
        client.clunk(directory).unwrap();
    }
    tell(&format!(
        "live: {} directories and {} files of {}, {compared} transcripts byte for byte, out of reach: {secrets:?}",
        found.directories,
        found.files.len(),
        user.display(),
    ));
    let hidden = |path: &&String| SECRETS.iter().any(|(_, _, name)| path.rsplit('/').next() == Some(name));
    assert_eq!(found.files.keys().find(hidden), None);

    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!posted.exists(), "the stop unposts");
}

/// What a walk found.
#[derive(Default)]
struct Found {
    directories: usize,
    /// Length by path.
    files: BTreeMap<String, u64>,
}

impl Found {
    /// Lists and stats everything, for so long.
    fn walk(&mut self, client: &mut Client, path: &str, deadline: Instant) {
        // What goes away meanwhile is no fault.
        let Ok(fid) = client.try_go(path) else { return };
        let info = client.stat(fid);
        let open = client.open(fid);
        if let (Ok(info), Ok(_)) = (info, open) {
            if info.dir {
                self.directories += 1;
                for entry in client.list_all(fid, BULK) {
                    if Instant::now() < deadline {
                        let name = String::from_utf8(entry.name).expect("names are UTF-8");
                        self.walk(client, &format!("{path}/{name}"), deadline);
                    }
                }
            } else {
                self.files.insert(path.to_owned(), info.length);
            }
        }
        client.clunk(fid).expect("a bound fid is clunked");
    }
}

/// Compares some transcripts with what is on the disk, which may grow meanwhile; yields how many.
fn compare(client: &mut Client, user: &Path, found: &Found) -> usize {
    let mut compared = 0;
    for (tree, disk) in [
        ("/claude/projects", ".claude/projects"),
        ("/codex/sessions", ".codex/sessions"),
        ("/omp", ".omp/agent"),
    ] {
        let is_transcript = |path: &str| path.starts_with(tree) && path.ends_with(".jsonl");
        let transcripts = found.files.iter().filter(|(path, length)| is_transcript(path) && **length < LARGE);
        for (path, _) in transcripts.take(TRANSCRIPTS) {
            let disk = user.join(disk).join(path[tree.len()..].trim_start_matches('/'));
            let Ok(before) = fs::read(&disk) else { continue };
            let served = client.contents(path);
            let after = fs::read(&disk).unwrap_or_default();
            assert!(served.starts_with(&before) && after.starts_with(&served), "{path}");
            compared += 1;
        }
    }
    compared
}

/// Variables that move a harness's home.
const MOVED: [&str; 5] =
    ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "HERMES_HOME", "DSH_HOME"];

/// What may not be reached: where it is below the home; the directory in the tree that would have it, and its name.
const SECRETS: [(&str, &str, &str); 7] = [
    (".claude/.credentials.json", "claude", ".credentials.json"),
    (".claude/settings.json", "claude", "settings.json"),
    (".codex/auth.json", "codex", "auth.json"),
    (".codex/config.toml", "codex", "config.toml"),
    (".omp/agent/agent.db", "omp", "agent.db"),
    (".hermes/.env", "hermes", ".env"),
    (".hermes/auth.json", "hermes", "auth.json"),
];

/// Transcripts compared of each harness.
const TRANSCRIPTS: usize = 5;
const LARGE: u64 = 64 << 20;
const WALK_TIME: Duration = Duration::from_secs(20);
