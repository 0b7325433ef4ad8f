//! Where a verb's results and complaints go.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;

use drivers::client::Cause;

/// Stdout, stderr, and whether anything went wrong yet.
///
/// Methods fail only when stdout does; a verb then stops, and [`Desk::close`] says so.
#[derive(Debug)]
pub(super) struct Desk {
    /// Not the library's stdout: that looks for line ends in all that passes.
    out: BufWriter<Stdout>,
    failed: bool,
}

impl Desk {
    /// One over the process's own streams.
    pub(super) fn new() -> Self {
        Self { out: BufWriter::new(Stdout::default()), failed: false }
    }

    /// Passes bytes on at once.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    /// One line on stderr about a thing that went wrong, behind whatever was printed before. The verb goes on, and its
    /// status is 1.
    pub(super) fn complain(&mut self, of: &dyn Display, why: &dyn Display) -> io::Result<()> {
        self.out.flush()?;
        self.lament(&format_args!("{of}: {why}"));
        Ok(())
    }

    /// One line on stderr. A stderr that is gone is nobody's loss.
    pub(super) fn lament(&mut self, what: &dyn Display) {
        self.failed = true;
        let _ = writeln!(io::stderr(), "9agents: {what}");
    }

    /// One line on stderr about a thing that is worth knowing and did not go wrong.
    pub(super) fn note(&self, what: &dyn Display) {
        let _ = writeln!(io::stderr(), "9agents: {what}");
    }

    /// The status, after what a verb came to.
    pub(super) fn close(mut self, printed: io::Result<()>) -> ExitCode {
        match printed.and_then(|()| self.out.flush()) {
            // Whoever reads us has had enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => self.lament(&format_args!("cannot write to stdout: {}", Cause(&error))),
            Ok(()) => {}
        }
        // Nothing is left that could be written; a second failure would say the same again.
        let (_, _) = self.out.into_parts();
        if self.failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

impl Write for Desk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The process's standard output, opened when it is first used.
#[derive(Debug, Default)]
struct Stdout(Option<File>);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.0 {
            Some(file) => file,
            none => none.insert(io::stdout().as_fd().try_clone_to_owned()?.into()),
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
