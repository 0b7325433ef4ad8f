//! The daemon.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use backend::host::Host;
use backend::{Agents, Moving};
use drivers::choose::Chosen;
use drivers::client::Cause;
use drivers::inherit::{self, Given, InheritError};
use drivers::limits::Inherited;
use drivers::listen::{ListenError, Listener, Stream};
use drivers::log::{self, Clean};
use drivers::notify::Notifier;
use drivers::server::Options;
use drivers::signals::{self, Stop};
use drivers::uring::Unavailable;
use tracing::level_filters::LevelFilter;

use super::arguments::Serve;
use super::connect::tree;
use super::roots::RootsError;

/// Serves until asked to stop, or, over a given connection, until that ends.
pub(super) fn run(options: Serve) -> Result<(), ServeError> {
    let inherited = Inherited::record().map_err(cannot("/proc/self/status cannot be read"))?;
    inherit::close_on_exec();
    log::init(LevelFilter::INFO);
    signals::ignore_hangups(&inherited).map_err(cannot("SIGHUP cannot be ignored"))?;
    let stop = Stop::on_signals().map_err(cannot("signals cannot be waited for"))?;
    let descriptors =
        inherited.raise_descriptors().map_err(cannot("the limit of open files cannot be raised"))?;
    let launcher = inherited.launcher();
    let mut has_zmx = true;
    let (resolving, tree) = tree(&options.machine, descriptors, launcher, |host, limits| {
        if options.allow_move {
            let moving = moving(&options, &*host);
            has_zmx = moving.zmx().is_some();
            Agents::moving(host, limits, moving)
        } else {
            Agents::new(host, limits)
        }
    })?;
    if let Some(zmx) = options.zmx.as_ref().filter(|_| !has_zmx) {
        return Err(ServeError::NoZmx(zmx.clone()));
    }
    let (listeners, streams) = doors(&options)?;
    // One process for each connection, as --fd, inetd(8) and systemd's Accept=yes have it: it ends with the connection.
    let lone = listeners.is_empty() && streams.len() == 1;
    let limits = Options::default();
    let driver = Chosen::new(options.driver, lone, &limits)?;
    if !lone {
        tracing::info!("serving with the driver {driver}; {resolving}");
    }
    let notifier = Notifier::ready(&stop).map_err(cannot("the supervisor cannot be told"))?;
    let served = driver.serve(&tree, &listeners, streams, &stop, &limits);
    notifier.end(&stop);
    served.map_err(cannot("the driver failed"))
}

/// How agents are moved, and a line in the log that says so.
fn moving(options: &Serve, host: &dyn Host) -> Moving {
    let variable = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let environment: Vec<Vec<u8>> = std::env::vars_os().map(variable).collect();
    let zmx = options.zmx.as_ref().map(|zmx| zmx.as_os_str().as_bytes());
    let pinned = options.machine.root.iter().map(|(root, _)| *root);
    let moving = Moving::find(host, &environment, zmx, pinned);
    match moving.zmx() {
        Some(zmx) => tracing::info!("agents may be moved, with {}", Clean(zmx)),
        None => tracing::warn!("agents could be moved, but no zmx was found: set PATH or use --zmx"),
    }
    moving
}

/// Where clients come in: the sockets that we were started with, the post, and what the command line adds.
fn doors(options: &Serve) -> Result<(Vec<Listener>, Vec<Stream>), ServeError> {
    let (mut listeners, mut streams) = (Vec::new(), Vec::new());
    if let Some(number) = options.fd {
        return Ok((listeners, vec![inherit::stream(number, options.allow_remote)?]));
    }
    let given = inherit::activated(options.allow_remote)?;
    let post = !options.no_post && given.is_empty();
    if given.is_empty() && options.no_post && options.unix.is_empty() && options.tcp.is_empty() {
        return Err(ServeError::Usage(
            "--no-post leaves nothing to listen on: add --unix PATH, --tcp IP:PORT or --fd N",
        ));
    }
    for socket in given {
        match socket {
            Given::Listener(listener) => listeners.push(listener),
            Given::Stream(stream) => streams.push(stream),
        }
    }
    if post {
        let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR");
        listeners.push(Listener::name(runtime_dir.as_deref(), &options.name)?);
    }
    for path in &options.unix {
        listeners.push(Listener::unix(path)?);
    }
    for address in &options.tcp {
        listeners.push(Listener::tcp(*address, options.allow_remote)?);
    }
    Ok((listeners, streams))
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServeError {
    /// The command line makes no sense.
    #[error("{0}")]
    Usage(&'static str),
    /// There can be no ring.
    #[error("--driver uring cannot be had: {0}; --driver auto would use another")]
    NoRing(#[from] Unavailable),
    /// The zmx that was chosen is none.
    #[error("--zmx {}: not a file that may be executed", .0.display())]
    NoZmx(PathBuf),
    /// It is not known where the files are.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// A place to listen cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// What we were started with is of no use.
    #[error(transparent)]
    Inherit(#[from] InheritError),
    /// The machine does not let us.
    #[error("cannot serve: {what}: {}", Cause(cause))]
    System {
        /// What it does not let us.
        what: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

/// Makes of an error what could not be done.
fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> ServeError {
    move |cause| ServeError::System { what, cause }
}
