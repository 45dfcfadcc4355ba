//! The entries of an item in a full-text index.
//!
//! ```text
//!   'P' ‖ index(4) ‖ key of a term ‖ item        → times(varint) ‖ words of the text(varint)
//!                  ‖ key of many terms ‖ item    → words(varint) ‖ lsn(8) ‖ seq(4)            if the text has too many for an entry each
//!                  ‖ key of a text ‖ item        → words(varint) ‖ lsn(8) ‖ seq(4)            every text
//!                  ‖ key of no text ‖ item       → 0 ‖ lsn(8) ‖ seq(4)                        every item without one
//! ```
//!
//! The keys of terms are those of `bolide_query::index`. `item` is the item's place in a key of a property index, so that a list is in the order of
//! creation. So each item has exactly one entry under the key of a text or of no text; its version tells whether it is that of a row that was read elsewhere.

use bolide_query::Item;
use bolide_query::index::{KEY_OF_MANY_TERMS, KEY_OF_NO_TEXT, KEY_OF_TEXT, TextIndex, TextTerms, key_of_term};
use bolide_storage::Key;
use bytes::{BufMut, Bytes, BytesMut};

use super::keys::{self, LogPosition, PropertyEntry};

/// How often a term occurs in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    pub times: u64,
    /// Number of words of the text.
    pub words: u64,
}

/// The entry of a whole text, or of an item without one, which has no words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextEntry {
    pub words: u64,
    pub version: LogPosition,
}

/// Returns the entries of an item in a full-text index: keys and values.
pub(crate) fn of(
    index: u32,
    text: &TextIndex,
    item: &Item<'_>,
    (item_key, version): (&[u8], LogPosition),
) -> Vec<(Key, Bytes)> {
    let entry = |key: &[u8], value: Bytes| (keys::property_entry(index, key, item_key), value);
    let whole = |words| TextEntry { words, version }.encode();
    let Some(TextTerms { words, terms }) = text.terms(item) else {
        return vec![entry(KEY_OF_NO_TEXT, whole(0))];
    };
    let mut entries = vec![entry(KEY_OF_TEXT, whole(words))];
    match terms {
        None => entries.push(entry(KEY_OF_MANY_TERMS, whole(words))),
        Some(terms) => entries.extend(terms.into_iter().map(|(term, times)| {
            let posting = Posting { times, words };
            entry(&key_of_term(&term), posting.encode())
        })),
    }
    entries
}

/// Returns the index and the number of words, if an entry is that of a whole text.
pub(crate) fn words_of_text(key: &[u8], value: &[u8]) -> Option<(u32, u64)> {
    // The entries of other indexes have no values.
    if value.is_empty() {
        return None;
    }
    let entry = PropertyEntry::parse(key).filter(|entry| entry.value == KEY_OF_TEXT)?;
    Some((entry.index, TextEntry::decode(value)?.words))
}

/// Returns whether an entry of a full-text index is that of a word, which has a [`Posting`]. The other keys have one byte.
pub(crate) fn is_of_word(entry: &PropertyEntry<'_>) -> bool {
    entry.value.len() > 1
}

impl Posting {
    pub fn encode(self) -> Bytes {
        let mut bytes = BytesMut::new();
        put_varint(&mut bytes, self.times);
        put_varint(&mut bytes, self.words);
        bytes.freeze()
    }

    /// Decodes a value; `None` if it is damaged.
    pub fn decode(mut bytes: &[u8]) -> Option<Posting> {
        let (times, words) = (take_varint(&mut bytes)?, take_varint(&mut bytes)?);
        bytes.is_empty().then_some(Posting { times, words })
    }
}

impl TextEntry {
    pub fn encode(self) -> Bytes {
        let mut bytes = BytesMut::new();
        put_varint(&mut bytes, self.words);
        self.version.put(&mut bytes);
        bytes.freeze()
    }

    /// Decodes a value; `None` if it is damaged.
    pub fn decode(mut bytes: &[u8]) -> Option<TextEntry> {
        let words = take_varint(&mut bytes)?;
        let version = LogPosition::decode(bytes)?;
        Some(TextEntry { words, version })
    }
}

/// Seven bits in a byte, the lowest first; the high bit tells that others follow.
fn put_varint(bytes: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        bytes.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.put_u8(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use bolide_model::Lsn;

    use super::*;

    #[test]
    fn values_come_back() {
        for words in [0, 1, 127, 128, 300, 2_000_000, u64::MAX] {
            let posting = Posting { times: 3, words };
            assert_eq!(Posting::decode(&posting.encode()), Some(posting));
            let version = LogPosition { lsn: Lsn(7), seq: 1 };
            let text = TextEntry { words, version };
            assert_eq!(TextEntry::decode(&text.encode()), Some(text));
        }
        assert_eq!(Posting { times: 1, words: 300 }.encode(), &[1, 0xAC, 2][..]);
        for damaged in [&[][..], &[0x80], &[1], &[1, 2, 3], &[0xFF; 12]] {
            assert_eq!(Posting::decode(damaged), None, "{damaged:?}");
        }
        assert_eq!(TextEntry::decode(&[1, 2]), None);
    }
}
