//! `$densify` and `$fill`.

use super::{check, check_error, run};

const DAY: i64 = 86_400_000;

#[test]
fn numbers_are_filled_in() {
    check(
        r#"[{"$densify": {"field": "a", "range": {"step": 2, "bounds": "full"}}}]"#,
        r#"[{"_id": 1, "a": 1}, {"_id": 2, "a": 8}, {"_id": 3, "a": 5}, {"_id": 4}]"#,
        r#"[{"_id": 4}, {"_id": 1, "a": 1}, {"a": 3}, {"_id": 3, "a": 5}, {"a": 7}, {"_id": 2, "a": 8}]"#,
    );
    check(
        r#"[{"$densify": {"field": "a.b", "range": {"step": 1, "bounds": [0, 3]}}}]"#,
        r#"[{"_id": 1, "a": {"b": 1}}, {"_id": 2, "a": {"b": -1}}, {"_id": 3, "a": {"b": 3}}, {"_id": 4, "a": {"b": 1}}]"#,
        r#"[{"_id": 2, "a": {"b": -1}}, {"a": {"b": 0}}, {"_id": 1, "a": {"b": 1}}, {"_id": 4, "a": {"b": 1}}, {"a": {"b": 2}},
            {"_id": 3, "a": {"b": 3}}]"#,
    );
    check(
        r#"[{"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 2]}}}]"#,
        "[]",
        r#"[{"a": 0}, {"a": 1}]"#,
    );
    check(
        r#"[{"$densify": {"field": "a", "range": {"step": 1, "bounds": "full"}}}]"#,
        "[]",
        "[]",
    );
}

#[test]
fn partitions_are_filled_in() {
    let input = r#"[{"p": 1, "a": 1}, {"p": 1, "a": 3}, {"p": 2, "a": 2}, {"p": 2, "a": 4}]"#;
    check(
        r#"[{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": "partition"}}}]"#,
        input,
        r#"[{"p": 1, "a": 1}, {"p": 1, "a": 2}, {"p": 1, "a": 3}, {"p": 2, "a": 2}, {"p": 2, "a": 3}, {"p": 2, "a": 4}]"#,
    );
    check(
        r#"[{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 1, "bounds": "full"}}}]"#,
        input,
        r#"[{"p": 1, "a": 1}, {"p": 1, "a": 2}, {"p": 1, "a": 3}, {"p": 1, "a": 4}, {"p": 2, "a": 1}, {"p": 2, "a": 2}, {"p": 2, "a": 3},
            {"p": 2, "a": 4}]"#,
    );
    check(
        r#"[{"$densify": {"field": "a", "partitionByFields": ["p"], "range": {"step": 5, "bounds": [0, 10]}}}]"#,
        input,
        r#"[{"p": 1, "a": 0}, {"p": 1, "a": 1}, {"p": 1, "a": 3}, {"p": 1, "a": 5}, {"p": 2, "a": 0}, {"p": 2, "a": 2}, {"p": 2, "a": 4},
            {"p": 2, "a": 5}]"#,
    );
}

#[test]
fn dates_are_filled_in() {
    // 31 January, 29 February and 31 March 2024.
    let (january, february, march) = (1_706_659_200_000i64, 1_709_164_800_000i64, 1_711_843_200_000i64);
    check(
        r#"[{"$densify": {"field": "t", "range": {"step": 1, "unit": "month", "bounds": "full"}}}]"#,
        &format!(r#"[{{"_id": 1, "t": {{"$date": {january}}}}}, {{"_id": 2, "t": {{"$date": {march}}}}}]"#),
        &format!(
            r#"[{{"_id": 1, "t": {{"$date": {january}}}}}, {{"t": {{"$date": {february}}}}}, {{"_id": 2, "t": {{"$date": {march}}}}}]"#
        ),
    );
    check(
        r#"[{"$densify": {"field": "t", "range": {"step": 12, "unit": "hour", "bounds": "full"}}}]"#,
        &format!(r#"[{{"t": {{"$date": 0}}}}, {{"t": {{"$date": {DAY}}}}}]"#),
        &format!(
            r#"[{{"t": {{"$date": 0}}}}, {{"t": {{"$date": {}}}}}, {{"t": {{"$date": {DAY}}}}}]"#,
            DAY / 2
        ),
    );
}

#[test]
fn what_is_filled_in_is_bounded() {
    let pipeline = r#"[{"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 1e9]}}}, {"$count": "n"}]"#;
    check_error(pipeline, "[]", 5_897_900);
    // Steps that are lost by rounding do not last forever.
    let pipeline =
        r#"[{"$densify": {"field": "a", "range": {"step": 1.0, "bounds": [1e300, 2e300]}}}, {"$count": "n"}]"#;
    check_error(pipeline, "[]", 5_897_900);
    assert_eq!(
        run(
            r#"[{"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 1000]}}}]"#,
            "[]"
        )
        .unwrap()
        .len(),
        1000
    );
}

#[test]
fn bad_densify_stages() {
    let cases = [
        (r#"1"#, 5_733_400),
        (r#"{"range": {"step": 1, "bounds": "full"}}"#, 40414),
        (r#"{"field": "a"}"#, 40414),
        (r#"{"field": "a", "range": {"bounds": "full"}}"#, 40414),
        (r#"{"field": "a", "range": {"step": 1}}"#, 40414),
        (r#"{"field": "$a", "range": {"step": 1, "bounds": "full"}}"#, 16410),
        (r#"{"field": "a", "range": {"step": 0, "bounds": "full"}}"#, 5_733_401),
        (r#"{"field": "a", "range": {"step": -1, "bounds": "full"}}"#, 5_733_401),
        (r#"{"field": "a", "range": {"step": 1, "bounds": "x"}}"#, 5_946_802),
        (r#"{"field": "a", "range": {"step": 1, "bounds": 1}}"#, 5_946_800),
        (r#"{"field": "a", "range": {"step": 1, "bounds": ["x", 1]}}"#, 5_946_800),
        (
            r#"{"field": "a", "range": {"step": 1, "bounds": [{"$date": 0}, 1]}}"#,
            5_733_405,
        ),
        (r#"{"field": "a", "range": {"step": 1, "bounds": [1]}}"#, 5_733_403),
        (r#"{"field": "a", "range": {"step": 1, "bounds": [2, 1]}}"#, 5_733_402),
        (
            r#"{"field": "a", "range": {"step": 1, "bounds": "partition"}}"#,
            5_733_408,
        ),
        (
            r#"{"field": "a", "range": {"step": 1, "unit": "day", "bounds": [1, 2]}}"#,
            5_733_409,
        ),
        (
            r#"{"field": "a", "range": {"step": 1.5, "unit": "day", "bounds": "full"}}"#,
            6_586_400,
        ),
        (
            r#"{"field": "a", "range": {"step": 1, "unit": "x", "bounds": "full"}}"#,
            9,
        ),
        (
            r#"{"field": "a", "partitionByFields": ["a"], "range": {"step": 1, "bounds": "full"}}"#,
            8_993_000,
        ),
        (r#"{"field": "s", "range": {"step": 1, "bounds": "full"}}"#, 5_733_201),
        (
            r#"{"field": "a", "range": {"step": 1, "unit": "day", "bounds": "full"}}"#,
            6_053_600,
        ),
    ];
    for (spec, code) in cases {
        check_error(&format!(r#"[{{"$densify": {spec}}}]"#), r#"[{"a": 1, "s": "x"}]"#, code);
    }
}

#[test]
fn gaps_are_filled_by_value_and_by_method() {
    let input = r#"[{"_id": 1, "t": 1, "a": 10}, {"_id": 2, "t": 3}, {"_id": 3, "t": 5, "a": null}, {"_id": 4, "t": 9, "a": 50}, {"_id": 5, "t": 10}]"#;
    check(
        r#"[{"$fill": {"output": {"a": {"value": "$t"}}}}, {"$project": {"a": 1}}]"#,
        input,
        r#"[{"_id": 1, "a": 10}, {"_id": 2, "a": 3}, {"_id": 3, "a": 5}, {"_id": 4, "a": 50}, {"_id": 5, "a": 10}]"#,
    );
    for pipeline in [
        r#"[{"$fill": {"sortBy": {"t": 1}, "output": {"a": {"method": "locf"}}}}, {"$project": {"a": 1}}]"#,
        r#"[{"$fill": {"output": {"a": {"method": "locf"}}}}, {"$project": {"a": 1}}]"#,
    ] {
        check(
            pipeline,
            input,
            r#"[{"_id": 1, "a": 10}, {"_id": 2, "a": 10}, {"_id": 3, "a": 10}, {"_id": 4, "a": 50}, {"_id": 5, "a": 50}]"#,
        );
    }
    check(
        r#"[{"$fill": {"sortBy": {"t": 1}, "output": {"a": {"method": "linear"}, "b": {"value": 0}}}}, {"$project": {"t": 0}}]"#,
        input,
        r#"[{"_id": 1, "a": 10, "b": 0}, {"_id": 2, "a": 20.0, "b": 0}, {"_id": 3, "a": 30.0, "b": 0}, {"_id": 4, "a": 50, "b": 0},
            {"_id": 5, "a": null, "b": 0}]"#,
    );
    check(
        r#"[{"$fill": {"sortBy": {"t": 1}, "partitionByFields": ["p.q"], "output": {"a": {"method": "locf"}}}}, {"$project": {"p": 0}}]"#,
        r#"[{"p": {"q": 1}, "t": 1, "a": 7}, {"p": {"q": 2}, "t": 2}, {"p": {"q": 1}, "t": 3}]"#,
        r#"[{"t": 1, "a": 7}, {"t": 3, "a": 7}, {"t": 2, "a": null}]"#,
    );
    let cases = [
        (r#"1"#, 9),
        (r#"{}"#, 40414),
        (r#"{"output": {}}"#, 6_050_203),
        (r#"{"output": {"a": {}}}"#, 6_050_200),
        (r#"{"output": {"a": {"value": 1, "method": "locf"}}}"#, 6_050_200),
        (r#"{"output": {"a": {"method": "x"}}}"#, 6_050_202),
        (r#"{"output": {"a": {"method": "linear"}}}"#, 605_001),
        (
            r#"{"output": {"a": {"method": "locf"}}, "sortBy": {"t": 1}, "partitionBy": "$p", "partitionByFields": ["p"]}"#,
            6_050_204,
        ),
        (r#"{"output": {"a": {"method": "linear"}}, "sortBy": {"a": 1}}"#, 14),
    ];
    for (spec, code) in cases {
        check_error(&format!(r#"[{{"$fill": {spec}}}]"#), r#"[{"a": "x"}]"#, code);
    }
}
