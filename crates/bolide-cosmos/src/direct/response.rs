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
use http::{HeaderName, Response, StatusCode};

use crate::session::SessionToken;
use crate::wire::{Payload, Reply, headers};

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
pub fn to_frame(response: Response<Payload>, to: ReplyTo) -> Option<(Vec<u8>, Bytes)> {
    let (head, payload) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| (name, value.as_bytes()));
    frame(head.status, headers, None, payload, to)
}

/// The same of a response to which nothing is added any more.
pub(crate) fn reply_to_frame(mut reply: Reply, to: ReplyTo) -> Option<(Vec<u8>, Bytes)> {
    let payload = std::mem::replace(&mut reply.payload, Payload::Whole(Bytes::new()));
    // What another server has made says what it has charged.
    let charge = reply.forwarded.is_none().then(|| reply.charge.rounded().0);
    frame(reply.status, reply.all_headers(), charge, payload, to)
}

fn frame<'h>(
    status: StatusCode,
    headers: impl Iterator<Item = (&'h HeaderName, &'h [u8])>,
    charge: Option<f64>,
    payload: Payload,
    to: ReplyTo,
) -> Option<(Vec<u8>, Bytes)> {
    let payload = match payload {
        Payload::Whole(bytes) => bytes,
        // No operation that a frame can ask for has them.
        Payload::Pages(_) => return None,
    };
    let mut tokens = TokenWriter::default();
    // These two first: clients look for them before they read the others.
    tokens.byte(id::PAYLOAD_PRESENT, u8::from(!payload.is_empty()));
    tokens.u_long(id::TRANSPORT_REQUEST_ID, to.transport_request_id);
    let mut sent = Sent::default();
    // A bit for each id: a header may be there twice, a token is there once.
    let mut written = 0_u128;
    if let Some(charge) = charge {
        tokens.double(id::REQUEST_CHARGE, charge);
        written |= 1 << id::REQUEST_CHARGE;
    }
    for (name, value) in headers {
        let Some(row) = row_of(name) else { continue };
        if written & (1 << row.id) == 0 {
            written |= 1 << row.id;
            add(&mut tokens, &mut sent, row, value);
        }
    }
    add_position(&mut tokens, &sent, to.position);
    let frame = Outgoing::response(status.as_u16().into(), to.activity_id, &tokens);
    let frame = match payload.is_empty() {
        true => frame,
        false => frame.with_payload(payload.len()),
    };
    Some((frame.write()?, payload))
}

/// The rows of tokens that stand for headers, by the lengths of the headers' names: of each length there are four at most.
static ROWS: LazyLock<Vec<Vec<&'static table::Row>>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    for row in table::RESPONSE {
        assert!(u32::from(row.id) < u128::BITS, "a bit for each");
        let length = row.header.len();
        if length >= rows.len() {
            rows.resize(length + 1, Vec::new());
        }
        rows[length].push(row);
    }
    rows
});

fn row_of(name: &HeaderName) -> Option<&'static table::Row> {
    let name = name.as_str();
    let rows = ROWS.get(name.len())?;
    rows.iter().find(|row| row.header == name).copied()
}

/// The position in the session token of a request: the last one that its sender knows.
pub(crate) fn position_in(session: &str) -> Option<Position> {
    let (range, lsn) = SessionToken::parse(session).ok()?.last()?;
    Some(Position { range, lsn: lsn.0 })
}

/// What the headers of a response say of its position.
#[derive(Debug, Default)]
struct Sent<'h> {
    session: Option<&'h str>,
    range: Option<u32>,
    lsn: Option<u64>,
    quorum_acked: Option<u64>,
    item_lsn: Option<u64>,
}

/// Adds the token of a header, or notes it in `sent`. A value that does not fit is left out.
fn add<'h>(tokens: &mut TokenWriter, sent: &mut Sent<'h>, row: &table::Row, value: &'h [u8]) {
    match (row.id, row.kind) {
        (id::SESSION_TOKEN, _) => sent.session = str::from_utf8(value).ok(),
        (id::PARTITION_KEY_RANGE_ID, _) => sent.range = headers::number(value),
        (id::LSN, _) => sent.lsn = headers::number(value),
        (id::QUORUM_ACKED_LSN, _) => sent.quorum_acked = headers::number(value),
        (id::ITEM_LSN, _) => sent.item_lsn = headers::number(value),
        _ if row.form == Form::Own => {}
        (_, Kind::SmallString | Kind::String | Kind::ULongString) => {
            tokens.counted(row.id, row.kind, value);
        }
        (_, Kind::ULong) => {
            if let Some(number) = headers::number(value) {
                tokens.u_long(row.id, number);
            }
        }
        (_, Kind::Double) => {
            if let Some(number) = headers::number(value) {
                tokens.double(row.id, number);
            }
        }
        (_, Kind::Byte) => tokens.byte(row.id, u8::from(value.eq_ignore_ascii_case(b"true"))),
        _ => {}
    }
}

/// Adds how far the range is, and how many replicas have it: all of the one that there is.
fn add_position(tokens: &mut TokenWriter, sent: &Sent<'_>, otherwise: Position) {
    let session = sent.session.and_then(|token| token.split_once(':'));
    // A token is not in every answer: that of another range than those that the client knows is withheld.
    let range = session.and_then(|(range, _)| range.parse().ok());
    let range = range.or(sent.range).unwrap_or(otherwise.range);
    // Clients take 0 for a replica that knows nothing.
    let sent_as = |lsn: u64| i64::try_from(lsn.max(1)).unwrap_or(i64::MAX);
    let lsn = sent_as(sent.lsn.unwrap_or(otherwise.lsn));
    let acked = sent.quorum_acked.map_or(lsn, sent_as);
    let of_item = sent.item_lsn.map_or(lsn, sent_as);
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
    let mut digits = itoa::Buffer::new();
    tokens.counted(
        id::PARTITION_KEY_RANGE_ID,
        Kind::String,
        digits.format(range).as_bytes(),
    );
    match session {
        Some((_, token)) => tokens.counted(id::SESSION_TOKEN, Kind::String, token.as_bytes()),
        None => tokens.counted(id::SESSION_TOKEN, Kind::String, format!("-1#{lsn}").as_bytes()),
    };
}

#[cfg(test)]
mod tests;
