//! The claims one by one, each with the least data that tests it.

mod admin;
mod all_versions;
mod batch;
mod catalog;
mod charges;
mod colliding_keys;
mod continuations;
mod decisions;
mod definitions;
mod delete_all;
mod feeds;
mod forecast;
mod full_text_indexes;
mod ghosts;
mod items;
mod limits;
mod property_indexes;
mod purge;
mod queries;
mod settings;
mod shared_throughput;
mod splits;
mod statistics;
mod users;
mod vectors;
mod verify;
