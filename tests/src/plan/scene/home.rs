//! A home with files of every kind, and nobody at work.

use backend::host::fixture::{Bytes, Edit, FsType, Special, World};

use super::{CANARY, Change, Scene, Spot};
use crate::world::fill;

/// The scene.
pub(super) const HOME: Scene = Scene {
    name: "home",
    build,
    paths: || PATHS.iter().map(|path| (*path).to_owned()).collect(),
    words: WORDS,
    hidden: HIDDEN,
    databases: DATABASES,
    spots,
    lives: false,
};

/// What lies below the home directory. `=` is a file of this text, `!` one that is hidden, `#` one of so many bytes of a
/// pattern, `/` an empty directory, `>` a link to this, `|` a fifo.
const FILES: &[(&str, char, &str)] = &[
    (
        ".claude/projects/-home-me-app/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl",
        '=',
        "{\"type\":\"user\"}\n{\"type\":\"assistant\"}\n",
    ),
    (".claude/projects/-home-me-app/memory/notes.md", '=', "# notes\n"),
    (".claude/projects/-home-me-auth-CANARY-4f1d/log.jsonl", '!', ""),
    (".claude/skills/hello/SKILL.md", '=', "says hello\n"),
    (".claude/history.jsonl", '=', "{\"display\":\"hi\"}\n"),
    (".claude/settings.json", '!', ""),
    (".claude/.credentials.json", '!', ""),
    (".codex/sessions/2026/07/04/rollout-2026-07-04T10-00-00-x.jsonl", '#', "9000"),
    (".codex/session_index.jsonl", '=', "{}\n"),
    (".codex/auth.json", '!', ""),
    (".omp/agent/history.db", '=', "SQLite format 3\0and what omp was asked"),
    (".omp/agent/agent.db", '!', ""),
    (".omp/agent/models.yml", '!', ""),
    (".omp/agent/sessions/a/1.jsonl", '=', "one\n"),
    (".hermes/notes.txt", '=', "hello, world\n"),
    (".hermes/empty.txt", '=', ""),
    (".hermes/large.bin", '#', "20000"),
    (".hermes/sub/deep/deeper/file.txt", '=', "deep\n"),
    (".hermes/sub/other.txt", '=', "other\n"),
    (".hermes/state.db", '=', "SQLite format 3\0sessions"),
    (".hermes/innocent.dat", '!', "SQLite format 3\0"),
    (".hermes/token-CANARY-4f1d.txt", '!', ""),
    (".hermes/.ssh/id_rsa-CANARY-4f1d", '!', ""),
    (".hermes/link-file", '>', "/home/me/elsewhere/secret"),
    (".hermes/link-dir", '>', "/home/me/elsewhere"),
    (".hermes/link-home", '>', "notes.txt"),
    (".hermes/fifo", '|', ""),
    (".hermes/late-read", '=', "late to be read\n"),
    (".hermes/late-open", '=', "late to be opened\n"),
    (".hermes/late-walk", '=', "late to be walked to\n"),
    (".hermes/bare", '/', ""),
    ("elsewhere/secret", '!', ""),
    ("elsewhere/deep/notes.txt", '!', ""),
    ("elsewhere/notes.txt", '!', ""),
    ("elsewhere/other.txt", '!', ""),
];

/// The empty path is the root itself.
const PATHS: &[&str] = &[
    "hermes/notes.txt",
    "hermes",
    "hermes/large.bin",
    "hermes/sub",
    "hermes/sub/other.txt",
    "hermes/sub/deep/deeper/file.txt",
    "",
    "README",
    "pid",
    "uptime",
    "claude",
    "claude/projects",
    "claude/projects/-home-me-app",
    "claude/projects/-home-me-app/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl",
    "claude/projects/-home-me-app/memory/notes.md",
    "claude/projects/-home-me-auth-CANARY-4f1d/log.jsonl",
    "claude/skills/hello/SKILL.md",
    "claude/skills",
    "claude/history",
    "claude/settings.json",
    "claude/.credentials.json",
    "codex",
    "codex/sessions",
    "codex/sessions/2026/07/04",
    "codex/sessions/2026/07/04/rollout-2026-07-04T10-00-00-x.jsonl",
    "codex/session-index",
    "codex/history",
    "codex/auth.json",
    "omp",
    "omp/history.db",
    "omp/agent.db",
    "omp/models.yml",
    "omp/sessions/a/1.jsonl",
    "hermes/empty.txt",
    "hermes/sub/deep",
    "hermes/state.db",
    "hermes/innocent.dat",
    "hermes/token-CANARY-4f1d.txt",
    "hermes/.ssh/id_rsa-CANARY-4f1d",
    "hermes/link-file",
    "hermes/link-dir",
    "hermes/link-dir/secret",
    "hermes/link-home",
    "hermes/fifo",
    "hermes/late-read",
    "hermes/late-open",
    "hermes/late-walk",
    "hermes/late-read",
    "hermes/bare",
    "hermes/other.txt",
    "hermes/notes.txt/below",
    "hermes/sub/late-read",
    "dsh",
    "dsh/sessions",
    "skills",
    "skills/claude/hello/SKILL.md",
    "skills/codex",
    "active",
    "active/claude",
    "active/hermes",
    "nothing",
    "hermes/moved",
    "hermes/moved/other.txt",
    "hermes/secret-CANARY-4f1d",
];

const WORDS: &[&[u8]] = &[
    b"notes.txt",
    b"..",
    b"hermes",
    b"sub",
    b"deep",
    b"other.txt",
    b".",
    b"",
    b"link-dir",
    b"secret",
    b"token-CANARY-4f1d.txt",
    b"secret-CANARY-4f1d",
    b"a/b",
    b"nul\0",
    b"\xff\xfe",
    b"projects",
    b"skills",
    b"late-walk",
    b"late-open",
    b"file.txt",
];

const HIDDEN: &[&str] = &["agent.db", "models.yml", ".ssh", "secret"];
const DATABASES: &[(&str, &str)] = &[("omp", "history.db"), ("hermes", "state.db")];

/// Files that change: where they lie below the home directory, and where in the tree.
const CHANGING_FILES: &[(&str, &str)] = &[
    (".hermes/notes.txt", "hermes/notes.txt"),
    (".hermes/late-read", "hermes/late-read"),
    (".hermes/sub/other.txt", "hermes/sub/other.txt"),
    (".hermes/large.bin", "hermes/large.bin"),
    (".hermes/late-open", "hermes/late-open"),
    (".hermes/sub/deep/deeper/file.txt", "hermes/sub/deep/deeper/file.txt"),
    (".claude/history.jsonl", "claude/history"),
    (".claude/skills/hello/SKILL.md", "skills/claude/hello/SKILL.md"),
    (
        ".claude/projects/-home-me-app/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl",
        "claude/projects/-home-me-app/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl",
    ),
    (".codex/history.jsonl", "codex/history"),
];
/// Directories that do.
const CHANGING_DIRECTORIES: &[(&str, &str)] = &[
    (".hermes/sub", "hermes/sub"),
    (".hermes/sub/deep", "hermes/sub/deep"),
    (".hermes", "hermes"),
    (".claude/projects", "claude/projects"),
    (".claude/skills", "claude/skills"),
    (".codex/sessions", "codex/sessions"),
];

fn build() -> World {
    let mut world = World::new();
    for (path, kind, text) in FILES {
        let (directory, _) = path.rsplit_once('/').unwrap_or(("", path));
        let path = at(path);
        let made = match kind {
            '=' => Edit::Write { path, bytes: (*text).into() },
            '!' => Edit::Write { path, bytes: format!("{text}{CANARY}\n").into() },
            '#' => Edit::Write { path, bytes: pattern(text.parse().expect("a length")).into() },
            '/' => Edit::Mkdir { path },
            '>' => Edit::Symlink { path, target: (*text).into() },
            _ => Edit::Special { path, kind: Special::Fifo },
        };
        for edit in [Edit::MkdirAll { path: at(directory) }, made] {
            world.apply(&edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
        }
    }
    let strange: Bytes = [b"/home/me/.hermes/".as_slice(), b"\xff\xfe"].concat().into();
    let rest = [
        Edit::Write { path: strange, bytes: CANARY.into() },
        // A file that is younger than a tick of the clock is never taken for settled.
        Edit::Advance { ns: 10_000_000_000 },
    ];
    for edit in rest {
        world.apply(&edit).unwrap_or_else(|error| panic!("{edit:?}: {error}"));
    }
    world
}

fn spots() -> Vec<Spot> {
    let files = CHANGING_FILES.iter().map(|&(path, shown)| {
        let (above, _) = shown.rsplit_once('/').expect("a directory");
        Spot { paths: vec![shown.to_owned(), shown.to_owned(), above.to_owned()], changes: of_file(path) }
    });
    let directories = CHANGING_DIRECTORIES.iter().map(|&(path, shown)| {
        let other = format!("{shown}/other.txt");
        Spot { paths: vec![shown.to_owned(), shown.to_owned(), other], changes: of_directory(path) }
    });
    files.chain(directories).collect()
}

fn of_file(path: &str) -> Vec<Change> {
    let (directory, _) = path.rsplit_once('/').expect("a directory");
    let file = || at(path);
    let beside = |name: &str| at(&format!("{directory}/{name}"));
    let hidden = beside(&format!("secret-{CANARY}"));
    let removed = || Edit::Unlink { path: file() };
    let write = |bytes: &str| Edit::Write { path: file(), bytes: bytes.into() };
    vec![
        plain([Edit::Append { path: file(), bytes: "one line more\n".into() }]),
        plain([Edit::AppendHalf { path: file(), bytes: "{\"a\": 1}\n".into() }]),
        plain([write("written anew\n")]),
        plain([Edit::Write { path: file(), bytes: pattern(12_000).into() }]),
        plain([Edit::Truncate { path: file(), bytes: 3 }]),
        plain([Edit::Overwrite { path: file(), offset: 20, bytes: "OVER".into(), keep_mtime: true }]),
        plain([Edit::Replace { path: file(), bytes: "replaced\n".into() }]),
        plain([Edit::Replace { path: file(), bytes: pattern(12_000).into() }]),
        plain([removed()]),
        plain([Edit::Reappear { path: file(), bytes: "back again\n".into(), same_birth: false }]),
        plain([Edit::Reappear { path: file(), bytes: "back at once\n".into(), same_birth: true }]),
        plain([Edit::Chmod { path: file(), mode: 0 }]),
        plain([Edit::Chmod { path: file(), mode: 0o644 }]),
        plain([Edit::Chown { path: file(), uid: 7, gid: 1000 }]),
        plain([Edit::Touch { path: file(), mtime_ns: -1_500_000_000 }]),
        plain([Edit::Cool { path: file() }]),
        plain([removed(), Edit::Special { path: file(), kind: Special::Fifo }]),
        plain([removed(), Edit::Symlink { path: file(), target: "/home/me/elsewhere/secret".into() }]),
        plain([removed(), Edit::Mkdir { path: file() }]),
        plain([Edit::Rmdir { path: file() }, write("a file again\n")]),
        // What is open notices within 100 ms that its name is gone, and what must not be seen comes after that.
        plain([
            Edit::Rename { from: file(), to: hidden.clone() },
            a_while(),
            Edit::Append { path: hidden, bytes: CANARY.into() },
        ]),
        // A database under an innocent name: what is open notices that, too.
        plain([write("SQLite format 3\0"), a_while(), Edit::Append { path: file(), bytes: CANARY.into() }]),
        plain([Edit::Reappear { path: file(), bytes: "back at once\n".into(), same_birth: true }]),
        plain([write("SQLite format 3\0, and more")]),
        plain([Edit::Replace { path: file(), bytes: "SQLite format 3\0, and more".into() }]),
        plain([Edit::Rename { from: file(), to: beside("moved") }]),
        plain([Edit::Rename { from: beside("moved"), to: file() }]),
        plain([Edit::HardLink { from: file(), to: beside("other.txt") }]),
        plain([Edit::Rename { from: file(), to: at(".hermes/notes.txt") }]),
    ]
}

fn of_directory(path: &str) -> Vec<Change> {
    let dir = || at(path);
    let below = |name: &str| at(&format!("{path}/{name}"));
    let (directory, _) = path.rsplit_once('/').unwrap_or(("elsewhere", path));
    let moved = || at(&format!("{directory}/moved"));
    let hidden = format!("{directory}/secret-{CANARY}");
    let fill: Vec<Edit> = (0..40)
        .map(|n| Edit::Write { path: below(&format!("many-{n:02}-{}", "x".repeat(n))), bytes: "x".into() })
        .collect();
    // A base may be a link, and be mounted over: that is configuration.
    let is_base = !path.contains('/');
    let elsewhere = if is_base { moved() } else { at("elsewhere") };
    let processes = if is_base { FsType::Devpts } else { FsType::Proc };
    let mount = |kind| plain([Edit::Mount { path: dir(), kind }]);
    vec![
        plain([Edit::MkdirAll { path: dir() }]),
        Change { edits: fill, once: None },
        plain([
            Edit::Unlink { path: below("many-01-x") },
            Edit::Write { path: below("new"), bytes: "new\n".into() },
        ]),
        plain([Edit::Chmod { path: dir(), mode: 0 }]),
        plain([Edit::Chmod { path: dir(), mode: 0o444 }]),
        plain([Edit::Chmod { path: dir(), mode: 0o755 }]),
        plain([Edit::Cool { path: dir() }]),
        plain([Edit::Touch { path: dir(), mtime_ns: 1_600_000_000_000_000_001 }]),
        plain([Edit::Rename { from: dir(), to: moved() }]),
        plain([Edit::Rename { from: moved(), to: dir() }]),
        plain([Edit::Rename { from: dir(), to: moved() }, Edit::Symlink { path: dir(), target: elsewhere }]),
        plain([Edit::Unlink { path: dir() }, Edit::Rename { from: moved(), to: dir() }]),
        plain([
            Edit::Rename { from: dir(), to: moved() },
            Edit::Write { path: dir(), bytes: "a file now\n".into() },
        ]),
        plain([
            Edit::Rename { from: dir(), to: at(&hidden) },
            a_while(),
            Edit::Append { path: at(&format!("{hidden}/other.txt")), bytes: CANARY.into() },
            Edit::Replace { path: at(&format!("{hidden}/other.txt")), bytes: CANARY.into() },
            Edit::Write { path: at(&format!("{hidden}/token-{CANARY}")), bytes: CANARY.into() },
        ]),
        plain([
            Edit::Mount { path: dir(), kind: FsType::Tmpfs },
            Edit::Write { path: below("mounted.txt"), bytes: "in memory\n".into() },
        ]),
        plain([
            Edit::Mount { path: dir(), kind: processes },
            Edit::Write { path: below("token-CANARY-4f1d"), bytes: CANARY.into() },
        ]),
        mount(FsType::Overlay),
        mount(FsType::NineP),
        plain([Edit::Unmount { path: dir() }]),
    ]
}

fn plain<const N: usize>(edits: [Edit; N]) -> Change {
    Change { edits: edits.into(), once: None }
}

/// A little longer than a check of an open file holds.
fn a_while() -> Edit {
    Edit::Advance { ns: 101_000_000 }
}

fn at(path: &str) -> Bytes {
    ["/home/me/", path].concat().into()
}

fn pattern(bytes: usize) -> Vec<u8> {
    let mut pattern = vec![0; bytes];
    fill(1, 0, &mut pattern);
    pattern
}

#[cfg(test)]
mod tests {
    use backend::name::{Name, Root};

    use super::{CANARY, FILES, HOME, spots};

    #[test]
    fn what_is_called_hidden_is_and_nothing_else() {
        for (path, _, _) in FILES {
            let Some((root, below)) = path.strip_prefix('.').and_then(|path| path.split_once('/')) else {
                continue;
            };
            let root = Root::HARNESSES.into_iter().find(|of| of.as_str() == root).expect("a root");
            for name in below.split('/') {
                let hidden = Name::vet(name.as_bytes(), root).is_none();
                assert_eq!(hidden, HOME.hides(name) || KEPT_BACK.contains(&name), "{name} below {root:?}");
            }
        }
    }

    #[test]
    fn there_are_many_changes_and_all_can_be_done_somewhere() {
        assert!(spots().iter().map(|spot| spot.changes.len()).sum::<usize>() > 300);
        assert!(HOME.hides(&format!("secret-{CANARY}")) && !HOME.hides("notes.txt"));
    }

    /// Hidden where no path of the tree leads.
    const KEPT_BACK: &[&str] = &["settings.json", ".credentials.json", "auth.json"];
}
