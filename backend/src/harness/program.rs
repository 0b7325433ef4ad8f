//! What a process runs, as its arguments and the path of its executable tell.
//!
//! Owns: interpreters and how their own options are skipped, and where the first word of a command line stands. Must not
//! know: harnesses. Everything here is a function of its arguments.

/// A program and its arguments.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    argv: Vec<&'a str>,
    exe: &'a str,
}

/// What an interpreter was given to run.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Runs<'a> {
    /// A file.
    Script(&'a str),
    /// A module, by `python -m`.
    Module(&'a str),
}

/// An interpreter at work.
#[derive(Debug)]
pub(super) struct Interpreted<'a, 'p> {
    pub(super) by: Interpreter,
    pub(super) runs: Runs<'a>,
    /// The arguments of what it runs.
    pub(super) args: &'p [&'a str],
}

/// An interpreter that harnesses are run by.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Interpreter {
    Node,
    Bun,
    Deno,
    Python,
}

impl<'a> Program<'a> {
    /// `cmdline`: the arguments, each ended by NUL (the last NUL may lack, and a process that shows a title in their place
    /// may leave many). `exe`: the path of the executable, empty where it is not known.
    pub(crate) fn new(cmdline: &'a str, exe: &'a str) -> Self {
        Self { argv: cmdline.trim_end_matches('\0').split('\0').collect(), exe }
    }

    /// The path it was called by.
    pub(crate) fn called(&self) -> &'a str {
        self.argv.first().copied().unwrap_or_default()
    }

    /// The last part of the path it was called by, without the `-` in front that login shells are given.
    pub(super) fn name(&self) -> &'a str {
        let name = basename(self.called());
        name.strip_prefix('-').unwrap_or(name)
    }

    /// The path of its executable.
    pub(super) fn exe(&self) -> &'a str {
        self.exe
    }

    /// The last part of the path of its executable.
    pub(super) fn exe_name(&self) -> &'a str {
        basename(self.exe)
    }

    /// Its arguments.
    pub(crate) fn args(&self) -> &[&'a str] {
        self.argv.get(1..).unwrap_or_default()
    }

    /// What it runs, if it is an interpreter. Its own options are skipped; code on the command line or on standard input
    /// is nothing.
    pub(super) fn interpreted(&self) -> Option<Interpreted<'a, '_>> {
        let by = Interpreter::named(self.name()).or_else(|| Interpreter::named(self.exe_name()))?;
        let mut args = self.args();
        loop {
            let (first, rest) = args.split_first()?;
            args = rest;
            let script = match *first {
                "--" => {
                    let (script, rest) = args.split_first()?;
                    args = rest;
                    *script
                }
                "-" => return None,
                "run" if matches!(by, Interpreter::Bun | Interpreter::Deno) => continue,
                option if option.starts_with('-') => match by.option(option) {
                    Taking::Nothing => continue,
                    Taking::Value => {
                        args = args.get(1..)?;
                        continue;
                    }
                    Taking::Code => return None,
                    Taking::Module("") => {
                        let (module, args) = args.split_first()?;
                        return Some(Interpreted { by, runs: Runs::Module(module), args });
                    }
                    Taking::Module(module) => {
                        return Some(Interpreted { by, runs: Runs::Module(module), args });
                    }
                },
                script => script,
            };
            return Some(Interpreted { by, runs: Runs::Script(script), args });
        }
    }
}

/// What an option of an interpreter makes of what follows it.
enum Taking<'a> {
    Nothing,
    Value,
    Code,
    /// The module that is joined to it, or, if that is empty, what follows.
    Module(&'a str),
}

impl Interpreter {
    fn named(name: &str) -> Option<Self> {
        match name {
            "node" | "nodejs" => Some(Self::Node),
            "bun" => Some(Self::Bun),
            "deno" => Some(Self::Deno),
            "python" => Some(Self::Python),
            _ => name.starts_with("python3").then_some(Self::Python),
        }
    }

    /// Whether it runs JavaScript.
    pub(super) fn is_javascript(self) -> bool {
        self != Self::Python
    }

    fn option(self, option: &str) -> Taking<'_> {
        match self {
            Self::Python => {
                if option.starts_with("--") {
                    return if option == "--check-hash-based-pycs" { Taking::Value } else { Taking::Nothing };
                }
                // Letters may be joined, and the one that takes a value ends them: `-um module`, `-Xdev`.
                let letters = &option[1..];
                let Some(at) = letters.find(['m', 'c', 'X', 'W']) else { return Taking::Nothing };
                match (letters.as_bytes()[at], &letters[at + 1..]) {
                    (b'm', module) => Taking::Module(module),
                    (b'c', _) => Taking::Code,
                    (_, "") => Taking::Value,
                    _ => Taking::Nothing,
                }
            }
            Self::Node | Self::Bun | Self::Deno => match option.split_once('=') {
                Some(("--eval" | "--print", _)) => Taking::Code,
                Some(_) => Taking::Nothing,
                None if matches!(option, "-e" | "--eval" | "-p" | "--print" | "-pe") => Taking::Code,
                // The syntax check of one, and what the other has a value for behind `=` only.
                None if option == "-c" && self == Self::Node => Taking::Nothing,
                None if matches!(option, "-r" | "--env-file") && self == Self::Deno => Taking::Nothing,
                None if VALUED.contains(&option) => Taking::Value,
                None => Taking::Nothing,
            },
        }
    }
}

/// The first argument that is neither an option nor, as far as anybody can tell, the value of one: the one place where a
/// subcommand can stand.
///
/// `switches` are the options known to take no value. Any other option without `=` is taken to have one (`-p export`,
/// `--name daemon`): a word is better overlooked than taken for a command it is not.
pub(super) fn first_word<'a>(args: &[&'a str], switches: &[&str]) -> Option<&'a str> {
    in_front(args, switches).last().filter(|arg| !is_option(arg))
}

/// The options in front of that word.
pub(super) fn front_options<'a>(args: &[&'a str], switches: &[&str]) -> impl Iterator<Item = &'a str> {
    in_front(args, switches).filter(|arg| is_option(arg))
}

/// The options in front, and the first word behind them; nothing of what follows `--`.
fn in_front<'a>(args: &[&'a str], switches: &[&str]) -> impl Iterator<Item = &'a str> {
    let mut args = args.iter().copied();
    std::iter::from_fn(move || {
        let arg = args.next().filter(|arg| *arg != "--")?;
        if !is_option(arg) {
            args = [].iter().copied();
        } else if !arg.contains('=') && !switches.contains(&arg) {
            let mut after = args.clone();
            if after.next().is_some_and(|value| !value.starts_with('-')) {
                args = after;
            }
        }
        Some(arg)
    })
    .fuse()
}

fn is_option(arg: &str) -> bool {
    arg.starts_with('-') && arg != "-"
}

/// Whether the first word asks for something that is no session: a server, a worker, a report.
pub(super) fn is_service(args: &[&str], switches: &[&str], own: &[&str]) -> bool {
    first_word(args, switches).is_some_and(|word| SERVICES.contains(&word) || own.contains(&word))
}

/// Whether a path ends with these names.
pub(super) fn ends_with(path: &str, names: &[&str]) -> bool {
    let mut parts = path.rsplit('/').filter(|part| !matches!(*part, "" | "."));
    names.iter().rev().all(|name| parts.next() == Some(name))
}

/// Whether a path leads below a directory whose path ends with these names.
pub(super) fn is_below(path: &str, names: &[&str]) -> bool {
    let mut at = path;
    while let Some((dir, name)) = at.rsplit_once('/') {
        if ends_with(dir, names) && !(name.is_empty() && at == path) {
            return true;
        }
        at = dir;
    }
    false
}

/// The last part of a path.
pub(super) fn basename(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Options of runtimes of JavaScript whose value stands behind them (`node --help`, `bun --help`, `deno run --help`).
const VALUED: &[&str] = &[
    "-C",
    "-L",
    "-c",
    "-d",
    "-l",
    "-r",
    "--cert",
    "--conditions",
    "--config",
    "--cpu-prof-dir",
    "--cpu-prof-name",
    "--cwd",
    "--define",
    "--diagnostic-dir",
    "--disable-warning",
    "--dns-result-order",
    "--env-file",
    "--env-file-if-exists",
    "--experimental-loader",
    "--icu-data-dir",
    "--import",
    "--import-map",
    "--input-type",
    "--inspect-port",
    "--loader",
    "--localstorage-file",
    "--log-level",
    "--max-http-header-size",
    "--openssl-config",
    "--preload",
    "--redirect-warnings",
    "--report-dir",
    "--require",
    "--seed",
    "--title",
    "--tls-cipher-list",
    "--tsconfig-override",
    "--unhandled-rejections",
    "--watch-path",
];

/// Words that, in front, ask any of the harnesses for something that is no session.
const SERVICES: &[&str] = &[
    "gateway",
    "dashboard",
    "mcp",
    "mcp-server",
    "app-server",
    "exec-server",
    "serve",
    "server",
    "web",
    "daemon",
    "acp",
    "ps",
    "render",
    "export",
    "cron",
    "proxy",
    "portal",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(cmdline: &'static str) -> Option<(Interpreter, Runs<'static>, String)> {
        let cmdline: &'static str = cmdline.replace(' ', "\0").leak();
        let program = Program::new(cmdline, "");
        program.interpreted().map(|it| (it.by, it.runs, it.args.join(" ")))
    }

    #[test]
    fn arguments_end_at_nul_and_titles_leave_many() {
        let program = Program::new("/usr/bin/claude\0-c\0a b\0", "/x/node");
        assert_eq!(
            (program.called(), program.name(), program.args()),
            ("/usr/bin/claude", "claude", &["-c", "a b"][..])
        );
        let program = Program::new("claude\0\0\0\0\0", "");
        assert_eq!((program.name(), program.args(), program.exe_name()), ("claude", &[][..], ""));
        assert_eq!(Program::new("", "").name(), "");
        assert_eq!(Program::new("-claude", "").name(), "claude");
    }

    #[test]
    fn an_interpreters_own_options_are_skipped() {
        use Interpreter::{Bun, Deno, Node, Python};
        use Runs::{Module, Script};
        let cases = [
            ("node /x/cli.js -p hi", Some((Node, Script("/x/cli.js"), "-p hi"))),
            (
                "/usr/bin/node --max-old-space-size=8192 -r x --import y /x/codex.js",
                Some((Node, Script("/x/codex.js"), "")),
            ),
            ("node -- /x/dsh web", Some((Node, Script("/x/dsh"), "web"))),
            ("nodejs -c /x/dsh", Some((Node, Script("/x/dsh"), ""))),
            ("node --env-file .env --title me /x/dsh web", Some((Node, Script("/x/dsh"), "web"))),
            ("node --env-file=.env --inspect /x/dsh", Some((Node, Script("/x/dsh"), ""))),
            ("node --eval=1 /x/dsh", None),
            ("node -e 1 /x/dsh", None),
            ("node", None),
            ("node -", None),
            ("bun run --bun /x/omp ps", Some((Bun, Script("/x/omp"), "ps"))),
            ("deno run -r --env-file -c deno.json /x/claude", Some((Deno, Script("/x/claude"), ""))),
            ("deno run -A /x/claude", Some((Deno, Script("/x/claude"), ""))),
            ("python3 /v/bin/hermes -c", Some((Python, Script("/v/bin/hermes"), "-c"))),
            (
                "python3.12 -um hermes_cli.main gateway run",
                Some((Python, Module("hermes_cli.main"), "gateway run")),
            ),
            ("python3 -mhermes_cli.main -c", Some((Python, Module("hermes_cli.main"), "-c"))),
            ("python -X dev -W ignore -Xutf8 -E /v/bin/hermes", Some((Python, Script("/v/bin/hermes"), ""))),
            ("python -c import_x /v/bin/hermes", None),
            ("python -m", None),
            ("python2 /v/bin/hermes", None),
            ("bash /x/claude", None),
        ];
        for (cmdline, expected) in cases {
            assert_eq!(
                runs(cmdline),
                expected.map(|(by, runs, args)| (by, runs, args.to_owned())),
                "{cmdline}"
            );
        }
    }

    #[test]
    fn an_interpreter_is_known_by_its_executable_too() {
        let program = Program::new("MainThread\0/x/bin/dsh", "/usr/bin/node");
        assert_eq!(program.interpreted().map(|it| it.runs), Some(Runs::Script("/x/bin/dsh")));
    }

    #[test]
    fn a_word_counts_only_where_a_command_can_stand() {
        let switches = ["--verbose", "-v"];
        for (args, expected) in [
            ("mcp serve", Some("mcp")),
            ("--verbose -v mcp", Some("mcp")),
            ("--model=opus mcp", Some("mcp")),
            ("--model opus mcp", Some("mcp")),
            ("-p export", None),
            ("--name daemon", None),
            ("--resume --verbose ps", Some("ps")),
            ("-- mcp", None),
            ("hello mcp", Some("hello")),
            ("", None),
        ] {
            let args: Vec<&str> = args.split_ascii_whitespace().collect();
            assert_eq!(first_word(&args, &switches), expected, "{args:?}");
        }
    }

    #[test]
    fn the_end_of_a_path_is_compared_name_by_name() {
        assert!(ends_with("/a/claude-code/cli.js", &["claude-code", "cli.js"]));
        assert!(ends_with("claude-code//./cli.js", &["claude-code", "cli.js"]));
        for other in ["/a/my-claude-code/cli.js", "cli.js", "/claude-code/cli.js/x", ""] {
            assert!(!ends_with(other, &["claude-code", "cli.js"]), "{other}");
        }
        for path in ["/a/b/c", "a/b/c", "/x/a/b/c/d/e", "/a//./b/c", "/a/b/c/"] {
            assert!(is_below(path, &["a", "b"]), "{path}");
        }
        for other in ["/a/b", "/a/b/", "/xa/b/c", "/a/x/b/c", ""] {
            assert!(!is_below(other, &["a", "b"]), "{other}");
        }
    }
}
