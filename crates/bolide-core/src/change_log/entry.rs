//! One entry of the history, and its encoding.

use bolide_model::time::CommitTime;
use bolide_model::{Error, ErrorKind, Result, UnixMillis, UnixSeconds};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::format::keys::LogPosition;
use crate::format::record::Record;

const FORMAT: u8 = 2;
/// Format of entries that have always the previous record, and neither a time but the second nor a note.
const FORMAT_1: u8 = 1;

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created; it did not exist, or was expired, before.
    Create,
    /// A new version replaced a live one.
    Replace,
    /// A client deleted it.
    Delete,
    /// It has expired.
    Expire,
}

impl ChangeKind {
    const ALL: [ChangeKind; 4] = [
        ChangeKind::Create,
        ChangeKind::Replace,
        ChangeKind::Delete,
        ChangeKind::Expire,
    ];

    /// Whether there is a version after, and one before.
    fn versions(self) -> (bool, bool) {
        match self {
            ChangeKind::Create => (true, false),
            ChangeKind::Replace => (true, true),
            ChangeKind::Delete | ChangeKind::Expire => (false, true),
        }
    }
}

/// An entry of the history. Its encoding is described in [`crate::change_log`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEntry {
    pub kind: ChangeKind,
    /// Server time of the commit: `crts` on the wire.
    pub crts: UnixSeconds,
    /// When it happened: the time of the commit, or that at which the version ended. Rises within a partition.
    pub time: CommitTime,
    /// The same as clients are told it: by the clock.
    pub happened: UnixMillis,
    pub item_key: Bytes,
    /// The new version; `None` after deletes.
    pub current: Option<Record>,
    /// The position of the version before; `None` for creates.
    pub previous_version: Option<LogPosition>,
    /// The version before, if the history keeps it.
    pub previous: Option<Record>,
    /// What the front end needs besides, as it has written it: what an update changed, or the key of a deleted document.
    pub note: Bytes,
}

impl HistoryEntry {
    pub fn encode(&self) -> Bytes {
        let empty = Bytes::new();
        let current = self.current.as_ref().map_or(&empty, Record::bytes);
        let previous = self.previous.as_ref().map_or(&empty, Record::bytes);
        let size = 64 + self.item_key.len() + current.len() + previous.len() + self.note.len();
        let mut bytes = BytesMut::with_capacity(size);
        bytes.put_u8(FORMAT);
        bytes.put_u8(self.kind as u8);
        bytes.put_i64(self.crts.0);
        bytes.put_u64(self.time.0);
        bytes.put_i64(self.happened.0);
        self.previous_version.unwrap_or_default().put(&mut bytes);
        bytes.put_u16(u16::try_from(self.item_key.len()).expect("limits::KEY_BYTES fits"));
        bytes.put_slice(&self.item_key);
        for part in [current, previous, &self.note] {
            bytes.put_u32(u32::try_from(part.len()).expect("limits::ITEM_BYTES fits"));
            bytes.put_slice(part);
        }
        bytes.freeze()
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a valid entry.
    pub fn decode(bytes: &Bytes) -> Result<HistoryEntry> {
        let parts = Parts::split(bytes.clone()).ok_or_else(damaged)?;
        let record = |bytes: Bytes| (!bytes.is_empty()).then(|| Record::decode(bytes)).transpose();
        let previous = record(parts.previous)?;
        let (has_current, has_previous) = parts.kind.versions();
        let stored_version = parts.previous_version.filter(|_| has_previous);
        let entry = HistoryEntry {
            kind: parts.kind,
            crts: parts.crts,
            time: parts.time,
            happened: parts.happened,
            item_key: parts.item_key,
            current: record(parts.current)?,
            previous_version: previous.as_ref().map(Record::version).or(stored_version),
            previous,
            note: parts.note,
        };
        let has = (entry.current.is_some(), entry.previous_version.is_some());
        let is_without_cause = entry.previous.is_some() && !has_previous;
        if has == (has_current, has_previous) && !is_without_cause {
            Ok(entry)
        } else {
            Err(damaged())
        }
    }

    /// Returns only the second of an encoded entry's commit, without decoding its records.
    pub fn crts_of(bytes: &[u8]) -> Option<UnixSeconds> {
        let crts = bytes.get(2..10)?.try_into().ok()?;
        Some(UnixSeconds(i64::from_be_bytes(crts)))
    }

    /// Returns only the time of an encoded entry.
    pub fn time_of(bytes: &[u8]) -> Option<CommitTime> {
        match *bytes.first()? {
            FORMAT_1 => HistoryEntry::crts_of(bytes).map(|crts| CommitTime::first_of(crts.millis())),
            _ => {
                let time = bytes.get(10..18)?.try_into().ok()?;
                Some(CommitTime(u64::from_be_bytes(time)))
            }
        }
    }
}

/// The parts of an encoded entry.
struct Parts {
    kind: ChangeKind,
    crts: UnixSeconds,
    time: CommitTime,
    happened: UnixMillis,
    previous_version: Option<LogPosition>,
    item_key: Bytes,
    current: Bytes,
    previous: Bytes,
    note: Bytes,
}

impl Parts {
    fn split(mut bytes: Bytes) -> Option<Parts> {
        let time = HistoryEntry::time_of(&bytes)?;
        let format = bytes.try_get_u8().ok()?;
        let kind = *ChangeKind::ALL.get(usize::from(bytes.try_get_u8().ok()?))?;
        let crts = UnixSeconds(bytes.try_get_i64().ok()?);
        let (happened, previous_version) = match format {
            FORMAT => {
                bytes.try_get_u64().ok()?;
                let happened = UnixMillis(bytes.try_get_i64().ok()?);
                let version = LogPosition::decode(&take(&mut bytes, LogPosition::BYTES)?)?;
                (happened, Some(version))
            }
            FORMAT_1 => (crts.millis(), None),
            _ => return None,
        };
        let key_length = usize::from(bytes.try_get_u16().ok()?);
        let item_key = take(&mut bytes, key_length)?;
        let current = take_counted(&mut bytes)?;
        let (previous, note) = match format {
            FORMAT_1 => (bytes, Bytes::new()),
            _ => {
                let parts = (take_counted(&mut bytes)?, take_counted(&mut bytes)?);
                if !bytes.is_empty() {
                    return None;
                }
                parts
            }
        };
        Some(Parts {
            kind,
            crts,
            time,
            happened,
            previous_version,
            item_key,
            current,
            previous,
            note,
        })
    }
}

fn take(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

fn take_counted(bytes: &mut Bytes) -> Option<Bytes> {
    let length = bytes.try_get_u32().ok()? as usize;
    take(bytes, length)
}

fn damaged() -> Error {
    Error::new(ErrorKind::Corrupt, "an entry of the history is damaged")
}

#[cfg(test)]
mod tests;
