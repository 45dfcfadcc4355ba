//! Nothing: only the tests use the crate.
