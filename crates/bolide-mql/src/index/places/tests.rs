use bson::raw::RawBson;
use bson::rawdoc;

use super::super::specification::ParseOptions;
use super::*;

fn refusal(key: &RawDocument, document: &RawDocument) -> Option<i32> {
    let specification = rawdoc! {"key": key.to_owned(), "name": "n"};
    let definition = IndexDefinition::parse(&specification, &ParseOptions::default()).expect("an index");
    check(&definition, document).err().map(|error| error.code.0)
}

#[test]
fn fields_of_a_sphere_have_geometry_or_nothing() {
    let key = rawdoc! {"a.p": "2dsphere", "x": 1};
    for document in [
        rawdoc! {},
        rawdoc! {"a": 5},
        rawdoc! {"a": {"p": RawBson::Null}},
        rawdoc! {"a": {"p": []}},
        rawdoc! {"a": {"p": [1, 2]}},
        rawdoc! {"a": [{"p": {"type": "Point", "coordinates": [1, 2]}}, {"q": 1}, 7]},
    ] {
        assert_eq!(
            refusal(&key, &document),
            None,
            "{}",
            value::text::render_document(&document)
        );
    }
    for document in [
        rawdoc! {"a": {"p": "x"}},
        rawdoc! {"a": {"p": [1]}},
        rawdoc! {"a": {"p": [[1, 2], [3, 4]]}},
        rawdoc! {"a": {"p": [200, 2]}},
        rawdoc! {"a": [{"p": [1, 2]}, {"p": {"type": "Point", "coordinates": [1000, 2]}}]},
    ] {
        assert_eq!(
            refusal(&key, &document),
            Some(16755),
            "{}",
            value::text::render_document(&document)
        );
    }
}

#[test]
fn fields_of_a_plane_have_points_in_range() {
    let key = rawdoc! {"p": "2d"};
    for (document, expected) in [
        (rawdoc! {}, None),
        (rawdoc! {"p": [1, 2]}, None),
        (rawdoc! {"p": {"x": 1, "y": 2}}, None),
        (rawdoc! {"p": [[1, 2], [3, 4]]}, None),
        (rawdoc! {"p": [181, 2]}, Some(13027)),
        (rawdoc! {"p": [f64::NAN, 2]}, Some(13027)),
        (rawdoc! {"p": "x"}, Some(16804)),
        (rawdoc! {"p": [1]}, Some(16804)),
        (rawdoc! {"p": [[1, 2], "x"]}, Some(16804)),
    ] {
        assert_eq!(
            refusal(&key, &document),
            expected,
            "{}",
            value::text::render_document(&document)
        );
    }
}
