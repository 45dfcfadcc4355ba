//! The property indexes of a container, as its row has them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_index::spatial::Extent;
use bolide_index::vector::Similarity;
use bolide_mql::bson::RawDocument;
use bolide_mql::index::IndexDefinition;
use bolide_query::index::{CellSurface, CompositeIndex, CompositePath, IndexPath, SpatialIndex, TextIndex};
use serde::{Deserialize, Serialize};

use crate::index::{DocumentIndex, IndexKind, PropertyIndex, PropertyIndexes, VectorIndex};

#[derive(Serialize, Deserialize)]
pub(super) struct StoredIndexes {
    list: Vec<StoredIndex>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<u32>,
    next: u32,
}

#[derive(Serialize, Deserialize)]
struct StoredIndex {
    id: u32,
    #[serde(flatten)]
    kind: StoredKind,
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    automatic: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredKind {
    FullText {
        text: String,
        language: String,
    },
    Values {
        path: String,
    },
    /// The paths, in their order.
    Composite {
        composite: Vec<StoredPath>,
    },
    /// The extent of a plane as the bits of its corners; without one it is the globe.
    Spatial {
        spatial: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extent: Option<[u64; 4]>,
    },
    /// The centroids have a row of their own.
    Vector {
        vector: String,
        dimensions: usize,
        similarity: String,
        trained: u64,
    },
    /// An index of a collection by its id, with its definition as BSON in base64.
    Document {
        document: u32,
        definition: String,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredPath {
    path: String,
    #[serde(default)]
    descending: bool,
}

const SIMILARITIES: [(Similarity, &str); 3] = [
    (Similarity::Cosine, "cosine"),
    (Similarity::DotProduct, "dotproduct"),
    (Similarity::Euclidean, "euclidean"),
];

impl StoredKind {
    fn of(kind: &IndexKind) -> StoredKind {
        match kind {
            IndexKind::Values(path) => StoredKind::Values { path: path.to_string() },
            IndexKind::Composite(index) => StoredKind::Composite {
                composite: index.paths().iter().map(StoredPath::of).collect(),
            },
            IndexKind::FullText(text) => StoredKind::FullText {
                text: text.path.to_string(),
                language: text.language.clone(),
            },
            IndexKind::Spatial(index) => StoredKind::Spatial {
                spatial: index.path.to_string(),
                extent: match index.surface {
                    CellSurface::Globe => None,
                    CellSurface::Plane(extent) => {
                        let ([left, lower], [right, upper]) = extent.corners();
                        Some([left, lower, right, upper].map(f64::to_bits))
                    }
                },
            },
            IndexKind::Vector(index) => StoredKind::Vector {
                vector: index.path.to_string(),
                dimensions: index.dimensions,
                similarity: (SIMILARITIES.iter().find(|(own, _)| *own == index.similarity))
                    .map_or_else(String::new, |(_, name)| (*name).to_owned()),
                trained: index.trained_items,
            },
            IndexKind::Document(index) => StoredKind::Document {
                document: index.id,
                definition: STANDARD.encode(index.definition.to_document().as_bytes()),
            },
        }
    }

    fn kind(self) -> Option<IndexKind> {
        match self {
            StoredKind::FullText { text, language } => {
                let path = IndexPath::parse(&text)?;
                Some(IndexKind::FullText(Arc::new(TextIndex { path, language })))
            }
            StoredKind::Values { path } => IndexPath::parse(&path).map(|path| IndexKind::Values(Arc::new(path))),
            StoredKind::Composite { composite } => {
                let paths: Option<Vec<CompositePath>> = composite.iter().map(StoredPath::path).collect();
                Some(IndexKind::Composite(Arc::new(CompositeIndex::of(paths?)?)))
            }
            StoredKind::Spatial { spatial, extent } => {
                let surface = match extent.map(|bits| bits.map(f64::from_bits)) {
                    None => CellSurface::Globe,
                    Some([left, lower, right, upper]) => CellSurface::Plane(Extent::of([left, lower], [right, upper])?),
                };
                let path = IndexPath::parse(&spatial)?;
                Some(IndexKind::Spatial(Arc::new(SpatialIndex { path, surface })))
            }
            StoredKind::Vector {
                vector,
                dimensions,
                similarity,
                trained,
            } => {
                let (similarity, _) = SIMILARITIES.iter().find(|(_, name)| *name == similarity)?;
                let index = VectorIndex::stored(IndexPath::parse(&vector)?, dimensions, *similarity, trained);
                Some(IndexKind::Vector(Arc::new(index)))
            }
            StoredKind::Document { document, definition } => {
                let bytes = STANDARD.decode(definition).ok()?;
                let definition = IndexDefinition::from_document(RawDocument::from_bytes(&bytes).ok()?).ok()?;
                Some(IndexKind::Document(DocumentIndex {
                    id: document,
                    definition: Arc::new(definition),
                }))
            }
        }
    }
}

impl StoredPath {
    fn of(own: &CompositePath) -> StoredPath {
        StoredPath {
            path: own.path.to_string(),
            descending: own.descending,
        }
    }

    fn path(&self) -> Option<CompositePath> {
        Some(CompositePath {
            path: IndexPath::parse(&self.path)?,
            descending: self.descending,
        })
    }
}

impl StoredIndexes {
    pub fn of(indexes: &PropertyIndexes) -> StoredIndexes {
        let stored = |index: &PropertyIndex| StoredIndex {
            id: index.id,
            kind: StoredKind::of(&index.kind),
            ready: index.is_ready,
            automatic: index.is_automatic,
        };
        StoredIndexes {
            list: indexes.list.iter().map(stored).collect(),
            dropped: indexes.dropped.clone(),
            next: indexes.next,
        }
    }

    /// Returns `None` if a path or a definition is none.
    pub fn indexes(self) -> Option<PropertyIndexes> {
        let index = |stored: StoredIndex| {
            Some(PropertyIndex {
                id: stored.id,
                kind: stored.kind.kind()?,
                is_ready: stored.ready,
                is_automatic: stored.automatic,
            })
        };
        Some(PropertyIndexes {
            list: self.list.into_iter().map(index).collect::<Option<_>>()?,
            dropped: self.dropped,
            next: self.next,
        })
    }
}
