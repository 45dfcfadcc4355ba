//! A response as a frame, and what differs between the protocols.
//!
//! | | over HTTP | in a frame |
//! | --- | --- | --- |
//! | session token | `3:-1#9` | `-1#9`, and the range in a token of its own |
//! | positions | of successes | of errors, too, and never 0: otherwise clients take the sender for a replica that is behind |
//! | the position that a quorum has | not told | of writes the one before, as the tests of the official SDKs expect |
//! | replicas | not told | one, which has acknowledged all |
//!
//! Source: rntbd.md §1.6, §1.7, §4.5, §5, §7.

use std::sync::LazyLock;

use bolide_rntbd::frame::{ActivityId, Outgoing};
use bolide_rntbd::table::{self, Form, response as id};
use bolide_rntbd::token::{Kind, TokenWriter};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::session::SessionToken;
use crate::wire::{Payload, headers};

/// Where a range is, for answers that do not say it themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The id of the range.
    pub range: u32,
    /// The newest number in it.
    pub lsn: u64,
}

/// What the frame of a response has of the one that it answers.
#[derive(Debug, Clone, Copy)]
pub struct ReplyTo {
    /// Its activity id.
    pub activity_id: ActivityId,
    /// The number by which the client knows the response.
    pub transport_request_id: u32,
    /// The position that its sender knows, unless the response is of another one.
    pub position: Position,
}

/// Makes a frame of a response: its bytes up to the payload, and the payload. `None`: it is longer than a frame can be.
pub fn to_frame(response: Response<Payload>, to: ReplyTo) -> Option<(Bytes, Bytes)> {
    let (head, payload) = response.into_parts();
    let payload = match payload {
        Payload::Whole(bytes) => bytes,
        // No operation that a frame can ask for has them.
        Payload::Pages(_) => return None,
    };
    let mut tokens = TokenWriter::default();
    // These two first: clients look for them before they read the others.
    tokens.byte(id::PAYLOAD_PRESENT, u8::from(!payload.is_empty()));
    tokens.u_long(id::TRANSPORT_REQUEST_ID, to.transport_request_id);
    add_position(&mut tokens, &head.headers, to.position);
    let mut last = None;
    for (name, value) in &head.headers {
        // The values of a header that is there twice follow each other; a token is there once.
        if last.replace(name) != Some(name)
            && let Some(row) = row_of(name)
        {
            add(&mut tokens, row, value);
        }
    }
    let frame = Outgoing::response(head.status.as_u16().into(), to.activity_id, &tokens);
    let frame = match payload.is_empty() {
        true => frame,
        false => frame.with_payload(payload.len()),
    };
    Some((frame.write()?.freeze(), payload))
}

/// The rows of headers that become tokens of their own, in the order of the headers.
static ROWS: LazyLock<Vec<&'static table::Row>> = LazyLock::new(|| {
    let rows = table::RESPONSE.iter().filter(|row| row.form != Form::Own);
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|row| row.header);
    rows
});

fn row_of(name: &HeaderName) -> Option<&'static table::Row> {
    let at = ROWS.binary_search_by_key(&name.as_str(), |row| row.header).ok()?;
    ROWS.get(at).copied()
}

/// The position in the session token of a request: the last one that its sender knows.
pub(crate) fn position_in(session: &str) -> Option<Position> {
    let (range, lsn) = SessionToken::parse(session).ok()?.last()?;
    Some(Position { range, lsn: lsn.0 })
}

/// Adds the token of a header. A value that does not fit is left out.
fn add(tokens: &mut TokenWriter, row: &table::Row, value: &HeaderValue) {
    let text = || headers::ascii(value);
    match row.kind {
        Kind::SmallString | Kind::String | Kind::ULongString => {
            tokens.counted(row.id, row.kind, value.as_bytes());
        }
        Kind::ULong => {
            if let Some(number) = text().and_then(|text| text.parse().ok()) {
                tokens.u_long(row.id, number);
            }
        }
        Kind::Double => {
            if let Some(number) = text().and_then(|text| text.parse().ok()) {
                tokens.double(row.id, number);
            }
        }
        Kind::Byte => {
            let is_set = text().is_some_and(|text| text.eq_ignore_ascii_case("true"));
            tokens.byte(row.id, u8::from(is_set));
        }
        _ => {}
    }
}

/// Adds how far the range is, and how many replicas have it: all of the one that there is.
fn add_position(tokens: &mut TokenWriter, sent: &HeaderMap, otherwise: Position) {
    let number = |name| headers::ascii(sent.get(name)?)?.parse::<u64>().ok();
    let session = sent.get(&headers::SESSION_TOKEN).and_then(headers::ascii);
    let session = session.and_then(|token| token.split_once(':'));
    // A token is not in every answer: that of another range than those that the client knows is withheld.
    let range = session.and_then(|(range, _)| range.parse().ok());
    let range = range.or_else(|| u32::try_from(number(&headers::PARTITION_KEY_RANGE_ID)?).ok());
    let range = range.unwrap_or(otherwise.range);
    // Clients take 0 for a replica that knows nothing.
    let sent_as = |lsn: u64| i64::try_from(lsn.max(1)).unwrap_or(i64::MAX);
    let lsn = sent_as(number(&headers::LSN).unwrap_or(otherwise.lsn));
    let acked = number(&headers::QUORUM_ACKED_LSN).map_or(lsn, sent_as);
    let of_item = number(&headers::ITEM_LSN).map_or(lsn, sent_as);
    for (position, lsn) in [
        (id::LSN, lsn),
        (id::LOCAL_LSN, lsn),
        (id::QUORUM_ACKED_LSN, acked),
        (id::QUORUM_ACKED_LOCAL_LSN, acked),
        (id::GLOBAL_COMMITTED_LSN, lsn),
        (id::ITEM_LSN, of_item),
        (id::ITEM_LOCAL_LSN, of_item),
    ] {
        tokens.long_long(position, lsn);
    }
    tokens.u_long(id::CURRENT_WRITE_QUORUM, 1);
    tokens.u_long(id::CURRENT_REPLICA_SET_SIZE, 1);
    tokens.u_long(id::NUMBER_OF_READ_REGIONS, 0);
    tokens.counted(id::PARTITION_KEY_RANGE_ID, Kind::String, range.to_string().as_bytes());
    let token = session.map_or_else(|| format!("-1#{lsn}"), |(_, token)| token.to_owned());
    tokens.counted(id::SESSION_TOKEN, Kind::String, token.as_bytes());
}

#[cfg(test)]
mod tests;
