//! Test rigs.
