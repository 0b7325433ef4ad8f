//! Machines that are made up: the demonstration, and those of scripts. And `ps`, which has agents to list there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

#[test]
fn every_harness_has_a_live_agent_in_a_state_of_its_own() {
    let listed = prints(&["--demo", "ps"]);
    let rows: Vec<Vec<&str>> = listed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let brief: Vec<String> = rows.iter().map(|row| [row[1], row[2], row[5]].join(" ")).collect();
    assert_eq!(
        brief,
        [
            "claude idle registry",
            "claude waiting registry",
            "claude busy registry",
            "codex - fd",
            "dsh - dir",
            "hermes - none",
            "omp - tty"
        ]
    );
    // Every path of it can be listed, and every file read.
    let tree = prints(&["--demo", "ls", "-R", "/"]);
    assert!(!tree.is_empty());
    let files = [
        "/active/*/*/*",
        "/active/*/*/agents/*/*",
        "/skills/*/*/SKILL.md",
        "/claude/history",
        "/codex/history",
    ];
    for pattern in files {
        assert!(!prints(&["--demo", "ls", "-l", pattern]).is_empty(), "{pattern}");
    }
    for (path, words) in [
        ("/active/claude/3301/transcript", "utcoffset"),
        ("/active/claude/3301/agents/*/transcript", "on purpose"),
        ("/active/codex/*/agents/*/model", "gpt-6-codex-mini"),
        ("/active/omp/*/agents/Fitter/transcript", "63 subsets"),
        ("/active/dsh/*/transcript", "14 to 16 hours"),
        ("/skills/claude/changelog/SKILL.md", "name: changelog"),
        ("/claude/projects/*/memory/MEMORY.md", "cooking"),
    ] {
        let content = prints(&["--demo", "cat", path]);
        assert!(content.contains(words), "{path}: {content}");
    }
    assert_eq!(prints(&["--demo", "cat", "/active/omp/*/agents/Fitter/model"]), "gpt-6-nano\n");
}

#[test]
fn the_credentials_of_the_demonstration_are_not_shown() {
    let script = fs::read_to_string(workspace("backend/src/host/fixture/demo.script")).unwrap();
    let secret = |line: &&str| {
        line.starts_with("write /home/me/.")
            && ["auth", "credential", ".env", "agent.db"].iter().any(|word| line.contains(word))
    };
    assert_eq!(script.lines().filter(secret).count(), 6);
    let tree = prints(&["--demo", "ls", "-R"]);
    for word in ["auth", "credential", ".env", "agent.db"] {
        assert!(!tree.contains(word), "{word}");
    }
    for path in [
        "/hermes/auth.json",
        "/hermes/.env",
        "/omp/agent.db",
        "/dsh/.credentials.yaml",
        "/claude/.credentials.json",
    ] {
        let output = run(&["--demo", "cat", path]);
        assert_eq!(text(&output.stderr), format!("9agents: {path}: file does not exist\n"));
        assert!(output.stdout.is_empty() && output.status.code() == Some(1));
    }
}

#[test]
fn lines_of_ps_are_cut_to_the_width_that_there_is() {
    let whole = prints(&["--demo", "ps"]);
    assert!(whole.contains(" 81d0a4f3-2b6e-4c58-b1f7-0a9c3e5d6f12 ") && !whole.contains('…'), "{whole}");
    let at = |columns: &str, args: &[&str]| {
        let output = command(args).env("COLUMNS", columns).output().unwrap();
        text(&output.stdout)
    };
    for width in [80, 100, 130] {
        let cut = at(&width.to_string(), &["--demo", "ps"]);
        assert!(cut.lines().all(|line| line.chars().count() <= width) && cut.contains('…'), "{cut}");
        assert!(cut.contains(" registry "), "{cut}");
    }
    assert_eq!(at("80", &["--demo", "ps", "-w"]), whole);
    assert_eq!(at("1000", &["--demo", "ps"]), whole);
}

#[test]
fn ps_has_a_form_for_scripts() {
    let listed: serde_json::Value = serde_json::from_str(&prints(&["--demo", "ps", "--json"])).unwrap();
    let agents = listed.as_array().unwrap();
    assert_eq!(agents.len(), 7);
    let of = |harness| agents.iter().rfind(|agent| agent["harness"] == harness).unwrap();
    assert_eq!(
        *of("claude"),
        serde_json::json!({
            "pid": 3301, "harness": "claude", "status": "busy", "started": 1_795_192_260, "zmx": "tide", "via": "registry",
            "session": "81d0a4f3-2b6e-4c58-b1f7-0a9c3e5d6f12", "model": "claude-opus-5", "cwd": "/home/me/tide",
            "title": "Tide table an hour off",
        })
    );
    assert_eq!(of("hermes")["session"], serde_json::Value::Null);
    assert_eq!(of("hermes")["via"], "none");
    let nobody = Scratch::new("nobody");
    let empty = nobody.file("script", "mkdir /x\n");
    assert_eq!(prints(&["ps", "--json", "--fixture", &empty]), "[]\n");
    assert_eq!(prints(&["ps", "--fixture", &empty]).lines().count(), 1);
}

#[test]
fn a_script_describes_a_machine() {
    let scratch = Scratch::new("script");
    let script = scratch.file(
        "machine",
        "clock 100s 1000000100\nmkdirs /home/me/.claude/projects/-w\nwrite /home/me/.claude/history.jsonl\n| one\n\
         mkdirs /w\nstart 70 comm=claude arg=claude cwd=/w start=1000\n\
         start 71 comm=omp arg=omp cwd=\"/w\\x1b[2J\" start=4000\n",
    );
    assert_eq!(prints(&["cat", "--fixture", &script, "/claude/history"]), "one\n");
    assert_eq!(
        prints(&["--fixture", &script, "ps"]),
        "PID HARNESS STATUS STARTED ZMX VIA  SESSION MODEL CWD   TITLE\n\
         70  claude  -      1m      -   none -       -     /w    -\n\
         71  omp     -      1m      -   none -       -     /w[2J -\n"
    );
}

#[test]
fn a_script_that_makes_no_machine_is_a_usage_error() {
    let scratch = Scratch::new("bad");
    let nowhere = scratch.0.join("none").display().to_string();
    for (script, words) in [
        (scratch.file("a", "mkdir /x\n\nfrobnicate /x\n"), "line 3: no such edit"),
        (scratch.file("b", "mkdir /x\nmkdir /x\n"), "line 2: it cannot be done"),
        (nowhere, "No such file or directory"),
        (scratch.0.display().to_string(), "Is a directory"),
    ] {
        for args in [
            &["--no-post", "--unix", "/nonexistent/s", "--fixture", &script][..],
            &["--fixture", &script, "ps"],
        ] {
            let output = run(args);
            assert_eq!(output.status.code(), Some(2), "{args:?}");
            let said = text(&output.stderr);
            assert!(said.contains(words) && said.contains("--fixture"), "{said}");
            assert!(output.stdout.is_empty());
        }
    }
    for args in [
        &["--demo", "--fixture", "/dev/null"][..],
        &["--demo", "ps", "--proc", "/proc"],
        &["ps", "--demo", "-a", "unix!/x"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn a_daemon_serves_the_demonstration_and_time_passes_in_it() {
    let scratch = Scratch::new("daemon");
    let daemon = Daemon::start(&scratch, &["--demo"]);
    let ask = |args: &[&str]| {
        let (verb, rest) = args.split_first().unwrap();
        prints(&[&[verb, "-a", &daemon.address][..], rest].concat())
    };
    let uptime = || ask(&["cat", "/uptime"]).trim_end().parse::<u64>().unwrap();
    let first = uptime();
    assert!(ask(&["ps"]).contains("Tide table an hour off"));
    assert_eq!(ask(&["ps", "--json"]), prints(&["--demo", "ps", "--json"]));
    assert!(!ask(&["ls", "-R"]).contains("auth"));
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let second = uptime();
    assert!(first < second && second < first + 60, "{first} {second}");

    let script = scratch
        .file("script", "mkdirs /home/me/.claude\nafter 1s write /home/me/.claude/history.jsonl later\n");
    let scratch = Scratch::new("later");
    let daemon = Daemon::start(&scratch, &["--fixture", &script]);
    let begun = std::time::Instant::now();
    let read = || text(&run(&["cat", "-a", &daemon.address, "/claude/history"]).stdout);
    while read() != "later" {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Runs what the README shows after `$ `, and compares what it shows below. Times of files are written by the calendar of the
/// reader, and are passed over.
#[test]
fn the_readme_shows_what_the_demonstration_prints() {
    let readme = fs::read_to_string(workspace("README.md")).unwrap();
    let mut shown = 0;
    let mut lines = readme.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(typed) = line.strip_prefix("    $ 9agents ") else { continue };
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("    ") && !line.starts_with("    $ ")) {
            expected += &format!("{}\n", &line[4..]);
        }
        let args: Vec<&str> = typed.split(' ').map(|arg| arg.trim_matches('\'')).collect();
        let output = command(&args).env("COLUMNS", README_COLUMNS).output().unwrap();
        assert_eq!(without_times(&text(&output.stdout)), without_times(&expected), "{typed}");
        assert!(!expected.is_empty() && output.status.success(), "{typed}");
        shown += 1;
    }
    assert!(shown >= 2, "the README shows the demonstration");
}

/// Lines of `ls -l` without the time: month, day, and year or time of day.
fn without_times(listing: &str) -> Vec<String> {
    let line = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [mode, owner, length, _, _, _, name] if mode.ends_with("r--") || mode.ends_with("r-x") => {
            format!("{mode} {owner} {length} {name}")
        }
        _ => line.to_owned(),
    };
    listing.lines().map(line).collect()
}

fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// What a command prints that must not fail.
#[track_caller]
fn prints(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(0)), "{args:?}");
    text(&output.stdout)
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_9agents"));
    command.args(args).env_clear().env("TZ", "UTC").stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn workspace(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("9agents-demo-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server on a socket of its own.
struct Daemon {
    child: Child,
    address: String,
}

impl Daemon {
    fn start(scratch: &Scratch, args: &[&str]) -> Self {
        let socket = scratch.0.join("s").display().to_string();
        let args = [args, &["--unix", &socket, "--no-post"]].concat();
        let mut child = command(&args).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.any(|line| line.contains("serving with")), "{args:?}");
        Self { child, address: format!("unix!{socket}") }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How wide the terminal was in which the README's examples were run.
const README_COLUMNS: &str = "120";
