//! Checks documents of MongoDB collections: each has the deadlines and unique keys that follow from it and from the indexes of its collection.
//!
//! Fields of dropped indexes may stay until the document is written again, and those of an index that is being built may be missing.

use bolide_model::ttl::Deadline;
use bolide_mql::bson::{RawBsonRef, RawDocument};
use bolide_mql::index::TtlMode;
use bytes::Bytes;

use super::VerifyReport;
use super::items::named;
use crate::container::{CollectionDefinition, CollectionIndex};
use crate::documents::{DocumentId, index_fields};
use crate::format::keys::{self, UniqueKey};
use crate::format::record::{Content, Record};

/// Checks a live document.
pub(super) fn check(collection: &CollectionDefinition, key: &Bytes, record: &Record, found: &mut VerifyReport) {
    if record.content() != Content::Bson {
        found.problem(|| format!("{} is no document of a collection", named(record)));
        return;
    }
    let Ok(document) = RawDocument::from_bytes(record.document_bytes()) else {
        found.problem(|| format!("{} is no BSON", named(record)));
        return;
    };
    let place = collection.place_of(document);
    let expected = place.map(|place| keys::item(&place, record.number()).bytes);
    if expected.ok().as_ref() != Some(key) {
        found.problem(|| format!("{} is not stored where its shard key says", named(record)));
    }
    let id = document.get("_id").ok().flatten().unwrap_or(RawBsonRef::Null);
    if DocumentId::of(id, collection.collation.as_deref()).0 != record.id_bytes() {
        found.problem(|| format!("{} has another _id in its header", named(record)));
    }
    // Which values count as dates depends on an option of the server, which may have been another when the document was written.
    let modes = [TtlMode::Mongodb, TtlMode::CosmosCustomPath];
    let is_as_defined = modes
        .iter()
        .any(|mode| match index_fields(document, collection, *mode) {
            Ok((deadlines, unique)) => has_fields(collection, record, &deadlines, &unique),
            Err(_) => false,
        });
    if !is_as_defined {
        found.problem(|| format!("{} has not the fields of its indexes", named(record)));
    }
}

/// Returns whether a record has these deadlines and unique keys, as far as they are of indexes that are built.
fn has_fields(
    collection: &CollectionDefinition,
    record: &Record,
    deadlines: &[Deadline],
    unique: &[UniqueKey],
) -> bool {
    let built = collection.indexes.iter().filter(|index| !index.is_building);
    built.into_iter().all(|index| {
        let is_of_index = |deadline: &Deadline| index.rules.contains(&deadline.rule);
        // A version that is older than a change of the index has an older rule of it.
        let dates = |deadlines: &mut dyn Iterator<Item = Deadline>| {
            let dates = deadlines.filter(is_of_index).map(|deadline| deadline.date);
            dates.collect::<Vec<_>>()
        };
        let has_dates = dates(&mut record.deadlines()) == dates(&mut deadlines.iter().copied());
        has_dates && keys_of(index, record.unique()) == keys_of(index, unique.iter().copied())
    })
}

fn keys_of(index: &CollectionIndex, unique: impl Iterator<Item = UniqueKey>) -> Vec<UniqueKey> {
    let mut keys: Vec<UniqueKey> = unique.filter(|unique| unique.index == index.id).collect();
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests;
