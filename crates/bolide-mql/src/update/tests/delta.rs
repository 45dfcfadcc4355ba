use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

use super::updated;
use crate::update::{Delta, diff};

/// Updated fields, removed fields and truncated arrays as text and values.
type Changes = (Vec<(String, RawBson)>, Vec<String>, Vec<(String, usize)>);

fn changes_of(delta: Delta) -> Option<Changes> {
    let Delta::Fields(changes) = delta else {
        return None;
    };
    Some((
        changes
            .updated
            .into_iter()
            .map(|(path, value)| (path.to_string(), value))
            .collect(),
        changes.removed.iter().map(ToString::to_string).collect(),
        changes
            .truncated
            .into_iter()
            .map(|(path, length)| (path.to_string(), length))
            .collect(),
    ))
}

fn updates(fields: &RawDocumentBuf) -> Vec<(String, RawBson)> {
    fields
        .iter()
        .map(|field| field.unwrap())
        .map(|(name, value)| (name.to_string(), value.into()))
        .collect()
}

#[test]
fn operators_say_what_they_changed() {
    let old = rawdoc! {"_id": 1, "a": {"b": 1}, "l": [1, 2], "s": 1};
    let cases = vec![
        (rawdoc! {"$set": {"a.b": 2, "s": 1}}, rawdoc! {"a.b": 2}, vec![]),
        (rawdoc! {"$set": {"a.c.d": 2}}, rawdoc! {"a.c": {"d": 2}}, vec![]),
        (rawdoc! {"$set": {"a": {"b": 2}}}, rawdoc! {"a": {"b": 2}}, vec![]),
        (rawdoc! {"$unset": {"a.b": 1, "s": 1}}, rawdoc! {}, vec!["a.b", "s"]),
        (rawdoc! {"$unset": {"l.0": 1}}, rawdoc! {"l.0": null}, vec![]),
        (
            rawdoc! {"$push": {"l": {"$each": [3, 4]}}},
            rawdoc! {"l.2": 3, "l.3": 4},
            vec![],
        ),
        (rawdoc! {"$addToSet": {"l": 3}}, rawdoc! {"l.2": 3}, vec![]),
        (
            rawdoc! {"$push": {"l": {"$each": [0], "$position": 0}}},
            rawdoc! {"l": [0, 1, 2]},
            vec![],
        ),
        (rawdoc! {"$pop": {"l": 1}}, rawdoc! {"l": [1]}, vec![]),
        (rawdoc! {"$inc": {"l.$[]": 1}}, rawdoc! {"l.0": 2, "l.1": 3}, vec![]),
        (rawdoc! {"$rename": {"s": "t"}}, rawdoc! {"t": 1}, vec!["s"]),
        (rawdoc! {"$set": {"s": 1}}, rawdoc! {}, vec![]),
    ];
    for (update, fields, removed) in cases {
        let removed = removed.into_iter().map(str::to_owned).collect();
        let delta = updated(&old, &update).unwrap().delta;
        assert_eq!(
            changes_of(delta),
            Some((updates(&fields), removed, vec![])),
            "{update:?}"
        );
    }
}

#[test]
fn diff_of_two_documents() {
    let text = "a text that is longer than the descriptions of the changes";
    let old = rawdoc! {"_id": 1, "t": text, "a": {"b": 1, "c": 2}, "l": [1, {"x": 1}, 3], "s": 1};
    let cases = vec![
        (
            rawdoc! {"_id": 1, "t": text, "a": {"b": 1, "c": 3}, "l": [1, {"x": 2}], "n": 5},
            rawdoc! {"a.c": 3, "l.1.x": 2, "n": 5},
            vec!["s"],
            vec![("l", 2)],
        ),
        (
            rawdoc! {"_id": 1, "t": text, "a": {"c": 2, "b": 1}, "l": [1, {"x": 1}, 3, 4], "s": 1},
            rawdoc! {"a": {"c": 2, "b": 1}, "l.3": 4},
            vec![],
            vec![],
        ),
        (
            rawdoc! {"_id": 1, "t": text, "a": 5, "l": [], "s": 1},
            rawdoc! {"a": 5},
            vec![],
            vec![("l", 0)],
        ),
    ];
    for (new, fields, removed, truncated) in cases {
        let removed = removed.into_iter().map(str::to_owned).collect();
        let truncated = truncated
            .into_iter()
            .map(|(path, length): (&str, _)| (path.to_owned(), length))
            .collect();
        let delta = diff(&old, &new).unwrap();
        assert_eq!(
            changes_of(delta),
            Some((updates(&fields), removed, truncated)),
            "{new:?}"
        );
    }
    assert_eq!(diff(&old, &rawdoc! {"t": text, "_id": 1}).unwrap(), Delta::Replacement);
    let many_changes = diff(&old, &rawdoc! {"_id": 1, "x": 1, "y": 2, "z": 3});
    assert_eq!(many_changes.unwrap(), Delta::Replacement);
}

#[test]
fn very_many_changes_are_described_by_the_fields_on_the_top_level() {
    let array_of = |value: i32| {
        let mut array = RawArrayBuf::new();
        (0..20_000).for_each(|_| array.push(value));
        array
    };
    let old = rawdoc! {"_id": 1, "a": array_of(1), "b": {"c": 1, "d": 1}, "s": 1, "t": 1};
    let update = rawdoc! {"$inc": {"a.$[]": 1, "b.c": 1}, "$unset": {"s": 1}, "$set": {"u": 1}};
    let updated = updated(&old, &update).unwrap();
    let fields = rawdoc! {"a": array_of(2), "b": {"c": 2, "d": 1}, "u": 1};
    assert_eq!(
        changes_of(updated.delta),
        Some((updates(&fields), vec!["s".to_owned()], vec![]))
    );
    let new = rawdoc! {"_id": 1, "a": array_of(2), "b": {"c": 1, "d": 2}, "s": 1, "t": "x".repeat(1_000_000)};
    let with_text = rawdoc! {"_id": 1, "a": array_of(1), "b": {"c": 1, "d": 1}, "s": 1, "t": "x".repeat(1_000_000)};
    assert_eq!(
        changes_of(diff(&with_text, &new).unwrap()),
        Some((updates(&rawdoc! {"a": array_of(2), "b.d": 2}), vec![], vec![]))
    );
}
