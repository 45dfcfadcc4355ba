//! Which property indexes an indexing policy asks for, and which it allows.

use bolide_index::spatial::Extent;
use bolide_index::vector::{MAX_DIMENSIONS, Similarity};
use bolide_model::container::ContainerProperties;
use bolide_model::container::indexing::{CompositePath as NamedPath, IndexStep, IndexingMode, IndexingPolicy, Order};
use bolide_model::container::policies::Geospatial;
use bolide_model::container::spatial::BoundingBox;
use bolide_model::container::vector::{DistanceFunction, VectorIndexType};
use bolide_model::path::PropertyPath;
use bolide_query::PathStep;
use bolide_query::index::{CellSurface, CompositeIndex, CompositePath, IndexPath, SpatialIndex, TextIndex};

use crate::sql::schema_of;

/// System properties that are not part of a stored document and have no entries.
const WITHOUT_ENTRIES: [&str; 4] = ["_rid", "_self", "_etag", "_attachments"];

/// Maximum number of included paths that are looked at.
const MAX_PATHS: usize = 256;

/// Returns the paths that a policy names, beside those with wildcards. The first path of a composite index is named, too: rows that are sorted by all
/// of its paths are read in the order of the first.
pub(crate) fn named_paths(policy: &IndexingPolicy) -> Vec<IndexPath> {
    let named = policy.included_paths.iter().take(MAX_PATHS);
    let named = named.filter(|path| !path.as_str().ends_with('*'));
    let named = named.filter_map(|path| IndexPath::of_steps(&path_steps(path.steps())));
    let composite = policy.composite_indexes.iter().take(MAX_PATHS);
    // A composite index need not be of included paths.
    let first = composite.filter_map(|index| property_path(&index.first()?.path));
    let first = first.filter(|path| policy.mode == IndexingMode::Consistent && has_entries(path));
    let mut paths: Vec<IndexPath> = Vec::new();
    for path in named.filter(|path| allows(policy, path)).chain(first) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Returns the composite indexes that a policy names. They need not be of included paths. One that another one has in the opposite direction is the same.
pub(crate) fn named_composite(policy: &IndexingPolicy) -> Vec<CompositeIndex> {
    let mut indexes: Vec<CompositeIndex> = Vec::new();
    if policy.mode != IndexingMode::Consistent {
        return indexes;
    }
    for named in policy.composite_indexes.iter().take(MAX_PATHS) {
        let path = |named: &NamedPath| {
            let path = property_path(&named.path).filter(has_entries)?;
            let descending = named.order == Order::Descending;
            Some(CompositePath { path, descending })
        };
        let paths: Option<Vec<CompositePath>> = named.iter().map(path).collect();
        let index = paths.and_then(CompositeIndex::of);
        indexes.extend(index.filter(|index| !indexes.contains(index)));
    }
    indexes
}

/// Returns the texts of which a container's policies name full-text indexes, in the languages by which queries compare their words.
pub(crate) fn named_texts(properties: &ContainerProperties) -> Vec<TextIndex> {
    let policy = &properties.indexing_policy;
    if policy.mode != IndexingMode::Consistent || policy.full_text_indexes.is_empty() {
        return Vec::new();
    }
    let schema = schema_of(properties);
    let mut texts: Vec<TextIndex> = Vec::new();
    for named in policy.full_text_indexes.iter().take(MAX_PATHS) {
        let steps: Vec<PathStep> = named.path.names().iter().map(|name| PathStep::name(name)).collect();
        let language = schema.language(&steps).to_owned();
        let path = IndexPath::of_steps(&steps).filter(has_entries);
        let text = path.map(|path| TextIndex { path, language });
        // Clients may name a path twice.
        texts.extend(text.filter(|text| !texts.contains(text)));
    }
    texts
}

/// Returns the spatial indexes that a definition names; `/a/*` names the shape at `/a`. They need not be of included paths. A plane that numbers of 64 bits cannot
/// divide has none.
pub(crate) fn named_shapes(properties: &ContainerProperties) -> Vec<SpatialIndex> {
    let policy = &properties.indexing_policy;
    let mut shapes: Vec<SpatialIndex> = Vec::new();
    if policy.mode != IndexingMode::Consistent {
        return shapes;
    }
    for named in policy.spatial_indexes.iter().take(MAX_PATHS) {
        let path = IndexPath::of_steps(&path_steps(named.path.steps())).filter(may_have_shapes);
        let (Some(path), Some(surface)) = (path, surface_of(properties, named.bounding_box)) else {
            continue;
        };
        if !shapes.iter().any(|known| known.path == path) {
            shapes.push(SpatialIndex { path, surface });
        }
    }
    shapes
}

/// Returns the spatial index on a path that a definition allows without naming it, by a wildcard that stands for the path.
pub(crate) fn allowed_shape(properties: &ContainerProperties, path: &IndexPath) -> Option<SpatialIndex> {
    let policy = &properties.indexing_policy;
    let steps = index_steps(&path.steps());
    let mut wildcards = policy.spatial_indexes.iter().take(MAX_PATHS).filter(|allowed| {
        let above = allowed.path.steps();
        allowed.path.as_str().ends_with('*') && above.len() < steps.len() && steps.starts_with(above)
    });
    let is_allowed = policy.mode == IndexingMode::Consistent && may_have_shapes(path);
    let allowed = wildcards.next().filter(|_| is_allowed)?;
    let surface = surface_of(properties, allowed.bounding_box)?;
    let path = path.clone();
    Some(SpatialIndex { path, surface })
}

fn may_have_shapes(path: &IndexPath) -> bool {
    has_entries(path) && !path.is_of_elements()
}

fn surface_of(properties: &ContainerProperties, bounds: Option<BoundingBox>) -> Option<CellSurface> {
    match properties.geospatial {
        Geospatial::Geography => Some(CellSurface::Globe),
        Geospatial::Geometry => bounds.and_then(plane),
    }
}

fn plane(bounds: BoundingBox) -> Option<CellSurface> {
    let extent = Extent::of([bounds.x_min, bounds.y_min], [bounds.x_max, bounds.y_max]);
    extent.map(CellSurface::Plane)
}

/// Vectors of which a definition wants an index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedVector {
    pub path: IndexPath,
    pub dimensions: usize,
    pub similarity: Similarity,
}

/// Returns the vectors of which a definition wants an index with quantized vectors. Those of the type `flat` are always compared one by one.
pub(crate) fn named_vectors(properties: &ContainerProperties) -> Vec<NamedVector> {
    let policy = &properties.indexing_policy;
    let embeddings = properties.vector_embedding_policy.iter();
    let embeddings = embeddings
        .flat_map(|policy| &policy.embeddings)
        .filter_map(|embedding| {
            let path = property_path(&embedding.path)?;
            let dimensions = usize::try_from(embedding.dimensions).ok()?;
            let similarity = match embedding.distance_function {
                DistanceFunction::Cosine => Similarity::Cosine,
                DistanceFunction::DotProduct => Similarity::DotProduct,
                DistanceFunction::Euclidean => Similarity::Euclidean,
            };
            let is_named = names_vector(policy, &path) && (1..=MAX_DIMENSIONS).contains(&dimensions);
            is_named.then_some(NamedVector {
                path,
                dimensions,
                similarity,
            })
        });
    embeddings.collect()
}

/// Whether a policy wants an index of quantized vectors at a path. Whether it includes the path for other indexes does not matter: usually it does not.
pub(super) fn names_vector(policy: &IndexingPolicy, path: &IndexPath) -> bool {
    let is_quantized = policy.vector_indexes.iter();
    let mut is_quantized = is_quantized.filter(|index| index.kind != VectorIndexType::Flat);
    policy.mode == IndexingMode::Consistent
        && is_quantized.any(|index| property_path(&index.path).as_ref() == Some(path))
}

pub(crate) fn property_path(path: &PropertyPath) -> Option<IndexPath> {
    let steps: Vec<PathStep> = path.names().iter().map(|name| PathStep::name(name)).collect();
    IndexPath::of_steps(&steps)
}

/// Returns the steps of a path in a policy as those of a query.
fn path_steps(path: &[IndexStep]) -> Vec<PathStep> {
    let step = |step: &IndexStep| match step {
        IndexStep::Name(name) => PathStep::Name(name.clone()),
        IndexStep::Element => PathStep::Each,
    };
    path.iter().map(step).collect()
}

/// Whether a policy allows an index on a path.
pub(crate) fn allows(policy: &IndexingPolicy, path: &IndexPath) -> bool {
    policy.mode == IndexingMode::Consistent && has_entries(path) && policy.is_indexed(&index_steps(&path.steps()))
}

/// Whether documents as they are stored have the property.
fn has_entries(path: &IndexPath) -> bool {
    match path.steps().first() {
        Some(PathStep::Name(name)) => !WITHOUT_ENTRIES.contains(&&name[..]),
        _ => false,
    }
}

/// Returns the steps of a path in a query as those of a policy.
pub(crate) fn index_steps(path: &[PathStep]) -> Vec<IndexStep> {
    let step = |step: &PathStep| match step {
        PathStep::Name(name) => IndexStep::Name(name.clone()),
        _ => IndexStep::Element,
    };
    path.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use bolide_model::container::ContainerProperties;
    use serde_json::json;

    use super::*;

    fn policy(indexing: &serde_json::Value) -> IndexingPolicy {
        let definition =
            json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, "indexingPolicy": indexing});
        ContainerProperties::from_json(&definition)
            .expect("a definition")
            .indexing_policy
    }

    fn allowed(policy: &IndexingPolicy, path: &str) -> bool {
        allows(policy, &IndexPath::parse(path).expect("a path"))
    }

    #[test]
    fn a_text_has_the_language_of_its_path_or_of_the_policy() {
        let definition = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
            "fullTextPolicy": {
                "defaultLanguage": "de-DE",
                "fullTextPaths": [{"path": "/a/b", "language": "fr-FR"}, {"path": "/c"}, {"path": "/d"}],
            },
            "indexingPolicy": {"fullTextIndexes": [{"path": "/a/b"}, {"path": "/c"}, {"path": "/c"}]},
        });
        let properties = ContainerProperties::from_json(&definition).expect("a definition");
        let texts: Vec<String> = named_texts(&properties).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["/a/b/? (full text, fr-FR)", "/c/? (full text, de-DE)"]);
    }

    #[test]
    fn a_spatial_index_is_of_the_shape_at_its_path() {
        let named = |geospatial: &str, indexes: serde_json::Value| {
            let definition = json!({
                "id": "c",
                "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
                "geospatialConfig": {"type": geospatial},
                "indexingPolicy": {"includedPaths": [], "excludedPaths": [{"path": "/*"}], "spatialIndexes": indexes},
            });
            let properties = ContainerProperties::from_json(&definition).expect("a definition");
            named_shapes(&properties)
        };
        let index = |path: &str| json!({"path": path, "types": ["Point"]});
        let paths = ["/a/*", "/b/c/?", "/*", "/d/[]/?", "/_etag/?", "/a/?"];
        let found = named("Geography", paths.map(index).into_iter().collect());
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["/a/? (spatial)", "/b/c/? (spatial)"]);
        assert!(found.iter().all(|index| index.surface == CellSurface::Globe));

        let bounded = |path: &str, to: f64| {
            let mut index = index(path);
            index["boundingBox"] = json!({"xmin": 0, "ymin": -5, "xmax": to, "ymax": 5});
            index
        };
        let found = named("Geometry", json!([bounded("/a/?", 9.0), bounded("/b/?", 1e300)]));
        let extent = Extent::of([0.0, -5.0], [9.0, 5.0]).map(CellSurface::Plane);
        assert_eq!(
            found.iter().map(|index| Some(index.surface)).collect::<Vec<_>>(),
            [extent]
        );
    }

    #[test]
    fn a_wildcard_allows_a_spatial_index_on_the_paths_below() {
        let definition = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
            "indexingPolicy": {"spatialIndexes": [{"path": "/a/*", "types": ["Point"]}, {"path": "/b/c/?", "types": ["Point"]}]},
        });
        let properties = ContainerProperties::from_json(&definition).expect("a definition");
        let allowed = |path: &str| allowed_shape(&properties, &IndexPath::parse(path).expect("a path"));
        assert_eq!(
            allowed("/a/b/c").map(|index| index.to_string()).as_deref(),
            Some("/a/b/c/? (spatial)")
        );
        for path in ["/a", "/ab", "/b", "/b/c", "/b/c/d", "/a/[]"] {
            assert_eq!(allowed(path), None, "{path}");
        }
    }

    #[test]
    fn a_policy_asks_for_the_paths_that_it_names() {
        let named = policy(&json!({
            "includedPaths": [{"path": "/*"}, {"path": "/a/b/?"}, {"path": "/tags/[]/?"}, {"path": "/c/*"}],
            "excludedPaths": [{"path": "/d/?"}],
            "compositeIndexes": [
                [{"path": "/d"}, {"path": "/e"}],
                [{"path": "/a/b", "order": "descending"}, {"path": "/e"}],
                [{"path": "/_etag"}, {"path": "/e"}],
            ],
        }));
        let paths: Vec<String> = named_paths(&named).iter().map(ToString::to_string).collect();
        assert_eq!(paths, ["/a/b/?", "/tags/[]/?", "/d/?"]);
        let composite: Vec<String> = named_composite(&named).iter().map(ToString::to_string).collect();
        assert_eq!(
            composite,
            ["/d ASC, /e ASC", "/a/b ASC, /e DESC"],
            "the first path ascends"
        );
        assert!(allowed(&named, "/x") && allowed(&named, "/c/e") && !allowed(&named, "/d"));
        assert!(!allowed(&named, "/_etag") && !allowed(&named, "/_self") && allowed(&named, "/_ts"));
        let none = policy(&json!({"indexingMode": "none", "automatic": false}));
        assert!(!allowed(&none, "/x"));
    }
}
