//! Every entry that a stored item has in addition to its record, in one list.
//!
//! ```text
//!   Index   'I' ‖ epk ‖ id            → number           finds the item by its id
//!           'U' ‖ constraint ‖ digest → item key         holds a unique key of a container
//!           'K' ‖ index ‖ digest      → item key         holds a key of a unique index of a collection
//!           'P' ‖ index ‖ value ‖ item → PropertyValue   finds items by a value at the path of a property index; empty for documents of a collection
//!           'P' ‖ index ‖ values ‖ item → PropertyValue  finds items by the values at the paths of a composite index
//!           'P' ‖ index ‖ term ‖ item → counts           finds items by a word of their text (see `text_entries`)
//!           'P' ‖ index ‖ cell ‖ item → empty           finds items by a cell of their shape
//!           'P' ‖ index ‖ list ‖ item → vector           finds items with similar vectors; quantized
//!   Log     lsn ‖ seq                 → LogEntry         the change feed, and the expiry queue of the container's default
//!   Expiry  base ‖ lsn ‖ seq          → ExpiryEntry      the expiry queue of items with a ttl of their own
//!           'FD' ‖ rule ‖ date ‖ lsn ‖ seq → ExpiryEntry  the expiry queues of date rules
//! ```
//!
//! Writes put the entries of the list, replaces and the purge delete them, a split and an import build them, and the full check compares with them.
//! Entries are a function of the item's key, its record and the container's property indexes, so code that has them never reads an entry in order to remove it. No two items have an entry
//! with the same key and the same value, so an entry identifies its item. The history (`crate::change_log`) is not part of the list: it describes
//! changes, not stored items.

use bolide_model::ttl::Stamp;
use bolide_mql::bson::RawDocument;
use bolide_mql::index::stored_keys;
use bolide_query::index::{IndexPath, KEY_OF_UNDEFINED};
use bolide_query::{Item as QueryItem, SystemProperties};
use bolide_storage::{Key, Space};
use bytes::Bytes;

use super::keys::{self, PropertyEntry};
use super::record::{Content, ExpiryEntry, LogEntry, Record};
use super::text_entries::{self, Posting};
use crate::index::{IndexKind, PropertyIndex, PropertyIndexes};

/// One entry of an item.
pub(crate) struct Entry<'i> {
    pub key: Key,
    item: Item<'i>,
    kind: Kind,
}

#[derive(Clone, Copy)]
struct Item<'i> {
    key: &'i Bytes,
    record: &'i Record,
}

enum Kind {
    Id,
    Unique,
    /// With its value.
    Property(Bytes),
    Log,
    Expiry,
}

/// Returns the entries of the item that is stored as `record` under `item_key`.
pub(crate) fn of<'i>(
    indexes: &PropertyIndexes,
    item_key: &'i Bytes,
    record: &'i Record,
) -> impl Iterator<Item = Entry<'i>> + use<'i> {
    let item = Item { key: item_key, record };
    let epk = keys::epk_of_item(item_key);
    let entry = move |key, kind| Entry { key, item, kind };
    let content = record.content();
    let unique = record.unique();
    let unique = unique.map(move |unique| entry(keys::unique_index(epk, content, &unique), Kind::Unique));
    let expiry = record
        .expiry_position()
        .map(|position| entry(position.key(), Kind::Expiry));
    let deadlines = record.deadline_positions();
    let deadlines = deadlines.map(move |position| entry(position.key(), Kind::Expiry));
    let id = entry(keys::id_index(epk, record.id_bytes()), Kind::Id);
    let log = entry(record.version().key(), Kind::Log);
    let properties = property_entries(&indexes.list, item_key, record).into_iter();
    let properties = properties.map(move |(key, value)| entry(key, Kind::Property(value)));
    std::iter::once(id)
        .chain(unique)
        .chain(properties)
        .chain([log])
        .chain(expiry)
        .chain(deadlines)
}

/// Maximum number of values of an item in an index. An item with more of them has one entry instead, which every condition finds.
const MAX_VALUES: usize = 1_000;
/// The value of that entry, before all others.
pub(crate) const KEY_OF_MANY: &[u8] = &[0x10];

/// Returns the entries that an item has in property indexes: keys and values.
pub(crate) fn property_entries(indexes: &[PropertyIndex], item_key: &[u8], record: &Record) -> Vec<(Key, Bytes)> {
    if indexes.is_empty() {
        return Vec::new();
    }
    match record.content() {
        Content::Json => entries_of_item(indexes, item_key, record),
        Content::Bson => entries_of_document(indexes, item_key, record),
    }
}

/// Returns the entries of a document in the indexes of its collection.
fn entries_of_document(indexes: &[PropertyIndex], item_key: &[u8], record: &Record) -> Vec<(Key, Bytes)> {
    let Ok(document) = RawDocument::from_bytes(record.document_bytes()) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for index in indexes {
        if let IndexKind::Document(of_collection) = &index.kind {
            let keys = stored_keys(&of_collection.definition, document).into_iter();
            entries.extend(keys.map(|key| (keys::property_entry(index.id, &key, item_key), Bytes::new())));
        }
    }
    entries
}

fn entries_of_item(indexes: &[PropertyIndex], item_key: &[u8], record: &Record) -> Vec<(Key, Bytes)> {
    // A stored document is JSON; of one that is damaged all the same, no entries are left.
    let properties = IndexedProperties(record);
    let Ok(item) = QueryItem::stored(record.document_bytes(), &properties) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for index in indexes {
        match &index.kind {
            IndexKind::Document(_) => {}
            IndexKind::Values(path) => {
                let keys = value_keys(index, path, &item).into_iter();
                let value = PropertyValue::of(record);
                entries.extend(keys.map(|key| (keys::property_entry(index.id, &key, item_key), value.clone())));
            }
            IndexKind::Composite(composite) => {
                let key = keys::property_entry(index.id, &composite.key(&item), item_key);
                entries.push((key, PropertyValue::of(record)));
            }
            IndexKind::FullText(text) => {
                entries.extend(text_entries::of(index.id, text, &item, (item_key, record.version())));
            }
            IndexKind::Spatial(spatial) => {
                let keys = spatial.keys(&item).into_iter();
                entries.extend(keys.map(|key| (keys::property_entry(index.id, &key, item_key), Bytes::new())));
            }
            IndexKind::Vector(vector) => {
                let (list, value) = vector.entry(&item);
                entries.push((keys::property_entry(index.id, &list.to_be_bytes(), item_key), value));
            }
        }
    }
    entries
}

/// The value of an entry of a property index: what rows often have beside the value at its path, and the charge for the item.
///
/// ```text
///   bytes of the item(4) ‖ id
/// ```
pub(crate) struct PropertyValue<'v> {
    pub item_bytes: u32,
    pub id: &'v str,
}

impl<'v> PropertyValue<'v> {
    fn of(record: &Record) -> Bytes {
        let bytes = u32::try_from(record.item_bytes()).expect("limits::ITEM_BYTES fits");
        [&bytes.to_be_bytes(), record.id_bytes()].concat().into()
    }

    /// Returns `None` if there is none: entries had no values at first, and those of documents have none.
    pub fn decode(value: &'v [u8]) -> Option<PropertyValue<'v>> {
        let (bytes, id) = value.split_first_chunk()?;
        Some(PropertyValue {
            item_bytes: u32::from_be_bytes(*bytes),
            id: std::str::from_utf8(id).ok()?,
        })
    }
}

/// Returns the vector of a stored item at a path, if it has one.
pub(crate) fn vector_at(record: &Record, path: &IndexPath) -> Option<Vec<f64>> {
    let properties = IndexedProperties(record);
    let is_item = record.content() == Content::Json;
    let item = is_item.then(|| QueryItem::stored(record.document_bytes(), &properties));
    path.vector(&item?.ok()?)
}

/// Returns the keys of an item's values at the path of an index.
fn value_keys(index: &PropertyIndex, path: &IndexPath, item: &QueryItem<'_>) -> Vec<Vec<u8>> {
    let mut keys = path.keys(item);
    if keys.len() > MAX_VALUES {
        keys = vec![KEY_OF_MANY.to_vec()];
    }
    if keys.is_empty() && index.has_undefined() {
        keys.push(KEY_OF_UNDEFINED.to_vec());
    }
    keys
}

/// The system properties that can be indexed.
struct IndexedProperties<'i>(&'i Record);

impl SystemProperties for IndexedProperties<'_> {
    fn last_modified(&self) -> i64 {
        self.0.last_modified().0
    }

    fn stamp(&self) -> Stamp {
        self.0.stamp()
    }

    fn members_bytes(&self) -> usize {
        let mut members = String::new();
        self.write_members(&mut members);
        members.len()
    }

    fn write_members(&self, out: &mut String) {
        out.push_str("\"_ts\":");
        out.push_str(&self.last_modified().to_string());
    }
}

/// Whether a row is an entry of an item: it follows from that item, so that it need not be copied.
pub(crate) fn is_entry(key: &Key) -> bool {
    match key.space {
        Space::Index | Space::Expiry => true,
        // Behind the log lies the history.
        Space::Log => key.bytes < keys::log_end(),
        Space::Item | Space::Meta => false,
    }
}

impl Entry<'_> {
    /// Returns the id of a full-text index and the number of words, if this is the entry of the item's text in it.
    pub fn words(&self) -> Option<(u32, u64)> {
        match &self.kind {
            Kind::Property(value) => text_entries::words_of_text(&self.key.bytes, value),
            _ => None,
        }
    }

    /// Returns the index and the posting, if this is the entry of a word in a full-text index. `is_full_text`: of the index with an id.
    pub fn posting(&self, is_full_text: impl Fn(u32) -> bool) -> Option<(u32, Posting)> {
        let Kind::Property(value) = &self.kind else {
            return None;
        };
        let entry = PropertyEntry::parse(&self.key.bytes).filter(|entry| is_full_text(entry.index))?;
        let posting = text_entries::is_of_word(&entry).then(|| Posting::decode(value))??;
        Some((entry.index, posting))
    }

    /// Returns whether these bytes may be stored: entries of property indexes had no values at first.
    pub fn admits(&self, stored: &Bytes) -> bool {
        let is_without_value = match &self.kind {
            Kind::Property(value) => stored.is_empty() && *value == PropertyValue::of(self.item.record),
            _ => false,
        };
        is_without_value || *stored == self.value()
    }

    /// Returns the bytes to store.
    pub fn value(&self) -> Bytes {
        let Item { key, record } = self.item;
        let size = || u32::try_from(record.size()).expect("limits::ITEM_BYTES fits");
        match &self.kind {
            Kind::Id => Bytes::copy_from_slice(&record.number().to_be_bytes()),
            Kind::Unique => key.clone(),
            Kind::Property(value) => value.clone(),
            Kind::Log => LogEntry {
                class: record.stamp().class,
                last_modified: record.last_modified(),
                size: size(),
                item_key: key.clone(),
            }
            .encode(),
            Kind::Expiry => ExpiryEntry {
                size: size(),
                item_key: key.clone(),
            }
            .encode(),
        }
    }
}

#[cfg(test)]
mod tests;
