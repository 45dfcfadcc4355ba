//! What front ends call: [`Account`], everything behind one endpoint. One file for each kind of resource, thin: each call goes to the module
//! that does it.

mod account;
mod admin;
mod containers;
mod databases;
mod encryption_keys;
mod feeds;
mod items;
mod offers;
mod permissions;
mod queries;
mod script_runs;
mod scripts;
mod users;

pub use account::Account;
