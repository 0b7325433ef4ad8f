//! A session's rules, each in every dialect, held through real frames.

mod rig;
mod rules;
mod toy;
