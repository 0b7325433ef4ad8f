//! Which server a verb asks.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use backend::host::Host;
use backend::host::os::{Os, Resolving};
use backend::{Agents, Tree};
use drivers::client::{self, Address, Cause, Client};
use drivers::inproc::Inproc;
use drivers::log;
use drivers::post;
use drivers::simulated::Simulated;
use engine::Limits;
use engine::port::Backend;
use rustix::process::Resource;
use tracing::level_filters::LevelFilter;

use super::arguments::{DEFAULT_NAME, Dial, Machine};
use super::desk::Desk;
use super::roots::{RootsError, roots};

/// Connects to the server at the given address; else to the posted one, if it lives; else to the tree in this process, as also
/// when the command line says what machine it is of. A posted server that does not answer is told of on stderr.
pub(super) fn connect(desk: &Desk, dial: &Dial) -> Result<Client, ConnectError> {
    if let Some(address) = &dial.addr {
        return ask(address, PATIENCE);
    }
    if let Some(address) = posted().filter(|_| !dial.machine.is_given()) {
        match ask(&address, PATIENCE_POSTED) {
            // Nobody posted, or whoever did is gone.
            Err(ConnectError::Dial { cause, .. }) if is_nobody(&cause) => {}
            Err(error) if error.is_silence() => {
                desk.note(&format_args!("{error}; the files are read here instead"))
            }
            answer => return answer,
        }
    }
    log::init(LevelFilter::WARN);
    let soft = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let (_, tree) = tree(&dial.machine, soft, Vec::new(), Agents::for_command)?;
    let wire = Box::new(Inproc::new(tree, Limits::DEFAULT));
    Ok(attach(wire, PATIENCE)?)
}

/// The address that a server posts, whether or not there is one.
pub(super) fn posted() -> Option<Address> {
    let name = DEFAULT_NAME.parse().ok()?;
    post::path_of(std::env::var_os("XDG_RUNTIME_DIR").as_deref(), &name).ok().map(Address::Unix)
}

/// The tree of a machine, made by `make`, and how its files are reached, in words. `descriptors` is how many the
/// process may have; `launcher` is what programs are started through.
pub(super) fn tree(
    machine: &Machine,
    descriptors: u64,
    launcher: Vec<OsString>,
    make: impl FnOnce(Arc<dyn Host>, backend::Limits) -> Agents,
) -> Result<(&'static str, Arc<dyn Backend<Tree>>), RootsError> {
    let pinned = descriptors.saturating_sub(DESCRIPTORS_RESERVED);
    let limits = backend::Limits { pinned_descriptors: usize::try_from(pinned).unwrap_or(usize::MAX) };
    if let Some(world) = machine.simulated() {
        let tree = Simulated::new(world, |host| make(host, limits));
        return Ok(("the machine is a simulated one", Arc::new(tree)));
    }
    let roots = roots(&machine.root, |variable| std::env::var_os(variable))?;
    let proc = machine.proc.clone().unwrap_or_else(|| "/proc".into());
    let host = Os::new(roots, proc, Resolving::Probed).launching_by(launcher);
    let resolving = host.resolving();
    Ok((resolving, Arc::new(make(Arc::new(host), limits))))
}

/// Asks the server at an address, which may take so long to take the connection, and so long again for each first answer.
fn ask(address: &Address, patience: Duration) -> Result<Client, ConnectError> {
    let dialled = address.dial(patience);
    let socket = dialled.map_err(|cause| ConnectError::Dial { address: address.clone(), cause })?;
    attach(Box::new(socket), patience)
        .map_err(|cause| ConnectError::Greet { address: address.clone(), cause })
}

fn attach(wire: Box<dyn client::Wire>, patience: Duration) -> Result<Client, client::Error> {
    let user = ["USER", "LOGNAME"].iter().find_map(std::env::var_os).filter(|name| !name.is_empty());
    let user = user.unwrap_or_else(|| OsString::from("none"));
    Client::connect(wire, user.as_encoded_bytes(), rustix::process::getuid().as_raw(), patience)
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Why there is nobody to ask.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    /// No connection.
    #[error("{address}: cannot connect: {}", Cause(cause))]
    Dial {
        /// Where to.
        address: Address,
        /// What the kernel said.
        cause: io::Error,
    },
    /// A connection, and no 9P server at the other end, or one that does not want us.
    #[error("{address}: {cause}")]
    Greet {
        /// Whose.
        address: Address,
        /// What came of it.
        cause: client::Error,
    },
    /// The tree in this process does not answer.
    #[error(transparent)]
    Own(#[from] client::Error),
    /// It is not known where the files are.
    #[error(transparent)]
    Roots(#[from] RootsError),
}

impl ConnectError {
    /// Whether whoever is there does not speak with us: not even to refuse us in words.
    fn is_silence(&self) -> bool {
        match self {
            Self::Dial { .. } => true,
            Self::Greet { cause, .. } => cause.is_fatal(),
            Self::Own(_) | Self::Roots(_) => false,
        }
    }
}

/// How long a server that was asked for may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same of one that nobody asked for, but that happens to be posted: without it the answers are the same.
const PATIENCE_POSTED: Duration = Duration::from_secs(2);

/// Descriptors that open files leave alone: for connections, and for whatever is open for a moment.
const DESCRIPTORS_RESERVED: u64 = 256 + 64;
