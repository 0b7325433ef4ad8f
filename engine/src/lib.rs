//! The 9P session.
#![no_std]
#![forbid(unsafe_code)]
