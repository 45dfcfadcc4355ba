//! The part of a container's row that only MongoDB collections have.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::UnixMillis;
use bolide_model::ttl::{DateRule, RuleId};
use bolide_mql::bson::{RawDocument, RawDocumentBuf};
use bolide_mql::collation::Collation;
use bolide_mql::index::IndexDefinition;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::container::{CollectionDefinition, CollectionIndex};
use crate::content::ShardKey;

/// A collection. A sharded one has its fields one level deeper, so that versions which know none refuse the row instead of reading it as unsharded.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredCollection {
    #[serde(rename_all = "camelCase")]
    Sharded {
        shard_key: String,
        sharded: StoredFields,
    },
    Unsharded(StoredFields),
}

/// The fields of a collection. BSON is written as base64, so that types and the order of fields stay.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredFields {
    uuid: Uuid,
    options: String,
    indexes: Vec<StoredIndex>,
    next_index: u32,
    #[serde(default)]
    rules: Vec<StoredRule>,
    next_rule: u32,
    #[serde(default)]
    private: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredIndex {
    id: u32,
    definition: String,
    #[serde(default)]
    rules: Vec<u32>,
    #[serde(default)]
    building: bool,
}

#[derive(Serialize, Deserialize)]
struct StoredRule {
    id: u32,
    after: Option<u32>,
    floor: i64,
    since: i64,
    earlier: Option<u32>,
}

impl StoredCollection {
    pub fn of(definition: &CollectionDefinition) -> StoredCollection {
        let index = |index: &CollectionIndex| StoredIndex {
            id: index.id,
            definition: STANDARD.encode(index.definition.to_document().as_bytes()),
            rules: index.rules.iter().map(|rule| rule.0).collect(),
            building: index.is_building,
        };
        let rule = |rule: &DateRule| StoredRule {
            id: rule.id.0,
            after: rule.after_seconds,
            floor: rule.floor,
            since: rule.since.0,
            earlier: rule.earlier_seconds,
        };
        let fields = StoredFields {
            uuid: definition.uuid,
            options: STANDARD.encode(definition.options.as_bytes()),
            indexes: definition.indexes.iter().map(index).collect(),
            next_index: definition.next_index,
            rules: definition.rules.iter().map(rule).collect(),
            next_rule: definition.next_rule,
            private: definition.is_private,
        };
        match &definition.shard_key {
            Some(shard_key) => StoredCollection::Sharded {
                shard_key: shard_key.path(),
                sharded: fields,
            },
            None => StoredCollection::Unsharded(fields),
        }
    }

    /// Returns `None` if it is damaged.
    pub fn definition(self) -> Option<CollectionDefinition> {
        match self {
            StoredCollection::Sharded { shard_key, sharded } => {
                let shard_key = ShardKey::parse(&shard_key).ok()?;
                Some(sharded.definition()?.sharded(Some(shard_key)))
            }
            StoredCollection::Unsharded(fields) => fields.definition(),
        }
    }
}

impl StoredFields {
    fn definition(self) -> Option<CollectionDefinition> {
        let options = document(&self.options)?;
        let collation = match options.get_document("collation") {
            Ok(collation) => Collation::parse(collation).ok()?,
            Err(_) => None,
        };
        let index = |stored: StoredIndex| {
            Some(CollectionIndex {
                id: stored.id,
                definition: Arc::new(IndexDefinition::from_document(&document(&stored.definition)?).ok()?),
                rules: stored.rules.into_iter().map(RuleId).collect(),
                is_building: stored.building,
            })
        };
        let rule = |stored: StoredRule| DateRule {
            id: RuleId(stored.id),
            after_seconds: stored.after,
            floor: stored.floor,
            since: UnixMillis(stored.since),
            earlier_seconds: stored.earlier,
        };
        Some(CollectionDefinition {
            uuid: self.uuid,
            collation,
            shard_key: None,
            indexes: self.indexes.into_iter().map(index).collect::<Option<_>>()?,
            next_index: self.next_index,
            rules: self.rules.into_iter().map(rule).collect(),
            next_rule: self.next_rule,
            is_private: self.private,
            options,
        })
    }
}

fn document(text: &str) -> Option<RawDocumentBuf> {
    let bytes = STANDARD.decode(text).ok()?;
    bolide_mql::value::validate(&bytes).ok().map(RawDocument::to_owned)
}
