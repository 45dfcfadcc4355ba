//! A frame as the request that it would be over HTTP.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_rntbd::frame::{ActivityId, Head};
use bolide_rntbd::table::{self, Form, Row, operation, request as id, resource};
use bolide_rntbd::token::{Malformed, Token, Tokens};
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, InvalidHeaderValue};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{FromFrame, Position, ReplyTo, addresses, position_in};
use crate::wire::headers;

/// What may stand in a segment of a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// All headers together, as over HTTP.
const HEADER_BYTES: usize = 64 * 1024;
/// Forms of the bounds of a part of a range.
const KEYS_AS_BYTES: i128 = 2;
const KEYS_IN_HEX: i128 = 3;

/// A frame's request, without its body.
#[derive(Debug)]
pub struct FrameRequest {
    /// As it would be over HTTP.
    pub request: Request<()>,
    /// Who is answered.
    pub reply_to: ReplyTo,
}

impl FrameRequest {
    /// Notes the request over HTTP that has brought the frame.
    #[must_use]
    pub fn carried_by(mut self, carrier: Parts) -> FrameRequest {
        if let Some(from) = self.request.extensions_mut().get_mut::<FromFrame>() {
            from.carrier = Some(Arc::new(carrier));
        }
        self
    }
}

/// Why a frame is no request. Its sender gets a 400 with these words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

/// A frame that is no request.
#[derive(Debug, Clone)]
pub struct RefusedFrame {
    /// Why.
    pub why: Refusal,
    /// Its types of resource and operation.
    pub operation: (u16, u16),
    /// Who is answered.
    pub reply_to: ReplyTo,
}

impl RefusedFrame {
    /// For the log: a request whose path is made of the types.
    pub(crate) fn as_request(&self) -> Parts {
        let (resource, operation) = self.operation;
        let request = Request::builder().method("RNTBD");
        let request = request.uri(format!("/{resource:#06x}/{operation:#06x}"));
        request.body(()).expect("a method and a path").into_parts().0
    }
}

/// An activity id as text: for the log and the texts of errors; the frame of the response has the bytes as they were.
pub(crate) fn activity_text(activity_id: ActivityId) -> HeaderValue {
    HeaderValue::from_str(&hyphenated(activity_id)).expect("a GUID is ASCII")
}

impl From<Malformed> for Refusal {
    fn from(error: Malformed) -> Refusal {
        Refusal(error.to_string())
    }
}

/// What a frame is.
#[derive(Debug)]
pub struct Parsed {
    /// Who is answered.
    pub reply_to: ReplyTo,
    /// Whether a payload follows its head.
    pub has_payload: bool,
    /// The request, or why it is none, for a 400.
    pub request: Result<FrameRequest, RefusedFrame>,
}

/// Makes a request of the head of a frame on a connection in direct mode. `version`: that of the API, which the client has named for the connection.
///
/// # Errors
/// The frame has no number, without which nobody can be answered, or does not say whether a payload follows: the connection cannot go on.
pub fn to_request(head: &Head, version: &HeaderValue) -> Result<Parsed, Malformed> {
    let token = head.tokens.required(id::TRANSPORT_REQUEST_ID)?;
    parse(head, version, token)
}

/// The same for a frame of Gateway 2.0, which needs no number.
///
/// # Errors
/// As [`to_request`].
pub fn to_request_of_gateway(head: &Head, version: &HeaderValue) -> Result<Parsed, Malformed> {
    match head.tokens.get(id::TRANSPORT_REQUEST_ID) {
        Some(token) => parse(head, version, token),
        None => parsed(head, version, 0),
    }
}

fn parse(head: &Head, version: &HeaderValue, number: &Token) -> Result<Parsed, Malformed> {
    parsed(
        head,
        version,
        u32::try_from(number.whole()?).map_err(|_| Malformed::Other(number.id))?,
    )
}

fn parsed(head: &Head, version: &HeaderValue, transport_request_id: u32) -> Result<Parsed, Malformed> {
    let reply_to = ReplyTo {
        activity_id: head.activity_id,
        transport_request_id,
        position: known_position(&head.tokens),
    };
    let request = request_of(head, version).map(|request| FrameRequest { request, reply_to });
    Ok(Parsed {
        reply_to,
        has_payload: has_payload(head)?,
        request: request.map_err(|why| RefusedFrame {
            why,
            operation: head.operation(),
            reply_to,
        }),
    })
}

/// The position in the session token of a request; the least one without it. Who gets an older one back takes the server for a replica that is behind, whatever the
/// status.
fn known_position(tokens: &Tokens) -> Position {
    let token = tokens.get(id::SESSION_TOKEN).and_then(|token| token.text().ok());
    token.and_then(position_in).unwrap_or_default()
}

/// Whether a payload follows the head of a frame.
///
/// # Errors
/// It does not say so.
pub fn has_payload(head: &Head) -> Result<bool, Malformed> {
    Ok(head.tokens.required(id::PAYLOAD_PRESENT)?.whole()? == 1)
}

fn request_of(head: &Head, version: &HeaderValue) -> Result<Request<()>, Refusal> {
    let (resource, operation) = head.operation();
    let verb = Verb::of(operation).ok_or_else(|| Refusal(format!("operation type {operation:#04x} is not served")))?;
    let tokens = &head.tokens;
    let path = path(tokens, resource, verb.is_of_feed)?;
    let mut headers = HeaderMap::with_capacity(24);
    let mut bytes = 0;
    for token in tokens.iter() {
        bytes += add_header(&mut headers, token)?;
        if bytes > HEADER_BYTES {
            return Err(Refusal(format!(
                "the tokens are too large. bytes={bytes} or more, limit={HEADER_BYTES}"
            )));
        }
    }
    for (name, value) in verb.headers {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    add_own_headers(&mut headers, tokens, operation)?;
    headers.insert(&headers::ACTIVITY_ID, activity_text(head.activity_id));
    headers.entry(&headers::VERSION).or_insert_with(|| version.clone());
    let uri = Uri::try_from(path).map_err(|error| Refusal(format!("the path cannot be used: {error}")))?;
    let mut request = Request::new(());
    *request.method_mut() = verb.method;
    *request.uri_mut() = uri;
    // Many requests share a connection, as over HTTP/2.
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = headers;
    let text = |token| tokens.get(token).map(Token::text).transpose();
    request.extensions_mut().insert(FromFrame {
        range: text(id::REPLICA_PATH)?.and_then(addresses::range_of),
        container: text(id::COLLECTION_RID)?.map(str::to_owned),
        carrier: None,
    });
    Ok(request)
}

/// What an operation type is over HTTP.
struct Verb {
    method: Method,
    /// Whether its path is that of a feed, to which it adds or which it reads.
    is_of_feed: bool,
    /// Headers that say the same.
    headers: &'static [(&'static str, &'static str)],
}

impl Verb {
    fn of(operation: u16) -> Option<Verb> {
        let verb = |method, is_of_feed, headers| {
            Some(Verb {
                method,
                is_of_feed,
                headers,
            })
        };
        match operation {
            operation::CREATE => verb(Method::POST, true, &[]),
            operation::PATCH => verb(Method::PATCH, false, &[("content-type", "application/json_patch+json")]),
            operation::READ => verb(Method::GET, false, &[]),
            operation::READ_FEED => verb(Method::GET, true, &[]),
            operation::DELETE => verb(Method::DELETE, false, &[]),
            operation::REPLACE => verb(Method::PUT, false, &[]),
            operation::EXECUTE => verb(Method::POST, false, &[]),
            operation::QUERY => verb(
                Method::POST,
                true,
                &[
                    ("x-ms-documentdb-isquery", "True"),
                    ("x-ms-documentdb-query-enablecrosspartition", "True"),
                    ("content-type", "application/query+json"),
                ],
            ),
            operation::SQL_QUERY => verb(
                Method::POST,
                true,
                &[
                    ("x-ms-documentdb-isquery", "True"),
                    ("x-ms-documentdb-query-enablecrosspartition", "True"),
                    ("content-type", "application/sql"),
                ],
            ),
            // A barrier: how far a range is, and how far the databases are.
            operation::HEAD => verb(Method::HEAD, false, &[]),
            operation::HEAD_FEED => verb(Method::HEAD, true, &[]),
            operation::UPSERT => verb(Method::POST, true, &[("x-ms-documentdb-is-upsert", "True")]),
            operation::BATCH => verb(Method::POST, true, &[("x-ms-cosmos-is-batch-request", "True")]),
            operation::QUERY_PLAN => verb(
                Method::POST,
                true,
                &[
                    ("x-ms-cosmos-is-query-plan-request", "True"),
                    ("content-type", "application/query+json"),
                ],
            ),
            _ => None,
        }
    }
}

/// A segment of a path with its name: the keyword, the token of the name, and how many bytes of a resource id stand for it.
type Segment = (&'static str, u16, usize);

/// All bytes of a resource id.
const WHOLE: usize = usize::MAX;

/// The segments of a type of resource (rntbd.md §4.1).
fn segments(resource: u16) -> Option<&'static [Segment]> {
    const DATABASE: Segment = ("dbs", id::DATABASE_NAME, 4);
    const CONTAINER: Segment = ("colls", id::COLLECTION_NAME, 8);
    const USER: Segment = ("users", id::USER_NAME, 8);
    Some(match resource {
        resource::ACCOUNT => &[],
        resource::DATABASE => &[DATABASE],
        resource::COLLECTION => &[DATABASE, CONTAINER],
        resource::USER => &[DATABASE, USER],
        resource::PERMISSION => &[DATABASE, USER, ("permissions", id::PERMISSION_NAME, WHOLE)],
        resource::DOCUMENT => &[DATABASE, CONTAINER, ("docs", id::DOCUMENT_NAME, WHOLE)],
        resource::STORED_PROCEDURE => &[DATABASE, CONTAINER, ("sprocs", id::STORED_PROCEDURE_NAME, WHOLE)],
        resource::TRIGGER => &[DATABASE, CONTAINER, ("triggers", id::TRIGGER_NAME, WHOLE)],
        resource::USER_DEFINED_FUNCTION => &[DATABASE, CONTAINER, ("udfs", id::USER_DEFINED_FUNCTION_NAME, WHOLE)],
        resource::CONFLICT => &[DATABASE, CONTAINER, ("conflicts", id::CONFLICT_NAME, WHOLE)],
        _ => return None,
    })
}

/// The path of what a frame addresses: by names, which are sent as they are, or by a resource id as bytes. That of a feed ends with a keyword.
fn path(tokens: &Tokens, resource: u16, is_of_feed: bool) -> Result<String, Refusal> {
    let segments = segments(resource).ok_or_else(|| Refusal(format!("resource type {resource:#04x} is not served")))?;
    let Some(last) = segments.len().checked_sub(1) else {
        return Ok("/".to_owned());
    };
    let has_names = tokens.get(id::DATABASE_NAME).is_some();
    let rid = match tokens.get(id::RESOURCE_ID) {
        Some(token) if !has_names => &token.bytes()?[..],
        _ => &[],
    };
    let mut path = String::with_capacity(96);
    for (at, (keyword, token, length)) in segments.iter().enumerate() {
        path.push('/');
        path.push_str(keyword);
        if at == last && is_of_feed {
            break;
        }
        path.push('/');
        if has_names {
            // Not character by character: most names stay as they are.
            path.push_str(&Cow::from(utf8_percent_encode(
                tokens.required(*token)?.text()?,
                SEGMENT,
            )));
            continue;
        }
        let part = match *length {
            WHOLE => Some(rid),
            length => rid.get(..length),
        };
        let part = part.filter(|part| !part.is_empty());
        let part = part.ok_or_else(|| Refusal("the resource id is too short".to_owned()))?;
        path.push_str(&STANDARD.encode(part).replace('/', "-"));
    }
    Ok(path)
}

/// The row of each token that stands for one header alone, with the name of that, by the token's id.
static HEADERS: LazyLock<Vec<Option<(&'static Row, HeaderName)>>> = LazyLock::new(|| {
    let rows = table::REQUEST.iter().filter(|row| row.form != Form::Own);
    let mut headers = Vec::new();
    for row in rows {
        headers.resize(usize::from(row.id), None);
        headers.push(Some((row, HeaderName::from_static(row.header))));
    }
    headers
});

/// Adds the header of a token that stands for one alone; returns the bytes of its value.
fn add_header(headers: &mut HeaderMap, token: &Token) -> Result<usize, Refusal> {
    let Some(Some((row, name))) = HEADERS.get(usize::from(token.id)) else {
        return Ok(0);
    };
    let value = value_of(row, token)?;
    let bytes = value.len();
    headers.insert(name, value);
    Ok(bytes)
}

/// The value of a token's header.
fn value_of(row: &Row, token: &Token) -> Result<HeaderValue, Refusal> {
    let text = |value: Result<HeaderValue, InvalidHeaderValue>| {
        value.map_err(|_| Refusal(format!("token {} has control characters", row.name)))
    };
    let number = |number: i128| HeaderValue::from(i64::try_from(number).unwrap_or(i64::MAX));
    Ok(match row.form {
        Form::Own => HeaderValue::from_static(""),
        Form::Text => match token.ascii_text()? {
            Some(ascii) => text(HeaderValue::from_maybe_shared(ascii))?,
            None => text(HeaderValue::from_str(&escaped(token.text()?)))?,
        },
        Form::Number => number(token.whole()?),
        Form::NumberOrMinusOne => match token.whole()? {
            all if all == i128::from(u32::MAX) => HeaderValue::from_static("-1"),
            other => number(other),
        },
        Form::Flag => HeaderValue::from_static(if token.whole()? == 0 { "False" } else { "True" }),
        Form::Choice(choices) => {
            let number = token.whole()?;
            let chosen = choices.iter().find(|(known, _)| i128::from(*known) == number);
            let (_, text) =
                chosen.ok_or_else(|| Refusal(format!("token {} has the unknown value {number}", row.name)))?;
            HeaderValue::from_static(text)
        }
        Form::Guid => text(HeaderValue::from_str(&hyphenated(token.guid()?)))?,
    })
}

/// Text for a header. Of the tokens only those with JSON may have other characters than those of ASCII, and these are in its strings.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(2 * text.len());
    for unit in text.chars() {
        if unit.is_ascii() {
            escaped.push(unit);
        } else {
            for code in unit.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\u{code:04x}");
            }
        }
    }
    escaped
}

/// Adds the headers that depend on several tokens, or have another form.
fn add_own_headers(headers: &mut HeaderMap, tokens: &Tokens, operation: u16) -> Result<(), Refusal> {
    let value =
        |text: &str| HeaderValue::from_str(text).map_err(|_| Refusal("a token has control characters".to_owned()));
    if let Some(etag) = tokens.get(id::MATCH) {
        let name = match operation {
            operation::READ | operation::READ_FEED => IF_NONE_MATCH,
            _ => IF_MATCH,
        };
        headers.insert(name, value(etag.text()?)?);
    }
    if let Some(preference) = tokens.get(id::RETURN_PREFERENCE) {
        let preference = match preference.whole()? {
            1 => "return=minimal",
            _ => "return=representation",
        };
        headers.insert(&headers::PREFER, HeaderValue::from_static(preference));
    }
    add_bounds(headers, tokens, operation)?;
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(())
}

/// Adds the bounds of a part of a range.
fn add_bounds(headers: &mut HeaderMap, tokens: &Tokens, operation: u16) -> Result<(), Refusal> {
    let refused = |why: &str| Err(Refusal(why.to_owned()));
    let has = |token| tokens.get(token).is_some();
    if has(id::START_ID) || has(id::END_ID) {
        return refused("bounds that are resource ids (StartId, EndId) are not served");
    }
    if has(id::EFFECTIVE_PARTITION_KEY) && !has(id::PARTITION_KEY) {
        return refused("EffectivePartitionKey needs the token PartitionKey");
    }
    let kind = tokens.get(id::READ_FEED_KEY_TYPE).map(Token::whole).transpose()?;
    let is_of_feed = matches!(
        operation,
        operation::QUERY | operation::SQL_QUERY | operation::READ_FEED
    );
    let (bounds, is_hex) = if has(id::START_EPK) || has(id::END_EPK) {
        let is_hex = match kind {
            Some(KEYS_AS_BYTES) => false,
            Some(KEYS_IN_HEX) => true,
            _ => return refused("StartEpk and EndEpk need ReadFeedKeyType 2 (bytes) or 3 (hexadecimal)"),
        };
        ([id::START_EPK, id::END_EPK], is_hex)
    } else if is_of_feed && !has(id::PARTITION_KEY) {
        ([id::START_EPK_HASH, id::END_EPK_HASH], false)
    } else {
        return Ok(());
    };
    for (token, name) in bounds.into_iter().zip([&headers::START_EPK, &headers::END_EPK]) {
        let Some(bound) = tokens.get(token) else { continue };
        let bound = bound.bytes()?;
        let bound = match is_hex {
            true => HeaderValue::from_bytes(bound),
            false => HeaderValue::from_str(&hex::encode_upper(bound)),
        };
        let bound = bound.map_err(|_| Refusal("a bound of a part of a range is no hexadecimal text".to_owned()))?;
        headers.insert(name, bound);
        headers.insert(
            &headers::READ_KEY_TYPE,
            HeaderValue::from_static("EffectivePartitionKeyRange"),
        );
    }
    Ok(())
}

/// A GUID as text: the first three fields are little-endian.
fn hyphenated(guid: [u8; 16]) -> String {
    uuid::Uuid::from_bytes_le(guid).hyphenated().to_string()
}

#[cfg(test)]
mod tests;
