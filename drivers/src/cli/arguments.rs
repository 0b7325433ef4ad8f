//! The words of the command line, and what they may be.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use backend::host::fixture::{Script, ScriptError, World};
use backend::name::Root;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use drivers::choose::Driver;
use drivers::client::{Address, AddressError, Cause};
use drivers::post;

use super::help;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "9agents",
    bin_name = "9agents",
    version,
    about = "Every coding agent on this machine as files, over 9P",
    after_help = help::POINTERS,
    disable_help_subcommand = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

impl Arguments {
    /// Reads a command line. Flags about the machine may stand before a verb, too: `9agents --demo ls`.
    ///
    /// # Errors
    /// It makes no sense; or it asks for no more than help or the version.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        let is_given =
            |flag: &&Arg| matches.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine);
        let before: Vec<&str> = command.get_arguments().filter(is_given).filter_map(Arg::get_long).collect();
        match arguments.settle(&before) {
            Ok(()) => Ok(arguments),
            Err(words) => Err(command.error(ErrorKind::ArgumentConflict, words)),
        }
    }

    /// Hands the flags before the verb to the verb, and finds flags that exclude each other.
    fn settle(&mut self, before: &[&str]) -> Result<(), String> {
        let Some(verb) = &mut self.verb else { return self.serve.check() };
        let (machine, addr) = match verb {
            Verb::Serve(serve) => (&mut serve.machine, None),
            Verb::Ls(Ls { dial, .. })
            | Verb::Ps(Ps { dial, .. })
            | Verb::Cat(Paths { dial, .. })
            | Verb::Stat(Paths { dial, .. })
            | Verb::Read(OnePath { dial, .. })
            | Verb::Write(OnePath { dial, .. }) => (&mut dial.machine, dial.addr.as_ref()),
            Verb::Launch { .. } | Verb::Version(_) | Verb::Help(_) | Verb::Completions { .. } => {
                let stray = before.first().map(|flag| format!("--{flag} cannot be used with this verb"));
                return stray.map_or(Ok(()), Err);
            }
        };
        if let Some(flag) = before.iter().find(|flag| !OF_MACHINE.contains(flag)) {
            return Err(format!("--{flag} is a flag of `serve`, and stands behind it"));
        }
        machine.join(&self.serve.machine);
        if addr.is_some() && machine.is_given() {
            return Err(format!(
                "--addr cannot be used with {}",
                OF_MACHINE.map(|flag| format!("--{flag}")).join(", ")
            ));
        }
        machine.check()?;
        match &self.verb {
            Some(Verb::Serve(serve)) => serve.check(),
            _ => Ok(()),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Serve the tree until SIGTERM or SIGINT (what is done without a verb)
    ///
    /// The socket is posted under a name, where the other verbs find it: $XDG_RUNTIME_DIR/9p/agents. It runs in the foreground;
    /// leave the background to a supervisor. What it has to say goes to stderr.
    Serve(Serve),
    /// List directories
    ///
    /// One name a line, in the order of the server; with -l also mode, owner, length in bytes and the time of the last change.
    /// Unprintable characters of a name are shown as \n, \t, \e, \u{...} and \xNN, and a backslash as two.
    Ls(Ls),
    /// List the agents that are running
    ///
    /// A line for each: its process id, its harness, what it does in the harness's own word, how long ago it was started, the zmx
    /// session it lives in, how its session was found, the session, the model, the directory it works in, and the title. `-` stands
    /// for what is not known. Lines are cut to the width of the terminal, or to COLUMNS if that is set, and not at all otherwise: ids to
    /// eight characters, then whatever is longest.
    Ps(Ps),
    /// Print the content of files
    ///
    /// When it takes long and stdout is not a terminal, stderr shows how far it has come, if that is one.
    Cat(Paths),
    /// Print what is known of files
    Stat(Paths),
    /// Print one file as it comes: one read at a time, each passed on at once
    ///
    /// For files that hold back an answer until there is one. PATH is taken to the letter, without wildcards.
    Read(OnePath),
    /// Replace the content of one file with stdin
    ///
    /// The file is cut to nothing; then each write is as large as the server takes, so what fits into one goes out in one.
    /// PATH is taken to the letter, without wildcards.
    Write(OnePath),
    /// Become a program, in a session of its own: what the server does to start one
    #[command(hide = true)]
    Launch {
        /// How many descriptors it may have, unless it raises that itself
        #[arg(long, value_name = "N")]
        descriptors: Option<u64>,
        /// The program and its arguments
        #[arg(value_name = "WORD", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Print the version
    Version(Version),
    /// Explain the tree, and how to reach it; or a verb
    Help(Help),
    /// Print a script that completes this command line, for a shell to load
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Flags of `serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Serve {
    /// Also listen on a unix socket at PATH; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "fd")]
    pub(crate) unix: Vec<PathBuf>,
    /// Also listen on TCP, where only this user's own processes are let in; port 0 takes a free one; may be repeated
    #[arg(long, value_name = "IP:PORT", conflicts_with = "fd")]
    pub(crate) tcp: Vec<SocketAddr>,
    /// Serve one session over the connected stream on descriptor N, and end with it; 0 may be a pipe, with 1 for the answers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(RawFd).range(0..))]
    pub(crate) fd: Option<RawFd>,
    /// Do not post the socket under a name
    #[arg(long)]
    pub(crate) no_post: bool,
    /// Post under NAME: listen on $XDG_RUNTIME_DIR/9p/NAME
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME, conflicts_with_all = ["fd", "no_post"])]
    pub(crate) name: post::Name,
    /// Let --tcp listen on an address that other machines reach. Whoever connects there sees everything
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Let clients move agents between zmx sessions, by writing a name into an agent's zmx. Never over TCP
    #[arg(long)]
    pub(crate) allow_move: bool,
    /// The zmx that agents are moved with [default: the one in PATH]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath, requires = "allow_move", value_parser = OsStringValueParser::new().try_map(parse_absolute))]
    pub(crate) zmx: Option<PathBuf>,
    /// What carries the bytes
    #[arg(long, value_enum, default_value_t)]
    pub(crate) driver: Driver,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

impl Serve {
    /// Finds flags that exclude each other.
    fn check(&self) -> Result<(), String> {
        // Who has a pid there need not have it here, where it would be signalled.
        if self.allow_move && self.machine.proc.is_some() {
            return Err(MOVE_NEEDS_PROC.to_owned());
        }
        self.machine.check()
    }
}

/// Which machine is shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct Machine {
    /// Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated
    #[arg(long, value_name = "NAME=PATH", value_parser = OsStringValueParser::new().try_map(parse_root))]
    pub(crate) root: Vec<(Root, PathBuf)>,
    /// Read processes from DIR instead of /proc
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = OsStringValueParser::new().try_map(parse_proc))]
    pub(crate) proc: Option<PathBuf>,
    /// Show a small invented machine instead of this one, with an agent of each harness
    #[arg(long)]
    pub(crate) demo: bool,
    /// Show the machine that the script FILE describes instead of this one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = OsStringValueParser::new().try_map(parse_fixture))]
    pub(crate) fixture: Option<World>,
}

impl Machine {
    /// Whether anything is said of it, so that no server is to be asked.
    pub(crate) fn is_given(&self) -> bool {
        !self.root.is_empty() || self.proc.is_some() || self.is_simulated()
    }

    /// Whether it is no real one.
    pub(crate) fn is_simulated(&self) -> bool {
        self.demo || self.fixture.is_some()
    }

    /// The simulated machine, as it is at the beginning.
    pub(crate) fn simulated(&self) -> Option<World> {
        if self.demo { Some(World::demo()) } else { self.fixture.clone() }
    }

    /// Takes over what was said of it earlier.
    fn join(&mut self, earlier: &Self) {
        self.root.splice(..0, earlier.root.iter().cloned());
        self.proc = self.proc.take().or_else(|| earlier.proc.clone());
        self.demo |= earlier.demo;
        self.fixture = self.fixture.take().or_else(|| earlier.fixture.clone());
    }

    /// Finds flags that exclude each other.
    fn check(&self) -> Result<(), String> {
        let roots = || self.root.iter().map(|(root, _)| *root);
        let mut repeated =
            roots().enumerate().filter(|(at, root)| roots().take(*at).any(|earlier| earlier == *root));
        if let Some((_, root)) = repeated.next() {
            return Err(format!("--root {}=PATH is given more than once", root.as_str()));
        }
        let is_pinned = !self.root.is_empty() || self.proc.is_some();
        match (self.demo, self.fixture.is_some()) {
            (true, true) => Err("--demo cannot be used with --fixture".to_owned()),
            (true, _) if is_pinned => Err("--demo cannot be used with --root and --proc".to_owned()),
            (_, true) if is_pinned => Err("--fixture cannot be used with --root and --proc".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Which server is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Dial {
    /// Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]
    #[arg(short, long = "addr", value_name = "ADDR", value_parser = OsStringValueParser::new().try_map(parse_address))]
    pub(crate) addr: Option<Address>,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// Flags of `ls`.
#[derive(Args, Debug)]
pub(crate) struct Ls {
    /// Print mode, owner, length, time and name
    #[arg(short)]
    pub(crate) long: bool,
    /// List the directories in directories, too
    #[arg(short = 'R')]
    pub(crate) recursive: bool,
    #[command(flatten)]
    pub(crate) dial: Dial,
    /// What to list; *, ? and [...] stand for the names that match
    #[arg(value_name = "PATH", default_value = "/")]
    pub(crate) paths: Vec<OsString>,
}

/// Flags of `ps`.
#[derive(Args, Debug)]
pub(crate) struct Ps {
    /// Cut nothing
    #[arg(short)]
    pub(crate) wide: bool,
    /// Print an array of objects, for scripts: what is not known is null, and `started` is in seconds since 1970
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) dial: Dial,
}

/// Files of the tree, at least one.
#[derive(Args, Debug)]
pub(crate) struct Paths {
    #[command(flatten)]
    pub(crate) dial: Dial,
    /// The files; *, ? and [...] stand for the names that match
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<OsString>,
}

/// One file of the tree.
#[derive(Args, Debug)]
pub(crate) struct OnePath {
    #[command(flatten)]
    pub(crate) dial: Dial,
    /// The file
    #[arg(value_name = "PATH")]
    pub(crate) path: OsString,
}

/// Flags of `version`.
#[derive(Args, Debug)]
pub(crate) struct Version {
    /// Also print what this machine offers, and what of it would be used
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// Arguments of `help`.
#[derive(Args, Debug)]
pub(crate) struct Help {
    /// The verb to explain
    #[arg(value_name = "VERB")]
    pub(crate) verb: Option<String>,
}

/// `NAME=PATH` of `--root`.
fn parse_root(text: OsString) -> Result<(Root, PathBuf), String> {
    let bytes = text.into_vec();
    let Some(at) = bytes.iter().position(|&byte| byte == b'=') else {
        return Err("it must be NAME=PATH".to_owned());
    };
    let (name, path) = (&bytes[..at], PathBuf::from(OsStr::from_bytes(&bytes[at + 1..])));
    let root = Root::HARNESSES.into_iter().find(|root| root.as_str().as_bytes() == name);
    let root =
        root.ok_or_else(|| format!("NAME must be one of {}", Root::HARNESSES.map(Root::as_str).join(", ")))?;
    if !path.is_absolute() {
        return Err("PATH must be absolute".to_owned());
    }
    Ok((root, path))
}

fn parse_proc(text: OsString) -> Result<PathBuf, &'static str> {
    parse_absolute(text).map_err(|_| "DIR must be absolute")
}

fn parse_absolute(text: OsString) -> Result<PathBuf, &'static str> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("PATH must be absolute") }
}

/// The machine that a script describes. Read at once: what is wrong with it is wrong with the command line.
fn parse_fixture(file: OsString) -> Result<World, FixtureError> {
    let mut text = String::new();
    File::open(&file)?.take(FIXTURE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FIXTURE_BYTES {
        return Err(FixtureError::TooLarge);
    }
    Ok(Script::parse(&text)?.world()?)
}

/// Why a script describes no machine.
#[derive(Debug, thiserror::Error)]
enum FixtureError {
    /// It cannot be read, or is no text.
    #[error("{}", Cause(.0))]
    Read(#[from] io::Error),
    /// It is too long.
    #[error("longer than {} MiB", FIXTURE_BYTES >> 20)]
    TooLarge,
    /// What a line says cannot be.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

fn parse_address(text: OsString) -> Result<Address, AddressError> {
    Address::parse(&text)
}

/// The name that is posted, and that the other verbs look for.
pub(crate) const DEFAULT_NAME: &str = "agents";
const MOVE_NEEDS_PROC: &str = "--allow-move cannot be used with --proc";
/// The flags of [`Machine`].
pub(super) const OF_MACHINE: [&str; 4] = ["root", "proc", "demo", "fixture"];
/// The longest script: one that holds a whole home would be longer.
const FIXTURE_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_no_fault() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn without_a_verb_it_serves() {
        let arguments = parse("--tcp 127.0.0.1:0 --tcp [::1]:5640 --unix a --unix b --no-post").unwrap();
        assert!(arguments.verb.is_none());
        assert_eq!(arguments.serve.tcp.len(), 2);
        assert_eq!(arguments.serve.unix.len(), 2);
        assert!(matches!(parse("serve --no-post --fd 0").unwrap().verb, Some(Verb::Serve(_))));
        assert_eq!(parse("").unwrap().serve.name.to_string(), DEFAULT_NAME);
    }

    #[test]
    fn roots_are_named_and_absolute() {
        let arguments = parse("--root claude=/a=b --root dsh=/").unwrap();
        assert_eq!(arguments.serve.machine.root, [(Root::Claude, "/a=b".into()), (Root::Dsh, "/".into())]);
        for (line, words) in [
            ("--root claude", "NAME=PATH"),
            ("--root =/x", "one of claude, codex, omp, hermes, dsh"),
            ("--root proc=/x", "one of claude"),
            ("--root claude=x", "absolute"),
            ("--root claude=", "absolute"),
            ("ls --root nobody=/x", "one of claude"),
            ("--proc proc", "absolute"),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}");
            assert!(error.to_string().contains(words), "{line}: {error}");
        }
    }

    #[test]
    fn what_is_said_of_the_machine_before_a_verb_is_said_to_the_verb() {
        let line = "--root claude=/a --proc /p ls --root dsh=/b";
        let Some(Verb::Ls(ls)) = parse(line).unwrap().verb else { panic!("not ls") };
        assert_eq!(ls.dial.machine.root, [(Root::Claude, "/a".into()), (Root::Dsh, "/b".into())]);
        assert_eq!(ls.dial.machine.proc, Some("/p".into()));
        for line in ["--demo ps", "ps --demo"] {
            let Some(Verb::Ps(ps)) = parse(line).unwrap().verb else { panic!("not ps") };
            assert!(ps.dial.machine.demo && !ps.wide, "{line}");
        }
        let Some(Verb::Serve(serve)) = parse("--demo serve --no-post").unwrap().verb else {
            panic!("not serve")
        };
        assert!(serve.machine.demo && serve.no_post);
        assert!(parse("--demo --no-post").unwrap().serve.machine.demo);
    }

    #[test]
    fn flags_that_exclude_each_other() {
        for line in [
            "--fd 0 --tcp 127.0.0.1:0",
            "--fd 0 --unix x",
            "--fd 0 --name x",
            "--no-post --name x",
            "ls -a unix!x --root claude=/x",
            "ls -a unix!x --proc /proc",
            "ls -a unix!x --demo",
            "--demo ls -a unix!x",
            "--demo --proc /proc",
            "--demo ls --root claude=/x",
            "--no-post ls",
            "--no-post serve",
            "--demo version",
            "--root claude=/a --root dsh=/a --root claude=/b",
            "--root dsh=/a ls --root dsh=/a",
            "--allow-move --proc /p",
            "serve --allow-move --proc /p",
            "--proc /p serve --allow-move",
            "--allow-move serve",
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), ErrorKind::ArgumentConflict, "{line}");
        }
    }

    #[test]
    fn what_is_missing_or_malformed_is_refused() {
        for line in [
            "cat",
            "stat",
            "read",
            "write",
            "read a b",
            "completions",
            "completions tcsh",
            "frobnicate",
            "launch",
            "--zmx /z",
            "--allow-move --zmx z",
            "ls --allow-move",
            "-x",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
        for line in
            ["--tcp localhost:1", "--tcp 1.2.3.4", "--fd -1", "--fd x", "--name a/b", "--driver x", "ls -a x"]
        {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn ls_lists_the_root_by_default() {
        let Some(Verb::Ls(ls)) = parse("ls -lR").unwrap().verb else { panic!("not ls") };
        assert!(ls.long && ls.recursive);
        assert_eq!(ls.paths, ["/"]);
    }

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::read(std::iter::once("9agents").chain(line.split_whitespace()).map(OsString::from))
    }
}
