//! `version`.

use std::io::{self, Write};

use backend::host::os::{Os, Resolving};
use drivers::choose::{Chosen, Driver};
use drivers::server::Options;

use super::arguments::Version;
use super::connect::posted;
use super::desk::Desk;
use super::roots::roots;

/// Prints the version, and with --verbose what this machine offers and what of it would be used.
pub(super) fn run(desk: &mut Desk, options: &Version) -> io::Result<()> {
    writeln!(desk, "9agents {}", env!("CARGO_PKG_VERSION"))?;
    if !options.verbose {
        return Ok(());
    }
    match Chosen::new(Driver::Auto, false, &Options::default()) {
        Ok(driver) => writeln!(desk, "driver    {driver}")?,
        Err(why) => writeln!(desk, "driver    none: {why}")?,
    }
    let system = rustix::system::uname();
    let [name, release, machine] =
        [system.sysname(), system.release(), system.machine()].map(|text| text.to_string_lossy());
    writeln!(desk, "kernel    {name} {release} {machine}")?;
    match posted() {
        Some(address) => writeln!(desk, "post      {address}")?,
        None => writeln!(desk, "post      none: XDG_RUNTIME_DIR is not set to an absolute path")?,
    }
    match roots(&[], |variable| std::env::var_os(variable)) {
        Ok(roots) => {
            for (name, path) in [
                ("claude", &roots.claude),
                ("codex", &roots.codex),
                ("omp", &roots.omp),
                ("hermes", &roots.hermes),
                ("dsh", &roots.dsh),
            ] {
                let absent = if path.is_dir() { "" } else { " (not there)" };
                writeln!(desk, "{name:<9} {}{absent}", path.display())?;
            }
            let host = Os::new(roots, "/proc".into(), Resolving::Probed);
            writeln!(desk, "files     {}", host.resolving())
        }
        Err(error) => writeln!(desk, "files     {error}"),
    }
}
