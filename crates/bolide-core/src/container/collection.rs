//! What a MongoDB collection has beside the definition of its container: options, indexes, and the rules of its TTL indexes on date fields.

use std::sync::Arc;

use bolide_model::UnixMillis;
use bolide_model::epk::Epk;
use bolide_model::ttl::{DateRule, DateRules, RuleId};
use bolide_mql::bson::{RawDocument, RawDocumentBuf};
use bolide_mql::collation::Collation;
use bolide_mql::index::IndexDefinition;
use uuid::Uuid;

use super::Container;
use crate::content::ShardKey;
use crate::index::DocumentIndex;

/// A MongoDB collection.
#[derive(Debug, Clone)]
pub struct CollectionDefinition {
    /// Identifies it for its whole life, renaming included.
    pub uuid: Uuid,
    /// The options that it was created with, as listCollections shows them.
    pub options: RawDocumentBuf,
    /// Its default collation.
    pub collation: Option<Arc<Collation>>,
    /// Its shard key; `None`: it is unsharded, and all of its documents are at one place.
    pub shard_key: Option<Arc<ShardKey>>,
    /// The index on `_id` first, then in the order of their creation.
    pub indexes: Vec<CollectionIndex>,
    /// The id of the next index.
    pub next_index: u32,
    /// The rules of its TTL indexes on date fields, those of dropped indexes included as long as documents have deadlines under them.
    pub rules: Vec<DateRule>,
    /// The id of the next rule.
    pub next_rule: u32,
    /// Whether a front end keeps it for itself: as a container it is not there.
    pub is_private: bool,
}

/// An index of a collection.
#[derive(Debug, Clone)]
pub struct CollectionIndex {
    /// Unique in the collection, never used again.
    pub id: u32,
    /// What it indexes, and its options.
    pub definition: Arc<IndexDefinition>,
    /// Its rules, if it is a TTL index on a date field: one for each change of its time to live, the newest last. New versions get the newest.
    pub rules: Vec<RuleId>,
    /// Whether documents that existed before it may lack its keys and deadlines. Its rules are not in force before it is built.
    pub is_building: bool,
}

impl Container {
    /// Returns whether it is a collection that a front end keeps for itself.
    pub fn is_private(&self) -> bool {
        let state = self.state.read();
        state
            .collection
            .as_ref()
            .is_some_and(|definition| definition.is_private)
    }

    /// Returns whether it is a sharded collection.
    pub fn is_sharded(&self) -> bool {
        self.state().shard_key().is_some()
    }
}

impl CollectionDefinition {
    /// A new collection with the index on `_id`.
    pub fn new(options: RawDocumentBuf, collation: Option<Arc<Collation>>, id_index: IndexDefinition) -> Self {
        CollectionDefinition {
            uuid: Uuid::new_v4(),
            options,
            collation,
            shard_key: None,
            indexes: vec![CollectionIndex {
                id: 0,
                definition: Arc::new(id_index),
                rules: Vec::new(),
                is_building: false,
            }],
            next_index: 1,
            rules: Vec::new(),
            next_rule: 1,
            is_private: false,
        }
    }

    /// The same, sharded. Before the collection is created.
    #[must_use]
    pub fn sharded(self, shard_key: Option<ShardKey>) -> CollectionDefinition {
        let shard_key = shard_key.map(Arc::new);
        CollectionDefinition { shard_key, ..self }
    }

    /// Returns the place of a document: where all with the same value of the shard key are.
    ///
    /// # Errors
    /// `ShardKeyNotFound`, `BadValue` for an array; none if the collection is unsharded.
    pub fn place_of(&self, document: &RawDocument) -> Result<Epk, bolide_mql::Error> {
        match &self.shard_key {
            Some(shard_key) => shard_key.place_in(document),
            None => Ok(Epk::start()),
        }
    }

    /// The same, for a front end alone.
    #[must_use]
    pub fn private(self) -> CollectionDefinition {
        CollectionDefinition {
            is_private: true,
            ..self
        }
    }

    /// Returns the definition for a copy of the collection in another store, in which its indexes have ended nothing so far.
    #[must_use]
    pub fn copied(&self) -> CollectionDefinition {
        let mut copy = CollectionDefinition {
            indexes: self.indexes.iter().take(1).cloned().collect(),
            next_index: 1,
            rules: Vec::new(),
            next_rule: 1,
            ..self.clone()
        };
        for index in self.indexes.iter().skip(1) {
            let rule = |id: &RuleId| self.rules.iter().find(|rule| rule.id == *id);
            let seconds = index.rules.last().and_then(rule).and_then(|rule| rule.after_seconds);
            copy.add_index((*index.definition).clone(), seconds, false);
        }
        copy
    }

    /// Returns the index with a name.
    pub fn index(&self, name: &str) -> Option<&CollectionIndex> {
        self.indexes.iter().find(|index| index.definition.name() == name)
    }

    /// Returns the option with a name, as the collection was created with it.
    pub fn option(&self, name: &str) -> Option<bolide_mql::bson::RawBsonRef<'_>> {
        let options: &RawDocument = &self.options;
        options.get(name).ok().flatten()
    }

    /// Tells whether documents are kept as they were before changes (`changeStreamPreAndPostImages`).
    pub fn keeps_images(&self) -> bool {
        let images = self.option("changeStreamPreAndPostImages");
        let enabled = images.and_then(|images| images.as_document()?.get("enabled").ok().flatten());
        enabled.and_then(|enabled| enabled.as_bool()).unwrap_or(false)
    }

    /// Adds an index. Returns its id.
    pub fn add_index(&mut self, definition: IndexDefinition, date_seconds: Option<u32>, is_building: bool) -> u32 {
        let id = self.next_index;
        self.next_index += 1;
        let rules = date_seconds.map(|seconds| self.add_rule(seconds, UnixMillis(i64::MIN)));
        self.indexes.push(CollectionIndex {
            id,
            definition: Arc::new(definition),
            rules: rules.into_iter().collect(),
            is_building,
        });
        id
    }

    /// Removes an index at `now`. What it has ended by then stays ended.
    pub fn remove_index(&mut self, name: &str, now: UnixMillis) {
        let Some(at) = self.indexes.iter().position(|index| index.definition.name() == name) else {
            return;
        };
        let removed = self.indexes.remove(at);
        if removed.is_building {
            // Never in force, so it has ended nothing.
            self.rules.retain(|rule| !removed.rules.contains(&rule.id));
        } else {
            self.change_rules(&removed.rules, None, now);
        }
    }

    /// Removes the indexes that are being built.
    pub fn remove_unbuilt_indexes(&mut self, now: UnixMillis) {
        let unbuilt = self.indexes.iter().filter(|index| index.is_building);
        let names: Vec<String> = unbuilt.map(|index| index.definition.name().to_owned()).collect();
        for name in names {
            self.remove_index(&name, now);
        }
    }

    /// Replaces the definition of an index, which keeps its keys. `date_seconds` is its time to live now, if it is a TTL index on a date field.
    pub fn replace_index(
        &mut self,
        name: &str,
        definition: IndexDefinition,
        date_seconds: Option<u32>,
        now: UnixMillis,
    ) {
        let Some(at) = self.indexes.iter().position(|index| index.definition.name() == name) else {
            return;
        };
        let rules = self.indexes[at].rules.clone();
        let current = rules
            .last()
            .and_then(|id| self.rules.iter().find(|rule| rule.id == *id));
        if current.and_then(|rule| rule.after_seconds) != date_seconds {
            self.change_rules(&rules, date_seconds, now);
            if let Some(seconds) = date_seconds {
                let added = self.add_rule(seconds, now);
                self.indexes[at].rules.push(added);
            }
        }
        self.indexes[at].definition = Arc::new(definition);
    }

    /// Puts indexes that were built into force.
    pub fn finish_building(&mut self, built: &[u32]) {
        for index in self.indexes.iter_mut().filter(|index| built.contains(&index.id)) {
            index.is_building = false;
        }
    }

    /// Gives an index that could not be built the definition back that it had before. Rules that were not in force yet go without a trace.
    pub fn undo_building(&mut self, id: u32, before: IndexDefinition) {
        let Some(index) = self.indexes.iter_mut().find(|index| index.id == id) else {
            return;
        };
        index.definition = Arc::new(before);
        if std::mem::take(&mut index.is_building) {
            let never_in_force = std::mem::take(&mut index.rules);
            self.rules.retain(|rule| !never_in_force.contains(&rule.id));
        }
    }

    /// Forgets rules under which no document has a deadline.
    pub fn forget_rules(&mut self, unused: &[RuleId]) {
        for index in &mut self.indexes {
            let newest = index.rules.last().copied();
            index.rules.retain(|id| Some(*id) == newest || !unused.contains(id));
        }
        let newest = |id: RuleId| self.indexes.iter().any(|index| index.rules.last() == Some(&id));
        let kept = self
            .rules
            .iter()
            .filter(|rule| newest(rule.id) || !unused.contains(&rule.id));
        self.rules = kept.copied().collect();
    }

    /// Returns its indexes, as property indexes are made of them.
    pub(crate) fn document_indexes(&self) -> impl Iterator<Item = DocumentIndex> {
        self.indexes.iter().map(|index| DocumentIndex {
            id: index.id,
            definition: index.definition.clone(),
        })
    }

    /// Returns the rules in force.
    pub(crate) fn date_rules(&self) -> DateRules {
        let building = self.indexes.iter().filter(|index| index.is_building);
        let building: Vec<RuleId> = building.flat_map(|index| index.rules.iter().copied()).collect();
        let in_force = self.rules.iter().filter(|rule| !building.contains(&rule.id));
        DateRules::new(in_force.copied().collect())
    }

    fn add_rule(&mut self, seconds: u32, since: UnixMillis) -> RuleId {
        let id = RuleId(self.next_rule);
        self.next_rule += 1;
        self.rules.push(DateRule {
            since,
            ..DateRule::new(id, seconds)
        });
        id
    }

    fn change_rules(&mut self, rules: &[RuleId], after_seconds: Option<u32>, now: UnixMillis) {
        for rule in self.rules.iter_mut().filter(|rule| rules.contains(&rule.id)) {
            *rule = rule.change(after_seconds, now);
        }
    }
}
