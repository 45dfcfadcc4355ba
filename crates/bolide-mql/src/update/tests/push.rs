use bson::rawdoc;

use super::check;

#[test]
fn push_appends() {
    check(
        rawdoc! {"_id": 1, "a": [1]},
        vec![
            (rawdoc! {"$push": {"a": 2}}, rawdoc! {"_id": 1, "a": [1, 2]}),
            (rawdoc! {"$push": {"a": [2]}}, rawdoc! {"_id": 1, "a": [1, [2]]}),
            (
                rawdoc! {"$push": {"a": {"$each": [2, 3]}}},
                rawdoc! {"_id": 1, "a": [1, 2, 3]},
            ),
            (rawdoc! {"$push": {"b": 1}}, rawdoc! {"_id": 1, "a": [1], "b": [1]}),
            (
                rawdoc! {"$push": {"b.c": {"$each": []}}},
                rawdoc! {"_id": 1, "a": [1], "b": {"c": []}},
            ),
            (
                rawdoc! {"$push": {"a": {"$slice": 1}}},
                rawdoc! {"_id": 1, "a": [1, {"$slice": 1}]},
            ),
        ],
    );
}

#[test]
fn position_counts_from_both_ends() {
    let cases = [
        (0, [9, 1, 2, 3]),
        (1, [1, 9, 2, 3]),
        (7, [1, 2, 3, 9]),
        (-1, [1, 2, 9, 3]),
        (-7, [9, 1, 2, 3]),
    ];
    for (position, [a, b, c, d]) in cases {
        check(
            rawdoc! {"_id": 1, "a": [1, 2, 3]},
            vec![(
                rawdoc! {"$push": {"a": {"$each": [9], "$position": position}}},
                rawdoc! {"_id": 1, "a": [a, b, c, d]},
            )],
        );
    }
}

#[test]
fn slice_keeps_the_first_or_last_elements() {
    check(
        rawdoc! {"_id": 1, "a": [1, 2, 3]},
        vec![
            (
                rawdoc! {"$push": {"a": {"$each": [4], "$slice": 2}}},
                rawdoc! {"_id": 1, "a": [1, 2]},
            ),
            (
                rawdoc! {"$push": {"a": {"$each": [4], "$slice": -2}}},
                rawdoc! {"_id": 1, "a": [3, 4]},
            ),
            (
                rawdoc! {"$push": {"a": {"$each": [4], "$slice": 0}}},
                rawdoc! {"_id": 1, "a": []},
            ),
            (
                rawdoc! {"$push": {"a": {"$each": [4], "$slice": -9}}},
                rawdoc! {"_id": 1, "a": [1, 2, 3, 4]},
            ),
            (
                rawdoc! {"$push": {"n": {"$each": [4, 5, 6], "$slice": -2}}},
                rawdoc! {"_id": 1, "a": [1, 2, 3], "n": [5, 6]},
            ),
        ],
    );
}

#[test]
fn sort_is_after_position_and_before_slice() {
    check(
        rawdoc! {"_id": 1, "a": [3, 1], "d": [{"n": 2, "m": {"k": 1}}, {"n": 1, "m": {"k": 2}}, 5]},
        vec![
            (
                rawdoc! {"$push": {"a": {"$each": [2], "$sort": 1, "$position": 0, "$slice": 2}}},
                rawdoc! {"_id": 1, "a": [1, 2], "d": [{"n": 2, "m": {"k": 1}}, {"n": 1, "m": {"k": 2}}, 5]},
            ),
            (
                rawdoc! {"$push": {"a": {"$each": ["x", null], "$sort": -1}}},
                rawdoc! {"_id": 1, "a": ["x", 3, 1, null], "d": [{"n": 2, "m": {"k": 1}}, {"n": 1, "m": {"k": 2}}, 5]},
            ),
            (
                rawdoc! {"$push": {"d": {"$each": [{"n": 1, "m": {"k": 1}}], "$sort": {"n": 1, "m.k": -1}}}},
                rawdoc! {"_id": 1, "a": [3, 1], "d": [5, {"n": 1, "m": {"k": 2}}, {"n": 1, "m": {"k": 1}}, {"n": 2, "m": {"k": 1}}]},
            ),
        ],
    );
}
