//! Azure Cosmos DB for NoSQL over REST, in gateway mode.
//!
//! [`CosmosService`] turns an HTTP request into an HTTP answer; sockets, TLS and time limits are the server's. [`service`] tells
//! how a request travels. The rest is a table of [`operation`]s with a file each in [`operations`], what they read from the
//! wire and write to it in [`wire`], and Bolide's own routes in [`admin`].
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
mod explorer;
pub mod fallback;
mod faults;
mod keys;
mod listener;
mod metrics;
mod names;
mod operation;
mod operations;
mod pace;
mod request;
mod request_body;
mod request_log;
mod resource_token;
mod routes;
pub mod service;
mod session;
mod state;
mod status;
mod wire;

pub use consistency::ConsistencyLevel;
pub use keys::{Access, AccountKey, KeyError, Keys, WELL_KNOWN_KEY};
pub use listener::Listener;
pub use names::{Endpoint, Names, Origins};
pub use request_body::{BodyError, Counted, Received, Refused, RequestBody};
pub use service::CosmosService;
pub use state::CosmosOptions;
pub use status::script_error;
pub use wire::Payload;
