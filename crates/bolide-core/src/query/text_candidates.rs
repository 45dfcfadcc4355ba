//! Finds the items whose texts have certain words.

use std::collections::HashMap;

use bolide_model::{Lsn, Result};
use bolide_query::index::{KEY_OF_MANY_TERMS, key_of_term};
use bolide_storage::Page;
use bytes::Bytes;

use crate::format::keys::{self, PropertyEntry};
use crate::partition::{IndexInterval, Partition};

/// Returns the entries of a key in a full-text index.
pub(super) fn list(index: u32, key: &[u8]) -> IndexInterval {
    let from = [&keys::property_prefix(index), key].concat();
    IndexInterval {
        to: keys::after_prefix(&from),
        from: from.into(),
    }
}

/// Returns the keys of the items of one partition whose texts have all words of at least one list, and of those whose texts have too many words; all at one
/// snapshot. `None` if there are more than `limit`.
pub(super) async fn keys_in(
    partition: &Partition,
    index: u32,
    any_of: &[Vec<String>],
    limit: usize,
) -> Result<Option<(Lsn, Vec<Bytes>)>> {
    let mut words: Vec<&String> = any_of.iter().flatten().collect();
    words.sort_unstable();
    words.dedup();
    let lists = words.iter().map(|word| list(index, &key_of_term(word)));
    let lists: Vec<IndexInterval> = std::iter::once(list(index, KEY_OF_MANY_TERMS)).chain(lists).collect();
    let (head, pages) = partition.read_index(&lists, false, limit + 1).await?;
    let mut pages = pages.iter().map(|page| items_of(page, limit));
    let Some(Some(mut keys)) = pages.next() else {
        return Ok(None);
    };
    let by_word: HashMap<&String, Option<Vec<Bytes>>> = words.into_iter().zip(pages).collect();
    for words in any_of {
        // The items with all words whose lists are short; the filter looks for the others.
        let mut short = words.iter().filter_map(|word| by_word.get(word)?.as_ref());
        let Some(first) = short.next() else {
            return Ok(None);
        };
        let mut with_all = first.clone();
        for list in short {
            with_all.retain(|key| list.binary_search(key).is_ok());
        }
        keys.extend(with_all);
    }
    Ok(Some((head.lsn, keys)))
}

/// Returns the keys of the items of a list, sorted; `None` if there are more than `limit`.
fn items_of(page: &Page, limit: usize) -> Option<Vec<Bytes>> {
    if page.more || page.rows.len() > limit {
        return None;
    }
    let entries = page.rows.iter().filter_map(|(key, _)| PropertyEntry::parse(key));
    let mut keys: Vec<Bytes> = entries.map(|entry| entry.item_key()).collect();
    keys.sort_unstable();
    Some(keys)
}
