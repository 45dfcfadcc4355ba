//! Bodies of requests: read after their sender was authorized, within the memory budget of all requests.
//!
//!   head ──admitted──▶ read: memory of a large body at its first part ──▶ memory to decode it, and for the response of a write ──▶ operation
//!      └──refused──▶ dismissed: the response is sent at once, nothing is kept

use std::future::Future;
use std::time::Duration;

use bolide_core::{MemoryBudget, MemoryShare};
use bolide_model::{Error, ErrorKind, limits};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header::{CONTENT_ENCODING, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Version};

use crate::operation::Operation;
use crate::status::{self, Failure};
use crate::wire::binary_json::{self, Size, TextBudget};
use crate::wire::{BATCH_OPERATIONS, hybrid_row};

/// How long a request waits for memory before it is refused.
pub const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bodies and responses up to this size are not counted on connections that carry one request at a time: the number of connections limits them.
const UNCOUNTED_BYTES: usize = 4 * 1024;
/// Maximum memory of a decoded JSON value, with its name in an object and the growth of its array or object.
const VALUE_BYTES: usize = 160;
/// Maximum memory of the response of a write whose response can be much larger than the request.
const WRITE_ANSWER_BYTES: usize = limits::PAGE_BYTES;

/// A body that has not been read yet.
pub trait RequestBody: Send {
    /// Its length, if declared.
    fn declared_bytes(&self) -> Option<u64>;

    /// Reads it to its end, for an admitted sender. Memory used meanwhile is taken from `memory`.
    ///
    /// # Errors
    /// See [`BodyError`]; the rest of a body that is too large is read and dropped, within limits.
    fn read(self, limit: usize, memory: Counted<'_>) -> impl Future<Output = Result<Received, BodyError>> + Send;

    /// Reads it part by part, for an admitted sender: the caller processes a part before the next one is read. The body may have any length, but each
    /// part must arrive in time. `memory` tells whether other requests wait for memory.
    fn parts(self, memory: Counted<'_>) -> impl Stream<Item = Result<Bytes, BodyError>> + Send;

    /// Drops it: the request was refused by its head. `false` if the refusal need not be delayed, because its sender will not see it.
    fn dismiss(self, sender: Refused) -> bool;
}

/// The sender of a refused request: decides how much of the body is read so that the sender can read the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A client that has not shown a key.
    Unknown,
    /// The holder of a key.
    Known,
}

/// Why a body could not be read.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyError {
    /// It did not arrive in time.
    TooSlow,
    /// The connection broke, or its framing was invalid.
    Broken,
    /// More than `limit` bytes; at least `bytes`.
    TooLarge {
        /// The number of bytes known.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// There is no memory for it.
    NoMemory(Error),
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Failure {
        match error {
            BodyError::TooSlow => Failure::new(status::REQUEST_TIMEOUT, "the request's body did not arrive in time"),
            BodyError::Broken => Failure::bad_request("the request's body could not be read"),
            BodyError::TooLarge { bytes, limit } => Failure::too_large(bytes, limit),
            BodyError::NoMemory(error) => error.into(),
        }
    }
}

/// The memory budget, as used by one request.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'m> {
    memory: &'m MemoryBudget,
    uncounted_bytes: usize,
}

impl<'m> Counted<'m> {
    /// For a request over a version of HTTP: over HTTP/2 everything is counted, because one connection carries many requests.
    pub fn new(memory: &'m MemoryBudget, version: Version) -> Counted<'m> {
        Counted {
            memory,
            uncounted_bytes: if version == Version::HTTP_2 { 0 } else { UNCOUNTED_BYTES },
        }
    }

    /// Grows a share to `bytes`; waits for memory.
    ///
    /// # Errors
    /// `NoMemory` if it is not available in time, or can never be.
    pub async fn grow(self, share: &mut Option<MemoryShare>, bytes: usize) -> Result<(), BodyError> {
        if bytes > self.uncounted_bytes {
            let share = share.get_or_insert_default();
            let grown = self.memory.grow(share, bytes, MEMORY_TIMEOUT).await;
            grown.map_err(BodyError::NoMemory)?;
        }
        Ok(())
    }

    /// Reserves all memory for a large body before it is read: bodies that reserved memory bit by bit would wait for each other. `share` has the
    /// memory of the part that came before the body was known to be large. Waits only if `may_wait`.
    ///
    /// # Errors
    /// As [`Counted::grow`].
    pub async fn expect(self, share: &mut Option<MemoryShare>, bytes: usize, may_wait: bool) -> Result<(), BodyError> {
        let timeout = if may_wait { MEMORY_TIMEOUT } else { Duration::ZERO };
        let taken = match share {
            None => {
                let taken = self.memory.take_for_arriving(bytes, timeout).await;
                taken.map(|taken| *share = Some(taken))
            }
            Some(share) => self.memory.grow_for_arriving(share, bytes, timeout).await,
        };
        taken.map_err(BodyError::NoMemory)
    }

    /// Whether other requests wait for memory.
    pub fn is_short(self) -> bool {
        self.memory.is_short()
    }

    /// Grows the share of a body to `bytes`, which is all the memory that the request needs; waits for it.
    ///
    /// # Errors
    /// As [`Counted::grow`].
    pub async fn grow_to_final(self, share: &mut Option<MemoryShare>, bytes: usize) -> Result<(), BodyError> {
        self.grow(share, bytes).await?;
        if let Some(share) = share {
            share.arrived();
        }
        Ok(())
    }

    /// Binds the bytes of a response to their share of memory, which is released when the last of them is sent or dropped.
    ///
    /// `share` is the share of the request.
    ///
    /// # Errors
    /// `Throttled` if there is not enough memory in time; after a write that was carried out `Timeout`, because it must not be retried without checking.
    pub(crate) async fn bind(
        self,
        answer: Bytes,
        mut share: Option<MemoryShare>,
        operation: Option<Operation>,
    ) -> Result<Bytes, Error> {
        if answer.len() <= self.uncounted_bytes || answer.is_empty() {
            return Ok(answer);
        }
        if let Some(share) = share.as_mut() {
            share.shrink_to(answer.len());
        }
        let held = share.get_or_insert_default();
        let grown = self.memory.grow_for_held(held, answer.len(), MEMORY_TIMEOUT).await;
        grown.map_err(|error| {
            if operation.is_none_or(Operation::is_read) {
                return error;
            }
            let done = "the operation was carried out, but there is no memory for its answer";
            Error {
                kind: ErrorKind::Timeout,
                ..error.context(done)
            }
        })?;
        Ok(bound(answer, share))
    }
}

/// Bytes that keep their share of memory as long as any part of them is kept.
pub(crate) fn bound(bytes: Bytes, share: Option<MemoryShare>) -> Bytes {
    struct Bound {
        bytes: Bytes,
        _share: MemoryShare,
    }
    impl AsRef<[u8]> for Bound {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    match share {
        Some(_share) => Bytes::from_owner(Bound { bytes, _share }),
        None => bytes,
    }
}

/// A body with its memory.
#[derive(Debug, Default)]
pub struct Received {
    /// The whole body.
    pub bytes: Bytes,
    /// `None` for small bodies.
    pub share: Option<MemoryShare>,
}

/// A body with supported codings only.
pub(crate) fn readable<B: RequestBody>(head: &Parts, body: B) -> Result<B, Failure> {
    if body.declared_bytes() != Some(0)
        && let Err(failure) = check_codings(&head.headers)
    {
        body.dismiss(Refused::Known);
        return Err(failure);
    }
    Ok(body)
}

/// Refuses a compressed body, or one with another coding: it would have to be decoded first.
///
/// Source: RFC 9112 section 6.1 has 501 for a transfer coding, RFC 9110 section 15.5.16 has 415 for a content coding.
fn check_codings(headers: &HeaderMap) -> Result<(), Failure> {
    let codings = |name| {
        let lines = headers.get_all(name).iter();
        let codings = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        codings.map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty())
    };
    let mut transfer = codings(TRANSFER_ENCODING);
    let is_chunked_once = transfer
        .next()
        .is_none_or(|coding| coding.eq_ignore_ascii_case(b"chunked"))
        && transfer.next().is_none();
    if !is_chunked_once {
        return Err(Failure::new(
            status::NOT_IMPLEMENTED,
            "the body has a transfer coding that this server does not know; send it with none, or `transfer-encoding: chunked`",
        ));
    }
    if codings(CONTENT_ENCODING).all(|coding| coding.eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    Err(Failure::new(
        status::UNSUPPORTED_MEDIA_TYPE,
        "the body has a content coding; send it uncompressed, without `content-encoding`",
    ))
}

/// The memory needed in addition to the body: for its decoded form, and for the response of a write.
///
/// A write reserves memory for its response in advance, because a refusal after it would hide that it was done.
pub(crate) fn working_bytes(body: &Bytes, operation: Operation, has_pre_trigger: bool) -> usize {
    let writes_more = operation.is_growing() || has_pre_trigger;
    decoded_bytes(body) + if writes_more { WRITE_ANSWER_BYTES } else { 0 }
}

/// Maximum memory of a decoded body.
fn decoded_bytes(body: &Bytes) -> usize {
    if !hybrid_row::is_rows(body) {
        return value_bytes(body, &mut TextBudget::of_one());
    }
    // Malformed rows are decoded only up to the error.
    let rows = hybrid_row::operations(body, BATCH_OPERATIONS).unwrap_or_default();
    let mut text_budget = TextBudget::of_batch();
    let values = rows.iter().filter_map(|row| row.body.as_ref());
    values.fold(body.len(), |bytes, value| {
        bytes.saturating_add(value_bytes(value, &mut text_budget))
    })
}

/// Memory of JSON such as an item: a value for each element and member, and a copy of its strings.
fn value_bytes(body: &[u8], text_budget: &mut TextBudget) -> usize {
    if binary_json::is_binary(body) {
        let Size { values, text_bytes } = text_budget.size(body);
        // The text is kept while it is parsed.
        return values.saturating_mul(VALUE_BYTES).saturating_add(2 * text_bytes);
    }
    if body.is_empty() {
        return 0;
    }
    // Sums of bytes are added in groups, for speed.
    let opened = body
        .chunks(255)
        .map(|part| usize::from(part.iter().map(opens_value).sum::<u8>()));
    let values = 1 + opened.sum::<usize>();
    values.saturating_mul(VALUE_BYTES).saturating_add(body.len())
}

/// 1 for a byte after which a value may begin.
fn opens_value(byte: &u8) -> u8 {
    u8::from(*byte == b',') | u8::from(*byte == b'[') | u8::from(*byte == b'{')
}

/// A body in memory, as in tests.
impl RequestBody for Bytes {
    fn declared_bytes(&self) -> Option<u64> {
        Some(self.len() as u64)
    }

    async fn read(self, limit: usize, memory: Counted<'_>) -> Result<Received, BodyError> {
        let bytes = self.len();
        if bytes > limit {
            return Err(BodyError::TooLarge { bytes, limit });
        }
        let mut share = None;
        memory.grow(&mut share, bytes).await?;
        Ok(Received { bytes: self, share })
    }

    fn parts(self, _: Counted<'_>) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
        stream::iter((!self.is_empty()).then_some(Ok(self)))
    }

    fn dismiss(self, _sender: Refused) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
