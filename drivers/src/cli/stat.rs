//! `stat`.

use std::io::{self, Write};

use drivers::client::{Escaped, Stat, TreePath};

use super::arguments::Paths;
use super::connect::connect;
use super::desk::Desk;
use super::glob::expand;
use super::show::{self, Clock};

/// Prints what is known of each file: a line for each fact, an empty line between files.
pub(super) fn run(desk: &mut Desk, options: &Paths) -> io::Result<()> {
    let mut client = match connect(desk, &options.dial) {
        Ok(client) => client,
        Err(error) => {
            desk.lament(&error);
            return Ok(());
        }
    };
    let clock = Clock::new();
    let mut gap = "";
    for spelled in &options.paths {
        let bytes = spelled.as_encoded_bytes();
        let paths = match expand(&mut client, bytes) {
            Ok(paths) => paths,
            Err(error) => {
                desk.complain(&Escaped(bytes), &error)?;
                continue;
            }
        };
        for path in paths {
            match client.stat(&path) {
                Ok(stat) => {
                    desk.write_all(gap.as_bytes())?;
                    facts(desk, &path, &stat, &clock)?;
                    gap = "\n";
                }
                Err(error) => desk.complain(&path, &error)?,
            }
            if client.is_lost() {
                break;
            }
        }
    }
    Ok(())
}

fn facts(desk: &mut Desk, path: &TreePath, stat: &Stat, clock: &Clock) -> io::Result<()> {
    writeln!(desk, "path      {path}")?;
    writeln!(desk, "name      {}", Escaped(&stat.name))?;
    writeln!(desk, "kind      {}", show::kind(stat))?;
    writeln!(desk, "mode      {} ({:04o})", show::mode(stat.mode), stat.mode & 0o777)?;
    writeln!(desk, "length    {}", stat.length)?;
    writeln!(desk, "owner     {}", Escaped(&stat.user))?;
    writeln!(desk, "group     {}", Escaped(&stat.group))?;
    if !stat.changer.is_empty() {
        writeln!(desk, "changer   {}", Escaped(&stat.changer))?;
    }
    writeln!(desk, "modified  {}", clock.long(stat.mtime))?;
    writeln!(desk, "accessed  {}", clock.long(stat.atime))?;
    let qid = stat.qid;
    writeln!(desk, "qid       path {:016x} version {:08x} type {:02x}", qid.path, qid.version, qid.kind)
}
