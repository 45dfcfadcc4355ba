use bson::{RawDocumentBuf, rawdoc};

use super::super::{IndexDefinition, ParseOptions};
use crate::vector::{Similarity, VectorIndex};

fn parse(options: RawDocumentBuf) -> Result<IndexDefinition, crate::Error> {
    let specification = rawdoc! { "name": "v", "key": { "a.v": "cosmosSearch" }, "cosmosSearchOptions": options };
    IndexDefinition::parse(&specification, &ParseOptions::default())
}

#[test]
fn definitions_are_listed_and_read_again() {
    let options = rawdoc! { "kind": "vector-hnsw", "m": 16, "efConstruction": 64, "similarity": "L2", "dimensions": 3 };
    let definition = parse(options.clone()).expect("valid");
    let listed = definition.to_document();
    let expected = rawdoc! { "v": 2, "key": { "a.v": "cosmosSearch" }, "name": "v", "cosmosSearchOptions": options };
    assert_eq!(listed, expected);
    let again = IndexDefinition::from_document(&listed).expect("stored");
    let index = VectorIndex {
        name: "v".to_owned(),
        path: "a.v".to_owned(),
        similarity: Similarity::Euclidean,
        dimensions: 3,
    };
    assert_eq!(again.vector_index(), Some(index));
}

#[test]
fn bad_options_are_errors() {
    for options in [
        rawdoc! {},
        rawdoc! { "kind": "vector-x", "similarity": "COS", "dimensions": 3 },
        rawdoc! { "kind": "vector-ivf", "similarity": "cos", "dimensions": 3 },
        rawdoc! { "kind": "vector-ivf", "similarity": "COS" },
        rawdoc! { "kind": "vector-ivf", "similarity": "COS", "dimensions": 0 },
        rawdoc! { "kind": "vector-ivf", "similarity": "COS", "dimensions": 16_001 },
        rawdoc! { "kind": "vector-ivf", "similarity": "COS", "dimensions": 3, "m": 2 },
        rawdoc! { "kind": "vector-ivf", "similarity": "COS", "dimensions": 3, "numLists": 0 },
    ] {
        assert_eq!(parse(options.clone()).expect_err("refused").code.0, 67, "{options:?}");
    }
    for specification in [
        rawdoc! { "name": "v", "key": { "a": "cosmosSearch" } },
        rawdoc! { "name": "v", "key": { "a": 1 }, "cosmosSearchOptions": { "kind": "vector-ivf" } },
    ] {
        let refused = IndexDefinition::parse(&specification, &ParseOptions::default());
        assert_eq!(refused.expect_err("refused").code.0, 67, "{specification:?}");
    }
}
