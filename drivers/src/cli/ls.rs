//! `ls`.

use std::io::{self, Write};

use drivers::client::{Client, Entry, Error, Escaped, Stat, TreePath, is_directory};
use proto::Qid;

use super::arguments::Ls;
use super::connect::connect;
use super::desk::Desk;
use super::glob::expand;
use super::show::{self, Clock};

/// Lists what the command line names: files first, then one directory after the other, as ls(1) does.
pub(super) fn run(desk: &mut Desk, options: &Ls) -> io::Result<()> {
    let mut client = match connect(desk, &options.dial) {
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

/// What is in a directory, as far as it is needed.
enum Entries {
    Names(Vec<Entry>),
    Stats(Vec<Stat>),
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
                if self.client.is_lost() {
                    break;
                }
            }
        }
        Ok(operands)
    }

    /// Lists a directory, and with -R those below it. `above` are the directories it is in and itself, by their qids: one that
    /// contains itself would never end.
    fn directory(&mut self, path: &TreePath, above: &mut Vec<u64>) -> io::Result<()> {
        let entries = match self.entries(path) {
            Ok(entries) => entries,
            Err(error) => return self.desk.complain(path, &error),
        };
        if self.headed {
            let gap = if self.begun { "\n" } else { "" };
            writeln!(self.desk, "{gap}{path}:")?;
        }
        self.begun = true;
        let below = self.print(entries)?;
        for Entry { name, qid } in below.into_iter().filter(|_| self.options.recursive) {
            if self.client.is_lost() {
                break;
            }
            let path = path.join(&name);
            if above.contains(&qid.path) {
                self.desk.complain(&path, &"a directory that contains itself")?;
            } else if above.len() == DEPTH_MAX {
                self.desk
                    .complain(&path, &format_args!("not listed: more than {DEPTH_MAX} directories deep"))?;
            } else {
                above.push(qid.path);
                self.directory(&path, above)?;
                above.pop();
            }
        }
        Ok(())
    }

    /// What is in a directory: no more than is printed of it.
    fn entries(&mut self, path: &TreePath) -> Result<Entries, Error> {
        if self.options.long {
            self.client.list_stats(path).map(Entries::Stats)
        } else {
            self.client.list(path).map(Entries::Names)
        }
    }

    /// Prints a listing, and yields the directories in it.
    fn print(&mut self, entries: Entries) -> io::Result<Vec<Entry>> {
        let entries = match entries {
            Entries::Names(entries) => {
                for entry in &entries {
                    writeln!(self.desk, "{}", Escaped(&entry.name))?;
                }
                entries
            }
            Entries::Stats(stats) => {
                let rows: Vec<_> =
                    stats.into_iter().map(|stat| (Escaped(&stat.name).to_string(), stat)).collect();
                self.rows(&rows)?;
                rows.into_iter().map(|(_, stat)| Entry { name: stat.name, qid: stat.qid }).collect()
            }
        };
        Ok(entries.into_iter().filter(|entry| is_directory(entry.qid)).collect())
    }

    /// One line for each file; the columns are as wide as they must be.
    fn rows(&mut self, rows: &[(String, Stat)]) -> io::Result<()> {
        if !self.options.long {
            return rows.iter().try_for_each(|(name, _)| writeln!(self.desk, "{name}"));
        }
        let cells: Vec<_> = rows
            .iter()
            .map(|(_, stat)| {
                (Escaped(&stat.user).to_string(), stat.length.to_string(), self.clock.short(stat.mtime))
            })
            .collect();
        let width = |cell: fn(&(String, String, String)) -> &String| {
            cells.iter().map(|cells| cell(cells).chars().count()).max().unwrap_or(0)
        };
        let (owners, lengths, times) =
            (width(|cells| &cells.0), width(|cells| &cells.1), width(|cells| &cells.2));
        for ((name, stat), (owner, length, time)) in rows.iter().zip(&cells) {
            let mode = show::mode(stat.mode);
            writeln!(self.desk, "{mode} {owner:<owners$} {length:>lengths$} {time:>times$} {name}")?;
        }
        Ok(())
    }
}

/// How deep -R goes: deeper than any tree of ours, and shallow enough for any stack.
const DEPTH_MAX: usize = 256;
