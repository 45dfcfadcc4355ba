//! A container on the wire for cases: created, filled, queried page by page, and deleted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::{Map, Value, json};
use ureq::http::Method;

use crate::Result;
use crate::conformance::server::{Engine, Server};
use crate::conformance::wire::{Client, Level, Request, Response, Target};

const DATABASE: &str = "cases";

/// More pages than any case can have; a server that always returns one more fails instead of looping forever.
const PAGES_LIMIT: usize = 10_000;

/// All merge features of SDKs, as one list.
const FEATURES: &str = "Aggregate, CompositeAggregate, CountIf, DCount, Distinct, GroupBy, HybridSearch, HybridSearchSkipOrderByRewrite, \
                        ListAndSetAggregate, MultipleAggregates, MultipleOrderBy, NonStreamingOrderBy, NonValueAggregate, \
                        OffsetAndLimit, OrderBy, Top, WeightedRankFusion";

/// A server with a database for the containers of cases.
pub struct CaseServer {
    client: Client,
    containers: AtomicUsize,
    _server: Server,
}

impl CaseServer {
    /// Starts a server.
    pub fn start(binary: &std::path::Path, engine: Engine) -> Result<Self> {
        let server = Server::start(binary, engine, super::CLOCK_MS, &[])?;
        let client = Client::new(server.endpoint());
        client
            .send(Request::signed(Method::POST, Target::feed(&[], "dbs")).json(&json!({ "id": DATABASE })))?
            .require("the database is not created")?;
        Ok(Self {
            client,
            containers: AtomicUsize::new(0),
            _server: server,
        })
    }

    /// Creates a container with a new name.
    ///
    /// # Errors
    /// The server's message if it refuses.
    pub fn container(&self, mut definition: Map<String, Value>, throughput: u32) -> Result<Container<'_>> {
        let id = format!("c{}", self.containers.fetch_add(1, Ordering::Relaxed));
        definition.insert("id".to_owned(), json!(id));
        let request = Request::signed(Method::POST, Target::feed(&[("dbs", DATABASE)], "colls"))
            .header("x-ms-offer-throughput", throughput.to_string())
            .json(&Value::Object(definition));
        self.client.send(request)?.require("the container is not created")?;
        Ok(Container {
            client: &self.client,
            id,
            index_use: &[],
            read_items: AtomicU64::new(0),
        })
    }
}

/// A container; deleted when dropped.
pub struct Container<'a> {
    client: &'a Client,
    id: String,
    /// How the pages of a query use indexes, in turn; empty: as the server chooses.
    pub index_use: &'static [&'static str],
    /// Number of items that queries have read.
    read_items: AtomicU64,
}

/// The result of a query.
pub enum Outcome {
    /// All rows of all pages.
    Rows(Vec<Value>),
    /// The response to the first page that was refused.
    Refused(Response),
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        let _ = self
            .client
            .send(Request::signed(Method::DELETE, Target::instance(&self.levels())));
    }
}

impl Container<'_> {
    fn levels(&self) -> [Level<'_>; 2] {
        [("dbs", DATABASE), ("colls", &self.id)]
    }

    fn feed(&self, method: Method, kind: &'static str) -> Request {
        Request::signed(method, Target::feed(&self.levels(), kind))
    }

    /// Creates an item; `partition_key` has the values at its key paths.
    pub fn create(&self, document: &Value, partition_key: &Value) -> Result<()> {
        let request = self
            .feed(Method::POST, "docs")
            .partition_key(partition_key)
            .json(document);
        self.client.send(request)?.require("an item is not created")
    }

    /// Registers a user-defined function.
    pub fn create_udf(&self, name: &str, source: &Value) -> Result<()> {
        let request = self
            .feed(Method::POST, "udfs")
            .json(&json!({ "id": name, "body": source }));
        self.client.send(request)?.require("a function is not registered")
    }

    /// Runs a query to its end, with pages of `page_size` rows.
    ///
    /// # Errors
    /// If the response is not a page, or pages are larger than requested.
    pub fn query(&self, body: &Value, page_size: i32, headers: &[(&'static str, String)]) -> Result<Outcome> {
        let mut rows = Vec::new();
        let mut continuation = None;
        for page_number in 0..PAGES_LIMIT {
            let index_use = self.index_use.get(page_number % self.index_use.len().max(1));
            let index_use = index_use.map(|index_use| (*index_use).to_owned());
            let mut request = self
                .feed(Method::POST, "docs")
                .header("x-ms-documentdb-isquery", "True")
                .header("x-ms-max-item-count", page_size.to_string())
                .header("x-ms-documentdb-populatequerymetrics", "True")
                .optional_header("x-ms-continuation", continuation.as_ref())
                .optional_header("x-bolide-index-use", index_use.as_ref())
                .text(body.to_string(), "application/query+json");
            for (name, value) in headers {
                request = request.header(name, value.clone());
            }
            let response = self.client.send(request)?;
            if !response.succeeded() {
                return Ok(Outcome::Refused(response));
            }
            rows.extend(page(&response, page_size)?);
            self.read_items
                .fetch_add(retrieved_items(&response)?, Ordering::Relaxed);
            continuation = response.header("x-ms-continuation").map(str::to_owned);
            if continuation.is_none() {
                return Ok(Outcome::Rows(rows));
            }
        }
        Err("the query has no end".into())
    }

    /// The number of items that queries have read since the last call.
    pub fn take_read_items(&self) -> u64 {
        self.read_items.swap(0, Ordering::Relaxed)
    }

    /// Requests the plan of a query, as SDKs that can merge everything.
    pub fn plan(&self, body: &Value, partition_key: Option<&Value>) -> Result<Response> {
        let mut request = self
            .feed(Method::POST, "docs")
            .header("x-ms-cosmos-is-query-plan-request", "True")
            .header("x-ms-cosmos-supported-query-features", FEATURES)
            .header("x-ms-cosmos-query-version", "1.4")
            .text(body.to_string(), "application/query+json");
        if let Some(components) = partition_key {
            request = request.header("x-ms-documentdb-partitionkey", components.to_string());
        }
        Ok(self.client.send(request)?)
    }

    /// The partition key ranges, in the order of their keys.
    pub fn ranges(&self) -> Result<Vec<Range>> {
        let response = self.client.send(self.feed(Method::GET, "pkranges"))?;
        response.require("no partition key ranges")?;
        let body = response.json()?;
        let list = body["PartitionKeyRanges"].as_array().ok_or("no list of ranges")?;
        let text = |range: &Value, name: &str| range[name].as_str().unwrap_or_default().to_owned();
        let mut ranges: Vec<Range> = list
            .iter()
            .map(|range| Range {
                id: text(range, "id"),
                min: text(range, "minInclusive"),
                max: text(range, "maxExclusive"),
            })
            .collect();
        ranges.sort_by(|one, other| one.min.cmp(&other.min));
        Ok(ranges)
    }
}

/// A partition key range: effective partition keys in hex; the end is exclusive.
pub struct Range {
    pub id: String,
    pub min: String,
    pub max: String,
}

/// The rows of a page, whose number must agree in three places.
fn page(response: &Response, page_size: i32) -> Result<Vec<Value>> {
    let mut body = response.json()?;
    let count = body["_count"].as_u64();
    let Value::Array(rows) = body["Documents"].take() else {
        return Err("the page has no Documents".into());
    };
    let header = response.header("x-ms-item-count").and_then(|count| count.parse().ok());
    if count != Some(rows.len() as u64) || header != count {
        return Err(format!("a page of {} rows says {count:?} and {header:?}", rows.len()).into());
    }
    if usize::try_from(page_size).is_ok_and(|max| rows.len() > max) {
        return Err(format!("a page of {} rows where {page_size} were asked for", rows.len()).into());
    }
    Ok(rows)
}

/// The number of items that were read for a page, from its metrics.
fn retrieved_items(response: &Response) -> Result<u64> {
    let metrics = response
        .header("x-ms-documentdb-query-metrics")
        .ok_or("a page without metrics")?;
    let count = metrics
        .split(';')
        .find_map(|metric| metric.strip_prefix("retrievedDocumentCount="));
    Ok(count.ok_or("metrics without a count of items")?.parse()?)
}
