//! Claims about MongoDB collections, one by one.

mod change_streams;
mod charges;
mod crashes;
mod fixture;
mod import;
mod index_reads;
mod indexes;
mod items;
mod model;
mod ordered_reads;
mod purge;
mod random;
mod transactions;
mod visibility;
