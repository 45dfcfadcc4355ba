//! `$setWindowFields`

use super::{check, check_error};

/// Checks one function over documents that are sorted by `t`; `expected` are the values of `r`.
fn check_function(function: &str, input: &str, expected: &str) {
    let pipeline = format!(
        r#"[{{"$setWindowFields": {{"sortBy": {{"t": 1}}, "output": {{"r": {function}}}}}}},
            {{"$group": {{"_id": 0, "r": {{"$push": {{"$ifNull": ["$r", null]}}}}}}}}]"#
    );
    check(&pipeline, input, &format!(r#"[{{"_id": 0, "r": {expected}}}]"#));
}

const INPUT: &str = r#"[{"t": 1, "a": 4}, {"t": 2, "a": 1}, {"t": 2, "a": 3}, {"t": 5, "a": 2}]"#;

#[test]
fn accumulators_over_documents() {
    let cases = [
        (r#"{"$sum": "$a"}"#, "[10, 10, 10, 10]"),
        (
            r#"{"$sum": "$a", "window": {"documents": ["unbounded", "current"]}}"#,
            "[4, 5, 8, 10]",
        ),
        (
            r#"{"$sum": "$a", "window": {"documents": ["current", "unbounded"]}}"#,
            "[10, 6, 5, 2]",
        ),
        (r#"{"$sum": "$a", "window": {"documents": [-1, 1]}}"#, "[5, 8, 6, 5]"),
        (r#"{"$sum": "$a", "window": {"documents": [1, 2]}}"#, "[4, 5, 2, 0]"),
        (r#"{"$sum": "$a", "window": {"documents": [-2, -1]}}"#, "[0, 4, 5, 4]"),
        (
            r#"{"$avg": "$a", "window": {"documents": [-9, -2]}}"#,
            "[null, null, 4.0, 2.5]",
        ),
        (
            r#"{"$push": "$a", "window": {"documents": [0, 1]}}"#,
            "[[4, 1], [1, 3], [3, 2], [2]]",
        ),
        (r#"{"$max": "$a", "window": {"documents": [-1, 0]}}"#, "[4, 4, 3, 3]"),
        (r#"{"$first": "$a", "window": {"documents": [-1, 0]}}"#, "[4, 4, 1, 3]"),
        (
            r#"{"$count": {}, "window": {"documents": ["unbounded", 0]}}"#,
            "[1, 2, 3, 4]",
        ),
        (
            r#"{"$minN": {"input": "$a", "n": 2}}"#,
            "[[1, 2], [1, 2], [1, 2], [1, 2]]",
        ),
    ];
    for (function, expected) in cases {
        check_function(function, INPUT, expected);
    }
}

#[test]
fn accumulators_over_ranges() {
    let cases = [
        (r#"{"$sum": "$a", "window": {"range": [-1, 0]}}"#, "[4, 8, 8, 2]"),
        (
            r#"{"$sum": "$a", "window": {"range": ["current", "current"]}}"#,
            "[4, 4, 4, 2]",
        ),
        (
            r#"{"$sum": "$a", "window": {"range": ["unbounded", "current"]}}"#,
            "[4, 8, 8, 10]",
        ),
        (r#"{"$sum": "$a", "window": {"range": [0.5, 3]}}"#, "[4, 2, 2, 0]"),
    ];
    for (function, expected) in cases {
        check_function(function, INPUT, expected);
    }
    // An hour is 3,600,000 ms.
    let dates =
        r#"[{"t": {"$date": 0}, "a": 1}, {"t": {"$date": 3600000}, "a": 2}, {"t": {"$date": 10800000}, "a": 4}]"#;
    check_function(
        r#"{"$sum": "$a", "window": {"range": [-1, 0], "unit": "hour"}}"#,
        dates,
        "[1, 3, 4]",
    );
    check_function(
        r#"{"$sum": "$a", "window": {"range": [-1, 0], "unit": "year"}}"#,
        dates,
        "[1, 3, 7]",
    );
}

#[test]
fn ranks_and_positions() {
    let cases = [
        (r#"{"$rank": {}}"#, "[1, 2, 2, 4]"),
        (r#"{"$denseRank": {}}"#, "[1, 2, 2, 3]"),
        (r#"{"$documentNumber": {}}"#, "[1, 2, 3, 4]"),
        (r#"{"$shift": {"output": "$a", "by": 1}}"#, "[1, 3, 2, null]"),
        (
            r#"{"$shift": {"output": "$a", "by": -2, "default": "none"}}"#,
            r#"["none", "none", 4, 1]"#,
        ),
        (
            r#"{"$locf": {"$cond": [{"$gt": ["$a", 2]}, "$a", null]}}"#,
            "[4, 4, 3, 3]",
        ),
    ];
    for (function, expected) in cases {
        check_function(function, INPUT, expected);
    }
}

#[test]
fn numbers_along_the_axis() {
    let input = r#"[{"t": 0, "a": 1, "b": 2}, {"t": 2, "a": 5, "b": 5}, {"t": 4, "a": 3, "b": 8}]"#;
    let cases = [
        (
            r#"{"$derivative": {"input": "$a"}, "window": {"documents": [-1, 0]}}"#,
            "[null, 2.0, -1.0]",
        ),
        (
            r#"{"$integral": {"input": "$a"}, "window": {"documents": ["unbounded", "current"]}}"#,
            "[0, 6.0, 14.0]",
        ),
        (r#"{"$expMovingAvg": {"input": "$a", "N": 3}}"#, "[1.0, 3.0, 3.0]"),
        (
            r#"{"$expMovingAvg": {"input": "$a", "alpha": 0.75}}"#,
            "[1.0, 4.0, 3.25]",
        ),
        (
            r#"{"$covariancePop": ["$a", "$b"], "window": {"documents": ["unbounded", "current"]}}"#,
            "[0.0, 3.0, 2.0]",
        ),
        (
            r#"{"$covarianceSamp": ["$a", "$b"], "window": {"documents": ["unbounded", "current"]}}"#,
            "[null, 6.0, 3.0]",
        ),
    ];
    for (function, expected) in cases {
        check_function(function, input, expected);
    }
    let dates = r#"[{"t": {"$date": 0}, "a": 1}, {"t": {"$date": 7200000}, "a": 5}]"#;
    check_function(
        r#"{"$derivative": {"input": "$a", "unit": "hour"}, "window": {"documents": [-1, 0]}}"#,
        dates,
        "[null, 2.0]",
    );
    check_function(r#"{"$integral": {"input": "$a", "unit": "hour"}}"#, dates, "[6.0, 6.0]");
}

#[test]
fn partitions_and_fields() {
    check(
        r#"[{"$setWindowFields": {"partitionBy": "$p", "sortBy": {"t": -1}, "output": {"x.n": {"$documentNumber": {}}, "sum": {"$sum": "$t"}}}}]"#,
        r#"[{"p": 2, "t": 1}, {"p": 1, "t": 5}, {"p": 2, "t": 3, "x": {"y": 0}}, {"t": 9}, {"p": null, "t": 8}]"#,
        r#"[{"t": 9, "x": {"n": 1}, "sum": 17}, {"p": null, "t": 8, "x": {"n": 2}, "sum": 17}, {"p": 1, "t": 5, "x": {"n": 1}, "sum": 5},
            {"p": 2, "t": 3, "x": {"y": 0, "n": 1}, "sum": 4}, {"p": 2, "t": 1, "x": {"n": 2}, "sum": 4}]"#,
    );
    check(
        r#"[{"$setWindowFields": {"output": {"n": {"$sum": 1}}}}]"#,
        r#"[{"_id": 2}, {"_id": 1}]"#,
        r#"[{"_id": 2, "n": 2}, {"_id": 1, "n": 2}]"#,
    );
}

#[test]
fn bad_windows() {
    let cases = [
        (r#"1"#, 9),
        (r#"{"sortBy": {"t": 1}}"#, 40414),
        (r#"{"output": {"r": 1}}"#, 9),
        (r#"{"output": {"r": {}}}"#, 9),
        (r#"{"output": {"r": {"$foo": 1}}}"#, 9),
        (r#"{"output": {"r": {"$mergeObjects": "$a"}}}"#, 9),
        (r#"{"output": {"r": {"$sum": 1, "$avg": 1}}}"#, 9),
        (r#"{"output": {"r": {"$sum": 1, "window": 1}}}"#, 9),
        (
            r#"{"output": {"r": {"$sum": 1, "window": {"documents": [0, 1]}}}}"#,
            5_339_901,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$sum": 1, "window": {"documents": [1, 0]}}}}"#,
            5_339_900,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$sum": 1, "window": {"documents": [0.5, 1]}}}}"#,
            9,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$sum": 1, "window": {"documents": ["x", 1]}}}}"#,
            9,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$sum": 1, "window": {"documents": [0]}}}}"#,
            9,
        ),
        (
            r#"{"sortBy": {"t": -1}, "output": {"r": {"$sum": 1, "window": {"range": [0, 1]}}}}"#,
            5_339_902,
        ),
        (
            r#"{"sortBy": {"s": 1}, "output": {"r": {"$sum": 1, "window": {"range": [0, 1]}}}}"#,
            5_429_414,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$sum": 1, "window": {"range": [0, 1], "unit": "day"}}}}"#,
            5_429_513,
        ),
        (r#"{"output": {"r": {"$rank": {}}}}"#, 5_371_602),
        (
            r#"{"sortBy": {"t": 1, "u": 1}, "output": {"r": {"$rank": {}}}}"#,
            5_371_602,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$rank": {"x": 1}}}}"#,
            5_371_603,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$rank": {}, "window": {}}}}"#,
            5_371_601,
        ),
        (r#"{"output": {"r": {"$shift": {"output": 1, "by": 1}}}}"#, 9),
        (r#"{"sortBy": {"t": 1}, "output": {"r": {"$shift": {"output": 1}}}}"#, 9),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$expMovingAvg": {"input": 1, "N": 0}}}}"#,
            9,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$expMovingAvg": {"input": 1, "alpha": 1}}}}"#,
            9,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$derivative": {"input": "$t", "unit": "day"}, "window": {"documents": [-1, 0]}}}}"#,
            5_624_900,
        ),
        (
            r#"{"sortBy": {"s": 1}, "output": {"r": {"$integral": {"input": "$t"}}}}"#,
            5_423_902,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$derivative": {"input": "$s"}, "window": {"documents": [-1, 0]}}}}"#,
            14,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$derivative": {"input": 1}}}}"#,
            9,
        ),
        (
            r#"{"sortBy": {"t": 1}, "output": {"r": {"$covariancePop": ["$a"]}}}"#,
            9,
        ),
        (r#"{"output": {"r.x": {"$sum": 1}, "r": {"$sum": 1}}}"#, 6_307_900),
        (r#"{"output": {"r.x.y": {"$sum": 1}, "r.x": {"$sum": 1}}}"#, 6_307_900),
        (r#"{"output": {"r": {"$sum": 1}, "r.x": {"$sum": 1}}}"#, 6_307_900),
        (r#"{"partitionBy": [1], "output": {"r": {"$sum": 1}}}"#, 14),
    ];
    for (spec, code) in cases {
        check_error(
            &format!(r#"[{{"$setWindowFields": {spec}}}]"#),
            r#"[{"t": 1, "s": "x"}]"#,
            code,
        );
    }
}

#[test]
fn a_slope_needs_numbers_at_both_ends() {
    let pipeline = r#"[{"$setWindowFields": {"sortBy": {"t": 1}, "output": {"r": {"$derivative": {"input": "$a"}, "window": {"documents": [-1, 0]}}}}}]"#;
    check_error(pipeline, r#"[{"t": 1, "a": 1}, {"t": 2}]"#, 5_624_903);
    check_error(
        pipeline,
        r#"[{"t": 1, "a": 1}, {"t": {"$date": 0}, "a": 1}]"#,
        5_624_901,
    );
}
