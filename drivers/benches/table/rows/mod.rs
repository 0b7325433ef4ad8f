//! The rows of the table.

pub(crate) mod active;
pub(crate) mod beside;
pub(crate) mod chat;
pub(crate) mod crowd;
pub(crate) mod listing;
pub(crate) mod reads;
pub(crate) mod rest;
pub(crate) mod walks;
