//! Direct mode: frames after TLS, as .NET and Java send them.

mod call;
mod client;
mod compare;
mod connections;
pub mod frames;
mod hybrid_row;
mod rows;
mod table;
