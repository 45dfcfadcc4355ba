//! Bodies of requests: read after their sender was let in, under the budget of memory that all requests share.
//!
//!   head ──admitted──▶ read: a large body's memory at its first part ──▶ room to decode them, and for the answer of a write ──▶ operation
//!      └──refused──▶ dismissed: the answer goes out at once, nothing is kept

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
use crate::wire::binary_json::{self, Room, Size};
use crate::wire::{BATCH_OPERATIONS, hybrid_row};

/// How long a request waits for memory that others hold before it is refused.
pub const MEMORY_PATIENCE: Duration = Duration::from_secs(5);
/// Bodies and answers up to this size are not counted on connections that carry one request at a time: their number bounds them.
const UNCOUNTED_BYTES: usize = 4 * 1024;
/// What a decoded JSON value takes at most, with its name in an object and the room that its array or object has grown to.
const VALUE_BYTES: usize = 160;
/// What the answer of a write takes at most if it can be much larger than the request.
const WRITE_ANSWER_BYTES: usize = limits::PAGE_BYTES;

/// A body that has not been read yet.
pub trait RequestBody: Send {
    /// Its length, where the sender says it beforehand.
    fn declared_bytes(&self) -> Option<u64>;

    /// Reads it to its end, for a sender that was admitted. What is held meanwhile is taken from `memory`.
    ///
    /// # Errors
    /// See [`BodyError`]; the rest of a body that is too large is taken off the connection as far as that is bearable.
    fn read(self, limit: usize, memory: Counted<'_>) -> impl Future<Output = Result<Received, BodyError>> + Send;

    /// Takes it part by part, for a sender that was admitted: whoever takes a part holds it before the next one comes. However long it is, each part
    /// must arrive in time. Others that wait for memory are looked for in `memory`.
    fn parts(self, memory: Counted<'_>) -> impl Stream<Item = Result<Bytes, BodyError>> + Send;

    /// Nobody will read it: the request was refused by its head. `false` if the refusal need not wait for its turn, as its sender will not see it.
    fn dismiss(self, sender: Refused) -> bool;
}

/// Who was refused: how much of a body is worth reading only so that its sender gets to see the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Somebody who has not shown a key.
    Unknown,
    /// The holder of a key.
    Known,
}

/// Why there is no body.
#[derive(Debug, Clone, PartialEq)]
pub enum BodyError {
    /// It did not arrive in time.
    TooSlow,
    /// The connection broke, or its framing did.
    Broken,
    /// More than `limit` bytes; at least `bytes` of them.
    TooLarge {
        /// How many bytes are known of.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// There is no memory for it now.
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

/// The budget of memory, as one request takes from it.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'m> {
    memory: &'m MemoryBudget,
    uncounted_bytes: usize,
}

impl<'m> Counted<'m> {
    /// For a request over a version of HTTP: over HTTP/2 everything is counted, as one connection carries many requests.
    pub fn new(memory: &'m MemoryBudget, version: Version) -> Counted<'m> {
        Counted {
            memory,
            uncounted_bytes: if version == Version::HTTP_2 { 0 } else { UNCOUNTED_BYTES },
        }
    }

    /// Grows a share to so many bytes; waits for them.
    ///
    /// # Errors
    /// `NoMemory` if they are not there in time, or never will be.
    pub async fn grow(self, share: &mut Option<MemoryShare>, bytes: usize) -> Result<(), BodyError> {
        if bytes > self.uncounted_bytes {
            let share = share.get_or_insert_default();
            let grown = self.memory.grow(share, bytes, MEMORY_PATIENCE).await;
            grown.map_err(BodyError::NoMemory)?;
        }
        Ok(())
    }

    /// Takes so many bytes for a large body before it is read, all of them in one: bodies that took theirs bit by bit would wait for each other.
    /// `share` has what came before it was known to be large. Waits for them only if it may.
    ///
    /// # Errors
    /// As [`Counted::grow`].
    pub async fn expect(self, share: &mut Option<MemoryShare>, bytes: usize, may_wait: bool) -> Result<(), BodyError> {
        let patience = if may_wait { MEMORY_PATIENCE } else { Duration::ZERO };
        let taken = match share {
            None => {
                let taken = self.memory.take_for_arriving(bytes, patience).await;
                taken.map(|taken| *share = Some(taken))
            }
            Some(share) => self.memory.grow_for_arriving(share, bytes, patience).await,
        };
        taken.map_err(BodyError::NoMemory)
    }

    /// Whether others wait for memory.
    pub fn is_short(self) -> bool {
        self.memory.is_short()
    }

    /// Grows the share of a body that has come to so many bytes, which is all that the request needs; waits for them.
    ///
    /// # Errors
    /// As [`Counted::grow`].
    pub async fn settle(self, share: &mut Option<MemoryShare>, bytes: usize) -> Result<(), BodyError> {
        self.grow(share, bytes).await?;
        if let Some(share) = share {
            share.arrived();
        }
        Ok(())
    }

    /// Binds the bytes of an answer to their share of memory: it is given back when the last of them is sent or dropped.
    ///
    /// `share` is what the request holds.
    ///
    /// # Errors
    /// `Throttled` when there is not enough in time; a write that was carried out is answered `Timeout` then, as it must not be repeated
    /// unseen.
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
        let grown = self.memory.grow_for_held(held, answer.len(), MEMORY_PATIENCE).await;
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

/// Bytes that hold their share of memory as long as any part of them is held.
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

/// A body with the memory that it takes.
#[derive(Debug, Default)]
pub struct Received {
    /// All of it.
    pub bytes: Bytes,
    /// `None` for the small ones.
    pub share: Option<MemoryShare>,
}

/// A body whose codings are known.
pub(crate) fn readable<B: RequestBody>(head: &Parts, body: B) -> Result<B, Failure> {
    if body.declared_bytes() != Some(0)
        && let Err(failure) = check_codings(&head.headers)
    {
        body.dismiss(Refused::Known);
        return Err(failure);
    }
    Ok(body)
}

/// Refuses a body that is compressed or coded in another way: nothing here decodes it, and what it says is not what was sent.
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

/// What is going to be held besides the body itself: what it is decoded to, and the answer of a write.
///
/// A write takes room for its answer beforehand, as a refusal afterwards would hide what was done.
pub(crate) fn working_bytes(body: &Bytes, operation: Operation, has_pre_trigger: bool) -> usize {
    let writes_more = operation.is_growing() || has_pre_trigger;
    decoded_bytes(body) + if writes_more { WRITE_ANSWER_BYTES } else { 0 }
}

/// What a body takes when it is decoded, at most.
fn decoded_bytes(body: &Bytes) -> usize {
    if !hybrid_row::is_rows(body) {
        return value_bytes(body, &mut Room::of_one());
    }
    // Malformed rows are decoded no further than here.
    let rows = hybrid_row::operations(body, BATCH_OPERATIONS).unwrap_or_default();
    let mut room = Room::of_batch();
    let values = rows.iter().filter_map(|row| row.body.as_ref());
    values.fold(body.len(), |bytes, value| {
        bytes.saturating_add(value_bytes(value, &mut room))
    })
}

/// What an item or anything else in JSON takes: a value for each element and member, and a copy of its strings.
fn value_bytes(body: &[u8], room: &mut Room) -> usize {
    if binary_json::is_binary(body) {
        let Size { values, text_bytes } = room.size(body);
        // The text is held while it is read.
        return values.saturating_mul(VALUE_BYTES).saturating_add(2 * text_bytes);
    }
    if body.is_empty() {
        return 0;
    }
    // Sums of bytes are added up many at a time.
    let opened = body
        .chunks(255)
        .map(|part| usize::from(part.iter().map(opens_value).sum::<u8>()));
    let values = 1 + opened.sum::<usize>();
    values.saturating_mul(VALUE_BYTES).saturating_add(body.len())
}

/// 1 for a byte behind which a value may begin.
fn opens_value(byte: &u8) -> u8 {
    u8::from(*byte == b',') | u8::from(*byte == b'[') | u8::from(*byte == b'{')
}

/// A body that is there already, as in tests.
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
