//! The stored form of an item: a fixed header, the fields that the purge needs, then the document as the client sent it.
//!
//! ```text
//!   at  bytes
//!    0      1  format, 1
//!    1      1  class of the stamp: 0 inherited, 1 own, 2 never
//!    2      1  number of unique key digests
//!    3      1  reserved, 0
//!    4      4  seq: position in its transaction
//!    8      8  lsn
//!   16      8  _ts, seconds
//!   24      8  base of the stamp, seconds
//!   32     16  etag
//!   48      8  resource number
//!   56      2  length of the id
//!   58      …  id, then the digests (16 bytes each), then the document: JSON text without system properties
//! ```
//!
//! Numbers are big-endian. Deciding whether an item is live needs only the header, and a purge does not parse JSON: the id and the digests name
//! every index entry of the item.

use std::fmt;

use bolide_model::ttl::{Class, Stamp};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use bytes::{BufMut, Bytes, BytesMut};

use crate::format::etag::Etag;
use crate::format::keys::{DIGEST_BYTES, ExpiryPosition, LogPosition, UniqueDigest};

const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 58;

/// A stored version of an item. Cheap to clone: it shares the stored bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Record {
    bytes: Bytes,
}

/// The fields of a record.
pub(crate) struct Parts<'a> {
    pub version: LogPosition,
    pub last_modified: UnixSeconds,
    pub stamp: Stamp,
    pub etag: Etag,
    pub number: u64,
    pub id: &'a str,
    pub unique: &'a [UniqueDigest],
    pub document: &'a [u8],
}

impl Record {
    /// Encodes a record.
    pub fn new(parts: &Parts<'_>) -> Record {
        let id_bytes = u16::try_from(parts.id.len()).expect("limits::ITEM_ID_BYTES fits");
        let mut bytes = BytesMut::with_capacity(
            HEADER_BYTES + parts.id.len() + parts.unique.len() * DIGEST_BYTES + parts.document.len(),
        );
        bytes.put_u8(FORMAT);
        bytes.put_u8(class_to_byte(parts.stamp.class));
        bytes.put_u8(u8::try_from(parts.unique.len()).expect("limits::UNIQUE_KEYS fits"));
        bytes.put_u8(0);
        bytes.put_u32(parts.version.seq);
        bytes.put_u64(parts.version.lsn.0);
        bytes.put_i64(parts.last_modified.0);
        bytes.put_i64(parts.stamp.base.0);
        bytes.put_u128(parts.etag.0);
        bytes.put_u64(parts.number);
        bytes.put_u16(id_bytes);
        bytes.put_slice(parts.id.as_bytes());
        for digest in parts.unique {
            bytes.put_slice(digest);
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
        if bytes[0] != FORMAT {
            return Err(corrupt("unknown format"));
        }
        if class_from_byte(bytes[1]).is_none() {
            return Err(corrupt("unknown class"));
        }
        let record = Record { bytes };
        if record.document_at() > record.bytes.len() || std::str::from_utf8(record.id_bytes()).is_err() {
            return Err(corrupt("bad id or digests"));
        }
        Ok(record)
    }

    /// Returns the stored bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
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

    pub fn etag(&self) -> Etag {
        Etag(u128::from_be_bytes(self.array_at(32)))
    }

    pub fn number(&self) -> u64 {
        self.u64_at(48)
    }

    pub fn id(&self) -> &str {
        std::str::from_utf8(self.id_bytes()).expect("checked by decode")
    }

    /// Returns the digests of the unique keys that the item holds, in the order of the container's constraints.
    pub fn unique(&self) -> impl Iterator<Item = UniqueDigest> + '_ {
        let start = HEADER_BYTES + self.id_bytes().len();
        self.bytes[start..self.document_at()]
            .chunks_exact(DIGEST_BYTES)
            .map(|digest| digest.try_into().expect("chunks have the length of a digest"))
    }

    /// Returns the document as JSON text, without system properties.
    pub fn document(&self) -> Bytes {
        self.bytes.slice(self.document_at()..)
    }

    /// As [`Record::document`], as a borrow of the stored bytes.
    pub fn document_text(&self) -> &[u8] {
        &self.bytes[self.document_at()..]
    }

    /// Returns the size of the document in bytes, which charges and quotas use.
    pub fn size(&self) -> usize {
        self.bytes.len() - self.document_at()
    }

    /// Returns the item's position in the queue of items with a ttl of their own, or `None` if it has no ttl of its own.
    pub fn expiry_position(&self) -> Option<ExpiryPosition> {
        let stamp = self.stamp();
        (stamp.class == Class::Own).then(|| ExpiryPosition {
            base: stamp.base,
            version: self.version(),
        })
    }

    fn id_bytes(&self) -> &[u8] {
        let length = usize::from(u16::from_be_bytes(self.array_at(56)));
        let end = (HEADER_BYTES + length).min(self.bytes.len());
        &self.bytes[HEADER_BYTES..end]
    }

    fn document_at(&self) -> usize {
        let id_length = usize::from(u16::from_be_bytes(self.array_at(56)));
        HEADER_BYTES + id_length + usize::from(self.bytes[2]) * DIGEST_BYTES
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
            .field("id", &self.id())
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

/// What the queue of items with a ttl of their own stores of a version.
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
