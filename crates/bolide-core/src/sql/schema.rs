//! The schema of a container: the parts of its definition that the query language uses.

use bolide_model::container::ContainerProperties;
use bolide_model::container::full_text::language_named;
use bolide_model::container::indexing::{IndexingMode, IndexingPolicy, Order};
use bolide_model::container::policies::Geospatial;
use bolide_model::container::vector;
use bolide_model::partition_key::{PartitionKeyDefinition, PartitionKind, PropertyPath};
use bolide_query::schema::{
    CompositePath, ComputedProperty, DistanceFunction, FullTextPolicy, IndexedPath, Indexing, PartitionKeyKind,
    PartitionKeyPaths, VectorPath,
};
use bolide_query::{PathStep, Schema};

/// Returns the schema of a container.
pub(crate) fn of(properties: &ContainerProperties) -> Schema {
    let computed = properties.computed_properties.iter();
    let vectors = properties
        .vector_embedding_policy
        .iter()
        .flat_map(|policy| &policy.embeddings);
    Schema {
        partition_key: partition_key(&properties.partition_key),
        indexing: Some(indexing(&properties.indexing_policy)),
        computed: computed
            .map(|own| ComputedProperty {
                name: own.name.clone(),
                query: own.query.clone(),
            })
            .collect(),
        vectors: vectors.map(vector_path).collect(),
        full_text: full_text(properties),
        geometry: properties.geospatial == Geospatial::Geometry,
    }
}

fn partition_key(definition: &PartitionKeyDefinition) -> PartitionKeyPaths {
    let kind = match definition.kind {
        PartitionKind::Hash => PartitionKeyKind::Hash,
        PartitionKind::MultiHash => PartitionKeyKind::MultiHash,
        PartitionKind::Range => PartitionKeyKind::Range,
    };
    PartitionKeyPaths {
        paths: definition.paths.iter().map(|path| path.names().to_vec()).collect(),
        kind,
    }
}

fn indexing(policy: &IndexingPolicy) -> Indexing {
    let paths = |list: &[bolide_model::container::indexing::IndexPath]| {
        list.iter().map(|path| IndexedPath::parse(&path.to_string())).collect()
    };
    let composite = policy.composite_indexes.iter().map(|index| {
        let keys = index.iter().map(|key| CompositePath {
            path: steps(&key.path),
            descending: key.order == Order::Descending,
        });
        keys.collect()
    });
    Indexing {
        none: policy.mode == IndexingMode::None,
        included: paths(&policy.included_paths),
        excluded: paths(&policy.excluded_paths),
        composite: composite.collect(),
        full_text: policy
            .full_text_indexes
            .iter()
            .map(|index| steps(&index.path))
            .collect(),
    }
}

fn vector_path(embedding: &vector::VectorEmbedding) -> VectorPath {
    let function = match embedding.distance_function {
        vector::DistanceFunction::Cosine => DistanceFunction::Cosine,
        vector::DistanceFunction::DotProduct => DistanceFunction::DotProduct,
        vector::DistanceFunction::Euclidean => DistanceFunction::Euclidean,
    };
    VectorPath {
        path: steps(&embedding.path),
        function,
    }
}

fn full_text(properties: &ContainerProperties) -> FullTextPolicy {
    let Some(policy) = &properties.full_text_policy else {
        return FullTextPolicy::default();
    };
    let paths = policy
        .paths
        .iter()
        .flatten()
        .map(|own| (steps(&own.path), language(own.language.as_deref())));
    FullTextPolicy {
        default_language: language(policy.language()),
        paths: paths.collect(),
    }
}

fn language(given: Option<&str>) -> Option<String> {
    given.and_then(language_named).map(str::to_owned)
}

fn steps(path: &PropertyPath) -> Vec<PathStep> {
    path.names().iter().map(|name| PathStep::name(name)).collect()
}
