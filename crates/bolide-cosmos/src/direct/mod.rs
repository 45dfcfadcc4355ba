//! Direct mode: requests and responses as frames of the binary protocol, on the same service as those over HTTP.
//!
//! ```text
//!   frame ──[request]──▶ what it would be over HTTP ──▶ CosmosService::handle ──▶ response ──[response]──▶ frame
//! ```
//!
//! A frame says the same as a request over HTTP, so it becomes one and takes the same steps: rights, limits, charges, faults, metrics, logs. What differs by
//! protocol is in [`response`]. How clients learn that they may send frames is in [`addresses`]. The connections are the server's.
//!
//! Source: rntbd.md.

pub(crate) mod addresses;
mod request;
mod response;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use serde_json::json;

pub(crate) use request::activity_text;
pub use request::{FrameRequest, Parsed, Refusal, RefusedFrame, has_payload, to_request, to_request_of_gateway};
pub use response::{Position, ReplyTo, to_frame};
pub(crate) use response::{position_in, reply_to_frame};

/// The body of an error, in the form of all others.
pub fn error_body(code: &str, message: &str) -> Bytes {
    json!({"code": code, "message": message}).to_string().into()
}

/// A mark on requests that came as frames. Those on connections of their own have no address whose name could be checked, and no web page has sent them.
#[derive(Debug, Clone)]
pub(crate) struct FromFrame {
    /// The range whose address the client has used.
    pub range: Option<u32>,
    /// The container that the sender means, by its resource id: names may have been given to another one.
    pub container: Option<String>,
    /// The request over HTTP that has brought the frame, in Gateway 2.0: it has an address, and a web page may have sent it.
    pub carrier: Option<Arc<Parts>>,
}
