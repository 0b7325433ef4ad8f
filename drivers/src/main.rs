//! 9agents.
fn main() {}
