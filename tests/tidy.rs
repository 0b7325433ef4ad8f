//! Reads the project's own manifests and sources, and holds them to its rules of construction.
//!
//! Every rule is a function from the text of a file, or of several, to a list of complaints. The tests below feed each rule
//! the project, which must give no complaint, and something broken on purpose, which must.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The packages, each with those it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("proto", &[]),
    ("engine", &["proto"]),
    ("backend", &["proto", "engine"]),
    ("drivers", &["proto", "engine", "backend"]),
    ("tests", &["proto", "engine", "backend", "drivers"]),
    ("fuzz", &["proto", "engine", "backend", "drivers", "tests"]),
];

/// What may lie at the top, `*` at the end for anything of that beginning.
const TOP: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "proto",
    "engine",
    "backend",
    "drivers",
    "fuzz",
    "tests",
    "DESIGN.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE*",
    ".ci",
    "packaging",
    "rustfmt.toml",
    ".rustfmt.toml",
    "clippy.toml",
    ".clippy.toml",
    ".gitignore",
    // The repository itself, and what a build leaves.
    ".git",
    "target",
];

/// Packages that are pure: they name neither `std` nor anything that acts.
const PURE: &[&str] = &["proto/src/", "engine/src/"];

/// The one file that holds unsafe code.
const UNSAFE: &[&str] = &["drivers/src/uring/ring.rs"];

/// Packages whose code asks the world nothing, but through the host.
const WORLDLESS: &[&str] = &["proto/src/", "engine/src/", "backend/src/"];
/// Where they do: the host of the kernel, be it a file or a directory.
const HOST: &[&str] = &["backend/src/host/os.rs", "backend/src/host/os/"];

/// Calls that ask the world something: time, files, threads, processes, the environment.
const WORLDLY: &[&str] = &[
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "UnixStream",
    "UnixListener",
    "std::thread",
    "std::process",
    "std::env",
    "std::time::Instant",
    "std::time::SystemTime",
    "Instant::now",
    "SystemTime::now",
    "thread::spawn",
    "thread::sleep",
    "File::open",
    "rustix::fs",
    "rustix::net",
    "rustix::time",
    "rustix::process",
    "rustix::thread",
    "rustix::event",
    "rustix::pipe",
    "clock_gettime",
];

/// Parts of those that only put numbers together.
const ARITHMETIC: &[&str] = &["rustix::fs::makedev", "rustix::fs::major", "rustix::fs::minor"];

/// Words of work that is not done, or of a test that does not run.
const UNDONE: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore", "FIXME", "XXX"];
/// Paths of some machine, which say nothing to a reader.
const PRIVATE: &[&str] = &["/work/", "/home/user"];

/// The most lines of a source file, and of a file of tests alone, which is a list.
const MAX_LINES: usize = 650;
const MAX_TEST_LINES: usize = 750;
/// Files that may be longer. It stays empty.
const LONG: &[&str] = &[];

/// Where the fuzz targets are: each is two lines, of which the second calls a body in a package.
const TARGETS: &str = "fuzz/fuzz_targets/";

/// A complaint: where, and about what.
type Complaints = Vec<String>;

fn arrows(package: &str, manifest: &str) -> Complaints {
    let allowed = ARROWS.iter().find(|arrow| arrow.0 == package).map_or(&[][..], |arrow| arrow.1);
    let packages: BTreeSet<&str> = ARROWS.iter().map(|arrow| arrow.0).collect();
    let mut inside = false;
    let mut complaints = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line.contains("dependencies");
        }
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        let name = name.trim_matches('"').trim_start_matches("nineagents-");
        if inside && packages.contains(name) && !allowed.contains(&name) {
            complaints.push(format!("{package} uses {name}"));
        }
    }
    complaints
}

fn top(names: &[String]) -> Complaints {
    let allowed = |name: &str| {
        TOP.iter().any(|entry| match entry.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *entry,
        })
    };
    names.iter().filter(|name| !allowed(name)).map(|name| format!("{name} lies at the top")).collect()
}

/// Complains of every word that occurs in the code of a file, comments and tests left out.
fn words(path: &str, text: &str, words: &[&str]) -> Complaints {
    let code = code(text);
    let lines = code.iter().filter(|(_, line)| words.iter().any(|word| holds(line, word)));
    lines.map(|(number, line)| format!("{path}:{number}: {}", line.trim())).collect()
}

fn pure(path: &str, text: &str) -> Complaints {
    if !PURE.iter().any(|package| path.starts_with(package)) {
        return Vec::new();
    }
    let mut complaints = words(path, text, &["std"]);
    if path.ends_with("src/lib.rs") {
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            if !text.lines().any(|line| line == attribute) {
                complaints.push(format!("{path} lacks {attribute}"));
            }
        }
    }
    complaints
}

fn safe(path: &str, text: &str) -> Complaints {
    if UNSAFE.contains(&path) {
        return Vec::new();
    }
    let all: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let lines = all.iter().enumerate().filter(|(_, line)| holds(line, "unsafe"));
    lines.map(|(at, line)| format!("{path}:{}: {}", at + 1, line.trim())).collect()
}

fn worldless(path: &str, text: &str) -> Complaints {
    let exempt = HOST.iter().any(|host| path.starts_with(host));
    if exempt || !WORLDLESS.iter().any(|package| path.starts_with(package)) {
        return Vec::new();
    }
    let text = ARITHMETIC.iter().fold(text.to_owned(), |text, call| text.replace(call, ""));
    words(path, &text, WORLDLY)
}

/// A fuzz target hands its bytes on and does nothing else, and the manifest names it.
fn two_lines(path: &str, text: &str, manifest: &str) -> Complaints {
    let Some(name) = path.strip_prefix(TARGETS) else {
        // Nothing else is compiled there.
        let stray = path.starts_with("fuzz/") && path.ends_with(".rs");
        return if stray { vec![format!("{path} is no target")] } else { Vec::new() };
    };
    let mut complaints = Vec::new();
    let body = text
        .strip_prefix("#![no_main]\nlibfuzzer_sys::fuzz_target!(|bytes: &[u8]| ")
        .and_then(|rest| rest.strip_suffix("(bytes));\n"));
    let is_path = |body: &str| body.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':');
    if !body.is_some_and(|body| is_path(body) && body.contains("::fuzz::")) {
        complaints.push(format!("{path} does more than to call a body"));
    }
    if !manifest.contains(&format!("path = \"fuzz_targets/{name}\"\n")) {
        complaints.push(format!("{path} is not in the manifest"));
    }
    complaints
}

fn done(path: &str, text: &str) -> Complaints {
    let banned = UNDONE.iter().chain(PRIVATE).filter(|word| text.lines().any(|line| holds(line, word)));
    banned.map(|word| format!("{path} says {word}")).collect()
}

fn short(path: &str, text: &str) -> Complaints {
    let lines = text.lines().count();
    let most = if path.contains("/tests/") { MAX_TEST_LINES } else { MAX_LINES };
    if lines <= most || LONG.contains(&path) {
        return Vec::new();
    }
    vec![format!("{path} has {lines} lines, more than {most}")]
}

/// The lines of code with their numbers: without comments, and up to the first `#[cfg(test)]` module, which in this
/// project ends a file.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut code = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        if line.starts_with("#[cfg(test)]") {
            let declares_module =
                lines.peek().is_some_and(|(_, next)| next.starts_with("mod ") && next.ends_with('{'));
            if declares_module {
                break;
            }
            lines.next();
            continue;
        }
        let line = line.split("//").next().unwrap_or_default();
        if !line.trim().is_empty() {
            code.push((at + 1, line));
        }
    }
    code
}

/// Whether a line holds a word, and not as a part of another one.
fn holds(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line[..at].chars().next_back(), line[at + word.len()..].chars().next());
        let begins_open = word.starts_with(|c: char| !c.is_alphanumeric());
        let ends_open = word.ends_with(|c: char| !c.is_alphanumeric());
        (begins_open || !part(before)) && (ends_open || !part(after))
    })
}

/// The project's files, as paths from its top, but for this one, which has to name what it looks for.
fn sources() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (package, _) in ARROWS {
        collect(&root().join(package), &mut all);
    }
    all.remove("tests/tidy.rs");
    assert!(all.len() > 40, "the project has more files than {}", all.len());
    all
}

fn collect(directory: &Path, into: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.expect("a directory that is read").path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "corpus", "artifacts"].contains(&&*name) {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
            let relative = path.strip_prefix(root()).expect("below the top").to_string_lossy().into_owned();
            into.insert(relative, fs::read_to_string(&path).expect("a source that is text"));
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a package below the top").to_owned()
}

/// What a rule says of every Rust file.
fn of_sources(rule: fn(&str, &str) -> Complaints) -> Complaints {
    sources()
        .iter()
        .filter(|(path, _)| path.ends_with(".rs"))
        .flat_map(|(path, text)| rule(path, text))
        .collect()
}

#[track_caller]
fn expect_none(complaints: Complaints) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn arrows_point_one_way() {
    let sources = sources();
    for (package, _) in ARROWS {
        let manifest = sources.get(&format!("{package}/Cargo.toml"));
        expect_none(arrows(package, manifest.unwrap_or_else(|| panic!("{package} has no manifest"))));
    }
    let wrong = "[dependencies]\nproto.workspace = true\nbackend.workspace = true\n[lib]\ndrivers = 1\n";
    assert_eq!(arrows("engine", wrong), ["engine uses backend"]);
    assert_eq!(
        arrows("proto", "[dev-dependencies]\nengine = { path = \"../engine\" }\n"),
        ["proto uses engine"]
    );
    let renamed = "[target.'cfg(unix)'.dependencies]\nnineagents-drivers = \"1\"\n";
    assert_eq!(arrows("backend", renamed), ["backend uses drivers"]);
}

#[test]
fn the_top_holds_what_it_should() {
    let entries = fs::read_dir(root()).expect("the top is read");
    let names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|name| name == "Cargo.toml"));
    expect_none(top(&names));
    let wrong = ["LICENSE-MIT", "notes.txt", "src"].map(str::to_owned);
    assert_eq!(top(&wrong), ["notes.txt lies at the top", "src lies at the top"]);
}

#[test]
fn pure_packages_name_no_std() {
    expect_none(of_sources(pure));
    assert_eq!(pure("engine/src/x.rs", "use std::io;\n").len(), 1);
    assert_eq!(pure("engine/src/x.rs", "extern crate std;\n").len(), 1);
    assert_eq!(pure("proto/src/lib.rs", "#![no_std]\n").len(), 1);
    assert_eq!(pure("engine/src/x.rs", "// std::io\n#[cfg(test)]\nmod tests {\nuse std::io;\n}\n").len(), 0);
    assert_eq!(pure("engine/src/x.rs", "let no_std = standard;\n").len(), 0);
}

#[test]
fn unsafe_code_is_in_one_file() {
    expect_none(of_sources(safe));
    assert_eq!(
        safe("drivers/src/x.rs", "fn f() {\n    unsafe { g() }\n}\n"),
        ["drivers/src/x.rs:2: unsafe { g() }"]
    );
    assert_eq!(safe("drivers/src/x.rs", "#[cfg(test)]\nmod tests {\n    unsafe fn f() {}\n}\n").len(), 1);
    assert_eq!(safe("drivers/src/uring/ring.rs", "unsafe fn f() {}\n").len(), 0);
    assert_eq!(safe("proto/src/lib.rs", "#![forbid(unsafe_code)] // unsafe\n").len(), 0);
}

#[test]
fn fuzz_targets_are_two_lines() {
    let sources = sources();
    let manifest = &sources["fuzz/Cargo.toml"];
    expect_none(sources.iter().flat_map(|(path, text)| two_lines(path, text, manifest)).collect());
    assert!(sources.keys().filter(|path| path.starts_with(TARGETS)).count() >= 6);
    let good = "#![no_main]\nlibfuzzer_sys::fuzz_target!(|bytes: &[u8]| proto::fuzz::frame(bytes));\n";
    let (path, listed) = ("fuzz/fuzz_targets/x.rs", "path = \"fuzz_targets/x.rs\"\n");
    assert_eq!(two_lines(path, good, listed).len(), 0);
    assert_eq!(two_lines(path, good, ""), ["fuzz/fuzz_targets/x.rs is not in the manifest"]);
    for wrong in
        [good.replace("frame(bytes)", "frame(&bytes[1..])"), format!("{good}fn f() {{}}\n"), String::new()]
    {
        assert_eq!(two_lines(path, &wrong, listed), ["fuzz/fuzz_targets/x.rs does more than to call a body"]);
    }
    assert_eq!(two_lines("fuzz/src/lib.rs", "", listed), ["fuzz/src/lib.rs is no target"]);
}

#[test]
fn only_the_host_asks_the_world() {
    expect_none(of_sources(worldless));
    for line in [
        "let t = Instant::now();",
        "use std::fs::File;",
        "std::thread::spawn(f);",
        "rustix::fs::stat(p)?;",
        "use std::net::TcpStream;",
    ] {
        assert_eq!(worldless("backend/src/tree/x.rs", line).len(), 1, "{line}");
        assert_eq!(worldless("backend/src/host/os/x.rs", line).len(), 0, "{line}");
        assert_eq!(worldless("drivers/src/x.rs", line).len(), 0, "{line}");
    }
    for line in ["use rustix::io::Errno;", "use std::net::SocketAddr;", "dev: rustix::fs::makedev(0, 1),"] {
        assert_eq!(worldless("backend/src/x.rs", line).len(), 0, "{line}");
    }
}

#[test]
fn nothing_is_left_undone() {
    expect_none(of_sources(done));
    for line in ["todo!()", "    unimplemented!(\"x\")", "dbg!(x)", "#[ignore]", "let p = \"/work/x\";"] {
        assert_eq!(done("drivers/src/x.rs", line).len(), 1, "{line}");
    }
}

#[test]
fn files_are_short() {
    expect_none(of_sources(short));
    assert!(LONG.is_empty(), "the list of exceptions stays empty");
    assert_eq!(short("drivers/src/x.rs", &"\n".repeat(MAX_LINES)).len(), 0);
    assert_eq!(short("drivers/src/x.rs", &"\n".repeat(MAX_LINES + 1)).len(), 1);
}
