//! Runs every SQL case against a container with one range.

use bolide_query::{PageLimit, Parameters, QueryError};
use serde_json::{Value as Json, json};

use crate::cases::{load, report};
use crate::compare::{Tolerance, same_results, stripped};
use crate::container::Container;

/// Cases that fail, and why.
const KNOWN: &[(&str, &str)] = &[];

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
    let parameters = Parameters::from_json(case.get("parameters").unwrap_or(&Json::Null)).unwrap();
    let container = Container::new(case, case["documents"].as_array().map_or(&[], Vec::as_slice));
    container.rows(case["query"].as_str().unwrap(), &parameters, PageLimit::NONE)
}
