//! What a case is, and how one is run.
//!
//! Owns: the shape of a case, the stage it is given, the verdict on one cell (case × dialect × rig), and the table of all
//! verdicts. Must not know: any case or rig.

use std::any::Any;
use std::fmt::Write;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proto::Dialect;

use crate::check::{BULK, Client, ROOT};
use crate::rig::{Need, Rig, World};
use crate::world::WorldSpec;

/// One thing a server must do.
#[derive(Copy, Clone, Debug)]
pub struct Case {
    /// Its number in the list of protocol facts, or a word for its group beyond that list.
    pub id: &'static str,
    /// What the server must do.
    pub title: &'static str,
    /// In which dialects.
    pub dialects: &'static [Dialect],
    /// What the rig must have.
    pub needs: &'static [Need],
    /// Fails by panicking.
    pub run: fn(&Stage<'_>),
}

impl Case {
    /// A case of every dialect that needs nothing in particular.
    pub const fn new(id: &'static str, title: &'static str, run: fn(&Stage<'_>)) -> Self {
        Self { id, title, dialects: &Dialect::ALL, needs: &[], run }
    }

    /// In these dialects only.
    #[must_use]
    pub const fn speaks(self, dialects: &'static [Dialect]) -> Self {
        Self { dialects, ..self }
    }

    /// With something that not every rig has.
    #[must_use]
    pub const fn needs(self, needs: &'static [Need]) -> Self {
        Self { needs, ..self }
    }
}

/// 9P2000 and 9P2000.u.
pub const LEGACY: &[Dialect] = &[Dialect::Plain, Dialect::Unix];
/// 9P2000.L alone.
pub const LINUX: &[Dialect] = &[Dialect::Linux];
/// One dialect is enough: the case is about files or bytes, which no dialect changes.
pub const ANY_ONE: &[Dialect] = &[Dialect::Plain];

/// Where a case is run: a rig and a dialect.
pub struct Stage<'r> {
    rig: &'r dyn Rig,
    /// The dialect to speak.
    pub dialect: Dialect,
}

impl<'r> Stage<'r> {
    /// A stage.
    pub fn new(rig: &'r dyn Rig, dialect: Dialect) -> Self {
        Self { rig, dialect }
    }

    /// Runs a server over some files.
    pub fn start(&self, spec: &WorldSpec) -> Arena {
        Arena { world: self.rig.start(spec), dialect: self.dialect }
    }

    /// Runs a server over some files, with a client that has attached.
    pub fn client(&self, spec: &WorldSpec) -> (Arena, Client) {
        let arena = self.start(spec);
        let client = arena.client();
        (arena, client)
    }
}

/// A running server.
pub struct Arena {
    world: Box<dyn World>,
    dialect: Dialect,
}

impl Arena {
    /// A client that has said nothing yet.
    pub fn stranger(&self) -> Client {
        Client::new(self.world.connect(), self.dialect)
    }

    /// A client that has agreed on the dialect.
    #[track_caller]
    pub fn greeted(&self, msize: u32) -> Client {
        let mut client = self.stranger();
        client.greet(msize);
        client
    }

    /// A client that has attached to the root as [`ROOT`].
    #[track_caller]
    pub fn client(&self) -> Client {
        self.client_of(BULK)
    }

    /// The same, with an msize.
    #[track_caller]
    pub fn client_of(&self, msize: u32) -> Client {
        let mut client = self.greeted(msize);
        client.attach(ROOT, "").expect("an attach to the root");
        client
    }
}

impl Deref for Arena {
    type Target = dyn World;

    fn deref(&self) -> &Self::Target {
        &*self.world
    }
}

/// What came of one cell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// As it should be.
    Passed,
    /// Not as it should be, and how.
    Failed(String),
    /// The rig declared that it cannot, and why.
    Declined(&'static str),
}

/// Runs a case on a rig in a dialect.
pub fn run(case: &Case, rig: &dyn Rig, dialect: Dialect) -> Verdict {
    if let Some(why) = rig.absent() {
        let forbidden = std::env::var_os("NINEAGENTS_NO_SKIPS").is_some_and(|value| value == "1");
        return if forbidden { Verdict::Failed(why.to_owned()) } else { Verdict::Declined(why) };
    }
    if let Some((_, why)) = rig.declines().iter().find(|(need, _)| case.needs.contains(need)) {
        return Verdict::Declined(why);
    }
    match catch_unwind(AssertUnwindSafe(|| (case.run)(&Stage::new(rig, dialect)))) {
        Ok(()) => Verdict::Passed,
        Err(panic) => Verdict::Failed(words(&*panic)),
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked without words".to_owned())
}

/// Verdicts by case, dialect and rig.
#[derive(Debug, Default)]
pub struct Table {
    cells: Vec<(&'static str, Dialect, &'static str, Verdict)>,
}

impl Table {
    /// Notes a verdict.
    pub fn note(&mut self, case: &Case, dialect: Dialect, rig: &'static str, verdict: Verdict) {
        self.cells.push((case.id, dialect, rig, verdict));
    }

    /// How many passed, failed and were declined.
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |wanted: fn(&Verdict) -> bool| self.cells.iter().filter(|cell| wanted(&cell.3)).count();
        (
            count(|verdict| *verdict == Verdict::Passed),
            count(|verdict| matches!(verdict, Verdict::Failed(_))),
            count(|verdict| matches!(verdict, Verdict::Declined(_))),
        )
    }

    /// The table: a line for each case, a column for each rig, a sign for each dialect.
    pub fn print(&self, cases: &[Case], rigs: &[Box<dyn Rig>]) -> String {
        let mut out = String::new();
        let mut line = |text: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _ = out.write_fmt(text);
        };
        line(format_args!("{:<22}", "case"));
        rigs.iter().for_each(|rig| line(format_args!(" {:^11}", rig.name())));
        line(format_args!("\n{:<22}", ""));
        rigs.iter().for_each(|_| line(format_args!(" {:^11}", "2000 .u .L")));
        for case in cases {
            line(format_args!("\n{:<22}", case.id));
            for rig in rigs {
                let [plain, unix, linux] = Dialect::ALL.map(|dialect| self.sign(case, dialect, rig.name()));
                line(format_args!("  {plain:>3} {unix:>2} {linux:>2} "));
            }
            line(format_args!(" {}", case.title));
        }
        let (passed, failed, declined) = self.counts();
        line(format_args!(
            "\n\n+ passed {passed}   ! failed {failed}   - declined {declined}   . not of the dialect\n"
        ));
        for rig in rigs {
            if let Some(why) = rig.absent() {
                line(format_args!("- {} declines everything: {why}\n", rig.name()));
            }
            for (need, why) in rig.declines() {
                line(format_args!("- {} declines {need:?}: {why}\n", rig.name()));
            }
        }
        out
    }

    fn sign(&self, case: &Case, dialect: Dialect, rig: &str) -> char {
        if !case.dialects.contains(&dialect) {
            return '.';
        }
        let cell = self.cells.iter().find(|cell| cell.0 == case.id && cell.1 == dialect && cell.2 == rig);
        match cell.map(|cell| &cell.3) {
            Some(Verdict::Passed) => '+',
            Some(Verdict::Failed(_)) => '!',
            Some(Verdict::Declined(_)) => '-',
            None => '?',
        }
    }
}
