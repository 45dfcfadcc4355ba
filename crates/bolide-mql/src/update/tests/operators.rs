use bson::{DateTime, Decimal128, RawBson, Timestamp, rawdoc};

use super::{NOW_MS, apply, check, updated};

#[test]
fn set_changes_fields_in_place_and_adds_new_ones_in_the_order_of_their_names() {
    check(
        rawdoc! {"_id": 1, "b": 1, "a": {"x": 1}},
        vec![
            (rawdoc! {"$set": {"a": 2}}, rawdoc! {"_id": 1, "b": 1, "a": 2}),
            (
                rawdoc! {"$set": {"z": 1, "c": 2, "10": 3, "9": 4}},
                rawdoc! {"_id": 1, "b": 1, "a": {"x": 1}, "9": 4, "10": 3, "c": 2, "z": 1},
            ),
            (
                rawdoc! {"$set": {"a.y.z": 1, "c.d": 2}},
                rawdoc! {"_id": 1, "b": 1, "a": {"x": 1, "y": {"z": 1}}, "c": {"d": 2}},
            ),
            (
                rawdoc! {"$set": {"n.0": 1}},
                rawdoc! {"_id": 1, "b": 1, "a": {"x": 1}, "n": {"0": 1}},
            ),
            (rawdoc! {"$set": {}}, rawdoc! {"_id": 1, "b": 1, "a": {"x": 1}}),
        ],
    );
}

#[test]
fn set_changes_and_adds_elements_of_arrays() {
    check(
        rawdoc! {"_id": 1, "a": [1, {"b": 2}]},
        vec![
            (rawdoc! {"$set": {"a.0": "x"}}, rawdoc! {"_id": 1, "a": ["x", {"b": 2}]}),
            (rawdoc! {"$set": {"a.1.b": 3}}, rawdoc! {"_id": 1, "a": [1, {"b": 3}]}),
            (
                rawdoc! {"$set": {"a.4": 5}},
                rawdoc! {"_id": 1, "a": [1, {"b": 2}, null, null, 5]},
            ),
            (
                rawdoc! {"$set": {"a.2.c": 5}},
                rawdoc! {"_id": 1, "a": [1, {"b": 2}, {"c": 5}]},
            ),
            (
                rawdoc! {"$set": {"a.10": 10, "a.2": 2}},
                rawdoc! {"_id": 1, "a": [1, {"b": 2}, 2, null, null, null, null, null, null, null, 10]},
            ),
        ],
    );
}

#[test]
fn unset_removes_fields_and_empties_elements() {
    check(
        rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": [1, {"e": 1}], "s": "x"},
        vec![
            (
                rawdoc! {"$unset": {"a.b": ""}},
                rawdoc! {"_id": 1, "a": {"c": 2}, "d": [1, {"e": 1}], "s": "x"},
            ),
            (
                rawdoc! {"$unset": {"d.0": "", "d.1.e": ""}},
                rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": [null, {}], "s": "x"},
            ),
            (
                rawdoc! {"$unset": {"a": 1, "s": 1, "d": 1, "none": 1}},
                rawdoc! {"_id": 1},
            ),
            (
                rawdoc! {"$unset": {"s.x": 1, "d.9": 1, "d.x": 1, "none.x": 1}},
                rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": [1, {"e": 1}], "s": "x"},
            ),
        ],
    );
}

#[test]
fn set_on_insert_leaves_stored_documents_alone() {
    check(
        rawdoc! {"_id": 1, "a": 1},
        vec![
            (
                rawdoc! {"$setOnInsert": {"a": 2, "b": 3, "a2.x": 1}},
                rawdoc! {"_id": 1, "a": 1},
            ),
            (
                rawdoc! {"$setOnInsert": {"a.b": 2}, "$set": {"c": 1}},
                rawdoc! {"_id": 1, "a": 1, "c": 1},
            ),
        ],
    );
}

#[test]
fn inc_and_mul_widen_types() {
    let decimal = |text: &str| RawBson::Decimal128(text.parse::<Decimal128>().unwrap());
    let cases: Vec<(RawBson, &str, RawBson, RawBson)> = vec![
        (1_i32.into(), "$inc", 2_i32.into(), 3_i32.into()),
        (1_i32.into(), "$inc", 2_i64.into(), 3_i64.into()),
        (1_i64.into(), "$inc", 2_i32.into(), 3_i64.into()),
        (1_i32.into(), "$inc", 0.5.into(), 1.5.into()),
        (1_i64.into(), "$inc", decimal("0.5"), decimal("1.5")),
        (i32::MAX.into(), "$inc", 1_i32.into(), 2_147_483_648_i64.into()),
        (i32::MIN.into(), "$inc", (-1_i32).into(), (-2_147_483_649_i64).into()),
        (3_i32.into(), "$mul", 4_i32.into(), 12_i32.into()),
        (65_536_i32.into(), "$mul", 65_536_i32.into(), 4_294_967_296_i64.into()),
        (3_i32.into(), "$mul", 0.5.into(), 1.5.into()),
        (2_i32.into(), "$mul", decimal("1.10"), decimal("2.20")),
    ];
    for (value, operator, argument, expected) in cases {
        let old = rawdoc! {"_id": 1, "a": value.clone()};
        let mut fields = rawdoc! {};
        fields.append(bson::raw::cstr!("a"), argument.clone());
        let update = bson::RawDocumentBuf::from_iter([(bson::raw::CString::try_from(operator).unwrap(), fields)]);
        let result = apply(&old, &update).unwrap();
        assert_eq!(
            result,
            rawdoc! {"_id": 1, "a": expected},
            "{value:?} {operator} {argument:?}"
        );
    }
}

#[test]
fn inc_and_mul_of_a_missing_field() {
    check(
        rawdoc! {"_id": 1},
        vec![
            (rawdoc! {"$inc": {"a": 5_i32}}, rawdoc! {"_id": 1, "a": 5_i32}),
            (rawdoc! {"$inc": {"a.b": 1.5}}, rawdoc! {"_id": 1, "a": {"b": 1.5}}),
            (rawdoc! {"$mul": {"a": 5_i32}}, rawdoc! {"_id": 1, "a": 0_i32}),
            (rawdoc! {"$mul": {"a": 5_i64}}, rawdoc! {"_id": 1, "a": 0_i64}),
            (rawdoc! {"$mul": {"a": 5.0}}, rawdoc! {"_id": 1, "a": 0.0}),
        ],
    );
}

#[test]
fn min_and_max_use_the_order_of_all_types() {
    check(
        rawdoc! {"_id": 1, "a": 5, "s": "x", "n": null},
        vec![
            (
                rawdoc! {"$min": {"a": 4}},
                rawdoc! {"_id": 1, "a": 4, "s": "x", "n": null},
            ),
            (
                rawdoc! {"$min": {"a": 6}},
                rawdoc! {"_id": 1, "a": 5, "s": "x", "n": null},
            ),
            (
                rawdoc! {"$max": {"a": 6.5}},
                rawdoc! {"_id": 1, "a": 6.5, "s": "x", "n": null},
            ),
            (
                rawdoc! {"$max": {"a": 5.0}},
                rawdoc! {"_id": 1, "a": 5, "s": "x", "n": null},
            ),
            (
                rawdoc! {"$max": {"a": "z"}},
                rawdoc! {"_id": 1, "a": "z", "s": "x", "n": null},
            ),
            (
                rawdoc! {"$min": {"s": 1}},
                rawdoc! {"_id": 1, "a": 5, "s": 1, "n": null},
            ),
            (
                rawdoc! {"$max": {"n": -1}},
                rawdoc! {"_id": 1, "a": 5, "s": "x", "n": -1},
            ),
            (
                rawdoc! {"$min": {"b": 1}, "$max": {"c": 2}},
                rawdoc! {"_id": 1, "a": 5, "s": "x", "n": null, "b": 1, "c": 2},
            ),
        ],
    );
}

#[test]
fn rename_moves_a_value() {
    check(
        rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": 3, "e": [1]},
        vec![
            (
                rawdoc! {"$rename": {"d": "f"}},
                rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "e": [1], "f": 3},
            ),
            (
                rawdoc! {"$rename": {"a.b": "g.h"}},
                rawdoc! {"_id": 1, "a": {"c": 2}, "d": 3, "e": [1], "g": {"h": 1}},
            ),
            (
                rawdoc! {"$rename": {"a.b": "d"}},
                rawdoc! {"_id": 1, "a": {"c": 2}, "d": 1, "e": [1]},
            ),
            (
                rawdoc! {"$rename": {"e": "d"}},
                rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": [1]},
            ),
            (
                rawdoc! {"$rename": {"none": "d", "a.none": "x", "e.7": "y"}},
                rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": 3, "e": [1]},
            ),
        ],
    );
}

#[test]
fn current_date_is_the_time_of_the_command() {
    let date = DateTime::from_millis(NOW_MS);
    let timestamp = Timestamp {
        time: 1_700_000_000,
        increment: 1,
    };
    check(
        rawdoc! {"_id": 1, "a": 5},
        vec![
            (rawdoc! {"$currentDate": {"a": true}}, rawdoc! {"_id": 1, "a": date}),
            (rawdoc! {"$currentDate": {"a": false}}, rawdoc! {"_id": 1, "a": date}),
            (
                rawdoc! {"$currentDate": {"a": {"$type": "date"}}},
                rawdoc! {"_id": 1, "a": date},
            ),
            (
                rawdoc! {"$currentDate": {"b.c": {"$type": "timestamp"}}},
                rawdoc! {"_id": 1, "a": 5, "b": {"c": timestamp}},
            ),
        ],
    );
}

#[test]
fn add_to_set_adds_what_is_not_there() {
    check(
        rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}]},
        vec![
            (
                rawdoc! {"$addToSet": {"a": 1.0}},
                rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}]},
            ),
            (
                rawdoc! {"$addToSet": {"a": {"b": 1}}},
                rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}]},
            ),
            (
                rawdoc! {"$addToSet": {"a": 2}},
                rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}, 2]},
            ),
            (
                rawdoc! {"$addToSet": {"a": [2, 3]}},
                rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}, [2, 3]]},
            ),
            (
                rawdoc! {"$addToSet": {"a": {"$each": [2, "x", 2, 3, 2.0]}}},
                rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}, 2, 3]},
            ),
            (
                rawdoc! {"$addToSet": {"n": {"$each": [1, 1]}, "m": {"$each": []}, "o": {"$each": [7]}}},
                rawdoc! {"_id": 1, "a": [1, "x", {"b": 1}], "m": [], "n": [1], "o": [7]},
            ),
        ],
    );
}

#[test]
fn pop_removes_one_end() {
    check(
        rawdoc! {"_id": 1, "a": [1, 2, 3], "e": []},
        vec![
            (rawdoc! {"$pop": {"a": 1}}, rawdoc! {"_id": 1, "a": [1, 2], "e": []}),
            (rawdoc! {"$pop": {"a": -1.0}}, rawdoc! {"_id": 1, "a": [2, 3], "e": []}),
            (
                rawdoc! {"$pop": {"e": 1, "none": 1, "a.7.x": 1}},
                rawdoc! {"_id": 1, "a": [1, 2, 3], "e": []},
            ),
        ],
    );
}

#[test]
fn pull_removes_elements_that_match() {
    let old =
        rawdoc! {"_id": 1, "a": [1, 5, "x", [6], 8], "d": [{"s": 8, "t": "A"}, {"s": 5, "t": "B"}, 8], "n": [null, 1]};
    let cases = vec![
        (rawdoc! {"a": 5.0}, rawdoc! {"a": [1, "x", [6], 8]}),
        (rawdoc! {"a": {"$gte": 5}}, rawdoc! {"a": [1, "x"]}),
        (rawdoc! {"a": {"$in": [1, "x"]}}, rawdoc! {"a": [5, [6], 8]}),
        (rawdoc! {"a": [6]}, rawdoc! {"a": [1, 5, "x", 8]}),
        (rawdoc! {"a": {"$gt": 1, "$lt": 6}}, rawdoc! {"a": [1, "x", [6], 8]}),
        (rawdoc! {"d": {"s": 8}}, rawdoc! {"d": [{"s": 5, "t": "B"}, 8]}),
        (
            rawdoc! {"d": {"s": {"$lt": 6}, "t": "B"}},
            rawdoc! {"d": [{"s": 8, "t": "A"}, 8]},
        ),
        (rawdoc! {"d": {"$or": [{"s": 5}, {"t": "A"}]}}, rawdoc! {"d": [8]}),
        (rawdoc! {"n": null}, rawdoc! {"n": [1]}),
        (rawdoc! {"none": 1, "n.7.x": 1}, rawdoc! {}),
    ];
    for (pull, changed) in cases {
        let mut expected = bson::RawDocumentBuf::new();
        for field in &old {
            let (name, value) = field.unwrap();
            expected.append(name, changed.get(name.as_str()).unwrap().unwrap_or(value));
        }
        let mut update = bson::RawDocumentBuf::new();
        update.append(bson::raw::cstr!("$pull"), pull);
        assert_eq!(apply(&old, &update).unwrap(), expected, "{update:?}");
    }
}

#[test]
fn pull_all_removes_equal_values() {
    check(
        rawdoc! {"_id": 1, "a": [1, 2.0, "x", 1, {"b": 1, "c": 2}]},
        vec![
            (
                rawdoc! {"$pullAll": {"a": [1.0, 2, {"c": 2, "b": 1}]}},
                rawdoc! {"_id": 1, "a": ["x", {"b": 1, "c": 2}]},
            ),
            (
                rawdoc! {"$pullAll": {"a": [], "none": [1]}},
                rawdoc! {"_id": 1, "a": [1, 2.0, "x", 1, {"b": 1, "c": 2}]},
            ),
        ],
    );
}

#[test]
fn bit_keeps_narrow_integers_narrow() {
    check(
        rawdoc! {"_id": 1, "a": 13_i32, "l": 13_i64},
        vec![
            (
                rawdoc! {"$bit": {"a": {"and": 10_i32}}},
                rawdoc! {"_id": 1, "a": 8_i32, "l": 13_i64},
            ),
            (
                rawdoc! {"$bit": {"a": {"or": 2_i64}}},
                rawdoc! {"_id": 1, "a": 15_i64, "l": 13_i64},
            ),
            (
                rawdoc! {"$bit": {"l": {"xor": 1_i32, "or": 16_i32}}},
                rawdoc! {"_id": 1, "a": 13_i32, "l": 28_i64},
            ),
            (
                rawdoc! {"$bit": {"n": {"or": 5_i32}}},
                rawdoc! {"_id": 1, "a": 13_i32, "l": 13_i64, "n": 5_i32},
            ),
        ],
    );
}

#[test]
fn changed_tells_whether_stored_bytes_differ() {
    let cases = vec![
        (rawdoc! {"$set": {"a": 1}}, false),
        (rawdoc! {"$set": {"a": 1.0}}, true),
        (rawdoc! {"$set": {"z": 0.0}}, true),
        (rawdoc! {"$set": {"z": -0.0}}, false),
        (rawdoc! {"$set": {"n": f64::NAN}}, false),
        (rawdoc! {"$inc": {"a": 0}}, false),
        (rawdoc! {"$push": {"l": {"$each": []}}}, false),
        (rawdoc! {"$set": {"_id": 1}}, false),
        (rawdoc! {"_id": 1, "a": 1, "z": -0.0, "n": f64::NAN, "l": [1]}, false),
        (rawdoc! {"a": 1, "n": f64::NAN, "z": -0.0, "l": [1]}, true),
    ];
    let old = rawdoc! {"_id": 1, "a": 1, "z": -0.0, "n": f64::NAN, "l": [1]};
    for (update, changed) in cases {
        assert_eq!(updated(&old, &update).unwrap().changed, changed, "{update:?}");
    }
}

/// MongoDB compares the result with what is there, and -0.0 is equal to 0.0.
#[test]
fn inc_and_mul_keep_the_sign_of_a_zero() {
    let sign = |update| {
        let document = apply(&rawdoc! {"_id": 1, "a": -0.0}, &update).expect("valid");
        document.get_f64("a").expect("a double").is_sign_negative()
    };
    assert!(sign(rawdoc! {"$inc": {"a": 0.0}}));
    assert!(sign(rawdoc! {"$mul": {"a": -1.0}}));
    // An equal number of another type is a change.
    check(
        rawdoc! {"_id": 1, "a": 2},
        vec![(rawdoc! {"$mul": {"a": 1.0}}, rawdoc! {"_id": 1, "a": 2.0})],
    );
}
