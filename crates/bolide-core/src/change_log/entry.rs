//! One entry of the history, and its encoding.

use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::format::record::Record;

const FORMAT: u8 = 1;

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was created; it did not exist, or was expired, before.
    Create,
    /// A new version replaced a live one.
    Replace,
    /// A client deleted it.
    Delete,
    /// It had expired and was removed, by the purge or by a write that displaced it (TTL-250).
    Expire,
}

impl ChangeKind {
    const ALL: [ChangeKind; 4] = [
        ChangeKind::Create,
        ChangeKind::Replace,
        ChangeKind::Delete,
        ChangeKind::Expire,
    ];
}

/// An entry of the history. Its encoding is described in [`crate::change_log`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HistoryEntry {
    pub kind: ChangeKind,
    /// Server time of the commit: `crts` on the wire.
    pub crts: UnixSeconds,
    pub item_key: Bytes,
    /// The new version; `None` after deletes.
    pub current: Option<Record>,
    /// The version before; `None` for creates.
    pub previous: Option<Record>,
}

impl HistoryEntry {
    pub fn encode(&self) -> Bytes {
        let empty = Bytes::new();
        let current = self.current.as_ref().map_or(&empty, Record::bytes);
        let previous = self.previous.as_ref().map_or(&empty, Record::bytes);
        let mut bytes = BytesMut::with_capacity(16 + self.item_key.len() + current.len() + previous.len());
        bytes.put_u8(FORMAT);
        bytes.put_u8(self.kind as u8);
        bytes.put_i64(self.crts.0);
        bytes.put_u16(u16::try_from(self.item_key.len()).expect("limits::KEY_BYTES fits"));
        bytes.put_slice(&self.item_key);
        bytes.put_u32(u32::try_from(current.len()).expect("limits::ITEM_BYTES fits"));
        bytes.put_slice(current);
        bytes.put_slice(previous);
        bytes.freeze()
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not a valid entry.
    pub fn decode(bytes: &Bytes) -> Result<HistoryEntry> {
        let damaged = || Error::new(ErrorKind::Corrupt, "an entry of the history is damaged");
        let entry = HistoryEntry::split(bytes.clone()).ok_or_else(damaged)?;
        let (kind, crts, item_key, current, previous) = entry;
        let record = |bytes: Bytes| (!bytes.is_empty()).then(|| Record::decode(bytes)).transpose();
        let entry = HistoryEntry {
            kind,
            crts,
            item_key,
            current: record(current)?,
            previous: record(previous)?,
        };
        let has = (entry.current.is_some(), entry.previous.is_some());
        let wants = match kind {
            ChangeKind::Create => (true, false),
            ChangeKind::Replace => (true, true),
            ChangeKind::Delete | ChangeKind::Expire => (false, true),
        };
        if has == wants { Ok(entry) } else { Err(damaged()) }
    }

    /// Returns only the time of an encoded entry, without decoding its records.
    pub fn crts_of(bytes: &[u8]) -> Option<UnixSeconds> {
        let crts = bytes.get(2..10)?.try_into().ok()?;
        Some(UnixSeconds(i64::from_be_bytes(crts)))
    }

    fn split(mut bytes: Bytes) -> Option<(ChangeKind, UnixSeconds, Bytes, Bytes, Bytes)> {
        if bytes.try_get_u8().ok()? != FORMAT {
            return None;
        }
        let kind = *ChangeKind::ALL.get(usize::from(bytes.try_get_u8().ok()?))?;
        let crts = UnixSeconds(bytes.try_get_i64().ok()?);
        let key_length = usize::from(bytes.try_get_u16().ok()?);
        let item_key = take(&mut bytes, key_length)?;
        let current_length = bytes.try_get_u32().ok()? as usize;
        let current = take(&mut bytes, current_length)?;
        Some((kind, crts, item_key, current, bytes))
    }
}

fn take(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

#[cfg(test)]
mod tests;
