//! The stored form of an item: a fixed header, the fields that the purge needs, then the document as the client sent it.
//!
//! ```text
//!   at  bytes   items of containers                  documents of MongoDB collections
//!    0      1   format, 1                            format, 2
//!    1      1   class of the stamp: 0 inherited, 1 own, 2 never
//!    2      1   number of unique key digests         content: 1 BSON
//!    3      1   reserved, 0                          number of deadlines
//!    4      4   seq: position in its transaction
//!    8      8   lsn
//!   16      8   _ts, seconds
//!   24      8   base of the stamp, seconds
//!   32     16   etag
//!   48      8   resource number
//!   56      2   length of the id
//!   58      4   -                                    number of unique key digests
//!   58/62   …   id (UTF-8)                           encoded _id
//!           …   -                                    deadlines: rule(4) ‖ date(8)
//!           …   digests(16)                          digests: index(4) ‖ digest(16)
//!           …   JSON text without system properties  BSON
//! ```
//!
//! Numbers are big-endian. Deciding whether an item is live needs only the header and the deadlines, and a purge does not parse the document: id,
//! deadlines and digests name every entry of the item.

use std::fmt;

use bolide_model::ttl::{Class, Deadline, Horizon, RuleId, Stamp};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis, UnixSeconds};
use bytes::{BufMut, Bytes, BytesMut};

use crate::format::etag::Etag;
use crate::format::keys::{DIGEST_BYTES, DeadlinePosition, ExpiryPosition, LogPosition, UniqueDigest, UniqueKey};

const FORMAT_JSON: u8 = 1;
const FORMAT_DOCUMENT: u8 = 2;
const CONTENT_BSON: u8 = 1;
/// Bytes before the id.
const HEADER_BYTES: usize = 58;
const DOCUMENT_HEADER_BYTES: usize = HEADER_BYTES + 4;
const DEADLINE_BYTES: usize = 4 + 8;
const DOCUMENT_DIGEST_BYTES: usize = 4 + DIGEST_BYTES;

/// A stored version of an item. Cheap to clone: it shares the stored bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    bytes: Bytes,
}

/// What a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// JSON text: an item of a container.
    Json,
    /// A document of a MongoDB collection.
    Bson,
}

/// The fields of a record.
pub(crate) struct Parts<'a> {
    pub version: LogPosition,
    pub last_modified: UnixSeconds,
    pub stamp: Stamp,
    pub etag: Etag,
    pub number: u64,
    /// UTF-8 for JSON, the encoded `_id` for BSON.
    pub id: &'a [u8],
    /// The dates under the date rules; only for BSON, at most 255.
    pub deadlines: &'a [Deadline],
    /// For JSON, one for each constraint, in their order.
    pub unique: &'a [UniqueKey],
    pub content: Content,
    pub document: &'a [u8],
}

impl Record {
    /// Encodes a record.
    pub fn new(parts: &Parts<'_>) -> Record {
        let tail = parts.id.len() + parts.deadlines.len() * DEADLINE_BYTES + parts.unique.len() * DOCUMENT_DIGEST_BYTES;
        let mut bytes = BytesMut::with_capacity(DOCUMENT_HEADER_BYTES + tail + parts.document.len());
        match parts.content {
            Content::Json => {
                debug_assert!(parts.deadlines.is_empty(), "date rules are for BSON");
                bytes.put_u8(FORMAT_JSON);
                bytes.put_u8(class_to_byte(parts.stamp.class));
                bytes.put_u8(u8::try_from(parts.unique.len()).expect("limits::UNIQUE_KEYS fits"));
                bytes.put_u8(0);
            }
            Content::Bson => {
                bytes.put_u8(FORMAT_DOCUMENT);
                bytes.put_u8(class_to_byte(parts.stamp.class));
                bytes.put_u8(CONTENT_BSON);
                bytes.put_u8(u8::try_from(parts.deadlines.len()).expect("limits::INDEXES fits"));
            }
        }
        bytes.put_u32(parts.version.seq);
        bytes.put_u64(parts.version.lsn.0);
        bytes.put_i64(parts.last_modified.0);
        bytes.put_i64(parts.stamp.base.0);
        bytes.put_u128(parts.etag.0);
        bytes.put_u64(parts.number);
        bytes.put_u16(u16::try_from(parts.id.len()).expect("limits::ITEM_ID_BYTES and KEY_VALUE_BYTES fit"));
        if parts.content == Content::Bson {
            bytes.put_u32(u32::try_from(parts.unique.len()).expect("a document has fewer elements"));
        }
        bytes.put_slice(parts.id);
        for deadline in parts.deadlines {
            bytes.put_u32(deadline.rule.0);
            bytes.put_i64(deadline.date.0);
        }
        for unique in parts.unique {
            if parts.content == Content::Bson {
                bytes.put_u32(unique.index);
            }
            bytes.put_slice(&unique.digest);
        }
        bytes.put_slice(parts.document);
        Record { bytes: bytes.freeze() }
    }

    /// Decodes stored bytes as a record.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a record.
    pub fn decode(bytes: Bytes) -> Result<Record> {
        let corrupt = |what: &str| Error::new(ErrorKind::Corrupt, format!("a stored item is damaged: {what}"));
        if bytes.len() < HEADER_BYTES {
            return Err(corrupt("shorter than its header"));
        }
        match bytes[0] {
            FORMAT_JSON => {}
            FORMAT_DOCUMENT if bytes.len() >= DOCUMENT_HEADER_BYTES && bytes[2] == CONTENT_BSON => {}
            _ => return Err(corrupt("unknown format")),
        }
        if class_from_byte(bytes[1]).is_none() {
            return Err(corrupt("unknown class"));
        }
        let record = Record { bytes };
        let is_text = || record.content() == Content::Bson || std::str::from_utf8(record.id_bytes()).is_ok();
        if record.document_at() > record.bytes.len() || !is_text() {
            return Err(corrupt("bad id, deadlines or digests"));
        }
        Ok(record)
    }

    /// Returns a copy with other deadlines and unique keys, for a document whose collection has got or lost an index. It is the same version.
    pub fn with_index_fields(&self, deadlines: &[Deadline], unique: &[UniqueKey]) -> Record {
        Record::new(&Parts {
            version: self.version(),
            last_modified: self.last_modified(),
            stamp: self.stamp(),
            etag: self.etag(),
            number: self.number(),
            id: self.id_bytes(),
            deadlines,
            unique,
            content: self.content(),
            document: self.document_bytes(),
        })
    }

    /// Returns the stored bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns what the document is written in.
    pub fn content(&self) -> Content {
        match self.bytes[0] {
            FORMAT_JSON => Content::Json,
            _ => Content::Bson,
        }
    }

    pub fn version(&self) -> LogPosition {
        LogPosition {
            lsn: Lsn(self.u64_at(8)),
            seq: u32::from_be_bytes(self.array_at(4)),
        }
    }

    pub fn last_modified(&self) -> UnixSeconds {
        UnixSeconds(self.u64_at(16).cast_signed())
    }

    pub fn stamp(&self) -> Stamp {
        let class = class_from_byte(self.bytes[1]).expect("checked by decode");
        Stamp {
            class,
            base: UnixSeconds(self.u64_at(24).cast_signed()),
        }
    }

    /// Returns the dates under the date rules.
    pub fn deadlines(&self) -> impl Iterator<Item = Deadline> + '_ {
        let start = self.id_end();
        self.bytes[start..start + self.deadline_count() * DEADLINE_BYTES]
            .chunks_exact(DEADLINE_BYTES)
            .map(|bytes| {
                let (rule, date) = bytes.split_at(4);
                Deadline {
                    rule: RuleId(u32::from_be_bytes(rule.try_into().expect("four bytes"))),
                    date: UnixMillis(i64::from_be_bytes(date.try_into().expect("eight bytes"))),
                }
            })
    }

    /// Tells whether neither the stamp nor a deadline has ended the version.
    pub fn is_live(&self, horizon: &Horizon) -> bool {
        horizon.shows(self.stamp(), self.deadlines())
    }

    pub fn etag(&self) -> Etag {
        Etag(u128::from_be_bytes(self.array_at(32)))
    }

    pub fn number(&self) -> u64 {
        self.u64_at(48)
    }

    /// Returns the id of an item of a container; empty for a document of a collection.
    pub fn id(&self) -> &str {
        match self.content() {
            Content::Json => std::str::from_utf8(self.id_bytes()).expect("checked by decode"),
            Content::Bson => "",
        }
    }

    /// Returns the id as it is in the index: UTF-8, or the encoded `_id` of a document.
    pub fn id_bytes(&self) -> &[u8] {
        let end = self.id_end().min(self.bytes.len());
        &self.bytes[self.header_bytes()..end]
    }

    /// Returns the unique keys that the item holds; for JSON in the order of the container's constraints.
    pub fn unique(&self) -> impl Iterator<Item = UniqueKey> + '_ {
        let width = self.digest_bytes();
        let digests = self.bytes[self.digests_at()..self.document_at()].chunks_exact(width);
        digests.zip(0..).map(move |(bytes, at)| {
            let (index, digest) = bytes.split_at(width - DIGEST_BYTES);
            UniqueKey {
                index: index.try_into().map_or(at, u32::from_be_bytes),
                digest: UniqueDigest::try_from(digest).expect("chunks have the length of a digest"),
            }
        })
    }

    /// Returns the document: JSON text without system properties, or BSON.
    pub fn document(&self) -> Bytes {
        self.bytes.slice(self.document_at()..)
    }

    /// As [`Record::document`], as a borrow of the stored bytes.
    pub fn document_bytes(&self) -> &[u8] {
        &self.bytes[self.document_at()..]
    }

    /// Returns the size of the document in bytes, which charges and quotas use.
    pub fn size(&self) -> usize {
        self.bytes.len() - self.document_at()
    }

    /// Returns the number of bytes of the item with its system properties, as clients get it.
    pub fn item_bytes(&self) -> usize {
        let comma = usize::from(self.document_bytes() != b"{}");
        self.size() + comma + self.system_members_bytes()
    }

    /// Returns the number of bytes of the system properties as members of an object, with commas between them. All but `_ts` have a fixed length.
    pub fn system_members_bytes(&self) -> usize {
        const ALL_BUT_DIGITS: usize = 194;
        let ts = self.last_modified().0;
        let digits = ts.unsigned_abs().checked_ilog10().unwrap_or_default() as usize + 1;
        ALL_BUT_DIGITS + digits + usize::from(ts < 0)
    }

    /// Returns the item's position in the queue of items with a ttl of their own, or `None` if it has no ttl of its own.
    pub fn expiry_position(&self) -> Option<ExpiryPosition> {
        let stamp = self.stamp();
        (stamp.class == Class::Own).then(|| ExpiryPosition {
            base: stamp.base,
            version: self.version(),
        })
    }

    /// Returns the document's positions in the queues of the date rules.
    pub fn deadline_positions(&self) -> impl Iterator<Item = DeadlinePosition> + '_ {
        let version = self.version();
        self.deadlines()
            .map(move |deadline| DeadlinePosition { deadline, version })
    }

    fn header_bytes(&self) -> usize {
        match self.content() {
            Content::Json => HEADER_BYTES,
            Content::Bson => DOCUMENT_HEADER_BYTES,
        }
    }

    fn id_end(&self) -> usize {
        self.header_bytes() + usize::from(u16::from_be_bytes(self.array_at(56)))
    }

    fn deadline_count(&self) -> usize {
        match self.content() {
            Content::Json => 0,
            Content::Bson => usize::from(self.bytes[3]),
        }
    }

    fn digests_at(&self) -> usize {
        self.id_end() + self.deadline_count() * DEADLINE_BYTES
    }

    fn digest_bytes(&self) -> usize {
        match self.content() {
            Content::Json => DIGEST_BYTES,
            Content::Bson => DOCUMENT_DIGEST_BYTES,
        }
    }

    fn document_at(&self) -> usize {
        let digests = match self.content() {
            Content::Json => usize::from(self.bytes[2]),
            Content::Bson => u32::from_be_bytes(self.array_at(HEADER_BYTES)) as usize,
        };
        digests
            .saturating_mul(self.digest_bytes())
            .saturating_add(self.digests_at())
    }

    fn u64_at(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array_at(at))
    }

    fn array_at<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes[at..at + N]
            .try_into()
            .expect("inside the header, whose length decode checked")
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("id", &String::from_utf8_lossy(self.id_bytes()))
            .field("version", &self.version())
            .field("stamp", &self.stamp())
            .finish()
    }
}

pub(crate) fn class_to_byte(class: Class) -> u8 {
    match class {
        Class::Inherited => 0,
        Class::Own => 1,
        Class::Never => 2,
    }
}

pub(crate) fn class_from_byte(byte: u8) -> Option<Class> {
    match byte {
        0 => Some(Class::Inherited),
        1 => Some(Class::Own),
        2 => Some(Class::Never),
        _ => None,
    }
}

/// What the log stores of a version: enough to decide whether it is live and to count it without reading the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub class: Class,
    pub last_modified: UnixSeconds,
    pub size: u32,
    pub item_key: Bytes,
}

impl LogEntry {
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(13 + self.item_key.len());
        bytes.put_u8(class_to_byte(self.class));
        bytes.put_i64(self.last_modified.0);
        bytes.put_u32(self.size);
        bytes.put_slice(&self.item_key);
        bytes.freeze()
    }

    pub fn decode(bytes: &Bytes) -> Result<LogEntry> {
        let damaged = || Error::new(ErrorKind::Corrupt, "a log entry is damaged");
        let (class, rest) = bytes.split_first().ok_or_else(damaged)?;
        let (last_modified, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (size, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        Ok(LogEntry {
            class: class_from_byte(*class).ok_or_else(damaged)?,
            last_modified: UnixSeconds(i64::from_be_bytes(*last_modified)),
            size: u32::from_be_bytes(*size),
            item_key: bytes.slice_ref(rest),
        })
    }
}

/// What the queue of items with a ttl of their own, and those of date rules, store of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpiryEntry {
    pub size: u32,
    pub item_key: Bytes,
}

impl ExpiryEntry {
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(4 + self.item_key.len());
        bytes.put_u32(self.size);
        bytes.put_slice(&self.item_key);
        bytes.freeze()
    }

    pub fn decode(bytes: &Bytes) -> Result<ExpiryEntry> {
        let (size, rest) = bytes
            .split_first_chunk()
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, "an entry of the expiry queue is damaged"))?;
        Ok(ExpiryEntry {
            size: u32::from_be_bytes(*size),
            item_key: bytes.slice_ref(rest),
        })
    }
}

#[cfg(test)]
mod tests;
