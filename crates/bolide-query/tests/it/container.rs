//! A container with one range: its settings, its documents, and the rows of a query over pages.

use std::sync::Arc;

use bolide_query::schema::{
    CompositePath, ComputedProperty, DistanceFunction, FullTextPolicy, IndexedPath, PartitionKeyKind, VectorPath,
};
use bolide_query::{Environment, Item, PageLimit, Parameters, PathStep, Progress, Query, QueryError, Schema, Udfs};
use serde_json::{Value as Json, json};

use crate::compare::stripped;

/// Server time of every query: 2023-11-14T22:13:20Z.
const NOW_MS: i64 = 1_700_000_000_000;

/// A container and its documents.
pub struct Container {
    schema: Schema,
    documents: Vec<String>,
}

impl Container {
    /// Settings are members of `settings`, by the names that the cases use: `compositeIndexes`, `indexingPolicyIncludes`,
    /// `computedProperties`, `vectorPolicy`, `fullTextPolicy`, `fullTextIndex`, `geospatialType`.
    pub fn new(settings: &Json, documents: &[Json]) -> Container {
        Container {
            schema: schema(settings),
            documents: (1..)
                .zip(documents)
                .map(|(rid, document)| stored(document, rid))
                .collect(),
        }
    }

    /// All rows of a query, without system properties, read in pages of `limit`. The resource ids of the documents are 1, 2, ….
    ///
    /// # Errors
    /// Errors of compiling or running the query.
    pub fn rows(&self, text: &str, parameters: &Parameters, limit: PageLimit) -> Result<Vec<Json>, QueryError> {
        let query = Query::compile(text, parameters, &self.schema)?;
        let mut rows = Vec::new();
        let mut position = PagePosition {
            document: 0,
            resume: None,
        };
        loop {
            let (page, next) = self.page(&query, limit, position)?;
            rows.extend(page.into_iter().map(stripped));
            match next {
                Some(next) => position = next,
                None => return Ok(rows),
            }
            assert!(rows.len() < 10_000, "pages never end");
        }
    }

    /// One page as the core reads it, and the position of the next one.
    fn page(
        &self,
        query: &Query,
        limit: PageLimit,
        position: PagePosition,
    ) -> Result<(Vec<Json>, Option<PagePosition>), QueryError> {
        let mut page = query.execution(environment(), limit, position.resume.as_deref())?;
        let mut start = position.document;
        if query.replays() {
            for (document, rid) in self.documents[..start].iter().zip(1..) {
                page.replay(&Item::complete(document.as_bytes()).unwrap(), rid)?;
            }
        } else if query.rescans() {
            start = 0;
        }
        let mut next_document = self.documents.len();
        let mut is_at_end = true;
        for (at, document) in self.documents.iter().enumerate().skip(start) {
            match page.push(document.as_bytes(), at as u64 + 1)? {
                Progress::Continue => continue,
                Progress::PageFull => next_document = at,
                Progress::Done => {}
            }
            is_at_end = false;
            break;
        }
        let finished = page.finish(is_at_end)?;
        let rows = finished.rows.iter().map(|row| serde_json::from_slice(row).unwrap());
        let rows = rows.collect();
        let next = finished.resume.map(|resume| PagePosition {
            document: next_document,
            resume: Some(resume),
        });
        Ok((rows, next))
    }
}

/// The position of a page: the index of its first document, and the resume state of the previous page.
struct PagePosition {
    document: usize,
    resume: Option<String>,
}

fn environment() -> Environment {
    Environment {
        now_ms: NOW_MS,
        random_seed: 1,
        udfs: Some(Arc::new(KnownUdfs)),
        ..Environment::default()
    }
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

/// The user-defined functions of the cases, by name, with the result of their JavaScript.
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
