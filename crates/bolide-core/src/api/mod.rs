//! What front ends call for resources of the catalog: one file for each kind, thin, over [`Catalog`](crate::catalog::Catalog).

mod containers;
mod databases;
mod encryption_keys;
mod offers;
mod permissions;
mod scripts;
mod users;
