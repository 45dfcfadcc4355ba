//! The SQL suite: every query runs inside one partition key, across partitions in one range, and across several ranges as an SDK runs it; each with
//! the server's page size and with pages of two rows. Then queries over items run again with each way to use indexes that a test can demand, and with another
//! way for each page: rows and their order must not depend on it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value, json};

use super::compare::{self, Tolerance};
use super::container::{CaseServer, Container, Outcome};
use super::merge::{self, Merged};
use super::{Case, index_paths, read};
use crate::Result;
use crate::conformance::report::{Report, Verdict, run_all, with_known_gap};
use crate::conformance::wire::Response;
use crate::conformance::{Engine, Run};

/// Enough for five ranges.
const THROUGHPUT_OF_SEVERAL_RANGES: u32 = 30_000;

/// Page sizes: the server's choice, and one so small that most results take several pages.
const PAGE_SIZES: [i32; 2] = [-1, 2];

/// A way in which a query uses indexes: the demand of each page, in turn, and the number of rows of a page.
///
/// The number is one of [`PAGE_SIZES`], so that even groups must have the same order, or so small that most queries have several pages.
struct IndexUse {
    name: &'static str,
    pages: &'static [&'static str],
    page_size: i32,
}

const INDEX_USES: [IndexUse; 4] = [
    IndexUse {
        name: "without indexes",
        pages: &["never"],
        page_size: -1,
    },
    IndexUse {
        name: "by entries or conditions",
        pages: &["always"],
        page_size: 2,
    },
    IndexUse {
        name: "in the order of an index",
        pages: &["order"],
        page_size: 2,
    },
    IndexUse {
        name: "another way for each page",
        pages: &["always", "never", "order"],
        page_size: 1,
    },
];

/// The planner's message if no client could merge; inside one partition the service runs such queries.
const COMPOSITION: &str = "Compositions of aggregates and other expressions are not allowed.";

/// The scope in which a query runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueryScope {
    OnePartitionKey,
    OneRange,
    SeveralRanges,
}

const QUERY_SCOPES: [QueryScope; 3] = [
    QueryScope::OnePartitionKey,
    QueryScope::OneRange,
    QueryScope::SeveralRanges,
];

/// Runs the selected cases on an engine.
///
/// # Errors
/// If a case cannot be read, or the server does not start; failures are in the report.
pub fn run(run: &Run<'_>, folder: &Path, engine: Engine) -> Result<Report> {
    let mut cases = read(&folder.join("sql"))?;
    cases.retain(|case| run.wants(&case.name));
    let case_server = CaseServer::start(run.binary, engine)?;
    let saved = AtomicUsize::new(0);
    let verdicts = run_all(&cases, |case| {
        verdict_of((&case_server, &saved), case, run.gaps.contains_key(&case.name))
    });
    let names = cases.into_iter().map(|case| case.name);
    let saved = saved.into_inner();
    if saved == 0 && run.filter.is_none() {
        return Err("no query read fewer items because it had to use an index, so nothing was tested".into());
    }
    Ok(Report {
        title: format!(
            "sql cases on {}, where indexes saved reads in {saved} runs",
            engine.name()
        ),
        verdicts: names.zip(verdicts).collect(),
    })
}

/// `saved` counts the runs that read fewer items because an index was demanded: without any, nothing was tested.
fn verdict_of((case_server, saved): (&CaseServer, &AtomicUsize), case: &Case, is_known_gap: bool) -> Verdict {
    let mut left_out = None;
    let outcome = QUERY_SCOPES.into_iter().try_for_each(|query_scope| {
        let outcome =
            in_scope((case_server, saved), case, query_scope).map_err(|error| format!("{query_scope:?}: {error}"))?;
        if let Some(reason) = outcome {
            left_out = Some(format!("{query_scope:?}: {reason}"));
        }
        Ok(())
    });
    if case.body.get("disputed").is_some() {
        return Verdict::Skipped(match outcome {
            Ok(()) => "disputed, and as the case says".to_owned(),
            Err(error) => format!("disputed, and different: {}: {error}", case.name),
        });
    }
    match (with_known_gap(outcome, is_known_gap), left_out) {
        (Verdict::Passed, Some(reason)) => Verdict::PassedBut(reason),
        (verdict, _) => verdict,
    }
}

/// Runs a case in one scope; returns why this is not possible, if so.
fn in_scope(
    (case_server, saved): (&CaseServer, &AtomicUsize),
    case: &Case,
    query_scope: QueryScope,
) -> Result<Option<&'static str>> {
    if query_scope == QueryScope::SeveralRanges && case.body["singlePartitionOnly"] == json!(true) {
        return Ok(Some("the service takes it inside one partition only"));
    }
    let mut container = filled(case_server, case, query_scope)?;
    let mut left_out = None;
    let mut chosen = Vec::new();
    for page_size in PAGE_SIZES {
        let merged = results(&container, case, query_scope, page_size)?;
        if is_refused_composition(query_scope, case, &merged.outcome) {
            return Ok(Some("compositions of aggregates are refused across partitions"));
        }
        left_out = check_merged(case, &merged).map_err(|error| format!("pages of {page_size}: {error}"))?;
        if let Outcome::Rows(rows) = merged.outcome {
            chosen.push((page_size, rows));
        }
        if left_out.is_some() {
            break;
        }
    }
    if case.list("documents").next().is_none() {
        return Ok(left_out);
    }
    let mut read_without = 0;
    container.take_read_items();
    for IndexUse { name, pages, page_size } in INDEX_USES {
        container.index_use = pages;
        let merged = results(&container, case, query_scope, page_size)?;
        check_merged(case, &merged).map_err(|error| format!("{name}: {error}"))?;
        same_rows(case, (page_size, merged.outcome), &chosen).map_err(|error| format!("{name}: {error}"))?;
        match (pages, container.take_read_items()) {
            (["never"], read) => read_without = read,
            (_, read) if read < read_without => {
                saved.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
    Ok(left_out)
}

/// Runs a query to its end, in pages.
fn results(container: &Container<'_>, case: &Case, query_scope: QueryScope, page_size: i32) -> Result<Merged> {
    let request = case.request();
    Ok(match query_scope {
        QueryScope::OnePartitionKey => Merged::of(container.query(
            &request,
            page_size,
            &[("x-ms-documentdb-partitionkey", "[{}]".to_owned())],
        )?),
        QueryScope::OneRange => Merged::of(container.query(&request, page_size, &[everywhere()])?),
        QueryScope::SeveralRanges => merge::query(container, &request, page_size)?,
    })
}

/// Compares with what the case expects; returns what could not be compared, if anything.
fn check_merged(case: &Case, merged: &Merged) -> Result<Option<&'static str>> {
    if merged.is_cut_anywhere {
        check_number(case, &merged.outcome)?;
        return Ok(Some(
            "without ORDER BY only the number of rows that TOP and LIMIT leave was compared",
        ));
    }
    check(case, &merged.outcome).map(|()| None)
}

/// Compares rows, and their order, with those of a run in which the server chose how to use indexes: the case may not say the order, but it has one. That of
/// groups depends on the size of pages.
fn same_rows(case: &Case, (page_size, outcome): (i32, Outcome), chosen: &[(i32, Vec<Value>)]) -> Result<()> {
    let same_size = chosen.iter().find(|(size, _)| *size == page_size);
    let has_groups = || {
        case.body["query"]
            .as_str()
            .is_some_and(|text| text.contains("GROUP BY"))
    };
    let expected = same_size.or_else(|| chosen.first().filter(|_| !has_groups()));
    let (Outcome::Rows(rows), Some((_, expected)), None) = (outcome, expected, case.body.get("shape")) else {
        return Ok(());
    };
    match rows == *expected {
        true => Ok(()),
        false => {
            let (rows, expected) = (Value::Array(rows), Value::Array(expected.clone()));
            Err(format!("got {rows}, and when the server chose {expected}").into())
        }
    }
}

/// The header that a query over several partitions requires.
pub fn everywhere() -> (&'static str, String) {
    ("x-ms-documentdb-query-enablecrosspartition", "True".to_owned())
}

fn is_refused_composition(query_scope: QueryScope, case: &Case, outcome: &Outcome) -> bool {
    let Outcome::Refused(response) = outcome else {
        return false;
    };
    query_scope == QueryScope::SeveralRanges
        && case.body.get("error").is_none()
        && response.message().is_some_and(|message| message.contains(COMPOSITION))
}

fn filled<'h>(case_server: &'h CaseServer, case: &Case, query_scope: QueryScope) -> Result<Container<'h>> {
    let (path, throughput) = match query_scope {
        // No item has this path: all are in the partition of the undefined key.
        QueryScope::OnePartitionKey => ("/nowhere", 400),
        QueryScope::OneRange => ("/id", 400),
        QueryScope::SeveralRanges => ("/id", THROUGHPUT_OF_SEVERAL_RANGES),
    };
    let container = case_server.container(definition(case, path), throughput)?;
    for document in case.list("documents") {
        let key = match query_scope {
            QueryScope::OnePartitionKey => json!({}),
            _ => document["id"].clone(),
        };
        container.create(document, &key)?;
    }
    for (name, source) in case.body["udfs"].as_object().into_iter().flatten() {
        container.create_udf(name, source)?;
    }
    Ok(container)
}

/// The container's definition for the case's settings.
fn definition(case: &Case, key_path: &str) -> Map<String, Value> {
    let mut definition = Map::from_iter([(
        "partitionKey".to_owned(),
        json!({"paths": [key_path], "kind": "Hash", "version": 2}),
    )]);
    let mut put = |name: &str, value: Value| definition.insert(name.to_owned(), value);
    let mut included = vec![json!({"path": "/*"})];
    included.extend(index_paths::of(case).into_iter().map(|path| json!({ "path": path })));
    let more = case.list("indexingPolicyIncludes").map(|path| match path {
        Value::String(path) => json!({ "path": path }),
        other => other.clone(),
    });
    for path in more {
        if !included.iter().any(|known| known["path"] == path["path"]) {
            included.push(path);
        }
    }
    let mut indexing = json!({
        "indexingMode": "consistent", "automatic": true,
        "includedPaths": included, "excludedPaths": [{"path": "/\"_etag\"/?"}],
        "compositeIndexes": case.list("compositeIndexes").collect::<Vec<_>>(),
    });
    let text_paths = || {
        case.body["fullTextPolicy"]["fullTextPaths"]
            .as_array()
            .into_iter()
            .flatten()
    };
    if case.body["fullTextIndex"] == json!(true) {
        let paths = text_paths().map(|entry| json!({ "path": entry["path"] }));
        indexing["fullTextIndexes"] = paths.collect();
    }
    if case.body["query"].as_str().is_some_and(|query| query.contains("ST_")) {
        indexing["spatialIndexes"] = spatial_indexes(&index_paths::of(case));
    }
    put("indexingPolicy", indexing);
    if case.body.get("fullTextPolicy").is_some() {
        put("fullTextPolicy", case.body["fullTextPolicy"].clone());
    }
    if case.body.get("vectorPolicy").is_some() {
        put(
            "vectorEmbeddingPolicy",
            json!({ "vectorEmbeddings": case.body["vectorPolicy"] }),
        );
    }
    if case.body.get("computedProperties").is_some() {
        put("computedProperties", case.body["computedProperties"].clone());
    }
    if case.body["geospatialType"] == json!("Geometry") {
        put("geospatialConfig", json!({"type": "Geometry"}));
    }
    definition
}

/// A spatial index for each path of single values, on the globe or on a plane as the container has it.
fn spatial_indexes(paths: &[String]) -> Value {
    let single = paths.iter().filter(|path| !path.ends_with("[]/?"));
    let index = |path: &String| {
        json!({
            "path": path,
            "types": ["Point", "LineString", "Polygon", "MultiPolygon"],
            "boundingBox": {"xmin": -100, "ymin": -100, "xmax": 100, "ymax": 100},
        })
    };
    single.map(index).collect()
}

fn check_number(case: &Case, outcome: &Outcome) -> Result<()> {
    match outcome {
        Outcome::Rows(rows) if rows.len() == case.list("expected").count() => Ok(()),
        Outcome::Rows(rows) => Err(format!("got {} rows", rows.len()).into()),
        Outcome::Refused(response) => Err(response.message().unwrap_or_default().into()),
    }
}

fn check(case: &Case, outcome: &Outcome) -> Result<()> {
    match (outcome, case.body.get("error")) {
        (Outcome::Refused(response), Some(expected)) => check_refusal(response, expected),
        (Outcome::Rows(rows), Some(_)) => Err(format!("expected a refusal, got {}", Value::Array(rows.clone())).into()),
        (Outcome::Refused(response), None) => {
            Err(format!("{} {}", response.status(), response.message().unwrap_or_default()).into())
        }
        (Outcome::Rows(rows), None) => match case.body.get("shape") {
            Some(shape) => check_shape(rows, shape),
            None => check_rows(case, rows.clone()),
        },
    }
}

/// Checks the status, the body that every error has, and the document inside its message as the case describes it.
pub fn check_refusal(response: &Response, expected: &Value) -> Result<()> {
    let body = response.json()?;
    let document = embedded(&body).unwrap_or_default();
    let first = &document["errors"][0];
    let text = first["message"]
        .as_str()
        .or_else(|| document["Errors"][0].as_str())
        .unwrap_or_default();
    let code = match &first["code"] {
        Value::Number(number) => json!(number.to_string()),
        code => code.clone(),
    };
    let agrees = |member: &str, found: &Value| expected.get(member).is_none_or(|wanted| wanted == found);
    let contains = expected["message_contains"]
        .as_str()
        .is_none_or(|part| text.contains(part));
    if response.status() == 400
        && body["code"] == json!("BadRequest")
        && agrees("status", &json!(response.status()))
        && agrees("code", &code)
        && agrees("message", &json!(text))
        && agrees("messages", &document["Errors"])
        && agrees("location", &first["location"])
        && contains
    {
        return Ok(());
    }
    Err(format!("got {} {body} expected {expected}", response.status()).into())
}

/// The JSON document in a message of the form `Message: {…}\r\nActivityId: …`.
fn embedded(body: &Value) -> Option<Value> {
    let message = body["message"].as_str()?.strip_prefix("Message: ")?;
    let (document, activity) = message.split_once("\r\nActivityId: ")?;
    if activity.is_empty() {
        return None;
    }
    serde_json::from_str(document).ok()
}

fn check_rows(case: &Case, rows: Vec<Value>) -> Result<()> {
    let rows: Vec<Value> = rows.into_iter().map(compare::stripped).collect();
    let expected: Vec<Value> = case.list("expected").cloned().map(compare::stripped).collect();
    let tolerance = Tolerance {
        relative: case.body["tolerance"].as_f64().unwrap_or(1e-9),
        unordered_arrays: case.body["unorderedArrays"].as_bool().unwrap_or(false),
    };
    let ordered = case.body["ordered"].as_bool().unwrap_or(false);
    if compare::same_results(&rows, &expected, ordered, tolerance) {
        return Ok(());
    }
    Err(format!("got {} expected {}", Value::Array(rows), Value::Array(expected)).into())
}

fn check_shape(rows: &[Value], shape: &Value) -> Result<()> {
    let item = &shape["item"];
    let fits = |row: &Value| {
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
        let dated = item["pattern"].is_null() || row.as_str().is_some_and(is_date_time);
        of_type && at_least && at_most && integral && dated
    };
    let equal = item["allEqual"] != json!(true) || rows.windows(2).all(|pair| pair[0] == pair[1]);
    if shape["count"] == json!(rows.len()) && rows.iter().all(fits) && equal {
        Ok(())
    } else {
        Err(format!("got {rows:?} expected {shape}").into())
    }
}

/// The only pattern used in cases: `yyyy-MM-ddTHH:mm:ss.fffffffZ`.
fn is_date_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00.0000000Z";
    text.len() == FORM.len()
        && text.bytes().zip(FORM).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

#[cfg(test)]
mod tests;
