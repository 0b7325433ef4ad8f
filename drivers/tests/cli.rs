//! The program as its users start it: what it prints, on which stream, and with what status it ends.

mod cli_toy;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cli_toy::{Item, Offer, Server, dir, file, locked, many, ouroboros, scratch, slot};
use drivers::client::Wire;
use proto::Refusal;

#[test]
fn ls_prints_names_as_the_server_sends_them() {
    let server = Server::start("ls", tree(), Offer::Every, MSIZE);
    assert_prints(&ask(&server, &["ls"]), "zoo\nlines\nslot\nsecret\n.hidden\n");
    assert_prints(&ask(&server, &["ls", "zoo"]), "ape\nbat\\e[31m\\n\nwild*\n");
    assert_prints(
        &ask(&server, &["ls", "/lines", "zoo", "./slot"]),
        "/lines\n/slot\n\n/zoo:\nape\nbat\\e[31m\\n\nwild*\n",
    );
}

#[test]
fn ls_l_prints_columns() {
    let server = Server::start("ls-l", tree(), Offer::Every, MSIZE);
    let output = ask(&server, &["ls", "-l"]);
    assert_prints(
        &output,
        "dr-xr-xr-x glenda  0 Nov 29  2024 zoo\n\
         -r--r--r-- glenda 14 Nov 29  2024 lines\n\
         -rw-r--r-- glenda  0 Nov 29  2024 slot\n\
         ---------- glenda  0 Nov 29  2024 secret\n\
         -r--r--r-- glenda  1 Nov 29  2024 .hidden\n",
    );
    assert_prints(&ask(&server, &["ls", "-l", "lines"]), "-r--r--r-- glenda 14 Nov 29  2024 /lines\n");
}

#[test]
fn ls_r_lists_what_is_below_and_no_directory_within_itself() {
    let root = dir("/", [dir("a", [dir("b", [file("c", "")]), file("d", "")]), ouroboros("loop")]);
    let server = Server::start("ls-r", root, Offer::Every, MSIZE);
    let output = ask(&server, &["ls", "-R"]);
    assert_eq!(text(&output.stdout), "/:\na\nloop\n\n/a:\nb\nd\n\n/a/b:\nc\n\n/loop:\nloop\n");
    assert_eq!(text(&output.stderr), "9agents: /loop/loop: a directory that contains itself\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn every_failed_path_has_its_line_and_the_rest_is_done() {
    let server = Server::start("failed", tree(), Offer::Every, MSIZE);
    let output = ask(&server, &["cat", "lines", "/nope", "secret", "zoo", "evil\x1b[2J", "nope*", "lines"]);
    assert_eq!(text(&output.stdout), "one\ntwo\nthree\none\ntwo\nthree\n");
    assert_eq!(
        text(&output.stderr),
        "9agents: /nope: file does not exist\n\
         9agents: /secret: a database that is not on the list: opening is not permitted\n\
         9agents: /zoo: is a directory\n\
         9agents: /evil\\e[2J: file does not exist\n\
         9agents: nope*: no match\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn wildcards_are_expanded_against_listings() {
    let server = Server::start("glob", tree(), Offer::Every, MSIZE);
    assert_prints(
        &ask(&server, &["ls", "*"]),
        "/lines\n/slot\n/secret\n\n/zoo:\nape\nbat\\e[31m\\n\nwild*\n",
    );
    assert_prints(&ask(&server, &["ls", ".*"]), "/.hidden\n");
    assert_prints(&ask(&server, &["cat", "/*/[a-c]*"]), "apebat");
    assert_prints(&ask(&server, &["cat", "/z?o/wild\\*"]), "wild");
    assert_prints(&ask(&server, &["cat", "/*/ape"]), "ape");
    assert_prints(&ask(&server, &["ls", "*/"]), "ape\nbat\\e[31m\\n\nwild*\n");
    for pattern in ["*/nope", "nope/*", "lines/*", "[0-9]"] {
        let output = ask(&server, &["ls", pattern]);
        assert_eq!(text(&output.stderr), format!("9agents: {pattern}: no match\n"));
        assert_eq!(output.status.code(), Some(1));
    }
    // To the letter.
    assert_prints(&ask(&server, &["read", "/zoo/wild*"]), "wild");
}

#[test]
fn ps_prints_a_line_for_each_agent() {
    let agent = |pid: &str, cwd: &str, more: &[Arc<Item>]| {
        let values = [("started", "0\n"), ("zmx", ""), ("via", "none\n"), ("session", "")];
        let values = values.into_iter().chain([("model", "m\n"), ("cwd", cwd), ("title", "x\ny\n")]);
        many(pid, values.map(|(name, value)| file(name, value)).chain(more.iter().cloned()).collect())
    };
    let busy = agent("100", "/w\x1b[2J\u{9b}\n", &[file("status", "busy\n")]);
    // It ended while it was looked at.
    let ended = dir("7", [file("cwd", "/w\n"), file("pid", "7\n")]);
    let shy = many("8", ["started", "zmx", "via"].map(|name| locked(name, Refusal::HIDDEN_DATABASE)).into());
    let claude = dir("claude", [busy, agent("20", "/\n", &[]), ended, shy, file("notes", "")]);
    let root = dir("/", [dir("active", [claude, dir("dsh", []), file("x", "")])]);
    for (name, offer) in [("ps", Offer::Every), ("ps-plain", Offer::Plain), ("ps-linux", Offer::LinuxOnly)] {
        let server = Server::start(name, Arc::clone(&root), offer, MSIZE);
        let output = ask(&server, &["ps"]);
        let shown = text(&output.stdout);
        let words: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0].join(" "), "PID HARNESS STATUS STARTED ZMX VIA SESSION MODEL CWD TITLE");
        assert_eq!((words[1][0], words[1][2], words[1][8]), ("20", "-", "/"));
        assert_eq!(words[2][..3], ["100", "claude", "busy"]);
        assert_eq!(words[2][4..], ["-", "none", "-", "m", "/w\\e[2J\\u{9b}", "x\\ny"]);
        assert_eq!(words.len(), 3, "{shown}");
        let complaint = text(&output.stderr);
        assert!(
            complaint.starts_with("9agents: /active/claude/8: ") && complaint.lines().count() == 1,
            "{complaint}"
        );
        assert_eq!(output.status.code(), Some(1));
        let json = text(&ask(&server, &["ps", "--json"]).stdout);
        assert!(json.contains(r#""cwd":"/w\u001b[2J\u009b""#) && json.contains(r#""status":null"#), "{json}");
    }
    let none = Server::start("ps-none", tree(), Offer::Every, MSIZE);
    let output = ask(&none, &["ps"]);
    assert_eq!(text(&output.stderr), "9agents: /active: file does not exist\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn stat_prints_a_line_for_each_fact() {
    let server = Server::start("stat", tree(), Offer::Every, MSIZE);
    let output = ask(&server, &["stat", "lines", "/"]);
    let shown = text(&output.stdout);
    let (lines, root) = shown.split_once("\n\n").unwrap();
    let (facts, qid) = lines.rsplit_once('\n').unwrap();
    assert_eq!(
        facts,
        "path      /lines\n\
         name      lines\n\
         kind      file\n\
         mode      -r--r--r-- (0444)\n\
         length    14\n\
         owner     glenda\n\
         group     bunnies\n\
         changer   glenda\n\
         modified  2024-11-29 21:03:00 +00:00\n\
         accessed  2024-11-29 21:03:00 +00:00"
    );
    assert!(qid.starts_with("qid       path 0000") && qid.ends_with(" version 00000001 type 00"), "{qid}");
    assert!(root.contains("kind      directory\nmode      dr-xr-xr-x (0555)\n"), "{root}");
}

#[test]
fn write_replaces_a_file_with_stdin() {
    let slot = slot("slot");
    let server = Server::start("write", dir("/", [Arc::clone(&slot)]), Offer::Every, MSIZE);
    let mut child = spawn(&mut command(&["write", "-a", &server.address(), "/slot"]));
    child.stdin.take().unwrap().write_all(b"a name\n").unwrap();
    assert_prints(&child.wait_with_output().unwrap(), "");
    assert_eq!(slot.written(), [(0, b"a name\n".to_vec())]);
    let output = ask(&server, &["write", "/nope"]);
    assert_eq!(text(&output.stderr), "9agents: /nope: file does not exist\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_closed_pipe_ends_a_verb_quietly() {
    let root = many("/", (0..20_000).map(|at| file(&format!("{at:0200}"), "")).collect());
    let server = Server::start("pipe", root, Offer::Every, MSIZE);
    let big = Server::start("pipe-cat", dir("/", [file("big", vec![b'x'; 1 << 22])]), Offer::Every, MSIZE);
    for (server, args) in [(&server, &["ls"][..]), (&big, &["cat", "big"]), (&big, &["read", "big"])] {
        let mut child = spawn(&mut command(&with_address(server, args)));
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(0)), "{args:?}");
    }
}

#[test]
fn an_output_that_fails_is_told_of() {
    let server = Server::start("full", tree(), Offer::Every, MSIZE);
    let asking = [&["ls"][..], &["cat", "lines"], &["stat", "/"]].map(|args| with_address(&server, args));
    let telling = [&["version"][..], &["help"], &["completions", "bash"]];
    let telling = telling.map(|args| args.iter().map(|arg| (*arg).to_owned()).collect());
    for args in asking.into_iter().chain(telling) {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(&args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(
            text(&output.stderr),
            "9agents: cannot write to stdout: No space left on device\n",
            "{args:?}"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn content_is_passed_on_as_it_comes() {
    let server = Server::listen("drip", |mut stream| {
        let mut wire = cli_toy::Offering::new(cli_toy::session(&tree(), MSIZE), Offer::Every);
        drip(&mut stream, &mut wire);
    });
    let mut child = spawn(&mut command(&["read", "-a", &server.address(), "/lines"]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The server keeps back the end of the file for a minute.
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn read_asks_for_one_piece_at_a_time() {
    let root = dir("/", [file("long", vec![b'x'; 20_000])]);
    let server = Server::listen("step", move |mut stream| {
        let mut wire = cli_toy::Offering::new(cli_toy::session(&root, 4096), Offer::Every);
        let mut requests = cli_toy::Frames::default();
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            if requests.cut(&bytes[..count]).len() != 1 {
                return;
            }
            wire.send(&bytes[..count]).unwrap();
            let mut replies = Vec::new();
            while let Ok(1..) = wire.receive(&mut replies) {}
            stream.write_all(&replies).unwrap();
        }
    });
    assert_prints(&ask(&server, &["read", "/long"]), &"x".repeat(20_000));
    let cat = ask(&server, &["cat", "/long"]);
    assert_eq!(text(&cat.stderr), "9agents: /long: the server closed the connection\n");
}

#[test]
fn servers_of_other_dialects_are_asked_too() {
    for (name, offer) in [("plain", Offer::Plain), ("linux", Offer::LinuxOnly)] {
        let server = Server::start(name, tree(), offer, MSIZE);
        assert_prints(&ask(&server, &["cat", "lines", "zoo/ape"]), "one\ntwo\nthree\nape");
        assert_prints(&ask(&server, &["ls", "zoo"]), "ape\nbat\\e[31m\\n\nwild*\n");
        let owner = if offer == Offer::Plain { "glenda" } else { "7" };
        assert_prints(
            &ask(&server, &["ls", "-l", "lines"]),
            &format!("-r--r--r-- {owner} 14 Nov 29  2024 /lines\n"),
        );
        let missing = ask(&server, &["cat", "nope"]);
        let words = if offer == Offer::Plain { "file does not exist" } else { "No such file or directory" };
        assert_eq!(text(&missing.stderr), format!("9agents: /nope: {words}\n"));
    }
}

#[test]
fn what_is_no_server_is_told_of_at_once() {
    let unknown = Server::start("unknown", tree(), Offer::Nothing, MSIZE);
    let shut = Server::listen("shut", drop);
    let noisy = Server::listen("noisy", |mut stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.9\r\n");
        let _ = stream.read(&mut [0; 64]);
    });
    for (server, words) in [
        (&unknown, "the server does not speak 9P2000, 9P2000.u or 9P2000.L"),
        (
            &shut,
            "the server closed the connection at once: it has as many as it takes (9agents: 256), or is not for this user",
        ),
        (&noisy, "the server breaks the protocol: a frame of an impossible size"),
    ] {
        let output = ask(server, &["ls"]);
        assert_eq!(text(&output.stderr), format!("9agents: {}: {words}\n", server.address()));
        assert_eq!(output.status.code(), Some(1));
    }
    let nobody = command(&["ls", "-a", "unix!/nonexistent/s"]).output().unwrap();
    assert_eq!(
        text(&nobody.stderr),
        "9agents: unix!/nonexistent/s: cannot connect: No such file or directory\n"
    );
    assert_eq!(nobody.status.code(), Some(1));
}

#[test]
fn a_connection_that_ends_midway_costs_the_paths_that_are_left() {
    let server = Server::listen("midway", |mut stream| {
        let mut wire = cli_toy::Offering::new(cli_toy::session(&tree(), MSIZE), Offer::Every);
        // Version, attach, and what it takes to find and open the first file.
        hang_up_after(&mut stream, &mut wire, 5);
    });
    let output = ask(&server, &["cat", "lines", "zoo/ape"]);
    assert_eq!(
        text(&output.stderr),
        "9agents: /lines: the server closed the connection\n\
         9agents: /zoo/ape: the connection to the server was lost\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_connection_that_ends_in_a_listing_is_told_of_once() {
    let root = many("/", (0..50).map(|at| dir(&format!("{at}"), [])).collect());
    let server = Server::listen("lost", move |mut stream| {
        let mut wire = cli_toy::Offering::new(cli_toy::session(&root, MSIZE), Offer::Every);
        hang_up_after(&mut stream, &mut wire, 25);
    });
    let words = "the server closed the connection";
    let listed = text(&ask(&server, &["ls", "-R"]).stderr);
    assert!(listed.ends_with(&format!(": {words}\n")) && listed.lines().count() == 1, "{listed}");
    let found = text(&ask(&server, &["stat", "*", "1"]).stderr);
    let (first, second) = found.split_once('\n').unwrap();
    assert!(first.ends_with(words), "{found}");
    assert_eq!(second, "9agents: /1: the connection to the server was lost\n");
}

#[test]
fn a_command_line_without_sense_is_a_usage_error() {
    let home = Home::new("usage");
    for (args, words) in [
        (&["frobnicate"][..], "frobnicate"),
        (&["cat"], "<PATH>"),
        (&["ls", "-a", "nowhere"], "unix!PATH, tcp!HOST!PORT"),
        (&["--no-post"], "nothing to listen on"),
        (&["serve", "--no-post"], "nothing to listen on"),
        (&["--root", "claude=/a", "--root", "claude=/b"], "--root claude=PATH is given more than once"),
        (&["ls", "--root", "claude=rel"], "absolute"),
        (&["help", "frobnicate"], "there is no verb `frobnicate`"),
    ] {
        let output = home.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_a_server_the_files_are_read_here() {
    let home = Home::new("inproc");
    assert_prints(&home.command(&["cat", "/claude/projects/-home-me/s.jsonl"]).output().unwrap(), "{}\n");
    let ls = home.command(&["ls", "/codex"]).output().unwrap();
    assert_prints(&ls, "sessions\n");
    // No home, no runtime directory: what is pinned is enough.
    let pinned = ["claude", "codex", "omp", "hermes", "dsh"]
        .map(|name| format!("--root={name}={}", home.0.join(".claude").display()));
    let mut args = vec!["ls", "/claude/projects"];
    args.extend(pinned.iter().map(String::as_str));
    let output = home.command(&args).env_remove("HOME").env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert_prints(&output, "-home-me\n");
    let homeless = home.command(&["ls"]).env_remove("HOME").output().unwrap();
    assert!(text(&homeless.stderr).starts_with("9agents: HOME is not set"), "{}", text(&homeless.stderr));
    assert_eq!(homeless.status.code(), Some(1));
}

#[test]
fn the_posted_server_is_asked_while_it_lives() {
    let home = Home::new("posted");
    let own = text(&home.command(&["cat", "/pid"]).output().unwrap().stdout);
    let mut daemon = Daemon::start(&home, &["--tcp", "127.0.0.1:0"]);
    let pid = format!("{}\n", daemon.child.id());
    assert_ne!(own, pid);
    assert_prints(&home.command(&["cat", "/pid"]).output().unwrap(), &pid);
    let tcp = daemon.addresses.iter().find(|address| address.starts_with("tcp!")).unwrap();
    assert_prints(&home.command(&["cat", "-a", tcp, "/pid"]).output().unwrap(), &pid);
    // What is said of the machine is not for the server to hear.
    let root = format!("claude={}", home.0.join("none").display());
    assert_prints(&home.command(&["ls", "--root", &root, "/claude/projects"]).output().unwrap(), "");
    let second = home.command(&[]).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second.stderr).ends_with("9agents: the name `agents` is already posted by a live server\n")
    );
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    // Its socket is still there, and nobody listens.
    assert!(home.0.join("run/9p/agents").exists());
    assert_ne!(text(&home.command(&["cat", "/pid"]).output().unwrap().stdout), pid);
}

#[test]
fn help_shows_the_tree_and_where_to_dial() {
    let home = Home::new("help");
    let help = home.command(&["help"]).output().unwrap();
    let shown = text(&help.stdout);
    assert!(shown.contains("/active/"));
    assert!(shown.contains(&format!("unix!{}/run/9p/agents", home.0.display())), "{shown}");
    assert!(shown.lines().all(|line| line.len() <= 120), "{shown}");
    let unset = home.command(&["help"]).env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert!(text(&unset.stdout).contains("XDG_RUNTIME_DIR is not set"));
    assert!(text(&home.command(&["help", "ls"]).output().unwrap().stdout).contains("-R"));
    assert!(text(&home.command(&["--help"]).output().unwrap().stdout).contains("9agents help"));
}

#[test]
fn the_version_is_told_with_what_the_machine_offers() {
    let home = Home::new("version");
    let version = format!("9agents {}\n", env!("CARGO_PKG_VERSION"));
    assert_prints(&home.command(&["version"]).output().unwrap(), &version);
    assert_prints(&home.command(&["--version"]).output().unwrap(), &version);
    let verbose = text(&home.command(&["version", "--verbose"]).output().unwrap().stdout);
    assert!(verbose.starts_with(&version));
    for fact in ["driver    ", "kernel    Linux ", "openat2", "claude    ", ".hermes (not there)"] {
        assert!(verbose.contains(fact), "{fact}: {verbose}");
    }
}

#[test]
fn every_shell_gets_a_completion() {
    let home = Home::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = home.command(&["completions", shell]).output().unwrap();
        assert!(output.status.success() && text(&output.stdout).contains("no-post"), "{shell}");
    }
}

#[test]
fn times_are_local() {
    let server = Server::start("zone", tree(), Offer::Every, MSIZE);
    let args = with_address(&server, &["stat", "lines"]);
    let output = command(&args).env("TZ", "<+0530>-05:30").output().unwrap();
    assert!(
        text(&output.stdout).contains("modified  2024-11-30 02:33:00 +05:30\n"),
        "{}",
        text(&output.stdout)
    );
}

fn tree() -> Arc<Item> {
    let zoo = dir("zoo", [file("ape", "ape"), file("bat\x1b[31m\n", "bat"), file("wild*", "wild")]);
    let secret = locked("secret", Refusal::HIDDEN_DATABASE);
    dir("/", [zoo, file("lines", "one\ntwo\nthree\n"), slot("slot"), secret, file(".hidden", "h")])
}

/// Runs a verb against a server, which must not take long.
fn ask(server: &Server, args: &[&str]) -> Output {
    let started = Instant::now();
    let output = command(&with_address(server, args)).output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(20));
    output
}

fn with_address(server: &Server, args: &[&str]) -> Vec<String> {
    let mut all = vec![args[0].to_owned(), "-a".to_owned(), server.address()];
    all.extend(args[1..].iter().map(|arg| (*arg).to_owned()));
    all
}

fn command(args: &[impl AsRef<std::ffi::OsStr>]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_9agents"));
    command.args(args).env("TZ", "UTC").stdin(Stdio::null());
    command
}

fn spawn(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn assert_prints(output: &Output, expected: &str) {
    assert_eq!(text(&output.stderr), "");
    assert_eq!(text(&output.stdout), expected);
    assert_eq!(output.status.code(), Some(0));
}

/// Answers, but sends a file's content in two parts with a long pause between, and its end never.
fn drip(stream: &mut UnixStream, wire: &mut cli_toy::Offering) {
    serve_some(stream, wire, |reply, stream| {
        if reply[4] != proto::message::RREAD {
            return stream.write_all(reply).is_ok();
        }
        let tag = u16::from_le_bytes([reply[5], reply[6]]);
        let mut part = vec![0; 64];
        let size = proto::Rmessage::Read { data: b"one\ntwo\n" }.encode(tag, proto::Dialect::Unix, &mut part);
        let sent = stream.write_all(&part[..size.unwrap()]).is_ok();
        thread::sleep(Duration::from_secs(60));
        sent
    });
}

/// Answers so many requests.
fn hang_up_after(stream: &mut UnixStream, wire: &mut cli_toy::Offering, mut requests: usize) {
    serve_some(stream, wire, |reply, stream| {
        requests -= 1;
        stream.write_all(reply).is_ok() && requests > 0
    });
}

fn serve_some(
    stream: &mut UnixStream,
    wire: &mut cli_toy::Offering,
    mut pass: impl FnMut(&[u8], &mut UnixStream) -> bool,
) {
    let mut bytes = [0; 4096];
    let mut frames = cli_toy::Frames::default();
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        wire.send(&bytes[..count]).unwrap();
        let mut replies = Vec::new();
        while let Ok(1..) = wire.receive(&mut replies) {}
        for reply in frames.cut(&replies) {
            if !pass(&reply, stream) {
                return;
            }
        }
    }
}

/// A home directory with a few files of harnesses, and a runtime directory.
struct Home(PathBuf);

impl Home {
    fn new(test: &str) -> Self {
        let home = scratch(&format!("home-{test}"));
        fs::create_dir_all(home.join(".claude/projects/-home-me")).unwrap();
        fs::write(home.join(".claude/projects/-home-me/s.jsonl"), "{}\n").unwrap();
        symlink("s.jsonl", home.join(".claude/projects/-home-me/link.jsonl")).unwrap();
        fs::create_dir(home.join("run")).unwrap();
        Self(home)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.env_clear().env("HOME", &self.0).env("XDG_RUNTIME_DIR", self.0.join("run")).env("TZ", "UTC");
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that has said where it listens.
struct Daemon {
    child: Child,
    addresses: Vec<String>,
}

impl Daemon {
    fn start(home: &Home, args: &[&str]) -> Self {
        let mut child = home.command(args).stderr(Stdio::piped()).spawn().unwrap();
        let mut addresses = Vec::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
            if let Some((_, address)) = line.split_once("listening on ") {
                addresses.push(address.to_owned());
            }
            if line.contains("serving with") {
                break;
            }
        }
        Self { child, addresses }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const MSIZE: u32 = 64 * 1024;
