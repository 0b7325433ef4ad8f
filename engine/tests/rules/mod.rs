//! One file for each kind of rule.

mod bounds;
mod directory;
mod file;
mod flush;
mod framing;
mod job;
mod linux;
mod memory;
mod pressure;
mod version;
mod walk;
