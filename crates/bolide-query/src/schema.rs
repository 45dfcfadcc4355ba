//! The settings of a container that a query depends on.

use crate::path::PathStep;

/// How the values at the partition key paths determine the range of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionKeyKind {
    /// One hash over all paths.
    #[default]
    Hash,
    /// A hash per path: a prefix of the key is a range.
    MultiHash,
    /// The legacy kind, ordered by value.
    Range,
}

/// The partition key definition. Without paths the container is not partitioned, or it is a metadata feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionKeyPaths {
    /// Each path as its property names.
    pub paths: Vec<Vec<String>>,
    /// How values determine the range of an item.
    pub kind: PartitionKeyKind,
}

/// One component of a composite index.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositePath {
    /// Property names and array steps.
    pub path: Vec<PathStep>,
    /// Sorted from high to low.
    pub descending: bool,
}

/// A path of the indexing policy, such as `/a/b/?`, `/a/*` or `/tags/[]/name/?`.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedPath {
    steps: Vec<PathStep>,
    /// Ends in `*`: the whole tree below.
    recursive: bool,
}

impl IndexedPath {
    /// Reads a path as the indexing policy writes it; names may be quoted.
    pub fn parse(text: &str) -> IndexedPath {
        let mut steps = PathStep::parse_policy_path(text);
        let recursive = steps.last() == Some(&PathStep::name("*"));
        if recursive || steps.last() == Some(&PathStep::name("?")) {
            steps.pop();
        }
        IndexedPath { steps, recursive }
    }

    /// The number of steps of `path` that this entry names, if it covers the path.
    fn covers(&self, path: &[PathStep]) -> Option<usize> {
        let fits = path.len() == self.steps.len() || (self.recursive && path.len() > self.steps.len());
        let same = self
            .steps
            .iter()
            .zip(path)
            .all(|(mine, theirs)| mine.same_index_step(theirs));
        (fits && same).then_some(self.steps.len())
    }
}

/// The part of the indexing policy that a query can depend on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Indexing {
    /// Indexing mode "none".
    pub none: bool,
    /// Paths of `includedPaths`.
    pub included: Vec<IndexedPath>,
    /// Paths of `excludedPaths`.
    pub excluded: Vec<IndexedPath>,
    /// Each composite index, as its components in order.
    pub composite: Vec<Vec<CompositePath>>,
    /// Paths with a full-text index.
    pub full_text: Vec<Vec<PathStep>>,
}

/// How a path is covered by the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Not indexed.
    Excluded,
    /// Only `/*` covers it.
    Wildcard,
    /// An included path names it.
    Explicit,
}

impl Indexing {
    /// The default policy: everything below the root.
    pub fn everything() -> Indexing {
        Indexing {
            included: vec![IndexedPath::parse("/*")],
            ..Indexing::default()
        }
    }

    /// How a path is covered: by the entry with the most steps; at equal length an included entry wins.
    pub fn coverage(&self, path: &[PathStep]) -> Coverage {
        let longest = |list: &[IndexedPath]| list.iter().filter_map(|entry| entry.covers(path)).max();
        let excluded = longest(&self.excluded);
        match longest(&self.included) {
            _ if self.none => Coverage::Excluded,
            None => Coverage::Excluded,
            Some(included) if excluded.is_some_and(|e| e > included) => Coverage::Excluded,
            Some(0) => Coverage::Wildcard,
            Some(_) => Coverage::Explicit,
        }
    }
}

/// A computed property of the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComputedProperty {
    /// The top-level name queries use.
    pub name: String,
    /// `SELECT VALUE … FROM c`.
    pub query: String,
}

/// How vectors are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DistanceFunction {
    /// Cosine similarity.
    #[default]
    Cosine,
    /// Inner product.
    DotProduct,
    /// Euclidean distance.
    Euclidean,
}

impl DistanceFunction {
    /// Reads a name in any case.
    pub fn parse(name: &str) -> Option<DistanceFunction> {
        [
            ("cosine", Self::Cosine),
            ("dotproduct", Self::DotProduct),
            ("euclidean", Self::Euclidean),
        ]
        .into_iter()
        .find_map(|(text, function)| text.eq_ignore_ascii_case(name).then_some(function))
    }
}

/// An entry of the vector embedding policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorPath {
    /// Property names.
    pub path: Vec<PathStep>,
    /// The default of `VectorDistance` for this path.
    pub function: DistanceFunction,
}

/// The full-text policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FullTextPolicy {
    /// Such as `en-US`.
    pub default_language: Option<String>,
    /// Paths with their languages.
    pub paths: Vec<(Vec<PathStep>, Option<String>)>,
}

/// All settings of a container that a query depends on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schema {
    /// The partition key of the items.
    pub partition_key: PartitionKeyPaths,
    /// Index rules; `None` where there are none (metadata feeds).
    pub indexing: Option<Indexing>,
    /// Computed properties.
    pub computed: Vec<ComputedProperty>,
    /// The vector embedding policy.
    pub vectors: Vec<VectorPath>,
    /// The full-text policy.
    pub full_text: FullTextPolicy,
    /// Whether spatial functions use a plane instead of the ellipsoid.
    pub geometry: bool,
}

impl Schema {
    /// The schema of databases, containers, offers and other metadata: the whole language, no index rules.
    pub fn metadata() -> Schema {
        Schema::default()
    }

    /// A container with one or more partition key paths and the default indexing policy.
    pub fn container(paths: Vec<Vec<String>>, kind: PartitionKeyKind) -> Schema {
        let partition_key = PartitionKeyPaths { paths, kind };
        Schema {
            partition_key,
            indexing: Some(Indexing::everything()),
            ..Schema::default()
        }
    }

    /// The language of a full-text path, or the default one.
    pub fn language(&self, path: &[PathStep]) -> &str {
        let own = self
            .full_text
            .paths
            .iter()
            .find(|(p, _)| p == path)
            .and_then(|(_, language)| language.as_deref());
        own.or(self.full_text.default_language.as_deref()).unwrap_or("en-US")
    }
}
