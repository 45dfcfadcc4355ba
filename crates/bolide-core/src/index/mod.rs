//! The property indexes of a container: which paths of its items have index entries, and whether queries may use these.
//!
//! Indexes of values are what the indexing policy and the queries ask for. Indexes of vectors are what the policy asks for, once the container has enough items to
//! train their lists (`crate::background::vector_training`).
//!
//! Writers maintain the entries of every index of the list from the commit on that adds it. It is used when the entries of the items that existed before are
//! there too (`crate::background::property_index_builds`). Ids are never used again and a path never changes, so the entries of an item follow from
//! its record and the list.

mod advisor;
mod documents;
mod policy;
mod vector;

use std::fmt;
use std::sync::Arc;

use bolide_index::vector::Similarity;
use bolide_model::container::ContainerProperties;
use bolide_query::index::{CompositeIndex, IndexOrder, IndexPath, NearestQuery, SpatialIndex, TextIndex};
use bolide_query::schema::DistanceFunction;

pub(crate) use advisor::{IndexAdvisor, WantedIndex};
pub(crate) use documents::DocumentIndex;
pub(crate) use policy::{NamedVector, allowed_shape, allows, index_steps, named_vectors, property_path};
pub(crate) use vector::{UNQUANTIZED, VectorIndex, WITHOUT_VECTOR};

/// Maximum number of indexes of a container.
pub(crate) const MAX_INDEXES: usize = 64;
/// Maximum number of these that are created because queries would profit.
pub(crate) const MAX_AUTOMATIC: usize = 16;

/// The property indexes of a container. Those of a MongoDB collection are its indexes by which queries can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PropertyIndexes {
    pub list: Vec<PropertyIndex>,
    /// Ids of dropped indexes whose entries are still stored.
    pub dropped: Vec<u32>,
    /// The id of the next index.
    pub next: u32,
}

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PropertyIndex {
    /// Unique in the container, never used again.
    pub id: u32,
    pub kind: IndexKind,
    /// Whether every stored item has its entries, so that queries may use it.
    pub is_ready: bool,
    /// Whether it was created because queries would profit; otherwise the indexing policy names its path.
    pub is_automatic: bool,
}

/// What an index has of each item. It never changes, so that entries follow from it and the item's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexKind {
    /// The values at a path, in their order.
    Values(Arc<IndexPath>),
    /// The values at several paths, in the order of the first, then of the next.
    Composite(Arc<CompositeIndex>),
    /// The words of the text at a path, with the number of times that they occur.
    FullText(Arc<TextIndex>),
    /// The cells of the shape at a path.
    Spatial(Arc<SpatialIndex>),
    /// The vectors at a path, in lists of similar ones.
    Vector(Arc<VectorIndex>),
    /// The keys of documents in an index of a MongoDB collection.
    Document(DocumentIndex),
}

/// As administrators see it.
impl fmt::Display for IndexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexKind::Values(path) => path.fmt(f),
            IndexKind::Composite(index) => index.fmt(f),
            IndexKind::FullText(text) => text.fmt(f),
            IndexKind::Spatial(spatial) => spatial.fmt(f),
            IndexKind::Vector(vector) => vector.path.fmt(f),
            IndexKind::Document(index) => f.write_str(index.definition.name()),
        }
    }
}

impl PropertyIndex {
    /// Returns the path whose values the index has; `None` for other kinds.
    pub fn path(&self) -> Option<&Arc<IndexPath>> {
        match &self.kind {
            IndexKind::Values(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the index of shapes that it is; `None` for other kinds.
    pub fn spatial(&self) -> Option<&SpatialIndex> {
        match &self.kind {
            IndexKind::Spatial(spatial) => Some(spatial),
            _ => None,
        }
    }

    /// Returns the index of vectors that it is; `None` for other kinds.
    pub fn vector(&self) -> Option<&Arc<VectorIndex>> {
        match &self.kind {
            IndexKind::Vector(vector) => Some(vector),
            _ => None,
        }
    }

    /// Whether items without a value at the path have an entry: they have rows where a query sorts by a path that the policy names (cosmos-sql §13).
    pub fn has_undefined(&self) -> bool {
        !self.is_automatic && self.path().is_some_and(|path| !path.is_of_elements())
    }
}

impl Default for PropertyIndexes {
    fn default() -> PropertyIndexes {
        PropertyIndexes {
            list: Vec::new(),
            dropped: Vec::new(),
            next: 1,
        }
    }
}

impl PropertyIndexes {
    /// Returns the indexes of a new container, which has no items: those that its policy names.
    pub fn of_new(properties: &ContainerProperties) -> PropertyIndexes {
        let mut indexes = PropertyIndexes::default();
        indexes.follow(properties);
        for index in &mut indexes.list {
            index.is_ready = true;
        }
        indexes
    }

    /// Adds what the policies of a container name, and drops what they do not allow or no longer name.
    pub fn follow(&mut self, properties: &ContainerProperties) {
        let policy = &properties.indexing_policy;
        let named = policy::named_paths(policy);
        let composite = policy::named_composite(policy);
        let texts = policy::named_texts(properties);
        let shapes = policy::named_shapes(properties);
        self.retain(|index| match &index.kind {
            // An index on a path that the policy names has other entries.
            IndexKind::Values(path) if index.is_automatic => allows(policy, path) && !named.contains(path),
            IndexKind::Values(path) => named.contains(path),
            IndexKind::Composite(index) => composite.contains(index),
            IndexKind::FullText(text) => texts.contains(text),
            IndexKind::Spatial(spatial) if index.is_automatic => {
                let is_named = shapes.iter().any(|named| named.path == spatial.path);
                !is_named && allowed_shape(properties, &spatial.path).as_ref() == Some(spatial)
            }
            IndexKind::Spatial(spatial) => shapes.contains(spatial),
            IndexKind::Vector(vector) => policy::names_vector(policy, &vector.path),
            IndexKind::Document(_) => true,
        });
        for path in named {
            self.add(IndexKind::Values(Arc::new(path)), false);
        }
        for index in composite {
            self.add(IndexKind::Composite(Arc::new(index)), false);
        }
        for text in texts {
            self.add(IndexKind::FullText(Arc::new(text)), false);
        }
        for spatial in shapes {
            self.add(IndexKind::Spatial(Arc::new(spatial)), false);
        }
    }

    /// Returns the full-text index of a text, if queries may use it.
    pub fn usable_text(&self, text: &TextIndex) -> Option<&PropertyIndex> {
        let is_own = |index: &&PropertyIndex| matches!(&index.kind, IndexKind::FullText(own) if **own == *text);
        self.list.iter().find(is_own).filter(|index| index.is_ready)
    }

    /// Returns the spatial indexes that queries may use, each with its id.
    pub fn usable_spatial(&self) -> impl Iterator<Item = (u32, &SpatialIndex)> {
        let ready = self.list.iter().filter(|index| index.is_ready);
        ready.filter_map(|index| Some((index.id, index.spatial()?)))
    }

    /// Whether there is an index of the shapes at a path.
    pub fn has_shapes(&self, path: &IndexPath) -> bool {
        let mut spatial = self.list.iter().filter_map(PropertyIndex::spatial);
        spatial.any(|index| index.path == *path)
    }

    /// Returns the index on a path.
    pub fn on(&self, path: &IndexPath) -> Option<&PropertyIndex> {
        self.list
            .iter()
            .find(|index| index.path().is_some_and(|own| **own == *path))
    }

    /// Returns the index on a path, if queries may use it.
    pub fn usable(&self, path: &IndexPath) -> Option<&PropertyIndex> {
        self.on(path).filter(|index| index.is_ready)
    }

    /// Returns the index in whose order a query's rows come, if queries may use it and it has all of the rows.
    pub fn usable_in_order(&self, order: &IndexOrder) -> Option<&PropertyIndex> {
        let index = self.usable(&order.path)?;
        (index.has_undefined() || !order.has_undefined).then_some(index)
    }

    /// Returns the composite indexes that queries may use, each with its id.
    pub fn usable_composite(&self) -> impl Iterator<Item = (u32, &Arc<CompositeIndex>)> {
        let ready = self.list.iter().filter(|index| index.is_ready);
        ready.filter_map(|index| match &index.kind {
            IndexKind::Composite(composite) => Some((index.id, composite)),
            _ => None,
        })
    }

    /// Returns the newest index that finds the nearest vectors of a query, if queries may use it.
    pub fn usable_for_nearest(&self, nearest: &NearestQuery) -> Option<(u32, &Arc<VectorIndex>)> {
        let similarity = match nearest.function {
            DistanceFunction::Cosine => Similarity::Cosine,
            DistanceFunction::DotProduct => Similarity::DotProduct,
            DistanceFunction::Euclidean => Similarity::Euclidean,
        };
        let fits = |vector: &VectorIndex| {
            let same = (vector.similarity, vector.dimensions) == (similarity, nearest.vector.len());
            same && vector.path == nearest.path
        };
        let ready = self.list.iter().filter(|index| index.is_ready);
        let vectors = ready.filter_map(|index| Some((index.id, index.vector()?)));
        vectors.filter(|(_, vector)| fits(vector)).max_by_key(|(id, _)| *id)
    }

    /// Whether a newer index of the same vectors can be used instead of this one.
    pub fn is_replaced(&self, index: &PropertyIndex) -> bool {
        let is_newer = |newer: &PropertyIndex, vector: &VectorIndex| {
            let same = newer.vector().is_some_and(|newer| newer.path == vector.path);
            newer.is_ready && newer.id > index.id && same
        };
        let vector = index.vector();
        vector.is_some_and(|vector| self.list.iter().any(|newer| is_newer(newer, vector)))
    }

    /// Returns the index with an id, if there is one.
    pub fn with_id(&self, id: u32) -> Vec<PropertyIndex> {
        self.list.iter().filter(|index| index.id == id).cloned().collect()
    }

    /// Returns the indexes that are complete.
    pub fn ready(&self) -> PropertyIndexes {
        PropertyIndexes {
            list: self.list.iter().filter(|index| index.is_ready).cloned().collect(),
            ..self.clone()
        }
    }

    /// Adds an index that is to be built. Returns whether it did: there may be the same already, or too many.
    pub fn add(&mut self, kind: IndexKind, is_automatic: bool) -> bool {
        let has_room = match is_automatic {
            true => self.has_room_for_automatic(),
            false => self.list.len() < MAX_INDEXES,
        };
        if !has_room || self.list.iter().any(|index| index.kind == kind) {
            return false;
        }
        self.list.push(PropertyIndex {
            id: self.next,
            kind,
            is_ready: false,
            is_automatic,
        });
        self.next += 1;
        true
    }

    /// Corrects the state of indexes after a split whose children have the entries of the indexes `copied`: others are to be built again, and those that were
    /// dropped meanwhile are to be removed again.
    pub fn split(&mut self, copied: &PropertyIndexes) {
        let has_entries = |id: u32| copied.list.iter().any(|index| index.id == id);
        for index in &mut self.list {
            index.is_ready &= has_entries(index.id);
        }
        for index in &copied.list {
            let is_known = self.list.iter().any(|own| own.id == index.id) || self.dropped.contains(&index.id);
            if !is_known {
                self.dropped.push(index.id);
            }
        }
    }

    /// Whether there is a full-text index.
    pub fn has_full_text(&self) -> bool {
        let is_it = |index: &PropertyIndex| matches!(index.kind, IndexKind::FullText(_));
        self.list.iter().any(is_it)
    }

    /// Whether another automatic index can be added.
    pub fn has_room_for_automatic(&self) -> bool {
        let automatic = self.list.iter().filter(|index| index.is_automatic).count();
        self.list.len() < MAX_INDEXES && automatic < MAX_AUTOMATIC
    }

    /// Whether an index is to be built, or entries of a dropped one are to be removed.
    pub fn has_work(&self) -> bool {
        !self.dropped.is_empty() || self.list.iter().any(|index| !index.is_ready)
    }

    /// Drops the indexes that `keeps` does not keep. Their entries are removed later.
    pub fn retain(&mut self, keeps: impl Fn(&PropertyIndex) -> bool) {
        let dropped = self.list.extract_if(.., |index| !keeps(index)).map(|index| index.id);
        self.dropped.extend(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Arc<IndexPath> {
        Arc::new(IndexPath::parse(text).expect("a path"))
    }

    fn values(text: &str) -> IndexKind {
        IndexKind::Values(path(text))
    }

    #[test]
    fn ids_are_never_used_again() {
        let mut indexes = PropertyIndexes::default();
        assert!(indexes.add(values("/a/?"), false));
        assert!(!indexes.add(values("/a/?"), true), "there is one");
        indexes.retain(|_| false);
        assert_eq!((indexes.list.len(), &indexes.dropped[..]), (0, &[1][..]));
        assert!(indexes.add(values("/a/?"), true));
        assert_eq!(indexes.on(&path("/a/?")).map(|index| index.id), Some(2));
        assert_eq!(indexes.usable(&path("/a/?")), None, "it is not built yet");
    }

    #[test]
    fn a_split_corrects_what_changed_meanwhile() {
        let mut indexes = PropertyIndexes::default();
        indexes.add(values("/dropped/?"), false);
        indexes.add(values("/kept/?"), false);
        let copied = indexes.clone();
        indexes.retain(|index| index.kind != values("/dropped/?"));
        // Its entries were removed from the parent before the children came into force.
        indexes.dropped.clear();
        indexes.add(values("/added/?"), false);
        for index in &mut indexes.list {
            index.is_ready = true;
        }
        indexes.split(&copied);
        assert_eq!(indexes.dropped, [1]);
        let ready = indexes.ready().list;
        assert_eq!(ready.iter().map(|index| index.id).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_composite_index_is_added_beside_the_index_that_a_container_has() {
        let definition = serde_json::json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
            "indexingPolicy": {"compositeIndexes": [[{"path": "/a"}, {"path": "/b", "order": "descending"}]]},
        });
        let properties = ContainerProperties::from_json(&definition).expect("a definition");
        // As a version without composite keys has stored it.
        let mut indexes = PropertyIndexes::default();
        indexes.add(values("/a/?"), false);
        indexes.list[0].is_ready = true;
        indexes.follow(&properties);
        let shown = indexes
            .list
            .iter()
            .map(|index| (index.kind.to_string(), index.is_ready));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [("/a/?".to_owned(), true), ("/a ASC, /b DESC".to_owned(), false)]
        );
        assert_eq!(indexes.usable_composite().count(), 0, "it is not built yet");
    }

    #[test]
    fn their_number_is_bounded() {
        let mut indexes = PropertyIndexes::default();
        let add = |indexes: &mut PropertyIndexes, at: usize, is_automatic| {
            indexes.add(values(&format!("/p{at}")), is_automatic)
        };
        assert_eq!(
            (0..100).filter(|at| add(&mut indexes, *at, true)).count(),
            MAX_AUTOMATIC
        );
        assert_eq!(
            (100..200).filter(|at| add(&mut indexes, *at, false)).count(),
            MAX_INDEXES - MAX_AUTOMATIC
        );
    }
}
