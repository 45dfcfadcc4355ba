//! Documents to be written: checked as far as possible without reading stored items, and encoded as they will be stored.

use bolide_model::document::Document;
use bolide_model::epk::Epk;
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use bolide_model::ttl::Own;
use bolide_model::{Reason, Result};
use sha2::{Digest, Sha256};

use crate::container::ContainerState;
use crate::content::logical;
use crate::format::keys::{DIGEST_BYTES, UniqueKey};

/// A document to be written, checked as far as possible without reading other items.
pub(crate) struct PreparedItem {
    pub id: String,
    pub own: Own,
    pub text: Vec<u8>,
    pub unique: Vec<UniqueKey>,
}

impl PreparedItem {
    pub fn new(document: Document, state: &ContainerState) -> Result<PreparedItem> {
        let id = document.id()?.to_owned();
        let own = document.own_ttl()?;
        let text = document.to_stored_text()?.into_bytes();
        let unique = unique_keys(&document, state);
        Ok(PreparedItem { id, own, text, unique })
    }
}

/// Returns the digests of an item's values at the paths of each unique key constraint.
pub(crate) fn unique_keys(document: &Document, state: &ContainerState) -> Vec<UniqueKey> {
    let key = |(index, paths): (u32, &Vec<_>)| {
        let mut hash = Sha256::new();
        for value in document.unique_key_values(paths) {
            hash.update(value.to_json().to_string());
            // JSON text contains no raw control character, so the end of each value is unambiguous.
            hash.update([0]);
        }
        let hash = hash.finalize();
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&hash[..DIGEST_BYTES]);
        UniqueKey { index, digest }
    };
    (0..).zip(&state.properties.unique_keys).map(key).collect()
}

/// Returns where the items of a partition key are. The documents of an unsharded collection are in one place, whatever the key.
pub(crate) fn epk_of_key(state: &ContainerState, key: &PartitionKey) -> Result<Epk> {
    if state.is_unsharded() {
        return Ok(Epk::start());
    }
    let definition = &state.properties.partition_key;
    definition.check_full(key)?;
    if let Some(shard_key) = state.shard_key() {
        return Ok(shard_key.place_of_key(key));
    }
    Ok(logical::of(definition, key))
}

/// Returns the effective partition key of a document. The key that the caller gave must be the document's own.
pub(crate) fn epk_of_document(
    state: &ContainerState,
    document: &Document,
    given: Option<&PartitionKey>,
) -> Result<Epk> {
    let own = own_key(state, document, given)?;
    Ok(logical::of(&state.properties.partition_key, &own))
}

/// Returns the partition key of a document. The key that the caller gave must be the same.
pub(crate) fn own_key(
    state: &ContainerState,
    document: &Document,
    given: Option<&PartitionKey>,
) -> Result<PartitionKey> {
    let definition: &PartitionKeyDefinition = &state.properties.partition_key;
    let own = document.partition_key(definition);
    if let Some(given) = given {
        definition.check_full(given)?;
        if *given != own {
            return Err(Reason::PartitionKeyMismatch.into());
        }
    }
    definition.check_full(&own)?;
    Ok(own)
}
