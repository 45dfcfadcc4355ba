//! Continuations: where the next page of a feed or query starts.
//!
//! ```text
//!   base64url of: format(1) ‖ check(8) ‖ payload
//! ```
//!
//! The check covers the payload and what the continuation belongs to (the container and the request's parameters), so that a continuation that
//! is damaged, or sent with another request, is refused instead of giving a wrong page. Nothing in a continuation depends on the process: it
//! survives restarts, purges and splits. The modules below define the payload of each kind of page; change feeds use the service's own form,
//! without a check.

pub(crate) mod change_feed;
pub(crate) mod query;
pub(crate) mod read_feed;
pub(crate) mod script_query;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bolide_model::error::BadContinuation;
use bolide_model::{Error, Result};
use sha2::Digest as _;

use crate::format::digest;

const FORMAT: u8 = 1;
const CHECK_BYTES: usize = 8;

/// Encodes a continuation that belongs to `owner`.
pub(crate) fn encode(owner: &[&[u8]], payload: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(1 + CHECK_BYTES + payload.len());
    bytes.push(FORMAT);
    bytes.extend(check(owner, payload));
    bytes.extend(payload);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a continuation of `owner` and returns its payload.
///
/// # Errors
/// `BadRequest` if it is damaged, or belongs to another owner.
pub(crate) fn decode(owner: &[&[u8]], text: &str) -> Result<Vec<u8>> {
    let refused = || Error::from(BadContinuation::OtherRequest);
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
    let payload = bytes.get(1 + CHECK_BYTES..).ok_or_else(refused)?;
    if bytes[0] != FORMAT || bytes[1..=CHECK_BYTES] != check(owner, payload) {
        return Err(refused());
    }
    Ok(payload.to_vec())
}

fn check(owner: &[&[u8]], payload: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hash = digest::of_parts(owner);
    hash.update(payload);
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&hash.finalize()[..CHECK_BYTES]);
    check
}

#[cfg(test)]
mod tests;
