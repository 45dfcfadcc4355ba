//! The requests that were answered last, over all protocols, for people who look at the server.
//!
//! Refused ones are among them. Like a log it has no keys, tokens, bodies or query strings.

use std::collections::VecDeque;
use std::time::Duration;

use bolide_model::{RequestUnits, UnixMillis};
use parking_lot::Mutex;
use serde_json::{Value, json};
use uuid::Uuid;

/// Requests that are kept.
const KEPT: usize = 500;
/// Bytes of a method and a path that are kept.
const TEXT_BYTES: usize = 512;

/// See the module.
#[derive(Debug)]
pub struct RecentRequests {
    /// Another one for each start, because the numbers of requests begin anew with it.
    run: Uuid,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    /// The number of the newest one.
    last: u64,
    /// Oldest first, numbered without gaps.
    kept: VecDeque<Kept>,
}

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// That of Cosmos DB.
    Cosmos,
    /// That of MongoDB.
    Mongo,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Cosmos => "cosmos",
            Protocol::Mongo => "mongodb",
        }
    }
}

/// A request with its answer.
#[derive(Debug, Clone, Copy)]
pub struct AnsweredRequest<'a> {
    /// Its protocol.
    pub protocol: Protocol,
    /// Server time of the answer.
    pub at: UnixMillis,
    /// The method of HTTP, or the name of the command.
    pub method: &'a str,
    /// The path, or the namespace. Cut if it is long.
    pub path: &'a str,
    /// What it was, if that was determined.
    pub operation: Option<&'static str>,
    /// The status of HTTP; over MongoDB's protocol the code of the error, 0 without one.
    pub status: u32,
    /// The sub-status; 0 without one.
    pub sub_status: u32,
    /// What it has consumed.
    pub charge: RequestUnits,
    /// How long it took.
    pub duration: Duration,
}

#[derive(Debug, Clone)]
struct Kept {
    protocol: Protocol,
    at: UnixMillis,
    /// The method, a blank, and the path. Its memory is used again.
    text: String,
    operation: Option<&'static str>,
    status: u32,
    sub_status: u32,
    charge: f64,
    duration: Duration,
}

impl Default for RecentRequests {
    fn default() -> RecentRequests {
        RecentRequests {
            run: Uuid::new_v4(),
            ring: Mutex::default(),
        }
    }
}

impl RecentRequests {
    /// Notes a request with its answer.
    pub fn note(&self, answered: &AnsweredRequest<'_>) {
        let mut ring = self.ring.lock();
        let mut text = match ring.kept.len() {
            KEPT => ring.kept.pop_front().map(|oldest| oldest.text).unwrap_or_default(),
            _ => String::new(),
        };
        text.clear();
        push_cut(&mut text, answered.method);
        text.push(' ');
        push_cut(&mut text, answered.path);
        ring.last += 1;
        ring.kept.push_back(Kept {
            protocol: answered.protocol,
            at: answered.at,
            text,
            operation: answered.operation,
            status: answered.status,
            sub_status: answered.sub_status,
            charge: answered.charge.rounded().0,
            duration: answered.duration,
        });
    }

    /// Those after a number, oldest first, and the number of the newest: `{"run": "…", "last": n, "requests": […]}`. The run is another one for each
    /// start of the server.
    pub fn after(&self, number: u64) -> Value {
        // Copied, because all requests need the lock.
        let (last, shown) = {
            let ring = self.ring.lock();
            let first = ring.last - ring.kept.len() as u64 + 1;
            let numbered = (first..).zip(&ring.kept).filter(|(at, _)| *at > number);
            let shown: Vec<(u64, Kept)> = numbered.map(|(at, kept)| (at, kept.clone())).collect();
            (ring.last, shown)
        };
        let requests: Vec<Value> = shown.iter().map(|(at, kept)| kept.to_json(*at)).collect();
        json!({ "run": self.run.to_string(), "last": last, "requests": requests })
    }
}

impl Kept {
    fn to_json(&self, number: u64) -> Value {
        let (method, path) = self.text.split_once(' ').unwrap_or_default();
        json!({
            "number": number,
            "protocol": self.protocol.name(),
            "atMs": self.at.0,
            "method": method,
            "path": path,
            "operation": self.operation,
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
