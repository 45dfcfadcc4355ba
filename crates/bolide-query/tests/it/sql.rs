//! Runs every SQL case against a container with one range.

use std::sync::Arc;

use bolide_query::schema::{
    CompositePath, ComputedProperty, DistanceFunction, FullTextPolicy, IndexedPath, PartitionKeyKind, VectorPath,
};
use bolide_query::{Environment, PageLimit, Parameters, PathStep, Progress, Query, QueryError, Schema, Udfs};
use serde_json::{Value as Json, json};

use crate::cases::{load, report};
use crate::compare::{Tolerance, same_results, stripped};

/// Cases that fail, and why.
const KNOWN: &[(&str, &str)] = &[];

const NOW_MS: i64 = 1_700_000_000_000;

#[test]
fn sql_cases_hold() {
    let Some(cases) = load("sql") else { return };
    let mut outcomes = Vec::new();
    for (topic, case) in &cases {
        let name = case["name"].as_str().unwrap().to_owned();
        let failure = check(case).err();
        if case.get("disputed").is_some() {
            if let Some(failure) = failure {
                println!("disputed and different: {name}: {failure}");
            }
            continue;
        }
        outcomes.push((topic.clone(), name, failure));
    }
    report(&outcomes, KNOWN);
}

fn check(case: &Json) -> Result<(), String> {
    let outcome = run(case);
    if let Some(expected) = case.get("error") {
        return match outcome {
            Ok(rows) => Err(format!("expected an error, got {rows:?}")),
            Err(error) => check_error(&error, expected),
        };
    }
    let rows = outcome.map_err(|error| error.body())?;
    if let Some(shape) = case.get("shape") {
        return check_shape(&rows, shape);
    }
    let expected = case["expected"].as_array().unwrap();
    let expected: Vec<Json> = expected.iter().cloned().map(stripped).collect();
    let tolerance = Tolerance {
        relative: case["tolerance"].as_f64().unwrap_or(1e-9),
        unordered_arrays: case["unorderedArrays"].as_bool().unwrap_or(false),
    };
    let ordered = case["ordered"].as_bool().unwrap_or(false);
    if same_results(&rows, &expected, ordered, tolerance) {
        return Ok(());
    }
    Err(format!(
        "got {}\n    expected {}\n    {}",
        json!(rows),
        json!(expected),
        case["query"]
    ))
}

fn check_error(error: &QueryError, expected: &Json) -> Result<(), String> {
    let message = error.message();
    let code = error.code().unwrap_or_default();
    let body: Json = serde_json::from_str(&error.body()).unwrap();
    let location = &body["errors"][0]["location"];
    let agrees = |member: &str, found: &Json| expected.get(member).is_none_or(|wanted| wanted == found);
    let contains = expected["message_contains"]
        .as_str()
        .is_none_or(|part| message.contains(part));
    if agrees("code", &json!(code)) && agrees("message", &json!(message)) && agrees("location", location) && contains {
        return Ok(());
    }
    Err(format!("got {body} expected {expected}"))
}

fn check_shape(rows: &[Json], shape: &Json) -> Result<(), String> {
    let item = &shape["item"];
    let fits = |row: &Json| {
        let of_type = match item["type"].as_str() {
            Some("string") => row.is_string(),
            Some("number") => row.is_number(),
            Some("boolean") => row.is_boolean(),
            _ => true,
        };
        let number = row.as_f64().unwrap_or(f64::NAN);
        let at_least = item["minimum"].as_f64().is_none_or(|low| number >= low);
        let at_most = item["maximum"].as_f64().is_none_or(|high| number <= high);
        let integral = item["integer"] != json!(true) || number.fract() == 0.0;
        let pattern = item["pattern"].as_str();
        let dated = pattern.is_none_or(|_| row.as_str().is_some_and(|text| text.len() == 28 && text.ends_with('Z')));
        of_type && at_least && at_most && integral && dated
    };
    let equal = item["allEqual"] != json!(true) || rows.windows(2).all(|pair| pair[0] == pair[1]);
    let count = shape["count"].as_u64().unwrap() as usize;
    if rows.len() == count && rows.iter().all(fits) && equal {
        Ok(())
    } else {
        Err(format!("got {rows:?} expected {shape}"))
    }
}

fn run(case: &Json) -> Result<Vec<Json>, QueryError> {
    let text = case["query"].as_str().unwrap();
    let parameters = Parameters::from_json(case.get("parameters").unwrap_or(&Json::Null)).unwrap();
    let query = Query::compile(text, &parameters, &schema(case))?;
    let environment = Environment {
        now_ms: NOW_MS,
        random_seed: 1,
        udfs: Some(Arc::new(KnownUdfs)),
        ..Environment::default()
    };
    let mut page = query.execution(environment, PageLimit::NONE, None)?;
    for (n, document) in case["documents"].as_array().into_iter().flatten().enumerate() {
        if page.push(stored(document, n as u64 + 1).as_bytes(), n as u64 + 1)? != Progress::Continue {
            break;
        }
    }
    let finished = page.finish(true)?;
    assert_eq!(finished.resume, None, "one unlimited page holds everything");
    Ok(finished
        .rows
        .iter()
        .map(|row| stripped(serde_json::from_slice(row).unwrap()))
        .collect())
}

/// A document with its system properties, as the database keeps it.
fn stored(document: &Json, rid: u64) -> String {
    let mut document = document.clone();
    let members = document.as_object_mut().unwrap();
    members.insert("_rid".into(), json!(format!("rid{rid}")));
    members.insert("_self".into(), json!("dbs/d/colls/c/docs/x"));
    members.insert("_etag".into(), json!("\"etag\""));
    members.insert("_attachments".into(), json!("attachments/"));
    members.insert("_ts".into(), json!(NOW_MS / 1000));
    document.to_string()
}

fn list<'c>(case: &'c Json, name: &str) -> impl Iterator<Item = &'c Json> {
    case[name].as_array().into_iter().flatten()
}

pub fn vectors(case: &Json) -> Vec<VectorPath> {
    let vector = |entry: &Json| VectorPath {
        path: PathStep::parse_policy_path(entry["path"].as_str().unwrap()),
        function: DistanceFunction::parse(entry["distanceFunction"].as_str().unwrap_or("cosine")).unwrap(),
    };
    list(case, "vectorPolicy").map(vector).collect()
}

fn schema(case: &Json) -> Schema {
    let mut schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let indexing = schema.indexing.as_mut().unwrap();
    for path in list(case, "indexingPolicyIncludes") {
        let path = path.as_str().or_else(|| path["path"].as_str()).unwrap();
        indexing.included.push(IndexedPath::parse(path));
    }
    for index in list(case, "compositeIndexes") {
        let component = |entry: &Json| CompositePath {
            path: PathStep::parse_policy_path(entry["path"].as_str().unwrap()),
            descending: entry["order"] == json!("descending"),
        };
        indexing
            .composite
            .push(index.as_array().unwrap().iter().map(component).collect());
    }
    if case["fullTextIndex"] == json!(true) {
        let paths = list(&case["fullTextPolicy"], "fullTextPaths");
        indexing.full_text = paths
            .map(|entry| PathStep::parse_policy_path(entry["path"].as_str().unwrap()))
            .collect();
    }
    for property in list(case, "computedProperties") {
        let text = |name: &str| property[name].as_str().unwrap().to_owned();
        schema.computed.push(ComputedProperty {
            name: text("name"),
            query: text("query"),
        });
    }
    schema.vectors = vectors(case);
    let policy = &case["fullTextPolicy"];
    schema.full_text = FullTextPolicy {
        default_language: policy["defaultLanguage"].as_str().map(str::to_owned),
        paths: list(policy, "fullTextPaths")
            .map(|entry| {
                let path = PathStep::parse_policy_path(entry["path"].as_str().unwrap());
                (path, entry["language"].as_str().map(str::to_owned))
            })
            .collect(),
    };
    schema.geometry = case["geospatialType"] == json!("Geometry");
    schema
}

/// The user-defined functions of the cases, by name: what their JavaScript computes.
struct KnownUdfs;

impl Udfs for KnownUdfs {
    fn call(&self, name: &str, arguments: &[String]) -> Result<Option<String>, String> {
        let arguments: Vec<Json> = arguments
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        let result = match name {
            "REGEX_MATCH" => Some(json!(arguments[0].as_str().unwrap().ends_with("eattle"))),
            "addTax" => arguments[0].as_f64().map(|price| json!(price * 2.0)),
            "pair" => Some(json!([arguments[0], arguments[1]])),
            "make" => Some(json!({ "v": arguments[0] })),
            "GetMaxNutritionValue" => {
                let values = arguments[0]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|n| n["nutritionValue"].as_f64().unwrap());
                values.reduce(f64::max).map(|max| json!(max))
            }
            other => return Err(format!("no such function: {other}")),
        };
        Ok(result.map(|value| value.to_string()))
    }
}
