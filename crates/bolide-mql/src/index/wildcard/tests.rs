use bson::raw::RawBson;
use bson::rawdoc;

use super::*;

fn entries(key: &RawDocument, projection: Option<&RawDocument>, document: &RawDocument) -> Result<Vec<String>> {
    let key = KeyPattern::parse(key)?;
    let projection = projection
        .map(|projection| WildcardProjection::parse(RawBsonRef::Document(projection), &key))
        .transpose()?;
    let mut found = Vec::new();
    extract(&key, projection.as_ref(), document, &mut |path, value| {
        found.push(format!("{path} {}", value::text::render(value)));
        Ok(())
    })?;
    Ok(found)
}

#[test]
fn every_value_has_its_path() {
    let all = rawdoc! {"$**": 1};
    let below = rawdoc! {"a.$**": 1};
    let cases: Vec<(&RawDocument, Option<RawDocumentBuf>, RawDocumentBuf, &[&str])> = vec![
        (
            &all,
            None,
            rawdoc! {"_id": 1, "a": {"b": 1}, "c": [2, {"d": 3}, [4, 5]]},
            &["a.b 1", "c 2", "c.d 3", "c [ 4, 5 ]"],
        ),
        (
            &all,
            None,
            rawdoc! {"a": {}, "b": [], "c": RawBson::Null},
            &["a {}", "b undefined", "c null"],
        ),
        (
            &below,
            None,
            rawdoc! {"_id": 1, "a": {"b": 1, "c": {"d": 2}}, "x": 3},
            &["a.b 1", "a.c.d 2"],
        ),
        (&below, None, rawdoc! {"a": 5, "ab": 6}, &["a 5"]),
        (
            &all,
            Some(rawdoc! {"a": 1, "b.c": true}),
            rawdoc! {"_id": 1, "a": {"x": 1}, "b": {"c": {"y": 2}, "d": 3}, "e": 4},
            &["a.x 1", "b.c.y 2"],
        ),
        (&all, Some(rawdoc! {"b.c": 1}), rawdoc! {"b": 7}, &[]),
        (
            &all,
            Some(rawdoc! {"a": 0, "b": {"c": 0}}),
            rawdoc! {"_id": 1, "a": 1, "b": {"c": 2, "d": 3}, "e": 4},
            &["b.d 3", "e 4"],
        ),
        (
            &all,
            Some(rawdoc! {"_id": 1, "a": 0}),
            rawdoc! {"_id": 1, "a": 1, "b": 2},
            &["_id 1", "b 2"],
        ),
        (
            &all,
            Some(rawdoc! {"_id": 1, "a": 1}),
            rawdoc! {"_id": 1, "a": 1, "b": 2},
            &["_id 1", "a 1"],
        ),
    ];
    for (key, projection, document, expected) in cases {
        let found = entries(key, projection.as_deref(), &document).map_err(|error| error.message);
        let expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(found, Ok(expected));
    }
}

#[test]
fn bad_projections_are_refused() {
    let all = rawdoc! {"$**": 1};
    for (key, projection, code) in [
        (&all, rawdoc! {}, 9),
        (&all, rawdoc! {"a": 1, "b": 0}, 31254),
        (&all, rawdoc! {"a": 0, "b": 1}, 31253),
        (&all, rawdoc! {"a": "x"}, 2),
        (&all, rawdoc! {"a..b": 1}, 67),
        (&rawdoc! {"a.$**": 1}, rawdoc! {"a": 1}, 9),
        (&rawdoc! {"a": 1}, rawdoc! {"a": 1}, 2),
    ] {
        let error = entries(key, Some(&projection), &rawdoc! {}).err();
        assert_eq!(error.map(|error| error.code.0), Some(code), "{projection:?}");
    }
}
