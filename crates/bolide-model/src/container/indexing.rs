//! The indexing policy: which paths are indexed, and how.
//!
//! TTL uses no property index (TTL-221). The effects of the policy that a client can observe are implemented: sorting by several keys needs a
//! composite index, an excluded path cannot be sorted by, and the policy is returned as the service normalises it. Source: cosmos-rest §4.2.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::full_text::FullTextIndex;
pub use super::index_path::{IndexPath, IndexStep};
use super::input::{Input, has_duplicates, invalid, word};
use super::spatial::SpatialIndex;
use super::vector::VectorIndex;
use crate::error::{Error, Result};
use crate::limits::{COMPOSITE_INDEX_PATHS, COMPOSITE_PATHS};
use crate::path::PropertyPath;

/// Whether writes update the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexingMode {
    /// Yes, before they are acknowledged.
    Consistent,
    /// No; TTL cannot be on (TTL-079, TTL-080).
    None,
}

/// Which paths are indexed, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexingPolicy {
    /// Whether there is an index. Without one, all lists are empty.
    pub mode: IndexingMode,
    /// Whether items are indexed by default.
    pub automatic: bool,
    /// Indexed paths; if an included and an excluded path both cover a property, the longer one decides.
    pub included_paths: Vec<IndexPath>,
    /// Paths without an index.
    pub excluded_paths: Vec<IndexPath>,
    /// Each has at least two paths.
    pub composite_indexes: Vec<Vec<CompositePath>>,
    /// For `ST_*` functions.
    pub spatial_indexes: Vec<SpatialIndex>,
    /// For `VectorDistance`.
    pub vector_indexes: Vec<VectorIndex>,
    /// For full-text functions.
    pub full_text_indexes: Vec<FullTextIndex>,
}

/// The direction of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// Lowest first.
    Ascending,
    /// Highest first.
    Descending,
}

/// One key of a composite index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositePath {
    /// Which property.
    pub path: PropertyPath,
    /// Its direction.
    pub order: Order,
}

/// The first name of a mode is used for writing it.
const MODES: &[(&str, IndexingMode)] = &[
    ("consistent", IndexingMode::Consistent),
    ("none", IndexingMode::None),
    // Withdrawn by the service, which treats it as consistent (TTL-221).
    ("lazy", IndexingMode::Consistent),
];

const ORDERS: &[(&str, Order)] = &[("ascending", Order::Ascending), ("descending", Order::Descending)];

impl Default for IndexingPolicy {
    /// Everything except the etag.
    fn default() -> IndexingPolicy {
        IndexingPolicy {
            mode: IndexingMode::Consistent,
            automatic: true,
            included_paths: vec![IndexPath::root()],
            excluded_paths: vec![IndexPath::etag()],
            composite_indexes: Vec::new(),
            spatial_indexes: Vec::new(),
            vector_indexes: Vec::new(),
            full_text_indexes: Vec::new(),
        }
    }
}

impl IndexingPolicy {
    /// Reads and normalises: the root is included unless a path names it, the etag is excluded, and mode none clears all lists.
    pub(super) fn from_input(input: &Input<'_>) -> Result<IndexingPolicy> {
        let mode = input.choice("indexingMode", MODES)?.unwrap_or(IndexingMode::Consistent);
        let automatic = input.boolean("automatic")?.unwrap_or(true);
        let policy = IndexingPolicy {
            mode,
            automatic,
            included_paths: read_index_paths(input, "includedPaths")?,
            excluded_paths: read_index_paths(input, "excludedPaths")?,
            composite_indexes: read_composite_indexes(input)?,
            spatial_indexes: input
                .objects("spatialIndexes")?
                .iter()
                .map(SpatialIndex::from_input)
                .collect::<Result<_>>()?,
            vector_indexes: input
                .objects("vectorIndexes")?
                .iter()
                .map(VectorIndex::from_input)
                .collect::<Result<_>>()?,
            full_text_indexes: FullTextIndex::list_from_input(input)?,
        };
        match mode {
            // Whatever was sent: the service always indexes on writes, and reports it.
            IndexingMode::Consistent => IndexingPolicy {
                automatic: true,
                ..policy
            }
            .completed(),
            IndexingMode::None if automatic => Err(invalid(
                &input.name_of("automatic"),
                "false where 'indexingMode' is none",
            )),
            IndexingMode::None => Ok(IndexingPolicy::none()),
        }
    }

    fn none() -> IndexingPolicy {
        IndexingPolicy {
            mode: IndexingMode::None,
            automatic: false,
            included_paths: Vec::new(),
            excluded_paths: Vec::new(),
            ..IndexingPolicy::default()
        }
    }

    fn completed(mut self) -> Result<IndexingPolicy> {
        let excluded: HashSet<&IndexPath> = self.excluded_paths.iter().collect();
        if let Some(path) = self.included_paths.iter().find(|path| excluded.contains(path)) {
            return Err(Error::bad_request(format!(
                "The indexing path '{path}' is both included and excluded."
            )));
        }
        if !self
            .included_paths
            .iter()
            .chain(&self.excluded_paths)
            .any(IndexPath::is_root)
        {
            self.included_paths.push(IndexPath::root());
        }
        let etag = IndexPath::etag();
        if !self
            .included_paths
            .iter()
            .chain(&self.excluded_paths)
            .any(|path| *path == etag)
        {
            self.excluded_paths.push(etag);
        }
        Ok(self)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("indexingMode".into(), word(MODES, self.mode).into());
        members.insert("automatic".into(), self.automatic.into());
        let paths = |paths: &[IndexPath]| {
            paths
                .iter()
                .map(|path| json!({"path": path.as_str()}))
                .collect::<Value>()
        };
        members.insert("includedPaths".into(), paths(&self.included_paths));
        members.insert("excludedPaths".into(), paths(&self.excluded_paths));
        let mut insert_unless_empty = |name: &str, list: Vec<Value>| {
            if !list.is_empty() {
                members.insert(name.into(), list.into());
            }
        };
        let composite = |paths: &Vec<CompositePath>| paths.iter().map(CompositePath::to_json).collect();
        insert_unless_empty(
            "compositeIndexes",
            self.composite_indexes.iter().map(composite).collect(),
        );
        insert_unless_empty(
            "spatialIndexes",
            self.spatial_indexes.iter().map(SpatialIndex::to_json).collect(),
        );
        insert_unless_empty(
            "vectorIndexes",
            self.vector_indexes.iter().map(VectorIndex::to_json).collect(),
        );
        insert_unless_empty(
            "fullTextIndexes",
            self.full_text_indexes.iter().map(FullTextIndex::to_json).collect(),
        );
        Value::Object(members)
    }

    /// Whether the scalar at `path` is indexed: the longest path that covers it is an included one.
    pub fn is_indexed(&self, path: &[IndexStep]) -> bool {
        let longest = |paths: &[IndexPath]| {
            paths
                .iter()
                .filter(|own| own.covers(path))
                .map(IndexPath::precision)
                .max()
        };
        longest(&self.included_paths) > longest(&self.excluded_paths)
    }

    /// Whether the scalar at `path` is indexed by a path other than the wildcard at the root.
    ///
    /// A sort by such a path also returns items without the property (cosmos-sql §13).
    pub fn is_explicitly_included(&self, path: &[IndexStep]) -> bool {
        self.is_indexed(path) && self.included_paths.iter().any(|own| !own.is_root() && own.covers(path))
    }

    /// Whether the policy excludes everything that it does not name.
    pub fn excludes_root(&self) -> bool {
        self.excluded_paths.iter().any(IndexPath::is_root)
    }

    /// The composite index for a sort by these keys, given as names and direction: the same paths in the same sequence, with the same directions or
    /// all of them reversed. A longer index does not serve a shorter sort.
    ///
    /// Source: cosmos-sql §13.
    pub fn composite_index_for(&self, keys: &[(&[String], Order)]) -> Option<&[CompositePath]> {
        let serves = |index: &&[CompositePath]| {
            let has_same_paths = index.len() == keys.len()
                && index
                    .iter()
                    .zip(keys)
                    .all(|(own, (names, _))| own.path.names() == *names);
            let mut turned = index.iter().zip(keys).map(|(own, (_, order))| own.order != *order);
            let first = turned.next();
            has_same_paths && turned.all(|turn| Some(turn) == first)
        };
        self.composite_indexes.iter().map(Vec::as_slice).find(serves)
    }
}

impl CompositePath {
    fn from_input(input: &Input<'_>) -> Result<CompositePath> {
        let order = input.choice("order", ORDERS)?.unwrap_or(Order::Ascending);
        Ok(CompositePath {
            path: input.path("path")?,
            order,
        })
    }

    fn to_json(&self) -> Value {
        json!({"path": self.path.as_str(), "order": word(ORDERS, self.order)})
    }
}

/// Other members of a path than `path` are old index settings; the service drops them.
fn read_index_paths(input: &Input<'_>, member: &str) -> Result<Vec<IndexPath>> {
    let read = |path: &Input<'_>| IndexPath::read(path.require("path", path.string("path")?)?);
    let paths = input.objects(member)?.iter().map(read).collect::<Result<Vec<_>>>()?;
    if has_duplicates(&paths) {
        return Err(invalid(&input.name_of(member), "a list of different paths"));
    }
    Ok(paths)
}

fn read_composite_indexes(input: &Input<'_>) -> Result<Vec<Vec<CompositePath>>> {
    const NAME: &str = "compositeIndexes";
    let name = input.name_of(NAME);
    let mut indexes = Vec::new();
    for list in input.array(NAME)?.unwrap_or_default() {
        let list = list.as_array().ok_or_else(|| invalid(&name, "an array of arrays"))?;
        let read = |path: &Value| CompositePath::from_input(&Input::new(path, &name)?);
        let index = list.iter().map(read).collect::<Result<Vec<_>>>()?;
        check_composite_index(&index, &name)?;
        indexes.push(index);
    }
    let paths: usize = indexes.iter().map(Vec::len).sum();
    if paths > COMPOSITE_PATHS {
        return Err(invalid(
            &name,
            &format!("of at most {COMPOSITE_PATHS} paths in all; it has {paths}"),
        ));
    }
    Ok(indexes)
}

fn check_composite_index(index: &[CompositePath], name: &str) -> Result<()> {
    if !(2..=COMPOSITE_INDEX_PATHS).contains(&index.len()) {
        let count = index.len();
        return Err(invalid(
            name,
            &format!("made of indexes of 2 to {COMPOSITE_INDEX_PATHS} paths; one has {count}"),
        ));
    }
    let paths: Vec<&PropertyPath> = index.iter().map(|key| &key.path).collect();
    if has_duplicates(&paths) {
        return Err(invalid(name, "made of indexes of different paths"));
    }
    Ok(())
}
