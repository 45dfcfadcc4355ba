//! The conformance cases of a sibling `../shared` folder, when it is there.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it skipped"
)]

mod cases;
mod compare;
mod plans;
mod sql;
