//! What front ends call: [`Account`], everything that one endpoint serves. There is one file for each kind of resource; each call is passed on to
//! the module that implements it.

mod account;
mod admin;
mod again;
mod change_streams;
mod collections;
mod containers;
mod copies;
mod databases;
mod documents;
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
pub use documents::Task;
