//! What a query asks for, and the page that answers it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::metrics::QueryMetrics;
use super::usage::QueryUsage;
use crate::memory::MemoryShare;
use crate::runtime::IndexUse;
use crate::scan::ScanScope;

/// A request to run a query.
#[derive(Debug, Clone, Default)]
pub struct QueryItems {
    /// The text of the query.
    pub text: String,
    /// Its parameters: names, beginning with `@`, and values.
    pub parameters: Arc<Vec<(String, Value)>>,
    /// The part of the container to read.
    pub scope: ScanScope,
    /// Whether the caller allows that several logical partitions are read.
    pub cross_partition: bool,
    /// Maximum number of rows of the page; `None`: the server decides.
    pub max_items: Option<usize>,
    /// The continuation of an earlier page.
    pub continuation: Option<String>,
    /// Where the rows of a sorted query begin, as JSON (cosmos-rest §6.1).
    pub resume_filter: Option<Value>,
    /// Maximum size of a continuation that the caller accepts, in KB.
    pub continuation_limit_kb: Option<u32>,
    /// Merge the results of several ranges in the server; the wire protocol leaves that to its clients.
    pub merges_ranges: bool,
    /// Whether an SDK of the service sends the request. It gets the service's behaviour: a query over all keys is answered with a plan for merging
    /// even if there is one range, and an empty page after a full one tells that no rows are left. Other clients get neither.
    pub is_by_sdk: bool,
    /// How to use indexes, instead of the account's choice; for tests.
    pub index_use: Option<IndexUse>,
    /// Whether to report the indexes and the advice that follow from the query's text.
    pub reports_usage: bool,
}

/// A page of results.
#[derive(Debug, Clone)]
pub struct QueryPage {
    /// Number of rows.
    pub count: usize,
    /// The rows as JSON texts separated by commas: the inside of an array.
    pub rows: Bytes,
    /// The memory share of `rows`, kept as long as they are.
    pub memory: Option<Arc<MemoryShare>>,
    /// Where the next page starts; `None` if this is the last.
    pub continuation: Option<String>,
    /// Counts and times of the work.
    pub metrics: QueryMetrics,
    /// Number of the partition key's first paths that the query fixes. All other predicates are evaluated on each item, so no index would change
    /// this number.
    pub key_components: usize,
    /// The path of the index that was read, as indexing policies write it.
    pub index: Option<String>,
    /// What follows from the query's text, if `reports_usage` is set.
    pub usage: Option<QueryUsage>,
}
