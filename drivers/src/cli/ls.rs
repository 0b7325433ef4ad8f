//! `ls`.

use std::io::{self, Write};

use drivers::client::{Client, Escaped, Stat, TreePath};
use proto::Qid;

use super::arguments::Ls;
use super::connect::connect;
use super::desk::Desk;
use super::glob::expand;
use super::show::{self, Clock};

/// Lists what the command line names: files first, then one directory after the other, as ls(1) does.
pub(super) fn run(desk: &mut Desk, options: &Ls) -> io::Result<()> {
    let mut client = match connect(&options.dial) {
        Ok(client) => client,
        Err(error) => {
            desk.lament(&error);
            return Ok(());
        }
    };
    let mut listing =
        Listing { desk, client: &mut client, options, clock: Clock::new(), headed: false, begun: false };
    let Operands { files, directories } = listing.operands()?;
    listing.headed = options.recursive || files.len() + directories.len() > 1;
    listing.rows(&files)?;
    listing.begun = !files.is_empty();
    for (path, qid) in directories {
        listing.directory(&path, &mut vec![qid.path])?;
    }
    Ok(())
}

struct Listing<'a> {
    desk: &'a mut Desk,
    client: &'a mut Client,
    options: &'a Ls,
    clock: Clock,
    /// Whether a directory's names stand under its path.
    headed: bool,
    /// Whether something has been printed, from which a directory is set off.
    begun: bool,
}

/// What there is at the paths of the command line.
#[derive(Default)]
struct Operands {
    /// What they are called, and what is known of them.
    files: Vec<(String, Stat)>,
    directories: Vec<(TreePath, Qid)>,
}

impl Listing<'_> {
    fn operands(&mut self) -> io::Result<Operands> {
        let mut operands = Operands::default();
        for spelled in &self.options.paths {
            let bytes = spelled.as_encoded_bytes();
            let paths = match expand(self.client, bytes) {
                Ok(paths) => paths,
                Err(error) => {
                    self.desk.complain(&Escaped(bytes), &error)?;
                    continue;
                }
            };
            for path in paths {
                match self.client.stat(&path) {
                    Ok(stat) if stat.is_directory() => operands.directories.push((path, stat.qid)),
                    Ok(stat) => operands.files.push((path.to_string(), stat)),
                    Err(error) => self.desk.complain(&path, &error)?,
                }
            }
        }
        Ok(operands)
    }

    /// Lists a directory, and with -R those below it. `above` are the directories it is in and itself, by their qids: one that
    /// contains itself would never end.
    fn directory(&mut self, path: &TreePath, above: &mut Vec<u64>) -> io::Result<()> {
        let stats = match self.client.list_stats(path) {
            Ok(stats) => stats,
            Err(error) => return self.desk.complain(path, &error),
        };
        if self.headed {
            let gap = if self.begun { "\n" } else { "" };
            writeln!(self.desk, "{gap}{path}:")?;
        }
        self.begun = true;
        let rows: Vec<_> = stats.iter().map(|stat| (Escaped(&stat.name).to_string(), stat)).collect();
        self.rows(&rows)?;
        if !self.options.recursive {
            return Ok(());
        }
        for stat in stats.iter().filter(|stat| stat.is_directory()) {
            let path = path.join(&stat.name);
            if above.contains(&stat.qid.path) {
                self.desk.complain(&path, &"a directory that contains itself")?;
                continue;
            }
            if above.len() == DEPTH_MAX {
                self.desk
                    .complain(&path, &format_args!("not listed: more than {DEPTH_MAX} directories deep"))?;
                continue;
            }
            above.push(stat.qid.path);
            self.directory(&path, above)?;
            above.pop();
        }
        Ok(())
    }

    /// One line for each file; the columns are as wide as they must be.
    fn rows<S: std::borrow::Borrow<Stat>>(&mut self, rows: &[(String, S)]) -> io::Result<()> {
        if !self.options.long {
            return rows.iter().try_for_each(|(name, _)| writeln!(self.desk, "{name}"));
        }
        let cells: Vec<_> = rows
            .iter()
            .map(|(_, stat)| {
                let stat = stat.borrow();
                (Escaped(&stat.user).to_string(), stat.length.to_string(), self.clock.short(stat.mtime))
            })
            .collect();
        let width = |cell: fn(&(String, String, String)) -> &String| {
            cells.iter().map(|cells| cell(cells).chars().count()).max().unwrap_or(0)
        };
        let (owners, lengths, times) =
            (width(|cells| &cells.0), width(|cells| &cells.1), width(|cells| &cells.2));
        for ((name, stat), (owner, length, time)) in rows.iter().zip(&cells) {
            let mode = show::mode(stat.borrow().mode);
            writeln!(self.desk, "{mode} {owner:<owners$} {length:>lengths$} {time:>times$} {name}")?;
        }
        Ok(())
    }
}

/// How deep -R goes: deeper than any tree of ours, and shallow enough for any stack.
const DEPTH_MAX: usize = 256;
