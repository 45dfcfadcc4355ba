//! The conformance cases of the query language and of query plans, without a server around the language.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and counts by topic"
)]

mod cases;
mod compare;
mod plans;
mod sql;
