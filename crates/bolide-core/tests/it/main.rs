//! The claims of the core, tested through its public API: one by one in [`smoke`], and over random programs against a literal [`model`].

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod collections;
mod concurrent;
mod cost;
mod ghost_queries;
mod linear;
mod merging;
mod model;
mod probe;
mod random;
mod scripts;
mod server_time;
mod shared_engine;
mod simulation;
mod smoke;
mod test_container;
