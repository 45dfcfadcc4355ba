//! The keys of a physical partition.
//!
//! ```text
//!   Item    epk ‖ tag ‖ rid(8)                           → record                       (see `record`)
//!   Index   'I' ‖ epk ‖ tag ‖ id                         → rid(8)
//!           'U' ‖ constraint(1) ‖ epk ‖ tag ‖ digest(16) → item key of the holder
//!           'K' ‖ index(4) ‖ epk ‖ digest(16)            → item key of the holder       documents of collections
//!           'P' ‖ index(4) ‖ value ‖ rid(8) ‖ epk ‖ length of the epk(1) → `PropertyValue` property indexes
//!   Log     lsn(8) ‖ seq(4)                              → class(1) ‖ _ts(8) ‖ size(4) ‖ item key
//!           'FE' ‖ lsn(8) ‖ seq(4)                       → an entry of the history        (see `change_log`)
//!   Expiry  base(8) ‖ lsn(8) ‖ seq(4)                    → size(4) ‖ item key          own ttl only
//!           'FD' ‖ rule(4) ‖ date(8) ‖ lsn(8) ‖ seq(4)   → size(4) ‖ item key          deadlines of documents
//!   Meta    'S'                                          → counters and cursors         (see `partition::state`)
//!           'W'                                          → the seal                     (see `partition::write_seal`)
//!           'Y'                                          → empty    the catalog of an unfinished copy has it (see `admin::copies`)
//!           'T' ‖ session                                → last use(8) ‖ its retryable writes   (see `documents`)
//!           'Q' ‖ last use(8) ‖ session                  → empty                                sessions, the least recently used first
//!           'P'                                          → the publication of a collection (see `catalog::unpublished`)
//! ```
//!
//! Numbers are big-endian, so that bytes order as the numbers do; `base` has its sign bit flipped for the same reason.
//! `epk ‖ tag` identifies a logical partition (see `content::logical`) and is called its epk below. No epk of a definition is a prefix of another, so
//! no separator follows it. The keys of items begin with their effective partition key, so a range is an interval of keys. Index keys hold it after
//! their first bytes. In property indexes the rid stands before the epk, so that equal values are in the order in which queries return ties.

use bolide_model::ttl::{DateHorizon, Deadline, RuleId};
use bolide_model::{Lsn, UnixMillis, UnixSeconds, epk::Epk};
use bolide_storage::{Key, Space};
use bytes::{BufMut, Bytes, BytesMut};

use super::record::Content;

/// Length of the resource number at the end of an item key, in bytes.
pub(crate) const RID_BYTES: usize = 8;
/// Length of a digest of unique key values, in bytes.
pub(crate) const DIGEST_BYTES: usize = 16;

const ID_INDEX: u8 = b'I';
const UNIQUE_INDEX: u8 = b'U';
const COLLECTION_UNIQUE_INDEX: u8 = b'K';
const PROPERTY_INDEX: u8 = b'P';

/// Digest of the values at the paths of one unique key constraint, or of a key of a unique index.
pub(crate) type UniqueDigest = [u8; DIGEST_BYTES];

/// A unique key that an item holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UniqueKey {
    /// The number of the container's constraint, or the id of the collection's index.
    pub index: u32,
    pub digest: UniqueDigest,
}

/// Returns the key of an item's record.
pub(crate) fn item(epk: &Epk, number: u64) -> Key {
    let mut bytes = BytesMut::with_capacity(epk.as_bytes().len() + RID_BYTES);
    bytes.put_slice(epk.as_bytes());
    bytes.put_u64(number);
    Key::new(Space::Item, bytes.freeze())
}

/// Returns the key of the record of a document in an unsharded MongoDB collection: these documents have no effective partition key.
pub(crate) fn item_in_collection(number: u64) -> Key {
    item(&Epk::start(), number)
}

/// Returns the key of an item by its effective partition key and its resource number.
pub(crate) fn item_key(epk: &[u8], number: u64) -> Bytes {
    [epk, &number.to_be_bytes()].concat().into()
}

/// Returns the effective partition key inside an item key.
pub(crate) fn epk_of_item(item_key: &[u8]) -> &[u8] {
    &item_key[..item_key.len().saturating_sub(RID_BYTES)]
}

/// Returns the resource number inside an item key.
pub(crate) fn number_of_item(item_key: &[u8]) -> u64 {
    let tail = item_key.len().saturating_sub(RID_BYTES);
    item_key[tail..]
        .iter()
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Returns the key of the index entry that finds an item by its id.
pub(crate) fn id_index(epk: &[u8], id: &[u8]) -> Key {
    let mut bytes = BytesMut::with_capacity(1 + epk.len() + id.len());
    bytes.put_u8(ID_INDEX);
    bytes.put_slice(epk);
    bytes.put_slice(id);
    Key::new(Space::Index, bytes.freeze())
}

/// Returns the key of the index entry that holds the values of one unique key constraint of a container, or a key of a unique index of a collection.
pub(crate) fn unique_index(epk: &[u8], content: Content, unique: &UniqueKey) -> Key {
    let mut bytes = BytesMut::with_capacity(5 + epk.len() + DIGEST_BYTES);
    match content {
        Content::Json => {
            bytes.put_u8(UNIQUE_INDEX);
            bytes.put_u8(u8::try_from(unique.index).expect("limits::UNIQUE_KEYS keeps constraints below 256"));
        }
        Content::Bson => {
            bytes.put_u8(COLLECTION_UNIQUE_INDEX);
            bytes.put_u32(unique.index);
        }
    }
    bytes.put_slice(epk);
    bytes.put_slice(&unique.digest);
    Key::new(Space::Index, bytes.freeze())
}

/// Returns the key of the entry that a property index has for a value of an item.
///
/// # Panics
/// If the effective partition key has more than 255 bytes; they have at most 97.
pub(crate) fn property_entry(index: u32, value: &[u8], item_key: &[u8]) -> Key {
    let epk = epk_of_item(item_key);
    let mut bytes = BytesMut::with_capacity(PROPERTY_PREFIX_BYTES + value.len() + item_key.len() + 1);
    bytes.put_slice(&property_prefix(index));
    bytes.put_slice(value);
    bytes.put_slice(&item_key[epk.len()..]);
    bytes.put_slice(epk);
    bytes.put_u8(u8::try_from(epk.len()).expect("an effective partition key has fewer bytes"));
    Key::new(Space::Index, bytes.freeze())
}

const PROPERTY_PREFIX_BYTES: usize = 5;

/// Returns what the keys of a property index begin with.
pub(crate) fn property_prefix(index: u32) -> [u8; PROPERTY_PREFIX_BYTES] {
    let mut prefix = [PROPERTY_INDEX; PROPERTY_PREFIX_BYTES];
    prefix[1..].copy_from_slice(&index.to_be_bytes());
    prefix
}

/// A key of a property index, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PropertyEntry<'k> {
    pub index: u32,
    pub value: &'k [u8],
    number: &'k [u8],
    pub epk: &'k [u8],
}

impl<'k> PropertyEntry<'k> {
    /// Takes a key of the index space apart; `None` if it is not of a property index.
    pub fn parse(key: &'k [u8]) -> Option<PropertyEntry<'k>> {
        let (index, rest) = key.strip_prefix(&[PROPERTY_INDEX])?.split_first_chunk()?;
        let (length, rest) = rest.split_last()?;
        let (rest, epk) = rest.split_at_checked(rest.len().checked_sub(usize::from(*length))?)?;
        let (value, number) = rest.split_at_checked(rest.len().checked_sub(RID_BYTES)?)?;
        Some(PropertyEntry {
            index: u32::from_be_bytes(*index),
            value,
            number,
            epk,
        })
    }

    /// Returns the resource number of the item.
    pub fn number(&self) -> u64 {
        self.number
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Returns whether the key of the item is before another one.
    pub fn is_before(&self, item_key: &[u8]) -> bool {
        (self.epk, self.number) < item_key.split_at(item_key.len().saturating_sub(RID_BYTES))
    }

    /// Returns the key of the item.
    pub fn item_key(&self) -> Bytes {
        [self.epk, self.number].concat().into()
    }
}

/// Returns the resource number of an item and its effective partition key, from what follows the value in a key of a property index.
pub(crate) fn place_in_index(place: &[u8]) -> Option<(u64, &[u8])> {
    let (number, rest) = place.split_first_chunk()?;
    let (length, epk) = rest.split_last()?;
    (epk.len() == usize::from(*length)).then_some((u64::from_be_bytes(*number), epk))
}

/// Returns the effective partition key followed by the id, from an index entry that finds an item by its id; `None` for other entries.
pub(crate) fn id_in_index(index_key: &[u8]) -> Option<&[u8]> {
    index_key.strip_prefix(&[ID_INDEX])
}

/// The position of a version in the log: its LSN, then its position among the writes of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct LogPosition {
    pub lsn: Lsn,
    pub seq: u32,
}

impl LogPosition {
    /// Length of an encoded position, in bytes.
    pub const BYTES: usize = 12;

    /// Returns the lowest position above this one. The last possible position, which only damaged bytes name, is followed by itself.
    pub fn next(self) -> LogPosition {
        match (self.seq.checked_add(1), self.lsn.0.checked_add(1)) {
            (Some(seq), _) => LogPosition { lsn: self.lsn, seq },
            (None, Some(lsn)) => LogPosition { lsn: Lsn(lsn), seq: 0 },
            (None, None) => self,
        }
    }

    pub fn put(self, bytes: &mut BytesMut) {
        bytes.put_u64(self.lsn.0);
        bytes.put_u32(self.seq);
    }

    pub fn decode(bytes: &[u8]) -> Option<LogPosition> {
        let (lsn, seq) = bytes.split_first_chunk()?;
        Some(LogPosition {
            lsn: Lsn(u64::from_be_bytes(*lsn)),
            seq: u32::from_be_bytes(seq.try_into().ok()?),
        })
    }

    /// Returns the bytes of the log key at this position.
    pub fn to_bytes(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(LogPosition::BYTES);
        self.put(&mut bytes);
        bytes.freeze()
    }

    /// Returns the log key at this position.
    pub fn key(self) -> Key {
        Key::new(Space::Log, self.to_bytes())
    }
}

/// Prefix of the history's keys. It sorts them after the keys of the log, because an LSN never gets so high.
const HISTORY: u8 = 0xFE;

/// Returns the end of the log inside its space, exclusive. The history begins there.
pub(crate) fn log_end() -> Bytes {
    Bytes::from_static(&[HISTORY])
}

/// Returns the key of the history's entry for the write at a position.
pub(crate) fn history(position: LogPosition) -> Key {
    let mut bytes = BytesMut::with_capacity(1 + LogPosition::BYTES);
    bytes.put_u8(HISTORY);
    position.put(&mut bytes);
    Key::new(Space::Log, bytes.freeze())
}

/// Returns the position that a key of the history names.
pub(crate) fn history_position(key: &[u8]) -> Option<LogPosition> {
    let (HISTORY, position) = key.split_first().map(|(first, rest)| (*first, rest))? else {
        return None;
    };
    LogPosition::decode(position)
}

/// The position of an item with a ttl of its own in its purge queue: when it expires, then its position in the log (TTL-266).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExpiryPosition {
    pub base: UnixSeconds,
    pub version: LogPosition,
}

impl Default for ExpiryPosition {
    /// Returns the start of the queue.
    fn default() -> ExpiryPosition {
        ExpiryPosition {
            base: UnixSeconds(i64::MIN),
            version: LogPosition::default(),
        }
    }
}

impl ExpiryPosition {
    /// Length of an encoded position, in bytes.
    pub const BYTES: usize = 8 + LogPosition::BYTES;

    pub fn next(self) -> ExpiryPosition {
        ExpiryPosition {
            version: self.version.next(),
            ..self
        }
    }

    pub fn put(self, bytes: &mut BytesMut) {
        // With the sign bit flipped, unsigned byte order agrees with the order of signed numbers.
        bytes.put_u64(self.base.0.cast_unsigned() ^ (1 << 63));
        self.version.put(bytes);
    }

    pub fn decode(bytes: &[u8]) -> Option<ExpiryPosition> {
        let (base, rest) = bytes.split_first_chunk()?;
        let base = (u64::from_be_bytes(*base) ^ (1 << 63)).cast_signed();
        Some(ExpiryPosition {
            base: UnixSeconds(base),
            version: LogPosition::decode(rest)?,
        })
    }

    pub fn to_bytes(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(ExpiryPosition::BYTES);
        self.put(&mut bytes);
        bytes.freeze()
    }

    pub fn key(self) -> Key {
        Key::new(Space::Expiry, self.to_bytes())
    }
}

/// Prefix of the keys of the queues of date rules. It sorts them after the queue of items with a ttl of their own, because a base never gets so high.
const DEADLINES: u8 = 0xFD;

/// Returns the end of the queue of items with a ttl of their own in its space, exclusive. The queues of date rules begin there.
pub(crate) fn expiry_end() -> Bytes {
    Bytes::from_static(&[DEADLINES])
}

/// The position of a document in the queue of a date rule: its date, then its position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeadlinePosition {
    pub deadline: Deadline,
    pub version: LogPosition,
}

impl DeadlinePosition {
    /// Length of an encoded position, in bytes.
    pub const BYTES: usize = 1 + 4 + 8 + LogPosition::BYTES;

    /// Returns the start of a rule's queue.
    pub fn first(rule: RuleId) -> DeadlinePosition {
        DeadlinePosition {
            deadline: Deadline {
                rule,
                date: UnixMillis(i64::MIN),
            },
            version: LogPosition::default(),
        }
    }

    /// Returns the position in a rule's queue after every version that has ended.
    pub fn after_ended(rule: RuleId, horizon: &DateHorizon) -> DeadlinePosition {
        let mut position = DeadlinePosition::first(rule);
        if let Some(threshold) = horizon.threshold(rule) {
            position.deadline.date = UnixMillis(threshold.saturating_add(1));
        }
        position
    }

    pub fn next(self) -> DeadlinePosition {
        DeadlinePosition {
            version: self.version.next(),
            ..self
        }
    }

    /// Returns the end of a rule's queue, exclusive; `None`: the end of the space.
    pub fn end(rule: RuleId) -> Option<Bytes> {
        let mut bytes = BytesMut::with_capacity(5);
        bytes.put_u8(DEADLINES);
        bytes.put_u32(rule.0);
        after_prefix(&bytes)
    }

    pub fn decode(bytes: &[u8]) -> Option<DeadlinePosition> {
        let rest = bytes.strip_prefix(&[DEADLINES])?;
        let (rule, rest) = rest.split_first_chunk()?;
        let (date, rest) = rest.split_first_chunk()?;
        let date = (u64::from_be_bytes(*date) ^ (1 << 63)).cast_signed();
        Some(DeadlinePosition {
            deadline: Deadline {
                rule: RuleId(u32::from_be_bytes(*rule)),
                date: UnixMillis(date),
            },
            version: LogPosition::decode(rest)?,
        })
    }

    pub fn to_bytes(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(DeadlinePosition::BYTES);
        bytes.put_u8(DEADLINES);
        bytes.put_u32(self.deadline.rule.0);
        bytes.put_u64(self.deadline.date.0.cast_unsigned() ^ (1 << 63));
        self.version.put(&mut bytes);
        bytes.freeze()
    }

    pub fn key(self) -> Key {
        Key::new(Space::Expiry, self.to_bytes())
    }
}

/// Returns the key of a partition's counters and cursors.
pub(crate) fn state() -> Key {
    Key::new(Space::Meta, Bytes::from_static(b"S"))
}

/// Returns the key of the row that describes the seal of a partition.
pub(crate) fn write_seal() -> Key {
    Key::new(Space::Meta, Bytes::from_static(b"W"))
}

/// Returns the key of the row that the catalog of an unfinished copy has.
pub(crate) fn unfinished_copy() -> Key {
    Key::new(Space::Meta, Bytes::from_static(b"Y"))
}

/// Returns the key of the row with which a transaction has committed the creation of a collection.
pub(crate) fn publication() -> Key {
    Key::new(Space::Meta, Bytes::from_static(b"P"))
}

const SESSION: u8 = b'T';
const SESSION_QUEUE: u8 = b'Q';

/// Returns the key of the retryable writes of a MongoDB session.
pub(crate) fn session(session: &[u8]) -> Key {
    let mut bytes = BytesMut::with_capacity(1 + session.len());
    bytes.put_u8(SESSION);
    bytes.put_slice(session);
    Key::new(Space::Meta, bytes.freeze())
}

/// Returns the key that a session has in the queue of sessions.
pub(crate) fn session_use(at: UnixSeconds, session: &[u8]) -> Key {
    let mut bytes = BytesMut::with_capacity(9 + session.len());
    bytes.put_u8(SESSION_QUEUE);
    bytes.put_i64(at.0.max(0));
    bytes.put_slice(session);
    Key::new(Space::Meta, bytes.freeze())
}

/// Tells whether a row belongs to the sessions: a split copies these into both halves.
pub(crate) fn is_of_sessions(key: &Key) -> bool {
    key.space == Space::Meta && matches!(key.bytes.first(), Some(&SESSION | &SESSION_QUEUE))
}

/// Returns the beginning and the end of the queue of sessions.
pub(crate) fn session_queue() -> (Bytes, Option<Bytes>) {
    let begin = Bytes::from_static(&[SESSION_QUEUE]);
    let end = after_prefix(&begin);
    (begin, end)
}

/// Returns the last use and the session that a key of the queue of sessions names.
pub(crate) fn session_of_use(key: &[u8]) -> Option<(UnixSeconds, &[u8])> {
    let (last_use, session) = key.strip_prefix(&[SESSION_QUEUE])?.split_first_chunk()?;
    Some((UnixSeconds(i64::from_be_bytes(*last_use)), session))
}

/// Returns the lowest bytes above everything that starts with `prefix`; `None` if there are none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// Returns the lowest bytes above `key`.
pub(crate) fn after(key: &[u8]) -> Bytes {
    let mut next = BytesMut::with_capacity(key.len() + 1);
    next.put_slice(key);
    next.put_u8(0);
    next.freeze()
}

/// Returns whether `next` is what [`after`] returns for `key`.
pub(crate) fn is_after(next: &[u8], key: &[u8]) -> bool {
    next.split_last() == Some((&0, key))
}

#[cfg(test)]
mod tests;
