//! Azure Cosmos DB for NoSQL over REST, in gateway mode.
//!
//! [`CosmosService`] turns an HTTP request into an HTTP response; the server handles sockets, TLS and timeouts. [`service`] describes the path of a
//! request. The rest is a table of [`operation`]s with their handlers in [`operations`], the reading and writing of the protocol in [`wire`], and
//! Bolide's own routes in [`admin`].
//!
//! Source: the protocol as official SDKs speak it.

mod addressing;
mod admin;
mod admission;
mod auth;
mod common_headers;
mod consistency;
mod content_paths;
mod decoding;
pub mod direct;
mod explorer;
pub mod fallback;
mod faults;
pub mod forwarding;
mod health;
mod keys;
mod listener;
mod metrics;
pub mod mongo_commands;
mod names;
mod operation;
mod operations;
mod rate_limit;
mod request;
mod request_body;
mod request_log;
mod resource_token;
mod routes;
pub mod service;
mod session;
pub mod snapshots;
mod state;
mod status;
mod wire;

pub use consistency::ConsistencyLevel;
pub use keys::Keys;
pub use listener::{Listener, Purpose};
pub use names::{Endpoint, Names, Origins};
pub use request_body::{BodyError, Counted, Received, Refused, RequestBody};
pub use service::CosmosService;
pub use state::{CosmosOptions, Emulation};
pub use status::script_error;
pub use wire::Payload;
