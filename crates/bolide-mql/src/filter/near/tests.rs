use bolide_model::UnixMillis;
use bson::rawdoc;

use super::super::Filter;
use super::*;
use crate::context::Context;

fn distance_of(filter: &RawDocument, document: &RawDocument) -> Option<f64> {
    Filter::parse(filter).expect("a filter").near_distance(document)
}

#[test]
fn documents_are_as_far_as_their_nearest_place() {
    let filter = rawdoc! {"p": {"$near": [0, 0], "$maxDistance": 100}, "a": 1};
    assert_eq!(distance_of(&filter, &rawdoc! {"p": [3, 4]}), Some(5.0));
    assert_eq!(distance_of(&filter, &rawdoc! {"p": [[30, 40], [6, 8]]}), Some(10.0));
    assert_eq!(distance_of(&filter, &rawdoc! {"p": [300, 400]}), None);
    assert_eq!(distance_of(&filter, &rawdoc! {"q": [3, 4]}), None);
    assert_eq!(distance_of(&rawdoc! {"a": 1}, &rawdoc! {"p": [3, 4]}), None);
}

#[test]
fn near_is_at_the_top_once() {
    let near = rawdoc! {"$near": [0, 0]};
    let refusal = |filter: &RawDocument| Filter::parse(filter).err().map(|error| (error.code.0, error.message));
    for filter in [
        rawdoc! {"$or": [{"p": near.clone()}, {"a": 1}]},
        rawdoc! {"$nor": [{"p": near.clone()}]},
        rawdoc! {"p": {"$not": near.clone()}},
        rawdoc! {"p": {"$elemMatch": {"q": near.clone()}}},
        rawdoc! {"p": {"$elemMatch": near.clone()}},
    ] {
        let text = "geo $near must be top-level expr".to_owned();
        assert_eq!(refusal(&filter), Some((2, text)));
    }
    let twice = rawdoc! {"p": near.clone(), "q": near.clone()};
    let text = "Too many geoNear expressions".to_owned();
    assert_eq!(refusal(&twice), Some((2, text)));
    assert_eq!(refusal(&rawdoc! {"$and": [{"p": near}, {"a": 1}]}), None);
}

#[test]
fn filters_match_by_place() {
    let context = Context::new(UnixMillis(0));
    let matches = |filter: &RawDocument, document: &RawDocument| {
        let filter = Filter::parse(filter).expect("a filter");
        filter.matches(document, &context).expect("an answer")
    };
    let within = rawdoc! {"p": {"$geoWithin": {"$box": [[0, 0], [2, 2]]}}};
    assert!(matches(&within, &rawdoc! {"p": [1, 1]}));
    assert!(!matches(&within, &rawdoc! {"p": [3, 1]}));
    assert!(!matches(&within, &rawdoc! {"q": 1}));
    // One of several places.
    assert!(matches(&within, &rawdoc! {"p": [[9, 9], [1, 1]]}));
    assert!(matches(
        &rawdoc! {"p": {"$not": {"$geoWithin": {"$box": [[0, 0], [2, 2]]}}}},
        &rawdoc! {"p": [3, 1]}
    ));
    let near = rawdoc! {"p": {"$nearSphere": [0, 0], "$maxDistance": 0.1}};
    assert!(matches(&near, &rawdoc! {"p": {"type": "Point", "coordinates": [1, 1]}}));
    assert!(!matches(&near, &rawdoc! {"p": [50, 50]}));
}
