//! Runs every query plan case.

use bolide_query::schema::PartitionKeyKind;
use bolide_query::{KeyEnd, KeyRange, KeyRanges, KeyValue, Parameters, Query, QueryError, Schema, SupportedFeatures};
use serde_json::{Map, Value as Json, json};

use crate::cases::{load, report};
use crate::container::vectors;

/// Cases that fail, and why.
///
/// The range lists of these cases were cut to their last entry when they were copied from the baselines. A plan with one of several ranges would lose
/// results, and the reference requires all of them (cosmos-sql §22.3).
const KNOWN: &[(&str, &str)] = &[
    ("plan/many-ranges/in-many-number", "lists the last range only"),
    ("plan/many-ranges/in-many-string", "lists the last range only"),
    ("plan/many-ranges/in-many-mixed-types", "lists the last range only"),
    ("plan/many-ranges/ors", "lists the last range only"),
    ("plan/many-ranges/abs", "lists the last range only"),
    ("plan/many-ranges/try-array-contains", "lists the last range only"),
    (
        "plan/order-by/select-*-order-by-with-multiple-ranges",
        "lists the last range only",
    ),
    ("plan/range-partition-key/complex-filter", "lists the last range only"),
    (
        "plan/range-partition-key/mixed-range-on-partition-key",
        "lists the last range only",
    ),
];

#[test]
fn query_plan_cases_hold() {
    let Some(cases) = load("query-plan") else { return };
    let outcomes: Vec<_> = cases
        .iter()
        .map(|(topic, case)| {
            (
                topic.clone(),
                case["name"].as_str().unwrap().to_owned(),
                check(case).err(),
            )
        })
        .collect();
    report(&outcomes, KNOWN);
}

fn check(case: &Json) -> Result<(), String> {
    let outcome = plan(case);
    if let Some(expected) = case.get("error") {
        return match outcome {
            // One SDK refuses this, but the service does not; both results are allowed.
            _ if expected["client_side"] == json!(true) => Ok(()),
            Ok(plan) => Err(format!("expected an error, got {plan}")),
            Err(error) => check_error(&error, expected),
        };
    }
    let plan = outcome.map_err(|error| error.body())?;
    let expected = &case["expected"];
    for part in ["queryInfo", "hybridSearchQueryInfo"] {
        let Some(wanted) = expected.get(part) else { continue };
        differences(part, &plan[part], wanted)?;
    }
    same_ranges(&plan["queryRanges"], &expected["queryRanges"])
}

fn check_error(error: &QueryError, expected: &Json) -> Result<(), String> {
    let body: Json = serde_json::from_str(&error.body()).unwrap();
    let agrees = |member: &str, found: &Json| expected.get(member).is_none_or(|wanted| wanted == found);
    let listed = expected
        .get("messages")
        .is_none_or(|messages| *messages == body["Errors"]);
    let code = json!(error.code().unwrap_or_default());
    let same = agrees("code", &code) && agrees("message", &json!(error.message()));
    if listed && same && agrees("location", &body["errors"][0]["location"]) {
        return Ok(());
    }
    Err(format!("got {body} expected {expected}"))
}

/// Every member that the case names must be equal; white space in queries is ignored.
fn differences(at: &str, actual: &Json, wanted: &Json) -> Result<(), String> {
    match (actual, wanted) {
        (Json::String(a), Json::String(b)) if collapsed(a) == collapsed(b) => Ok(()),
        (Json::Object(a), Json::Object(b)) => b.iter().try_for_each(|(name, value)| {
            differences(&format!("{at}.{name}"), a.get(name).unwrap_or(&Json::Null), value)
        }),
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(n, (a, b))| differences(&format!("{at}[{n}]"), a, b)),
        _ if actual == wanted => Ok(()),
        _ => Err(format!("{at}: got {actual}\n    expected {wanted}")),
    }
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn same_ranges(actual: &Json, wanted: &Json) -> Result<(), String> {
    let key = |range: &Json| normal(range).to_string();
    let mut a: Vec<String> = actual.as_array().unwrap().iter().map(key).collect();
    let mut b: Vec<String> = wanted.as_array().unwrap().iter().map(key).collect();
    a.sort();
    b.sort();
    if a == b {
        Ok(())
    } else {
        Err(format!("queryRanges: got {a:?}\n    expected {b:?}"))
    }
}

/// A normal form of numbers and of the order of members.
fn normal(value: &Json) -> Json {
    match value {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(items) => items.iter().map(normal).collect(),
        Json::Object(members) => {
            let sorted: std::collections::BTreeMap<_, _> = members.iter().collect();
            Json::Object(
                sorted
                    .into_iter()
                    .map(|(name, value)| (name.clone(), normal(value)))
                    .collect::<Map<_, _>>(),
            )
        }
        other => other.clone(),
    }
}

fn plan(case: &Json) -> Result<Json, QueryError> {
    let definition = &case["partitionKey"];
    let paths = definition["paths"].as_array().unwrap().iter();
    let paths = paths
        .map(|path| path.as_str().unwrap()[1..].split('/').map(str::to_owned).collect())
        .collect();
    let kind = match definition["kind"].as_str().unwrap() {
        "MultiHash" => PartitionKeyKind::MultiHash,
        "Range" => PartitionKeyKind::Range,
        _ => PartitionKeyKind::Hash,
    };
    // The planner of the baselines does not know the index rules.
    let schema = Schema {
        indexing: None,
        vectors: vectors(case),
        ..Schema::container(paths, kind)
    };
    let schema = Schema {
        geometry: case["geospatialType"] == json!("Geometry"),
        ..schema
    };
    let parameters = Parameters::from_json(case.get("parameters").unwrap_or(&Json::Null)).unwrap();
    let query = Query::compile(case["query"].as_str().unwrap(), &parameters, &schema)?;
    let plan = query.plan(&SupportedFeatures::all())?;
    let ranges = match &plan.ranges {
        KeyRanges::All => vec![range_json(json!([]), json!("Infinity"), true, false)],
        KeyRanges::Nothing => vec![range_json(json!([]), json!([]), true, true)],
        KeyRanges::Some(list) => list.iter().map(key_range).collect(),
    };
    Ok(plan.to_json(&ranges))
}

fn range_json(min: Json, max: Json, min_inclusive: bool, max_inclusive: bool) -> Json {
    json!({ "min": min, "max": max, "isMinInclusive": min_inclusive, "isMaxInclusive": max_inclusive })
}

fn key_range(range: &KeyRange) -> Json {
    let end = |ends: &[KeyEnd]| Json::Array(ends.iter().map(key_end).collect());
    range_json(
        end(&range.min),
        end(&range.max),
        range.min_inclusive,
        range.max_inclusive,
    )
}

fn key_end(end: &KeyEnd) -> Json {
    let limit = |name: &str| json!({ "type": name });
    match end {
        KeyEnd::MinNumber => limit("MinNumber"),
        KeyEnd::MaxNumber => limit("MaxNumber"),
        KeyEnd::MinString => limit("MinString"),
        KeyEnd::MaxString => limit("MaxString"),
        KeyEnd::Value(KeyValue::Undefined | KeyValue::Complex) => json!({}),
        KeyEnd::Value(KeyValue::Null) => Json::Null,
        KeyEnd::Value(KeyValue::Bool(value)) => json!(value),
        KeyEnd::Value(KeyValue::Number(number)) => json!(number.as_f64()),
        KeyEnd::Value(KeyValue::String(text)) => json!(text),
    }
}
