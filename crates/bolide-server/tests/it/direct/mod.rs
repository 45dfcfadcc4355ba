//! Direct mode: frames after TLS, as .NET and Java send them.

mod call;
mod client;
mod compare;
mod connections;
mod crashes;
pub mod frames;
mod hybrid_row;
mod random;
mod rows;
mod sdk;
mod several;
mod table;
