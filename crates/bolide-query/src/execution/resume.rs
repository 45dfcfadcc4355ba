//! The end of a page, as a short text that goes into the caller's continuation.
//!
//! # Shape
//! Fields joined by `.`, all of `[A-Za-z0-9_-]`: version, fingerprint of the query in hexadecimal, rows returned, rows skipped; then optionally `d`
//! and the hashes of returned rows in base64url, see `emitted_rows`; then either nothing, or `w`, rid and rows (the item that must be pushed again), or `g`
//! and the identity of a group in base64url, or `o`, rid, ordinal and the sort values. A sort value is a letter for its kind and its content: `n` the
//! bits of a double, `i` an integer, `s` base64url, `a` and `b` hashes, `c` a hash and the beginning of a string that is too long for the limit.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use smallvec::SmallVec;

use super::emitted_rows::{EmittedRows, HASH_BYTES};
use super::sort_value::SortValue;
use super::sorter::SortPosition;
use crate::error::{QueryError, Result};
use crate::limits::RESUME_BYTES;
use crate::number::Number;
use crate::value::SameKey;

const VERSION: &str = "4";

/// Bytes that a position in an order leaves to the values returned by DISTINCT.
const DISTINCT_RESERVE: usize = 120;

/// An item that was partly processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialItem {
    pub rid: u64,
    /// Rows of it that were processed.
    pub rows: u64,
}

/// What a page must know of earlier pages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Resume {
    /// Rows returned so far.
    pub(super) returned: u64,
    /// Rows that OFFSET has skipped so far.
    pub(super) skipped: u64,
    pub(super) within: Option<PartialItem>,
    pub(super) boundary: Option<SortPosition>,
    /// The identity of the last group returned, if groups are in that order.
    pub(super) group: Option<SameKey>,
    /// Rows that were returned and have no position in an order.
    pub(super) emitted: EmittedRows,
    /// `emitted` can be used only if it is complete.
    pub(super) needs_all_emitted: bool,
}

impl Resume {
    pub(super) fn to_text(&self, fingerprint: u32) -> String {
        let head = format!("{VERSION}.{fingerprint:08x}.{}.{}", self.returned, self.skipped);
        let tail = if let Some(PartialItem { rid, rows }) = self.within {
            format!(".w.{rid}.{rows}")
        } else if let Some(group) = &self.group {
            format!(".g.{}", URL_SAFE_NO_PAD.encode(group))
        } else if let Some(position) = &self.boundary {
            position_text(position, RESUME_BYTES.saturating_sub(head.len() + DISTINCT_RESERVE))
        } else {
            String::new()
        };
        let max_bytes = RESUME_BYTES.saturating_sub(head.len() + tail.len() + ".d.".len());
        let max_hashes = max_bytes * 3 / 4 / HASH_BYTES;
        let emitted = match self.needs_all_emitted {
            true => self.emitted.all(max_hashes).unwrap_or_default(),
            false => self.emitted.latest(max_hashes),
        };
        if emitted.is_empty() {
            return head + &tail;
        }
        let emitted = URL_SAFE_NO_PAD.encode(EmittedRows::to_bytes(emitted));
        format!("{head}.d.{emitted}{tail}")
    }

    /// Reads the text of [`super::Finished::resume`].
    ///
    /// # Errors
    /// [`QueryError::BadContinuation`] for any other text, and for the text of another query.
    pub(crate) fn parse(text: &str, fingerprint: u32) -> Result<Resume> {
        let mut fields = text.split('.');
        let mut next = || fields.next().ok_or_else(malformed);
        if next()? != VERSION {
            return Err(malformed());
        }
        if next()? != format!("{fingerprint:08x}") {
            return Err(QueryError::BadContinuation("it belongs to another query".to_owned()));
        }
        let mut resume = Resume {
            returned: number(next()?)?,
            skipped: number(next()?)?,
            ..Resume::default()
        };
        let mut kind = fields.next();
        if kind == Some("d") {
            let emitted = URL_SAFE_NO_PAD.decode(fields.next().ok_or_else(malformed)?);
            let emitted = emitted.ok().and_then(|bytes| EmittedRows::from_bytes(&bytes));
            resume.emitted = emitted.ok_or_else(malformed)?;
            kind = fields.next();
        }
        match kind {
            None => return Ok(resume),
            Some("w") => {
                let mut next = || fields.next().ok_or_else(malformed).and_then(number);
                resume.within = Some(PartialItem {
                    rid: next()?,
                    rows: next()?,
                });
            }
            Some("g") => {
                let group = URL_SAFE_NO_PAD
                    .decode(fields.next().ok_or_else(malformed)?)
                    .map_err(|_| malformed())?;
                resume.group = Some(group.into());
            }
            Some("o") => {
                let mut next = || fields.next().ok_or_else(malformed).and_then(number);
                let (rid, ordinal) = (next()?, next()?);
                let values = fields.by_ref().map(parse_value).collect::<Result<SmallVec<_>>>()?;
                resume.boundary = Some(SortPosition { values, rid, ordinal });
            }
            Some(_) => return Err(malformed()),
        }
        if fields.next().is_some() {
            Err(malformed())
        } else {
            Ok(resume)
        }
    }

    /// Whether the sort values match a query with this number of keys.
    pub(crate) fn fits(&self, keys: usize) -> bool {
        self.boundary
            .as_ref()
            .is_none_or(|position| position.values.len() == keys)
    }
}

fn malformed() -> QueryError {
    QueryError::BadContinuation("it is malformed".to_owned())
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| malformed())
}

/// The position in an order. If it is too long, each long string is cut to an equal share.
fn position_text(position: &SortPosition, max_bytes: usize) -> String {
    let text = |share: usize| {
        let values = position.values.iter().map(|value| {
            let text = value_text(value);
            match value {
                SortValue::String(string) if text.len() > share => value_text(&SortValue::cut(string, share)),
                _ => text,
            }
        });
        let mut text = format!(".o.{}.{}", position.rid, position.ordinal);
        for value in values {
            text.push('.');
            text.push_str(&value);
        }
        text
    };
    let whole = text(usize::MAX);
    if whole.len() <= max_bytes {
        return whole;
    }
    let keys = position.values.len().max(1);
    let rids_and_ordinals = 48;
    text((max_bytes.saturating_sub(rids_and_ordinals) / keys).saturating_sub(1))
}

fn value_text(value: &SortValue) -> String {
    match value {
        SortValue::Undefined => "u".to_owned(),
        SortValue::Null => "z".to_owned(),
        SortValue::Bool(false) => "f".to_owned(),
        SortValue::Bool(true) => "t".to_owned(),
        SortValue::Number(Number::Int(value)) => format!("i{value}"),
        SortValue::Number(Number::Float(value)) => format!("n{:016x}", value.to_bits()),
        SortValue::String(text) => format!("s{}", URL_SAFE_NO_PAD.encode(text.as_bytes())),
        SortValue::Cut { hash, start } => {
            let (hash, start) = (hash.to_be_bytes(), start.as_bytes());
            format!("c{}", URL_SAFE_NO_PAD.encode([&hash[..], start].concat()))
        }
        SortValue::Array(hash) => format!("a{}", URL_SAFE_NO_PAD.encode(hash)),
        SortValue::Object(hash) => format!("b{}", URL_SAFE_NO_PAD.encode(hash)),
    }
}

fn parse_value(text: &str) -> Result<SortValue> {
    let (kind, rest) = text.split_at_checked(1).ok_or_else(malformed)?;
    let bytes = || URL_SAFE_NO_PAD.decode(rest).map_err(|_| malformed());
    let hash = || bytes().and_then(|bytes| <[u8; 16]>::try_from(bytes).map_err(|_| malformed()));
    Ok(match kind {
        "u" => SortValue::Undefined,
        "z" => SortValue::Null,
        "f" => SortValue::Bool(false),
        "t" => SortValue::Bool(true),
        "i" => SortValue::Number(Number::Int(rest.parse().map_err(|_| malformed())?)),
        "n" => {
            let bits = u64::from_str_radix(rest, 16).map_err(|_| malformed())?;
            SortValue::Number(Number::Float(f64::from_bits(bits)))
        }
        "s" => SortValue::String(String::from_utf8(bytes()?).map_err(|_| malformed())?.into()),
        "c" => {
            let bytes = bytes()?;
            let (hash, start) = bytes.split_first_chunk().ok_or_else(malformed)?;
            SortValue::Cut {
                hash: u64::from_be_bytes(*hash),
                start: std::str::from_utf8(start).map_err(|_| malformed())?.into(),
            }
        }
        "a" => SortValue::Array(hash()?),
        "b" => SortValue::Object(hash()?),
        _ => return Err(malformed()),
    })
}
