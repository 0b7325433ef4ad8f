//! The words of the command line, and what they may be.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use backend::name::Root;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use drivers::choose::Driver;
use drivers::client::{Address, AddressError};
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
    disable_help_subcommand = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) serve: Serve,
}

impl Arguments {
    /// The harness that is given two roots, if one is.
    pub(crate) fn repeated_root(&self) -> Option<Root> {
        let machine = match &self.verb {
            None => &self.serve.machine,
            Some(Verb::Serve(serve)) => &serve.machine,
            Some(Verb::Ls(ls)) => &ls.dial.machine,
            Some(Verb::Cat(paths) | Verb::Stat(paths)) => &paths.dial.machine,
            Some(Verb::Read(path) | Verb::Write(path)) => &path.dial.machine,
            Some(Verb::Version(_) | Verb::Help(_) | Verb::Completions { .. }) => return None,
        };
        let roots = || machine.root.iter().map(|(root, _)| *root);
        roots()
            .enumerate()
            .find(|(at, root)| roots().take(*at).any(|earlier| earlier == *root))
            .map(|(_, root)| root)
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
    /// What carries the bytes
    #[arg(long, value_enum, default_value_t)]
    pub(crate) driver: Driver,
    #[command(flatten)]
    pub(crate) machine: Machine,
}

/// Where the tree's files are.
#[derive(Args, Clone, Debug)]
pub(crate) struct Machine {
    /// Read the harness NAME (claude, codex, omp, hermes, dsh) from the directory PATH; may be repeated
    #[arg(long, value_name = "NAME=PATH", value_parser = OsStringValueParser::new().try_map(parse_root))]
    pub(crate) root: Vec<(Root, PathBuf)>,
    /// Read processes from DIR instead of /proc
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = OsStringValueParser::new().try_map(parse_proc))]
    pub(crate) proc: Option<PathBuf>,
}

/// Which server is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Dial {
    /// Ask the server at ADDR: unix!PATH, tcp!HOST!PORT, or the path of a socket [default: the posted one, else this process]
    #[arg(short, long = "addr", value_name = "ADDR", value_parser = OsStringValueParser::new().try_map(parse_address), conflicts_with_all = ["root", "proc"])]
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
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err("DIR must be absolute") }
}

fn parse_address(text: OsString) -> Result<Address, AddressError> {
    Address::parse(&text)
}

/// The name that is posted, and that the other verbs look for.
pub(crate) const DEFAULT_NAME: &str = "agents";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

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
    fn a_repeated_root_is_found() {
        let repeated = |line| parse(line).unwrap().repeated_root();
        assert_eq!(repeated("--root claude=/a --root dsh=/a"), None);
        assert_eq!(repeated("--root claude=/a --root dsh=/a --root claude=/b"), Some(Root::Claude));
        assert_eq!(repeated("ls --root dsh=/a --root dsh=/a"), Some(Root::Dsh));
        assert_eq!(repeated("version"), None);
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
            "--no-post ls",
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
        Arguments::try_parse_from(std::iter::once("9agents").chain(line.split_whitespace()))
    }
}
