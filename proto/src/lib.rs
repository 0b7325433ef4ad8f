//! Typed messages of 9P2000, 9P2000.u and 9P2000.L.
#![no_std]
#![forbid(unsafe_code)]
