//! The indexing policy: which paths are indexed, and how.
//!
//! TTL uses no property index (TTL-221). What a client can observe of the policy is honoured: the order of several keys
//! needs a composite index, an excluded path has no order at all, and the policy is echoed as the service normalises it.
//! Source: cosmos-rest §4.2.

use serde_json::{Map, Value, json};

use super::full_text::FullTextIndex;
use super::input::{Input, has_duplicates, invalid};
use super::vector::VectorIndex;
use crate::error::{Error, Result, excerpt};
use crate::limits::{COMPOSITE_INDEX_PATHS, COMPOSITE_PATHS};
use crate::path::{InvalidPath, Labels, PropertyPath};

/// Excluded in every policy that indexes at all.
const ETAG_PATH: &str = "/\"_etag\"/?";

/// Everything below the root.
const ROOT_PATH: &str = "/*";

/// Whether writes maintain an index.
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
    /// Whether items are indexed without being told to.
    pub automatic: bool,
    /// Indexed paths; of an included and an excluded one that both cover a property, the longer decides.
    pub included_paths: Vec<IndexPath>,
    /// Paths without an index.
    pub excluded_paths: Vec<IndexPath>,
    /// Each at least two paths long.
    pub composite_indexes: Vec<Vec<CompositePath>>,
    /// For `ST_*` functions.
    pub spatial_indexes: Vec<SpatialIndex>,
    /// For `VectorDistance`.
    pub vector_indexes: Vec<VectorIndex>,
    /// For full-text functions.
    pub full_text_indexes: Vec<FullTextIndex>,
}

/// A step of an index path, or of the path of a value that an index path may cover.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum IndexStep {
    /// A property.
    Name(String),
    /// Any element of an array: `[]`.
    Element,
}

/// A path of an indexing policy: `/a/b/?` for a scalar, `/a/*` for all below, `/a/[]/b/?` through an array.
#[derive(Debug, Clone)]
pub struct IndexPath {
    text: String,
    steps: Vec<IndexStep>,
    is_subtree: bool,
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

/// Shapes that a spatial index holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpatialType {
    /// A point.
    Point,
    /// A line.
    LineString,
    /// A polygon.
    Polygon,
    /// Several polygons.
    MultiPolygon,
}

/// An index for spatial functions.
#[derive(Debug, Clone, PartialEq)]
pub struct SpatialIndex {
    /// Where the shapes are.
    pub path: IndexPath,
    /// Which are indexed; at least one.
    pub types: Vec<SpatialType>,
    /// The extent of the plane. There for geometry, as geography has the globe.
    pub bounding_box: Option<BoundingBox>,
}

/// The extent of a plane.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    /// Left edge.
    pub x_min: f64,
    /// Lower edge.
    pub y_min: f64,
    /// Right edge.
    pub x_max: f64,
    /// Upper edge.
    pub y_max: f64,
}

const MODES: &[(&str, IndexingMode)] = &[
    ("consistent", IndexingMode::Consistent),
    ("none", IndexingMode::None),
    // Withdrawn by the service, which treats it as consistent (TTL-221).
    ("lazy", IndexingMode::Consistent),
];

const ORDERS: &[(&str, Order)] = &[("ascending", Order::Ascending), ("descending", Order::Descending)];

const SPATIAL_TYPES: &[(&str, SpatialType)] = &[
    ("Point", SpatialType::Point),
    ("LineString", SpatialType::LineString),
    ("Polygon", SpatialType::Polygon),
    ("MultiPolygon", SpatialType::MultiPolygon),
];

impl Default for IndexingPolicy {
    /// Everything but the etag.
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
    /// Reads and normalises: the root is included unless it is named, the etag excluded, and mode none clears all lists.
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
            IndexingMode::Consistent => policy.completed(),
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
        if let Some(path) = self
            .included_paths
            .iter()
            .find(|path| self.excluded_paths.contains(path))
        {
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
        let mode = match self.mode {
            IndexingMode::Consistent => "consistent",
            IndexingMode::None => "none",
        };
        members.insert("indexingMode".into(), mode.into());
        members.insert("automatic".into(), self.automatic.into());
        let paths = |paths: &[IndexPath]| paths.iter().map(|path| json!({"path": path.text})).collect::<Value>();
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

    /// Whether the scalar at `path` has an index: the longest path that covers it is an included one.
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

    /// Whether the scalar at `path` has an index that the policy asks for by more than the wildcard at the root.
    ///
    /// A sort by such a path returns items without the property (cosmos-sql §13).
    pub fn is_explicitly_included(&self, path: &[IndexStep]) -> bool {
        self.is_indexed(path) && self.included_paths.iter().any(|own| !own.is_root() && own.covers(path))
    }

    /// Whether the policy takes everything out that it does not name.
    pub fn excludes_root(&self) -> bool {
        self.excluded_paths.iter().any(IndexPath::is_root)
    }

    /// The composite index that serves a sort by these keys, given as names and direction: the same paths in the same
    /// sequence, with the same directions or all of them turned. A longer index does not serve a shorter sort.
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

impl IndexPath {
    /// Reads a path; a bare `/` is the root's wildcard.
    ///
    /// # Errors
    /// `InvalidPath`: it does not end in `/?` or `/*`, or a step is neither a name nor `[]`.
    pub fn parse(text: &str) -> Result<IndexPath, InvalidPath> {
        if text == "/" {
            return Ok(IndexPath::root());
        }
        let labels = Labels::new(text).collect::<Result<Vec<_>, _>>()?;
        let incomplete = InvalidPath { position: text.len() };
        let (end, steps) = labels.split_last().ok_or(incomplete)?;
        let is_subtree = match end.text {
            "*" if !end.is_quoted => true,
            "?" if !end.is_quoted && !steps.is_empty() => false,
            _ => return Err(end.name().map_or_else(|error| error, |_| incomplete)),
        };
        let step = |label: &crate::path::Label<'_>| match label.text {
            "[]" if !label.is_quoted => Ok(IndexStep::Element),
            _ => label.name().map(|name| IndexStep::Name(name.to_owned())),
        };
        let steps = steps.iter().map(step).collect::<Result<_, _>>()?;
        Ok(IndexPath {
            text: text.to_owned(),
            steps,
            is_subtree,
        })
    }

    fn root() -> IndexPath {
        IndexPath {
            text: ROOT_PATH.to_owned(),
            steps: Vec::new(),
            is_subtree: true,
        }
    }

    fn etag() -> IndexPath {
        IndexPath {
            text: ETAG_PATH.to_owned(),
            steps: vec![IndexStep::Name("_etag".to_owned())],
            is_subtree: false,
        }
    }

    fn read(text: &str) -> Result<IndexPath> {
        IndexPath::parse(text).map_err(|InvalidPath { position }| {
            Error::bad_request(format!(
                "The indexing path '{}' could not be accepted, failed near position '{position}'. Please ensure that the path is a valid \
                 path. Common errors include invalid characters or absence of quotes around labels.",
                excerpt(text)
            ))
        })
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The steps before the end.
    pub fn steps(&self) -> &[IndexStep] {
        &self.steps
    }

    /// Whether the path is `/*`.
    pub fn is_root(&self) -> bool {
        self.is_subtree && self.steps.is_empty()
    }

    /// Whether the scalar at `path` is meant.
    pub fn covers(&self, path: &[IndexStep]) -> bool {
        if self.is_subtree {
            path.starts_with(&self.steps)
        } else {
            path == self.steps
        }
    }

    /// Of two paths that cover the same scalar, the higher decides.
    fn precision(&self) -> (usize, bool) {
        (self.steps.len(), !self.is_subtree)
    }
}

impl PartialEq for IndexPath {
    fn eq(&self, other: &IndexPath) -> bool {
        self.steps == other.steps && self.is_subtree == other.is_subtree
    }
}

impl std::fmt::Display for IndexPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&excerpt(&self.text))
    }
}

impl Order {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::Ascending => "ascending",
            Order::Descending => "descending",
        }
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
        json!({"path": self.path.as_str(), "order": self.order.as_str()})
    }
}

impl SpatialType {
    fn as_str(self) -> &'static str {
        match self {
            SpatialType::Point => "Point",
            SpatialType::LineString => "LineString",
            SpatialType::Polygon => "Polygon",
            SpatialType::MultiPolygon => "MultiPolygon",
        }
    }
}

impl SpatialIndex {
    fn from_input(input: &Input<'_>) -> Result<SpatialIndex> {
        let path = IndexPath::read(input.require("path", input.string("path")?)?)?;
        let types = input.array("types")?.unwrap_or_default();
        if types.is_empty() {
            return Err(invalid(&input.name_of("types"), "a list of at least one spatial type"));
        }
        let types = types
            .iter()
            .map(|name| read_spatial_type(name, input))
            .collect::<Result<_>>()?;
        let bounding_box = input
            .object("boundingBox")?
            .as_ref()
            .map(BoundingBox::from_input)
            .transpose()?;
        Ok(SpatialIndex {
            path,
            types,
            bounding_box,
        })
    }

    fn to_json(&self) -> Value {
        let types: Vec<&str> = self.types.iter().map(|kind| kind.as_str()).collect();
        let mut json = json!({"path": self.path.text, "types": types});
        if let Some(extent) = self.bounding_box {
            json["boundingBox"] = extent.to_json();
        }
        json
    }
}

impl BoundingBox {
    fn from_input(input: &Input<'_>) -> Result<BoundingBox> {
        let edge = |name| input.require(name, input.number(name)?);
        let extent = BoundingBox {
            x_min: edge("xmin")?,
            y_min: edge("ymin")?,
            x_max: edge("xmax")?,
            y_max: edge("ymax")?,
        };
        if extent.x_min >= extent.x_max || extent.y_min >= extent.y_max {
            return Err(invalid(&input.name_of("xmin, ymin"), "below xmax, ymax"));
        }
        Ok(extent)
    }

    fn to_json(self) -> Value {
        let edge = |edge| crate::document::number(edge).map(Value::Number);
        json!({"xmin": edge(self.x_min), "ymin": edge(self.y_min), "xmax": edge(self.x_max), "ymax": edge(self.y_max)})
    }
}

fn read_spatial_type(name: &Value, input: &Input<'_>) -> Result<SpatialType> {
    let known = |name: &str| {
        SPATIAL_TYPES
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(name))
            .map(|(_, kind)| *kind)
    };
    name.as_str().and_then(known).ok_or_else(|| {
        invalid(
            &input.name_of("types"),
            "made of Point, LineString, Polygon and MultiPolygon",
        )
    })
}

/// Members of a path other than `path` were once how it is indexed; the service drops them.
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
