//! The requests that were answered last, for people who look at the server.
//!
//! It has those of the protocol of Cosmos DB, also refused ones: no request of the admin API, of which the data explorer sends many, and none of MongoDB's
//! protocol. Like the log it has no keys, tokens, bodies or query strings.

use std::collections::VecDeque;
use std::time::Duration;

use bolide_model::UnixMillis;
use http::request::Parts;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::wire::{Reply, headers};

/// Requests that are kept.
const KEPT: usize = 500;
/// Bytes of a method and a path that are kept.
const TEXT_BYTES: usize = 512;

/// See the module.
#[derive(Default)]
pub(crate) struct RecentRequests(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    /// The number of the newest one.
    last: u64,
    /// Oldest first, numbered without gaps.
    kept: VecDeque<Answered>,
}

/// A request with its answer.
#[derive(Clone)]
struct Answered {
    /// Server time.
    at: UnixMillis,
    /// The method, a blank, and the path. Its memory is used again.
    text: String,
    operation: Option<Operation>,
    status: u16,
    sub_status: u32,
    charge: f64,
    duration: Duration,
}

impl RecentRequests {
    /// Notes a request with its answer.
    pub(crate) fn note(
        &self,
        head: &Parts,
        operation: Option<Operation>,
        reply: &Reply,
        at: UnixMillis,
        duration: Duration,
    ) {
        let sub_status = reply.headers.get(&headers::SUB_STATUS);
        let sub_status = sub_status.and_then(|sub| str::from_utf8(sub).ok()?.parse().ok());
        let mut ring = self.0.lock();
        let mut text = match ring.kept.len() {
            KEPT => ring.kept.pop_front().map(|oldest| oldest.text).unwrap_or_default(),
            _ => String::new(),
        };
        text.clear();
        push_cut(&mut text, head.method.as_str());
        text.push(' ');
        push_cut(&mut text, head.uri.path());
        ring.last += 1;
        ring.kept.push_back(Answered {
            at,
            text,
            operation,
            status: reply.status.as_u16(),
            sub_status: sub_status.unwrap_or(0),
            charge: reply.charge.rounded().0,
            duration,
        });
    }

    /// Those after a number, oldest first, and the number of the newest.
    pub(crate) fn after(&self, number: u64) -> Value {
        // Copied, because all requests need the lock.
        let (last, shown) = {
            let ring = self.0.lock();
            let first = ring.last - ring.kept.len() as u64 + 1;
            let numbered = (first..).zip(&ring.kept).filter(|(at, _)| *at > number);
            let shown: Vec<(u64, Answered)> = numbered.map(|(at, answered)| (at, answered.clone())).collect();
            (ring.last, shown)
        };
        let requests: Vec<Value> = shown.iter().map(|(at, answered)| answered.to_json(*at)).collect();
        json!({ "last": last, "requests": requests })
    }
}

impl Answered {
    fn to_json(&self, number: u64) -> Value {
        let (method, path) = self.text.split_once(' ').unwrap_or_default();
        json!({
            "number": number,
            "atMs": self.at.0,
            "method": method,
            "path": path,
            "operation": self.operation.map(Operation::name),
            "status": self.status,
            "subStatus": self.sub_status,
            "charge": self.charge,
            "ms": self.duration.as_secs_f64() * 1000.0,
        })
    }
}

/// Appends a text, so that all is no longer than it may be.
fn push_cut(to: &mut String, text: &str) {
    let room = TEXT_BYTES.saturating_sub(to.len());
    to.push_str(&text[..text.floor_char_boundary(room)]);
}

#[cfg(test)]
mod tests;
