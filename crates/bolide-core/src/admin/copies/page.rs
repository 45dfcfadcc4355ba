//! The rows that a copy reads, as bytes.
//!
//! ```text
//!   flags(1) ‖ left(8) ‖ [length(4) ‖ next key]   for each row: space(1) ‖ length(4) ‖ key ‖ length(4) ‖ value
//! ```
//!
//! Flags: 1 changed keys are missing, 2 a next key follows, 4 there is no such partition. The length of a missing value is the largest number.

use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Key, Space};
use bytes::{Buf as _, BufMut, Bytes, BytesMut};

const IS_LOST: u8 = 1;
const HAS_NEXT: u8 = 2;
const NO_PARTITION: u8 = 4;
const NO_VALUE: u32 = u32::MAX;

/// Where a page of all rows begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePosition {
    /// The space.
    pub space: Space,
    /// The first key, inclusive.
    pub from: Bytes,
}

impl PagePosition {
    /// Returns the position of a space by its number in [`COPIED_SPACES`](super::COPIED_SPACES).
    ///
    /// # Errors
    /// `BadRequest` if there is no such space.
    pub fn new(space: u64, from: Bytes) -> Result<PagePosition> {
        let space = u8::try_from(space).ok().and_then(space_of);
        let space = space.ok_or_else(|| Error::bad_request("`space` must be a number from 0 to 4"))?;
        Ok(PagePosition { space, from })
    }
}

/// Rows of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyPage {
    /// Keys and their values; `None`: it has no value now.
    pub rows: Vec<(Key, Option<Bytes>)>,
    /// Where the next page of all rows begins.
    pub next: Option<Bytes>,
    /// Number of further changed keys.
    pub left: u64,
    /// Not all changed keys are known: the partition is to be compared.
    pub is_lost: bool,
    /// The partition was removed.
    pub has_no_partition: bool,
}

impl CopyPage {
    pub(super) fn of_no_partition() -> CopyPage {
        CopyPage {
            has_no_partition: true,
            ..CopyPage::default()
        }
    }

    /// Returns the bytes of the page.
    pub fn encode(&self) -> Bytes {
        let size = |(key, value): &(Key, Option<Bytes>)| 9 + key.bytes.len() + value.as_ref().map_or(0, Bytes::len);
        let mut bytes = BytesMut::with_capacity(64 + self.rows.iter().map(size).sum::<usize>());
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.is_lost, IS_LOST)
            | flag(self.next.is_some(), HAS_NEXT)
            | flag(self.has_no_partition, NO_PARTITION);
        bytes.put_u8(flags);
        bytes.put_u64(self.left);
        if let Some(next) = &self.next {
            put(&mut bytes, next);
        }
        for (key, value) in &self.rows {
            bytes.put_u8(space_number(key.space));
            put(&mut bytes, &key.bytes);
            match value {
                Some(value) => put(&mut bytes, value),
                None => bytes.put_u32(NO_VALUE),
            }
        }
        bytes.freeze()
    }

    /// Reads the bytes of a page.
    ///
    /// # Errors
    /// `Corrupt` if they are not those of a page.
    pub fn decode(bytes: Bytes) -> Result<CopyPage> {
        decode(bytes).ok_or_else(|| Error::new(ErrorKind::Corrupt, "a page of rows is damaged"))
    }
}

fn decode(mut bytes: Bytes) -> Option<CopyPage> {
    let flags = bytes.try_get_u8().ok()?;
    let mut page = CopyPage {
        left: bytes.try_get_u64().ok()?,
        is_lost: flags & IS_LOST != 0,
        has_no_partition: flags & NO_PARTITION != 0,
        ..CopyPage::default()
    };
    if flags & HAS_NEXT != 0 {
        page.next = Some(take(&mut bytes)??);
    }
    while !bytes.is_empty() {
        let space = space_of(bytes.try_get_u8().ok()?)?;
        let key = take(&mut bytes)??;
        page.rows.push((Key::new(space, key), take(&mut bytes)?));
    }
    Some(page)
}

fn put(bytes: &mut BytesMut, field: &[u8]) {
    bytes.put_u32(field.len() as u32);
    bytes.put_slice(field);
}

/// Takes a field; `Some(None)`: it is missing.
fn take(bytes: &mut Bytes) -> Option<Option<Bytes>> {
    let length = bytes.try_get_u32().ok()?;
    if length == NO_VALUE {
        return Some(None);
    }
    let length = length as usize;
    (length <= bytes.len()).then(|| Some(bytes.split_to(length)))
}

fn space_number(space: Space) -> u8 {
    match space {
        Space::Item => 0,
        Space::Log => 1,
        Space::Expiry => 2,
        Space::Index => 3,
        Space::Meta => 4,
    }
}

fn space_of(number: u8) -> Option<Space> {
    Space::ALL.into_iter().find(|space| space_number(*space) == number)
}

#[cfg(test)]
mod tests;
