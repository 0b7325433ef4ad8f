//! Which server a verb asks.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

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
use super::roots::{RootsError, roots};

/// Connects to the server at the given address; else to the posted one, if it lives; else to the tree in this process, as also
/// when the command line says what machine it is of.
pub(super) fn connect(dial: &Dial) -> Result<Client, ConnectError> {
    if let Some(address) = &dial.addr {
        let socket =
            address.dial().map_err(|cause| ConnectError::Dial { address: address.clone(), cause })?;
        return greet(address, Box::new(socket));
    }
    if let Some(address) = posted().filter(|_| !dial.machine.is_given()) {
        match address.dial() {
            Ok(socket) => return greet(&address, Box::new(socket)),
            // Nobody posted, or whoever did is gone.
            Err(error) if is_nobody(&error) => {}
            Err(cause) => return Err(ConnectError::Dial { address, cause }),
        }
    }
    log::init(LevelFilter::WARN);
    let soft = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let (_, tree) = tree(&dial.machine, soft, Agents::for_command)?;
    let wire = Box::new(Inproc::new(tree, Limits::DEFAULT));
    Ok(attach(wire)?)
}

/// The address that a server posts, whether or not there is one.
pub(super) fn posted() -> Option<Address> {
    let name = DEFAULT_NAME.parse().ok()?;
    post::path_of(std::env::var_os("XDG_RUNTIME_DIR").as_deref(), &name).ok().map(Address::Unix)
}

/// The tree of a machine, made by `make`, and how its files are reached, in words. `descriptors` is how many the
/// process may have.
pub(super) fn tree(
    machine: &Machine,
    descriptors: u64,
    make: fn(Arc<dyn Host>, backend::Limits) -> Agents,
) -> Result<(&'static str, Arc<dyn Backend<Tree>>), RootsError> {
    let pinned = descriptors.saturating_sub(DESCRIPTORS_RESERVED);
    let limits = backend::Limits { pinned_descriptors: usize::try_from(pinned).unwrap_or(usize::MAX) };
    if let Some(world) = machine.simulated() {
        let tree = Simulated::new(world, |host| make(host, limits));
        return Ok(("the machine is a simulated one", Arc::new(tree)));
    }
    let roots = roots(&machine.root, |variable| std::env::var_os(variable))?;
    let proc = machine.proc.clone().unwrap_or_else(|| "/proc".into());
    let host = Os::new(roots, proc, Resolving::Probed);
    let resolving = host.resolving();
    Ok((resolving, Arc::new(make(Arc::new(host), limits))))
}

fn greet(address: &Address, wire: Box<dyn client::Wire>) -> Result<Client, ConnectError> {
    attach(wire).map_err(|cause| ConnectError::Greet { address: address.clone(), cause })
}

fn attach(wire: Box<dyn client::Wire>) -> Result<Client, client::Error> {
    let user = ["USER", "LOGNAME"].iter().find_map(std::env::var_os).filter(|name| !name.is_empty());
    let user = user.unwrap_or_else(|| OsString::from("none"));
    Client::connect(wire, user.as_encoded_bytes(), rustix::process::getuid().as_raw())
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

/// Descriptors that open files leave alone: for connections, and for whatever is open for a moment.
const DESCRIPTORS_RESERVED: u64 = 256 + 64;
