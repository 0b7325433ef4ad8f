//! Drivers: they move bytes between sockets and sessions.
