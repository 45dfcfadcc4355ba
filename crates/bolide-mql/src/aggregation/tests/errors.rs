//! Where stages may stand, and their limits.

use super::{check_error, documents, parse, parse_on, run};
use crate::aggregation::{Namespace, Sink, WhenMatched, WhenNotMatched};

#[test]
fn stages_of_wrong_shape_or_place() {
    let cases = [
        (r#"[1]"#, 14),
        (r#"[{}]"#, 40323),
        (r#"[{"$match": {}, "$limit": 1}]"#, 40323),
        (r#"[{"$foo": 1}]"#, 40324),
        (r#"[{"match": {}}]"#, 40324),
        (r#"[{"$out": "x"}, {"$match": {}}]"#, 40601),
        (r#"[{"$merge": "x"}, {"$limit": 1}]"#, 40601),
        (r#"[{"$limit": 1}, {"$collStats": {}}]"#, 40602),
        (r#"[{"$limit": 1}, {"$changeStream": {}}]"#, 40602),
        (r#"[{"$facet": {"a": [{"$out": "x"}]}}]"#, 40600),
        (r#"[{"$facet": {"a": [{"$facet": {"b": []}}]}}]"#, 40600),
        (r#"[{"$facet": {"a": [{"$collStats": {}}]}}]"#, 40600),
        (r#"[{"$facet": {}}]"#, 40169),
        (r#"[{"$facet": {"a": 1}}]"#, 40170),
        (r#"[{"$facet": {"$a": []}}]"#, 16410),
        (
            r#"[{"$lookup": {"from": "a", "pipeline": [{"$merge": "x"}], "as": "b"}}]"#,
            51047,
        ),
        (r#"[{"$unionWith": {"coll": "a", "pipeline": [{"$out": "x"}]}}]"#, 31441),
        (r#"[{"$currentOp": {}}]"#, 73),
        (r#"[{"$documents": []}]"#, 73),
        (r#"[{"$geoNear": 1}]"#, 10603),
        (r#"[{"$geoNear": {}}]"#, 5_860_400),
        (r#"[{"$geoNear": {"near": [0, 0]}}]"#, 16606),
        (
            r#"[{"$geoNear": {"near": [0, 0], "distanceField": "d", "limit": 1}}]"#,
            50858,
        ),
        (
            r#"[{"$geoNear": {"near": [0, 0], "distanceField": "d", "key": 1}}]"#,
            14,
        ),
        (
            r#"[{"$geoNear": {"near": [0, 0], "distanceField": "d", "maxDistance": -1}}]"#,
            2,
        ),
        (r#"[{"$geoNear": {"near": "x", "distanceField": "d"}}]"#, 5_860_401),
        (r#"[{"$geoNear": {"near": "$a", "distanceField": "d"}}]"#, 5_860_402),
        (
            r#"[{"$limit": 1}, {"$geoNear": {"near": [0, 0], "distanceField": "d"}}]"#,
            40602,
        ),
        (
            r#"[{"$unionWith": {"coll": "a", "pipeline": [{"$geoNear": {"near": [0, 0], "distanceField": "d"}}]}}]"#,
            27,
        ),
        (r#"[{"$match": {"a": {"$near": [0, 0]}}}]"#, 5_626_500),
        (r#"[{"$match": 1}]"#, 15959),
        (r#"[{"$limit": 0}]"#, 15958),
        (r#"[{"$limit": -1}]"#, 5107201),
        (r#"[{"$limit": "x"}]"#, 5107201),
        (r#"[{"$limit": 1.5}]"#, 5107201),
        (r#"[{"$skip": -1}]"#, 5107200),
        (r#"[{"$sort": 1}]"#, 15973),
        (r#"[{"$sort": {}}]"#, 15976),
        (r#"[{"$sort": {"a": 3}}]"#, 15975),
        (r#"[{"$unwind": 1}]"#, 15981),
        (r#"[{"$unwind": ""}]"#, 28812),
        (r#"[{"$unwind": {}}]"#, 28812),
        (r#"[{"$unwind": "a"}]"#, 28818),
        (r#"[{"$unwind": {"path": 1}}]"#, 28808),
        (
            r#"[{"$unwind": {"path": "$a", "preserveNullAndEmptyArrays": 1}}]"#,
            28809,
        ),
        (r#"[{"$unwind": {"path": "$a", "includeArrayIndex": ""}}]"#, 28810),
        (r#"[{"$unwind": {"path": "$a", "includeArrayIndex": "$b"}}]"#, 28822),
        (r#"[{"$unwind": {"path": "$a", "x": 1}}]"#, 28811),
        (r#"[{"$count": 1}]"#, 40156),
        (r#"[{"$count": ""}]"#, 40157),
        (r#"[{"$count": "$a"}]"#, 40158),
        (r#"[{"$count": "a.b"}]"#, 40160),
        (r#"[{"$sortByCount": 1}]"#, 40149),
        (r#"[{"$sortByCount": "a"}]"#, 40148),
        (r#"[{"$sortByCount": {"a": 1}}]"#, 40147),
        (r#"[{"$sample": 1}]"#, 28745),
        (r#"[{"$sample": {"size": "x"}}]"#, 28746),
        (r#"[{"$sample": {"size": -1}}]"#, 28747),
        (r#"[{"$sample": {"x": 1}}]"#, 28748),
        (r#"[{"$sample": {}}]"#, 28749),
        (r#"[{"$indexStats": {"a": 1}}]"#, 28803),
        (r#"[{"$collStats": 1}]"#, 40166),
    ];
    for (pipeline, code) in cases {
        check_error(pipeline, "[]", code);
    }
}

#[test]
fn texts_of_the_reference() {
    let message = |pipeline: &str| parse(pipeline).unwrap_err().message;
    assert_eq!(
        message("[{}]"),
        "A pipeline stage specification object must contain exactly one field."
    );
    assert_eq!(message(r#"[{"$foo": 1}]"#), "Unrecognized pipeline stage name: '$foo'");
    assert_eq!(
        message(r#"[{"$out": "x"}, {"$limit": 1}]"#),
        "$out can only be the final stage in the pipeline"
    );
}

#[test]
fn pipelines_on_a_database() {
    let parse = |pipeline: &str| parse_on(pipeline, Namespace::of_database("test"));
    assert!(parse(r#"[{"$currentOp": {}}, {"$match": {}}]"#).is_ok());
    assert!(parse(r#"[{"$changeStream": {}}]"#).is_ok());
    assert!(parse(r#"[{"$documents": [{"a": 1}]}]"#).is_ok());
    assert_eq!(parse(r#"[{"$match": {}}]"#).unwrap_err().code.0, 73);
}

#[test]
fn pipelines_are_bounded() {
    let stages = |count: usize| format!("[{}]", vec![r#"{"$skip": 0}"#; count].join(","));
    assert!(parse(&stages(1000)).is_ok());
    assert_eq!(parse(&stages(1001)).unwrap_err().code.0, 7749501);
    let nested = |depth: usize| {
        (0..depth).fold("[]".to_owned(), |pipeline, _| {
            format!(r#"[{{"$lookup": {{"from": "a", "pipeline": {pipeline}, "as": "b"}}}}]"#)
        })
    };
    assert!(parse(&nested(20)).is_ok());
    assert_eq!(parse(&nested(21)).unwrap_err().code.0, 232);
}

#[test]
fn documents_are_bounded() {
    // Each step doubles the document.
    let doubling = format!(
        "[{}]",
        vec![r#"{"$project": {"a": "$$ROOT", "b": "$$ROOT"}}"#; 40].join(",")
    );
    check_error(
        &doubling,
        r#"[{"_id": 1, "text": "0123456789012345678901234567890123456789"}]"#,
        10334,
    );
    let wrapping = format!("[{}]", vec![r#"{"$replaceWith": {"a": "$$ROOT"}}"#; 300].join(","));
    check_error(&wrapping, r#"[{"_id": 1}]"#, 15);
}

#[test]
fn blocking_stages_hold_at_most_100_mb() {
    // 110 documents of a megabyte each, of which the stages hold one after the other.
    let text = "x".repeat(1024 * 1024);
    let input = format!(
        r#"[{{"_id": 1, "text": "{text}", "n": {:?}}}]"#,
        (0..110).collect::<Vec<i32>>()
    );
    let over = [
        r#"{"$group": {"_id": 0, "all": {"$push": "$text"}}}"#,
        r#"{"$sort": {"n": 1}}"#,
        r#"{"$facet": {"a": []}}"#,
        r#"{"$bucketAuto": {"groupBy": "$n", "buckets": 2}}"#,
        r#"{"$setWindowFields": {"output": {"s": {"$sum": 1}}}}"#,
    ];
    for stage in over {
        check_error(&format!(r#"[{{"$unwind": "$n"}}, {stage}]"#), &input, 292);
    }
    let pipeline = r#"[{"$unwind": "$n"}, {"$sort": {"n": -1}}, {"$limit": 2}, {"$project": {"n": 1}}]"#;
    assert_eq!(
        run(pipeline, &input).unwrap(),
        documents(r#"[{"_id": 1, "n": 109}, {"_id": 1, "n": 108}]"#)
    );
    // A document of 20 MB may pass between stages, but not leave.
    let pipeline = r#"[{"$set": {"n": {"$slice": ["$n", 20]}}}, {"$unwind": "$n"}, {"$group": {"_id": 0, "all": {"$push": "$text"}}}"#;
    check_error(&format!("{pipeline}]"), &input, 10334);
    let pipeline = format!(r#"{pipeline}, {{"$unwind": "$all"}}, {{"$count": "n"}}]"#);
    assert_eq!(run(&pipeline, &input).unwrap(), documents(r#"[{"n": 20}]"#));
}

#[test]
fn sinks() {
    let sink = |pipeline: &str| parse(pipeline).unwrap().sink().cloned().unwrap();
    match sink(r#"[{"$out": "x"}]"#) {
        Sink::Out(out) => assert_eq!(out.into.to_string(), "test.x"),
        other => panic!("{other:?}"),
    }
    match sink(r#"[{"$out": {"db": "d", "coll": "c"}}]"#) {
        Sink::Out(out) => assert_eq!(out.into.to_string(), "d.c"),
        other => panic!("{other:?}"),
    }
    match sink(r#"[{"$merge": "x"}]"#) {
        Sink::Merge(merge) => {
            assert_eq!(merge.into.to_string(), "test.x");
            assert_eq!(
                (&merge.when_matched, merge.when_not_matched),
                (&WhenMatched::Merge, WhenNotMatched::Insert)
            );
            assert!(merge.on.is_none());
        }
        other => panic!("{other:?}"),
    }
    let merge = sink(
        r#"[{"$merge": {"into": {"coll": "c"}, "on": ["a", "b.c"], "whenMatched": [{"$set": {"x": "$$new.x"}}], "whenNotMatched": "discard"}}]"#,
    );
    match merge {
        Sink::Merge(merge) => {
            assert_eq!(merge.into.to_string(), "test.c");
            assert_eq!(merge.on.as_ref().unwrap().len(), 2);
            assert!(matches!(merge.when_matched, WhenMatched::Pipeline(_)));
            assert_eq!(merge.variable_names().collect::<Vec<_>>(), ["new"]);
        }
        other => panic!("{other:?}"),
    }
    let cases = [
        (r#"{"$out": 1}"#, 16990),
        (r#"{"$out": {"db": "x"}}"#, 40414),
        (r#"{"$out": {"db": "x", "coll": "y", "z": 1}}"#, 40415),
        (r#"{"$merge": 1}"#, 51182),
        (r#"{"$merge": {}}"#, 40414),
        (r#"{"$merge": {"into": 1}}"#, 51178),
        (r#"{"$merge": {"into": "a", "on": 1}}"#, 51186),
        (r#"{"$merge": {"into": "a", "on": []}}"#, 51187),
        (r#"{"$merge": {"into": "a", "whenMatched": "x"}}"#, 2),
        (
            r#"{"$merge": {"into": "a", "whenMatched": "fail", "whenNotMatched": "discard"}}"#,
            51181,
        ),
        (r#"{"$merge": {"into": "a", "let": {"x": 1}}}"#, 51199),
        (
            r#"{"$merge": {"into": "a", "whenMatched": [], "let": {"new": 1}}}"#,
            51273,
        ),
        (r#"{"$merge": {"into": "a", "x": 1}}"#, 40415),
    ];
    for (stage, code) in cases {
        check_error(&format!("[{stage}]"), "[]", code);
    }
}
