//! The texts that a write batch stores and removes, each with its words: what changes in lists of full-text indexes that are kept in memory (`ranked_texts`).

use bytes::Bytes;

use crate::format::entries::Entry;
use crate::format::keys::{self, PropertyEntry};
use crate::index::{IndexKind, PropertyIndexes};

/// A text that is now stored in a full-text index, or no longer stored. Texts with too many words for an entry each have none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextChange {
    pub index: u32,
    pub is_added: bool,
    pub item_key: Bytes,
    /// Number of words of the text.
    pub words: u64,
    /// The keys of its words' entries, in order, each with the number of times that the word occurs.
    entries: Vec<(Bytes, u64)>,
}

impl TextChange {
    /// Returns how often a word occurs in the text.
    pub fn times(&self, word: &str) -> u64 {
        let compare = |key: &Bytes| word_of(key).cmp(word.as_bytes());
        let found = self.entries.binary_search_by(|(key, _)| compare(key));
        found.map_or(0, |at| self.entries[at].1)
    }

    /// Returns the resource number of the item.
    pub fn number(&self) -> u64 {
        keys::number_of_item(&self.item_key)
    }
}

/// Returns the word of an entry.
fn word_of(key: &[u8]) -> &[u8] {
    let term = PropertyEntry::parse(key).and_then(|entry| entry.value.strip_suffix(&[0]));
    term.unwrap_or_default()
}

/// The changes of a write batch, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TextChanges(Vec<TextChange>);

impl TextChanges {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes the last changes back, so that `count` are left.
    pub fn truncate(&mut self, count: usize) {
        self.0.truncate(count);
    }

    pub fn into_list(self) -> Vec<TextChange> {
        self.0
    }

    /// Notes an entry that is stored or removed, if it is that of a word. The entries of an item come one after the other.
    pub fn note(&mut self, indexes: &PropertyIndexes, item_key: &Bytes, is_added: bool, entry: &Entry<'_>) {
        let is_full_text = |id: u32| {
            let is_it = |index: &&crate::index::PropertyIndex| index.id == id;
            let index = indexes.list.iter().find(is_it);
            index.is_some_and(|index| matches!(index.kind, IndexKind::FullText(_)))
        };
        let Some((index, posting)) = entry.posting(is_full_text) else {
            return;
        };
        let word = (entry.key.bytes.clone(), posting.times);
        match self.0.last_mut() {
            // The second of two changes of one item is not of the same kind.
            Some(last) if (last.index, last.is_added, &last.item_key) == (index, is_added, item_key) => {
                last.entries.push(word);
            }
            _ => self.0.push(TextChange {
                index,
                is_added,
                item_key: item_key.clone(),
                words: posting.words,
                entries: vec![word],
            }),
        }
    }
}

#[cfg(test)]
impl TextChange {
    /// Returns the change of a text with these words, each with the number of times that it occurs.
    pub fn of(index: u32, is_added: bool, item_key: &Bytes, terms: &[(&str, u64)]) -> TextChange {
        let mut terms = terms.to_vec();
        terms.sort_unstable();
        let key = |word| keys::property_entry(index, &bolide_query::index::key_of_term(word), item_key);
        TextChange {
            index,
            is_added,
            item_key: item_key.clone(),
            words: terms.iter().map(|(_, times)| times).sum(),
            entries: terms.iter().map(|(word, times)| (key(word).bytes, *times)).collect(),
        }
    }
}
