//! One log line per request, at `info`; with its headers if the server is configured so.
//!
//! It never contains keys, signatures, tokens, bodies and query strings. Text that a client chooses is shortened, and quoted if it could be mistaken
//! for something else.

use std::fmt::{self, Write as _};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, HeaderValue};

use crate::wire::{Reply, headers};

/// Maximum bytes of a path, of a header value, and of all headers of one side.
const PATH_BYTES: usize = 512;
const VALUE_BYTES: usize = 256;
const HEADERS_BYTES: usize = 4 * 1024;

/// Headers with secrets.
const SECRET: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// Logs a request with its response and duration. `with_headers`: also logs the headers of both.
pub(crate) fn answered(head: &Parts, reply: &Reply, activity_id: &HeaderValue, duration: Duration, with_headers: bool) {
    if !tracing::enabled!(target: "bolide::requests", tracing::Level::INFO) {
        return;
    }
    let sub_status = reply.headers.get(&headers::SUB_STATUS);
    let mut detail = String::new();
    if with_headers {
        let sent = head.headers.iter().map(|(name, value)| (name, value.as_bytes()));
        detail = format!(
            " sent={{{}}} answered={{{}}}",
            listed(sent),
            listed(reply.headers.iter())
        );
    }
    tracing::info!(
        target: "bolide::requests",
        "{method} {path} {status}/{sub_status} charge={charge} ms={ms:.3} activity={activity_id:?}{detail}",
        method = head.method,
        path = cut(head.uri.path(), PATH_BYTES),
        status = reply.status.as_u16(),
        sub_status = sub_status.and_then(|sub| str::from_utf8(sub).ok()).unwrap_or("0"),
        charge = reply.charge.rounded().0,
        ms = duration.as_secs_f64() * 1000.0,
    );
}

/// Headers as `name: "value"`, without secrets.
fn listed<'h>(headers: impl Iterator<Item = (&'h HeaderName, &'h [u8])>) -> String {
    let mut text = String::new();
    for (name, value) in headers {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{name}: {}", Shown(name, value));
        if text.len() > HEADERS_BYTES {
            text.push_str(", …");
            break;
        }
    }
    text
}

struct Shown<'h>(&'h HeaderName, &'h [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(name, value) = self;
        if SECRET.contains(&name.as_str()) {
            return f.write_str("(left out)");
        }
        let text = String::from_utf8_lossy(value);
        write!(f, "{:?}", cut(&text, VALUE_BYTES))
    }
}

fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(bytes)])
}

#[cfg(test)]
mod tests;
