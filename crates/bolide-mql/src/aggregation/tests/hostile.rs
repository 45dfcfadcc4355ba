//! Specifications and documents without sense: an error or a result, never a panic.

use serde_json::{Value, json};

use super::run;

/// Valid specifications; each of their options is replaced by each odd value.
const SPECIFICATIONS: &str = r#"[
    {"$addFields": {"a": 1, "b.c": "$a"}}, {"$bucket": {"groupBy": "$a", "boundaries": [0, 5], "default": "x", "output": {"n": {"$sum": 1}}}},
    {"$bucketAuto": {"groupBy": "$a", "buckets": 2, "output": {"n": {"$push": "$a"}}, "granularity": "R5"}},
    {"$collStats": {}}, {"$count": "n"}, {"$densify": {"field": "a", "partitionByFields": ["b"], "range": {"step": 1, "unit": "day", "bounds": "full"}}},
    {"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 5]}}}, {"$documents": [{}]}, {"$facet": {"a": [{"$match": {}}]}},
    {"$fill": {"partitionBy": "$b", "sortBy": {"a": 1}, "output": {"a": {"method": "linear"}, "b": {"value": 1}}}},
    {"$geoNear": {"near": [0, 0], "distanceField": "d", "maxDistance": 5, "minDistance": 0, "query": {}, "distanceMultiplier": 1, "includeLocs": "l"}},
    {"$graphLookup": {"from": "x", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "c", "maxDepth": 2, "depthField": "d",
        "restrictSearchWithMatch": {}}},
    {"$group": {"_id": "$a", "s": {"$sum": "$a"}, "f": {"$firstN": {"input": "$a", "n": 2}}, "t": {"$topN": {"n": 1, "sortBy": {"a": 1}, "output": "$a"}},
        "p": {"$percentile": {"input": "$a", "p": [0.5], "method": "approximate"}}, "d": {"$stdDevPop": "$a"}, "m": {"$mergeObjects": "$c"}}},
    {"$limit": 1}, {"$lookup": {"from": "x", "localField": "a", "foreignField": "b", "let": {"v": "$a"}, "pipeline": [], "as": "c"}},
    {"$match": {"a": 1}}, {"$merge": {"into": "x", "on": "a", "whenMatched": "merge", "whenNotMatched": "insert"}}, {"$out": {"db": "x", "coll": "y"}},
    {"$project": {"a": 1, "b": {"c": "$a"}}}, {"$redact": "$$KEEP"}, {"$replaceRoot": {"newRoot": "$c"}}, {"$replaceWith": "$c"}, {"$sample": {"size": 2}},
    {"$setWindowFields": {"partitionBy": "$b", "sortBy": {"a": 1}, "output": {
        "r": {"$rank": {}}, "s": {"$sum": "$a", "window": {"documents": [-1, 1]}}, "g": {"$sum": "$a", "window": {"range": [-1, 1]}}}}},
    {"$setWindowFields": {"sortBy": {"a": 1}, "output": {"h": {"$shift": {"output": "$a", "by": 1, "default": 0}}}}},
    {"$setWindowFields": {"sortBy": {"a": 1}, "output": {"e": {"$expMovingAvg": {"input": "$a", "N": 2}}}}},
    {"$setWindowFields": {"sortBy": {"a": 1}, "output": {"i": {"$integral": {"input": "$a", "unit": "day"}}}}},
    {"$skip": 1}, {"$sort": {"a": 1, "b.c": -1}}, {"$sortByCount": "$a"}, {"$unionWith": {"coll": "x", "pipeline": []}}, {"$unset": ["a", "b.c"]},
    {"$unwind": {"path": "$a", "includeArrayIndex": "i", "preserveNullAndEmptyArrays": true}}]"#;

fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(2.5),
        json!(1e300),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(""),
        json!("a"),
        json!("$"),
        json!("$$"),
        json!("$a"),
        json!("$a..b"),
        json!("$$ROOT"),
        json!("$$REMOVE"),
        json!("a.b"),
        json!([]),
        json!([1]),
        json!(["$a", {}]),
        json!([[]]),
        json!({}),
        json!({"a": 1}),
        json!({"$a": 1}),
        json!({"": 1}),
        json!({"a.": {"b": 1}}),
        json!({"$sum": []}),
        json!({"a": {"$add": ["$a", 1]}}),
        json!({"$literal": {"$a": 1}}),
        json!({"$date": 0}),
        json!({"$numberDecimal": "NaN"}),
        json!({"$numberDecimal": "1E+6000"}),
    ]
}

/// Calls `check` with every variant of a value in which one part is replaced.
fn variants(value: &Value, odd: &[Value], depth: usize, check: &mut dyn FnMut(Value)) {
    odd.iter().cloned().for_each(&mut *check);
    if depth == 0 {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                variants(field, odd, depth - 1, &mut |changed| {
                    let mut copy = fields.clone();
                    copy.insert(name.clone(), changed);
                    check(Value::Object(copy));
                });
            }
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                variants(element, odd, depth - 1, &mut |changed| {
                    let mut copy = elements.clone();
                    copy[index] = changed;
                    check(Value::Array(copy));
                });
            }
        }
        _ => {}
    }
}

#[test]
fn no_specification_panics() {
    let odd = odd_values();
    let fields = ["a", "b", "c", "loc"];
    let documents: Vec<Value> = odd
        .iter()
        .enumerate()
        .map(|(index, value)| json!({"_id": index, fields[index % 4]: value, "c": {"x": index}}))
        .collect();
    let input = Value::Array(documents).to_string();
    let specifications: Vec<Value> = serde_json::from_str(SPECIFICATIONS).unwrap();
    let (mut results, mut errors) = (0, 0);
    for specification in specifications {
        let (name, spec) = specification.as_object().unwrap().iter().next().unwrap();
        variants(spec, &odd, 3, &mut |changed| {
            let pipeline = format!(r#"[{{"{name}": {changed}}}, {{"$limit": 50}}]"#);
            let last = format!(r#"[{{"{name}": {changed}}}]"#);
            let is_last = name == "$out" || name == "$merge";
            match run(if is_last { &last } else { &pipeline }, &input) {
                Ok(_) => results += 1,
                Err(_) => errors += 1,
            }
        });
    }
    assert!(results > 500 && errors > 500, "{results} results, {errors} errors");
}
