//! Health checks under the paths of the official emulator: `/alive`, `/ready`, `/status`.
//!
//! They have a port of their own, which needs no key and shows nothing but whether the server runs.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::status::{self, Failure, METHOD_NOT_ALLOWED, NOT_FOUND};
use crate::wire::Reply;

/// The response of a health check. `status`: what `/status` shows; `is_ready`: whether requests are served, or the store is still being recovered.
///
/// # Errors
/// 404 for other paths, 405 for other methods than GET and HEAD.
pub(crate) fn answer(method: &Method, path: &str, status: &Value, is_ready: bool) -> Result<Reply, Failure> {
    let (body, is_good) = match path.trim_end_matches('/') {
        "/alive" => (&json!({"status": "alive"}), true),
        "/ready" => (
            &json!({"status": if is_ready { "ready" } else { "starting" }}),
            is_ready,
        ),
        "/status" => (status, is_ready),
        _ => {
            let message = "this port has the health checks /alive, /ready and /status only";
            return Err(Failure::new(NOT_FOUND, message));
        }
    };
    if method != Method::GET && method != Method::HEAD {
        let message = format!("health checks take GET only. method={method}");
        return Err(Failure::new(METHOD_NOT_ALLOWED, message));
    }
    let status = if is_good {
        StatusCode::OK
    } else {
        status::UNAVAILABLE.http
    };
    Ok(Reply::value(status, body))
}

#[cfg(test)]
mod tests;
