//! The claims of the core, made through its public API: one by one in [`smoke`], and over random programs against a literal [`model`].

mod concurrent;
mod cost;
mod model;
mod probe;
mod random;
mod smoke;
mod stage;
