//! `help` and `completions`: what a newcomer reads first.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::{Arguments, Help};
use super::connect::posted;
use super::desk::Desk;

/// Explains the tree, or a verb.
pub(super) fn run(desk: &mut Desk, options: &Help) -> io::Result<()> {
    let Some(verb) = &options.verb else { return explain(desk) };
    let mut command = Arguments::command();
    command.build();
    match command.find_subcommand_mut(verb) {
        Some(verb) => write!(desk, "{}", verb.render_long_help()),
        None => super::usage_error(&format!("there is no verb `{verb}`")),
    }
}

/// Prints a completion script. (Collected first: the generator panics over an output that fails.)
pub(super) fn completions(desk: &mut Desk, shell: Shell) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "9agents", &mut script);
    desk.write_all(&script)
}

fn explain(desk: &mut Desk) -> io::Result<()> {
    write!(desk, "{TREE}")?;
    match posted() {
        Some(address) => writeln!(desk, "{DIAL}\n    {address}\n")?,
        None => writeln!(desk, "{NO_DIAL}\n")?,
    }
    write!(desk, "{USE}")
}

/// What `--help` ends with.
pub(super) const POINTERS: &str = "\
Without a verb it serves. The other verbs ask the server at -a ADDR, else the one that is posted, else read the files
themselves. `9agents help` explains the tree and how to reach it; `9agents help VERB` a verb.";

const TREE: &str = "\
9agents shows every coding agent on this machine as files: what Claude Code, Codex, omp, hermes and dsh have on disk,
and what is running right now. It serves them over 9P, reads everything live, keeps no copy, and shows no credentials.

The tree:
    /README             the tree explained in place
    /pid /uptime        the server's process id, and the seconds since its start
    /claude/            of ~/.claude: projects/ (the transcripts), skills/, history
    /codex/             of ~/.codex: sessions/YYYY/MM/DD/ (the transcripts), session-index, history
    /omp/               ~/.omp/agent
    /hermes/            ~/.hermes
    /dsh/               ~/.dsh
    /skills/            the skills of claude, codex and omp under one roof
    /active/            what is running: a directory for each harness, and in it one for each process, by pid

";

const DIAL: &str = "\
The server posts itself for this user's other programs at";

const NO_DIAL: &str = "\
The server would post itself at $XDG_RUNTIME_DIR/9p/agents, but XDG_RUNTIME_DIR is not set to an absolute path here:
serve with --unix PATH --no-post, and ask with -a PATH.";

const USE: &str = "\
Look around, with or without a server running:
    9agents ps
    9agents ls -l /
    9agents ls -R /claude/projects
    9agents cat '/active/*/*/cwd'
    9agents cat /claude/history | tail -n 1
    9agents --demo ps                           the same on a small invented machine, if nothing runs on this one

Serve:
    9agents                                     posted as above, until stopped
    9agents --tcp 127.0.0.1:5640                on TCP as well, for this user alone
    9agents --unix /tmp/agents --no-post        on that socket alone
    9agents --allow-move                        so that writing a name into an agent's `zmx` moves it there

Mount, or read with other clients, while it serves:
    sudo mount -t 9p -o trans=unix,version=9p2000.L $XDG_RUNTIME_DIR/9p/agents /mnt
    9pfuse unix!$XDG_RUNTIME_DIR/9p/agents ~/agents
    ssh HOST 9agents --fd 0                     the tree of another machine, on stdin and stdout

All flags: `9agents --help`; of a verb: `9agents help VERB`.
";
