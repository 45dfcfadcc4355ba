//! The first frame of a connection, and the answer to it.
//!
//! Source: rntbd.md §3.3.

use std::time::Duration;

use bolide_cosmos::direct;
use bolide_rntbd::context::{self, ContextRequest, ContextResponse};
use bolide_rntbd::frame::Head;
use http::HeaderValue;

use crate::connection::Limits;

/// The answer to the first frame, and the version of the API for all others; `None` for that if the frame was refused. No answer: it is too long.
pub fn answer(head: &Head, limits: Limits) -> (Option<Vec<u8>>, Option<HeaderValue>) {
    match accepted(head) {
        Ok((request, version)) => {
            let response = ContextResponse {
                server_agent: "bolide",
                server_version: env!("CARGO_PKG_VERSION"),
                idle_seconds: seconds(limits.idle),
                unauthenticated_seconds: seconds(limits.request),
            };
            (response.write(&request), Some(version))
        }
        Err(why) => {
            let error = direct::error_body("BadRequest", &why);
            (context::refusal(400, head.activity_id, &error), None)
        }
    }
}

/// # Errors
/// Why it is refused.
fn accepted(head: &Head) -> Result<(ContextRequest, HeaderValue), String> {
    let request = ContextRequest::of(head).map_err(|error| error.to_string())?;
    let version = HeaderValue::from_str(&request.client_version).map_err(|error| error.to_string())?;
    match request.protocol_version {
        context::PROTOCOL_VERSION => Ok((request, version)),
        other => Err(format!("version {other} of the frames is not served")),
    }
}

fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}
