//! `$group`, `$bucket`, `$bucketAuto` and the accumulators.

use super::{check, check_error, run};

#[test]
fn groups_are_by_value_and_in_the_order_of_their_first_documents() {
    check(
        r#"[{"$group": {"_id": "$a", "n": {"$sum": 1}}}]"#,
        r#"[{"a": 1}, {"a": "x"}, {"a": 1.0}, {}, {"a": null}, {"a": {"$numberDecimal": "1"}}, {"a": [1]}]"#,
        r#"[{"_id": 1, "n": 3}, {"_id": "x", "n": 1}, {"_id": null, "n": 2}, {"_id": [1], "n": 1}]"#,
    );
    check(
        r#"[{"$group": {"_id": {"x": "$a", "y": "$b"}}}]"#,
        r#"[{"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}]"#,
        r#"[{"_id": {"x": 1, "y": 2}}, {"_id": {"x": 1}}]"#,
    );
    check(r#"[{"$group": {"_id": null, "n": {"$sum": 1}}}]"#, "[]", "[]");
}

/// Checks one accumulator over all documents.
fn check_accumulator(accumulator: &str, input: &str, expected: &str) {
    let pipeline = format!(r#"[{{"$group": {{"_id": 0, "r": {accumulator}}}}}]"#);
    check(&pipeline, input, &format!(r#"[{{"_id": 0, "r": {expected}}}]"#));
}

#[test]
fn sums_and_averages_keep_types() {
    let cases = [
        (r#"{"$sum": "$a"}"#, r#"[{"a": 1}, {"a": 2}]"#, "3"),
        (r#"{"$sum": "$a"}"#, r#"[{"a": 1}, {"a": 2.5}, {"a": "x"}, {}]"#, "3.5"),
        (
            r#"{"$sum": "$a"}"#,
            r#"[{"a": 2147483647}, {"a": 1}]"#,
            r#"{"$numberLong": "2147483648"}"#,
        ),
        (
            r#"{"$sum": "$a"}"#,
            r#"[{"a": {"$numberLong": "1"}}, {"a": 1}]"#,
            r#"{"$numberLong": "2"}"#,
        ),
        (
            r#"{"$sum": "$a"}"#,
            r#"[{"a": 9223372036854775807}, {"a": 1}]"#,
            "9223372036854775808.0",
        ),
        (
            r#"{"$sum": "$a"}"#,
            r#"[{"a": {"$numberDecimal": "1.10"}}, {"a": 1}]"#,
            r#"{"$numberDecimal": "2.10"}"#,
        ),
        (r#"{"$sum": "$a"}"#, r#"[{"a": "x"}]"#, "0"),
        (r#"{"$sum": "$a"}"#, r#"[{"a": [1, 2]}]"#, "0"),
        (r#"{"$avg": "$a"}"#, r#"[{"a": 1}, {"a": 2}]"#, "1.5"),
        (r#"{"$avg": "$a"}"#, r#"[{"a": 4}, {"a": null}, {"a": "x"}]"#, "4.0"),
        (r#"{"$avg": "$a"}"#, r#"[{"a": "x"}]"#, "null"),
        (r#"{"$count": {}}"#, r#"[{}, {}]"#, "2"),
        (
            r#"{"$stdDevPop": "$a"}"#,
            r#"[{"a": 2}, {"a": 4}, {"a": 4}, {"a": 4}, {"a": 5}, {"a": 5}, {"a": 7}, {"a": 9}]"#,
            "2.0",
        ),
        (
            r#"{"$stdDevSamp": "$a"}"#,
            r#"[{"a": 1}, {"a": 3}, {"a": "x"}]"#,
            "1.4142135623730951",
        ),
        (r#"{"$stdDevSamp": "$a"}"#, r#"[{"a": 1}]"#, "null"),
        (r#"{"$stdDevPop": "$a"}"#, r#"[{"a": 1}]"#, "0.0"),
    ];
    for (accumulator, input, expected) in cases {
        check_accumulator(accumulator, input, expected);
    }
}

#[test]
fn values_by_position_and_order() {
    let input = r#"[{"a": 3, "s": 2}, {"s": 1, "a": null}, {"a": 1, "s": 3}, {"s": 1}, {"a": 3.0, "s": 0}]"#;
    let cases = [
        (r#"{"$first": "$a"}"#, "3"),
        (r#"{"$last": "$s"}"#, "0"),
        (r#"{"$last": "$missing"}"#, "null"),
        (r#"{"$min": "$a"}"#, "1"),
        (r#"{"$max": "$a"}"#, "3"),
        (r#"{"$max": "$missing"}"#, "null"),
        (r#"{"$push": "$a"}"#, "[3, null, 1, 3.0]"),
        (r#"{"$addToSet": "$a"}"#, "[3, null, 1]"),
        (r#"{"$firstN": {"input": "$a", "n": 2}}"#, "[3, null]"),
        (r#"{"$lastN": {"input": "$a", "n": 2}}"#, "[null, 3.0]"),
        (r#"{"$lastN": {"input": "$a", "n": 9}}"#, "[3, null, 1, null, 3.0]"),
        (r#"{"$minN": {"input": "$a", "n": 2}}"#, "[1, 3]"),
        (r#"{"$maxN": {"input": "$a", "n": 2}}"#, "[3, 3.0]"),
        (r#"{"$top": {"sortBy": {"s": 1}, "output": "$a"}}"#, "3.0"),
        (r#"{"$bottom": {"sortBy": {"s": 1}, "output": ["$a", "$s"]}}"#, "[1, 3]"),
        (
            r#"{"$topN": {"sortBy": {"s": -1}, "output": "$s", "n": 3}}"#,
            "[3, 2, 1]",
        ),
        (
            r#"{"$bottomN": {"sortBy": {"s": -1}, "output": "$s", "n": 2}}"#,
            "[1, 0]",
        ),
        (r#"{"$median": {"input": "$s", "method": "approximate"}}"#, "1.0"),
        (
            r#"{"$percentile": {"input": "$s", "p": [0, 0.5, 1], "method": "approximate"}}"#,
            "[0.0, 1.0, 3.0]",
        ),
        (
            r#"{"$percentile": {"input": "$missing", "p": [0.5], "method": "approximate"}}"#,
            "[null]",
        ),
    ];
    for (accumulator, expected) in cases {
        check_accumulator(accumulator, input, expected);
    }
}

#[test]
fn merged_objects_and_a_count_from_the_group() {
    check_accumulator(
        r#"{"$mergeObjects": "$a"}"#,
        r#"[{"a": {"x": 1, "y": 2}}, {"a": null}, {}, {"a": {"z": 3, "x": 4}}]"#,
        r#"{"x": 4, "y": 2, "z": 3}"#,
    );
    check_error(
        r#"[{"$group": {"_id": 0, "r": {"$mergeObjects": "$a"}}}]"#,
        r#"[{"a": 1}]"#,
        40400,
    );
    check(
        r#"[{"$group": {"_id": {"g": "$g"}, "r": {"$firstN": {"input": "$a", "n": {"$cond": [{"$eq": ["$g", 1]}, 1, 3]}}}}}]"#,
        r#"[{"g": 1, "a": 1}, {"g": 1, "a": 2}, {"g": 2, "a": 3}, {"g": 2, "a": 4}]"#,
        r#"[{"_id": {"g": 1}, "r": [1]}, {"_id": {"g": 2}, "r": [3, 4]}]"#,
    );
}

#[test]
fn bad_groups_have_the_codes_of_mongodb() {
    let cases = [
        (r#"1"#, 15947),
        (r#"{}"#, 15955),
        (r#"{"n": {"$sum": 1}}"#, 15955),
        (r#"{"_id": 1, "a.b": {"$sum": 1}}"#, 40235),
        (r#"{"_id": 1, "$a": {"$sum": 1}}"#, 40236),
        (r#"{"_id": 1, "a": 1}"#, 40234),
        (r#"{"_id": 1, "a": {}}"#, 40234),
        (r#"{"_id": 1, "a": {"sum": 1}}"#, 40234),
        (r#"{"_id": 1, "a": {"$sum": 1, "$avg": 1}}"#, 40238),
        (r#"{"_id": 1, "a": {"$foo": 1}}"#, 15952),
        (r#"{"_id": 1, "a": {"$sum": ["$a"]}}"#, 40237),
        (r#"{"_id": 1, "a": {"$count": 1}}"#, 14),
        (r#"{"_id": 1, "a": {"$firstN": 1}}"#, 5787900),
        (r#"{"_id": 1, "a": {"$firstN": {"n": 1, "x": 1}}}"#, 5787901),
        (r#"{"_id": 1, "a": {"$firstN": {"input": 1}}}"#, 5787906),
        (r#"{"_id": 1, "a": {"$firstN": {"n": 1}}}"#, 5787907),
        (r#"{"_id": 1, "a": {"$firstN": {"n": "x", "input": 1}}}"#, 5787902),
        (r#"{"_id": 1, "a": {"$firstN": {"n": 1.5, "input": 1}}}"#, 5787903),
        (r#"{"_id": 1, "a": {"$firstN": {"n": 0, "input": 1}}}"#, 5787908),
        (r#"{"_id": 1, "a": {"$topN": {"n": 1, "output": 1}}}"#, 5788005),
        (r#"{"_id": 1, "a": {"$accumulator": {}}}"#, 238),
        (r#"{"_id": 1, "a": {"$median": {"input": 1, "method": "exact"}}}"#, 2),
        (r#"{"_id": "$$x"}"#, 17276),
    ];
    for (spec, code) in cases {
        check_error(&format!(r#"[{{"$group": {spec}}}]"#), r#"[{"a": 1}]"#, code);
    }
}

#[test]
fn buckets() {
    let input = r#"[{"a": 1}, {"a": 5}, {"a": 10}, {"a": 4.5}, {"a": 19}, {"a": 20}, {"a": "x"}, {}]"#;
    check(
        r#"[{"$bucket": {"groupBy": "$a", "boundaries": [0, 5, 10, 20], "default": "other"}}]"#,
        input,
        r#"[{"_id": 0, "count": 2}, {"_id": 5, "count": 1}, {"_id": 10, "count": 2}, {"_id": "other", "count": 3}]"#,
    );
    check(
        r#"[{"$bucket": {"groupBy": "$a", "boundaries": [0, 100], "output": {"all": {"$push": "$a"}}}}]"#,
        r#"[{"a": 1}, {"a": 99}]"#,
        r#"[{"_id": 0, "all": [1, 99]}]"#,
    );
    let cases = [
        (r#"1"#, 40201),
        (r#"{"groupBy": "$a"}"#, 40198),
        (r#"{"groupBy": "$a", "boundaries": [0, 1], "x": 1}"#, 40197),
        (r#"{"groupBy": "a", "boundaries": [0, 1]}"#, 40202),
        (r#"{"groupBy": "$a", "boundaries": 1}"#, 40200),
        (r#"{"groupBy": "$a", "boundaries": [1]}"#, 40192),
        (r#"{"groupBy": "$a", "boundaries": ["$b", 1]}"#, 40191),
        (r#"{"groupBy": "$a", "boundaries": [1, "x"]}"#, 40193),
        (r#"{"groupBy": "$a", "boundaries": [1, 1]}"#, 40194),
        (r#"{"groupBy": "$a", "boundaries": [0, 1], "default": "$a"}"#, 40195),
        (r#"{"groupBy": "$a", "boundaries": [0, 1], "output": 1}"#, 40196),
        (r#"{"groupBy": "$a", "boundaries": [0, 1], "default": 0.5}"#, 40199),
        (r#"{"groupBy": "$a", "boundaries": [0, 1]}"#, 40066),
    ];
    for (spec, code) in cases {
        check_error(&format!(r#"[{{"$bucket": {spec}}}]"#), r#"[{"a": 7}]"#, code);
    }
}

#[test]
fn automatic_buckets() {
    let numbers = |numbers: &[i32]| {
        let documents: Vec<String> = numbers.iter().map(|number| format!(r#"{{"a": {number}}}"#)).collect();
        format!("[{}]", documents.join(","))
    };
    let ten = numbers(&[7, 3, 1, 9, 5, 2, 8, 4, 6, 10]);
    check(
        r#"[{"$bucketAuto": {"groupBy": "$a", "buckets": 3}}]"#,
        &ten,
        r#"[{"_id": {"min": 1, "max": 4}, "count": 3}, {"_id": {"min": 4, "max": 7}, "count": 3}, {"_id": {"min": 7, "max": 10}, "count": 4}]"#,
    );
    check(
        r#"[{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}]"#,
        &numbers(&[1, 1, 1, 1, 2]),
        r#"[{"_id": {"min": 1, "max": 2}, "count": 4}, {"_id": {"min": 2, "max": 2}, "count": 1}]"#,
    );
    check(
        r#"[{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "output": {"all": {"$push": "$a"}}, "granularity": "POWERSOF2"}}]"#,
        &numbers(&[1, 2, 3, 5, 9]),
        r#"[{"_id": {"min": 0.5, "max": 4}, "all": [1, 2, 3]}, {"_id": {"min": 4, "max": 16}, "all": [5, 9]}]"#,
    );
    check(
        r#"[{"$bucketAuto": {"groupBy": "$a", "buckets": 2, "granularity": "R5"}}]"#,
        &numbers(&[12, 14, 30, 70]),
        r#"[{"_id": {"min": 10.0, "max": 16.0}, "count": 2}, {"_id": {"min": 16.0, "max": 100.0}, "count": 2}]"#,
    );
    assert_eq!(
        run(r#"[{"$bucketAuto": {"groupBy": "$a", "buckets": 20}}]"#, &ten)
            .unwrap()
            .len(),
        10
    );
    check(r#"[{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}]"#, "[]", "[]");
    let cases = [
        (r#"1"#, 40240),
        (r#"{"groupBy": "$a"}"#, 40246),
        (r#"{"groupBy": "a", "buckets": 1}"#, 40239),
        (r#"{"groupBy": "$a", "buckets": "x"}"#, 40241),
        (r#"{"groupBy": "$a", "buckets": 1.5}"#, 40242),
        (r#"{"groupBy": "$a", "buckets": 0}"#, 40243),
        (r#"{"groupBy": "$a", "buckets": 1, "output": 1}"#, 40244),
        (r#"{"groupBy": "$a", "buckets": 1, "x": 1}"#, 40245),
        (r#"{"groupBy": "$a", "buckets": 1, "granularity": 1}"#, 40261),
        (r#"{"groupBy": "$a", "buckets": 1, "granularity": "x"}"#, 40257),
        (r#"{"groupBy": "$s", "buckets": 1, "granularity": "R5"}"#, 40258),
        (r#"{"groupBy": "$n", "buckets": 1, "granularity": "R5"}"#, 40260),
    ];
    for (spec, code) in cases {
        check_error(
            &format!(r#"[{{"$bucketAuto": {spec}}}]"#),
            r#"[{"a": 7, "s": "x", "n": -1}]"#,
            code,
        );
    }
}
