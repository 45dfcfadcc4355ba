//! The query-plan suite: requests the plan of a case's query from a container like the case's.
//!
//! Cases give ranges as key values, the wire as effective partition keys. The server converts values too: the plan of a request that names a key in
//! its header covers only that key.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::container::{CaseServer, Container};
use super::sql::check_refusal;
use super::{Case, read};
use crate::Result;
use crate::conformance::report::{Report, Verdict, run_all, with_known_gap};
use crate::conformance::{Engine, Run};

/// Runs the selected cases on an engine.
///
/// # Errors
/// If a case cannot be read, or the server does not start; failures are in the report.
pub fn run(run: &Run<'_>, folder: &Path, engine: Engine) -> Result<Report> {
    let mut cases = read(&folder.join("query-plan"))?;
    cases.retain(|case| run.wants(&case.name));
    let case_server = CaseServer::start(run.binary, engine)?;
    let verdicts = run_all(&cases, |case| {
        verdict_of(&case_server, case, run.gaps.contains_key(&case.name))
    });
    let names = cases.into_iter().map(|case| case.name);
    Ok(Report {
        title: format!("query plan cases on {}", engine.name()),
        verdicts: names.zip(verdicts).collect(),
    })
}

fn verdict_of(case_server: &CaseServer, case: &Case, is_known_gap: bool) -> Verdict {
    let mut left_out = None;
    let outcome = check(case_server, case).map(|reason| left_out = reason);
    match (with_known_gap(outcome, is_known_gap), left_out) {
        (Verdict::Passed, Some(reason)) => Verdict::PassedBut(reason.to_owned()),
        (verdict, _) => verdict,
    }
}

/// Checks a case; returns what cannot be checked on the wire, if anything.
fn check(case_server: &CaseServer, case: &Case) -> Result<Option<&'static str>> {
    let container = case_server.container(definition(case), 400)?;
    let response = container.plan(&case.request(), None)?;
    if let Some(expected) = case.body.get("error") {
        // One SDK refuses this, but the service does not.
        if expected["client_side"] == json!(true) {
            return Ok(Some("one SDK refuses it by itself"));
        }
        return check_refusal(&response, expected).map(|()| None);
    }
    response.require("no plan")?;
    let plan = response.json()?;
    let expected = &case.body["expected"];
    for part in ["queryInfo", "hybridSearchQueryInfo"] {
        if let Some(wanted) = expected.get(part) {
            differences(part, &plan[part], wanted)?;
        }
    }
    if let Some(reason) = unlike(&case.body["partitionKey"]) {
        return Ok(Some(reason));
    }
    check_ranges(&container, &plan["queryRanges"], &expected["queryRanges"])
}

/// Why a container cannot have the partition key of a case, so that its ranges cannot be checked.
fn unlike(partition_key: &Value) -> Option<&'static str> {
    let paths: Vec<&str> = partition_key["paths"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if paths.is_empty() {
        return Some("ranges not seen: every container has a partition key");
    }
    if partition_key["kind"] == json!("Range") {
        return Some("ranges not seen: no container has a key of the kind Range");
    }
    if paths.len() > 1 && partition_key["kind"] == json!("Hash") {
        return Some("ranges not seen: no container has one hash over several paths");
    }
    paths
        .iter()
        .any(|path| path.contains('['))
        .then_some("ranges not seen: no container has a key inside an array")
}

/// A container like the case's, or as similar as possible.
fn definition(case: &Case) -> Map<String, Value> {
    let given = &case.body["partitionKey"];
    let paths = match (&given["paths"], unlike(given)) {
        (Value::Array(paths), Some(_)) if paths.len() < 2 => json!(["/id"]),
        (paths, _) => paths.clone(),
    };
    let several = paths.as_array().is_some_and(|paths| paths.len() > 1);
    let kind = if several { "MultiHash" } else { "Hash" };
    let mut definition = Map::from_iter([(
        "partitionKey".to_owned(),
        json!({"paths": paths, "kind": kind, "version": 2}),
    )]);
    if case.body.get("vectorPolicy").is_some() {
        definition.insert(
            "vectorEmbeddingPolicy".to_owned(),
            json!({ "vectorEmbeddings": case.body["vectorPolicy"] }),
        );
    }
    if case.body["geospatialType"] == json!("Geometry") {
        definition.insert("geospatialConfig".to_owned(), json!({"type": "Geometry"}));
    }
    definition
}

/// Every member that the case names must be equal; white space in queries is ignored.
fn differences(at: &str, actual: &Value, wanted: &Value) -> Result<()> {
    match (actual, wanted) {
        (Value::String(a), Value::String(b)) if collapsed(a) == collapsed(b) => Ok(()),
        (Value::Object(a), Value::Object(b)) => b.iter().try_for_each(|(name, value)| {
            differences(&format!("{at}.{name}"), a.get(name).unwrap_or(&Value::Null), value)
        }),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .try_for_each(|(n, (a, b))| differences(&format!("{at}[{n}]"), a, b)),
        _ if actual == wanted => Ok(()),
        _ => Err(format!("{at}: got {actual} expected {wanted}").into()),
    }
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compares ranges; returns why this is not possible, if so.
fn check_ranges(container: &Container<'_>, actual: &Value, wanted: &Value) -> Result<Option<&'static str>> {
    let full = || json!([{"min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false}]);
    let mut expected = Vec::new();
    for range in wanted.as_array().into_iter().flatten() {
        if range["min"] == json!([]) {
            // Either all keys, or the point below all keys, for which the full range is also correct (cosmos-rest §6.4).
            expected = full().as_array().cloned().unwrap_or_default();
            break;
        }
        if range["min"] != range["max"] {
            return Ok(Some("a range of key values has no counterpart among hashes"));
        }
        expected.push(range_of_key(container, &range["min"])?);
    }
    let sorted = |list: &[Value]| {
        let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    let actual = sorted(actual.as_array().map_or(&[], Vec::as_slice));
    if actual == sorted(&expected) {
        return Ok(None);
    }
    Err(format!("queryRanges: got {actual:?} expected {wanted}, which is {expected:?}").into())
}

/// The range of a key on the wire.
fn range_of_key(container: &Container<'_>, key: &Value) -> Result<Value> {
    let everything = json!({"query": "SELECT * FROM c"});
    let response = container.plan(&everything, Some(key))?;
    response.require("no plan for a key")?;
    match response.json()?["queryRanges"].as_array().map(Vec::as_slice) {
        Some([range]) => Ok(range.clone()),
        other => Err(format!("a key is not one range: {other:?}").into()),
    }
}
