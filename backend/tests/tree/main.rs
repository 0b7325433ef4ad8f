//! The agents tree, asked as the engine asks it, over a machine in memory: what contract sections 2, 4, 5 and 9 say of
//! everything but `/active`. A few of them are asked again of a real kernel.

mod client;
mod kernel;
mod list;
mod machine;
mod open;
mod stat;
mod walk;
