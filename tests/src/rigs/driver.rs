//! The drivers that serve sockets.

use std::sync::Arc;

use drivers::listen::Listener;
use drivers::server::Options;
use drivers::signals::Stop;
use drivers::{blocking, uring};
use engine::port::{Backend, Kinds};

/// Which of them.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) enum Driver {
    /// A thread for each connection.
    Blocking,
    /// One thread for all of them.
    Uring,
}

impl Driver {
    /// Its name, which is also its rig's.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Uring => "uring",
        }
    }

    /// The driver of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Blocking, Self::Uring].into_iter().find(|driver| driver.name() == name)
    }

    /// Serves until asked to stop.
    pub(super) fn serve<K: Kinds>(
        self,
        backend: &Arc<dyn Backend<K>>,
        listeners: &[Listener],
        stop: &Stop,
        options: &Options,
    ) {
        let served = match self {
            Self::Blocking => blocking::serve(backend, listeners, Vec::new(), stop, options),
            Self::Uring => uring::Uring::open(options).expect("a ring").serve(
                backend,
                listeners,
                Vec::new(),
                stop,
                options,
            ),
        };
        served.expect("a server that serves");
    }
}
