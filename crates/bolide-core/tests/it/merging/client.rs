//! A client that merges the sorted rows of several ranges page by page, each page with a new iterator from the token of the page before.
//!
//! It does as the SDKs do (.NET's `OrderByCrossPartitionQueryPipelineStage`; Java's, JavaScript's and Rust's are alike): the row that comes
//! first in the order is taken from the range whose next row it is, of equal ones from the leftmost range. A token names the row that was
//! given last, its range, and that range's continuation.

use std::cmp::Ordering;
use std::collections::VecDeque;

use bolide_core::{QueryItems, ScanScope};
use bolide_model::epk::EpkRange;
use serde_json::{Value, json};

use super::order::{compare, resume_value};
use super::rewriting;
use crate::test_container::TestContainer;

const PLACEHOLDER: &str = "{documentdb-formattableorderbyquery-filter}";

/// How a client says where a range goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// By `resumeFilter`, and the continuation of the range where it was (.NET since 2024).
    FilterAndToken,
    /// By `resumeFilter` alone (Rust).
    Filter,
    /// By a rewritten filter, and the continuation of the range where it was (.NET before, Java, Python, JavaScript).
    Rewriting,
}

impl Resume {
    pub const ALL: [Resume; 3] = [Resume::FilterAndToken, Resume::Filter, Resume::Rewriting];
}

/// What a client knows of a query.
pub struct Plan {
    text: String,
    descending: Vec<bool>,
    expressions: Vec<String>,
    skip: usize,
    take: Option<usize>,
}

impl Plan {
    pub async fn of(test: &TestContainer, text: &str) -> Plan {
        let features = "OrderBy, MultipleOrderBy, Top, OffsetAndLimit, Distinct";
        let plan = test
            .account
            .query_plan(&test.container, text, &[], features, None)
            .await
            .unwrap();
        let plan: Value = serde_json::from_str(&plan).unwrap();
        let info = &plan["queryInfo"];
        let number = |name: &str| info[name].as_u64().map(|number| usize::try_from(number).unwrap());
        let list = |name: &str| {
            info[name]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry.as_str().unwrap().to_owned())
        };
        Plan {
            text: info["rewrittenQuery"].as_str().unwrap().to_owned(),
            descending: list("orderBy").map(|direction| direction == "Descending").collect(),
            expressions: list("orderByExpressions").collect(),
            skip: number("offset").unwrap_or(0),
            take: number("limit").or(number("top")),
        }
    }
}

/// A row: what it is sorted by, its item, and its content.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// `None` is undefined.
    pub values: Vec<Option<Value>>,
    pub rid: String,
    pub payload: Value,
}

impl Row {
    fn of(row: &Value) -> Row {
        Row {
            values: row["orderByItems"]
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| entry.get("item").cloned())
                .collect(),
            rid: row["_rid"].as_str().unwrap().to_owned(),
            payload: row["payload"].clone(),
        }
    }
}

/// Where a page ended.
#[derive(Debug, Clone)]
pub struct Token {
    last: Row,
    /// Rows of that item that were given out.
    given: usize,
    range: EpkRange,
    continuation: Option<String>,
    skip: usize,
    take: Option<usize>,
}

/// The rows of one range, read as they are needed.
struct Stream<'a> {
    test: &'a TestContainer,
    query: QueryItems,
    range: EpkRange,
    rows: VecDeque<Row>,
    /// The continuation with which the page of `rows` was read.
    at: Option<String>,
    next: Option<String>,
    is_read: bool,
}

impl<'a> Stream<'a> {
    /// Whether there is a row, which is then the first of `rows`.
    async fn fill(&mut self) -> bool {
        while self.rows.is_empty() && !(self.is_read && self.next.is_none()) {
            if self.is_read {
                self.at = self.next.take();
            }
            self.query.continuation.clone_from(&self.at);
            let ctx = self.test.begin().await;
            let page = self.test.account.query(&ctx, &self.test.container, &self.query).await;
            let page = page
                .unwrap_or_else(|refusal| panic!("{:?}: {refusal:?}", self.query))
                .value;
            let rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
            self.rows = rows.iter().map(Row::of).collect();
            self.next = page.continuation;
            self.is_read = true;
        }
        !self.rows.is_empty()
    }
}

/// One page of at most `size` rows by a new iterator; the token of the next page, if there may be one.
pub async fn page(
    test: &TestContainer,
    plan: &Plan,
    size: usize,
    resume: Resume,
    from: Option<Token>,
) -> (Vec<Row>, Option<Token>) {
    let mut streams = streams(test, plan, size, resume, from.as_ref());
    let (mut skip, mut take) = from
        .as_ref()
        .map_or((plan.skip, plan.take), |from| (from.skip, from.take));
    if let Some(from) = &from {
        for stream in streams.iter_mut().filter(|stream| overlap(&stream.range, &from.range)) {
            pass(stream, plan, from).await;
        }
    }
    let mut rows = Vec::new();
    let (mut last, mut given) = match from {
        Some(from) => (Some((from.last, from.range, from.continuation)), from.given),
        None => (None, 0),
    };
    for _ in 0..size {
        let mut first: Option<usize> = None;
        for at in 0..streams.len() {
            if !streams[at].fill().await {
                continue;
            }
            let is_first = first.is_none_or(|first| {
                compare(
                    &plan.descending,
                    &streams[at].rows[0].values,
                    &streams[first].rows[0].values,
                )
                .is_lt()
            });
            if is_first {
                first = Some(at);
            }
        }
        let Some(first) = first else {
            return (rows, None);
        };
        let stream = &mut streams[first];
        let row = stream.rows.pop_front().unwrap();
        given = match &last {
            Some((last, ..)) if last.rid == row.rid => given + 1,
            _ => 1,
        };
        // Behind a page that is used up, its successor goes on.
        let continuation = if stream.rows.is_empty() && stream.next.is_some() && resume != Resume::Filter {
            given = 0;
            stream.next.clone()
        } else {
            stream.at.clone()
        };
        last = Some((row.clone(), stream.range.clone(), continuation));
        if skip > 0 {
            skip -= 1;
        } else {
            take = take.map(|take| take - 1);
            rows.push(row);
        }
        if take == Some(0) {
            return (rows, None);
        }
    }
    let token = last.map(|(last, range, continuation)| Token {
        last,
        given,
        range,
        continuation,
        skip,
        take,
    });
    (rows, token)
}

fn streams<'a>(
    test: &'a TestContainer,
    plan: &Plan,
    size: usize,
    resume: Resume,
    from: Option<&Token>,
) -> Vec<Stream<'a>> {
    let mut ranges = test.container.ranges().ranges;
    ranges.sort_by(|one, other| one.epk.min.cmp(&other.epk.min));
    let streams = ranges.into_iter().map(|range| {
        let mut query = QueryItems {
            text: plan.text.replace(PLACEHOLDER, "true"),
            scope: ScanScope {
                range: Some(range.id),
                ..ScanScope::default()
            },
            cross_partition: true,
            max_items: Some(size),
            ..QueryItems::default()
        };
        let mut at = None;
        if let Some(from) = from {
            let side = match overlap(&range.epk, &from.range) {
                true => Ordering::Equal,
                false => range.epk.min.cmp(&from.range.min),
            };
            if resume == Resume::Rewriting {
                let filter = rewriting::filter(&plan.expressions, &plan.descending, &from.last.values, side.is_lt());
                query.text = plan.text.replace(PLACEHOLDER, &filter);
            } else {
                let mut filter = json!({
                    "value": from.last.values.iter().map(resume_value).collect::<Vec<_>>(),
                    "exclude": side.is_lt(),
                });
                if side.is_eq() {
                    filter["rid"] = from.last.rid.clone().into();
                }
                query.resume_filter = Some(filter);
            }
            if side.is_eq() && resume != Resume::Filter {
                at.clone_from(&from.continuation);
            }
        }
        Stream {
            test,
            query,
            range: range.epk,
            rows: VecDeque::new(),
            at,
            next: None,
            is_read: false,
        }
    });
    streams.collect()
}

/// Passes over what earlier pages gave of the range where the last one ended.
async fn pass(stream: &mut Stream<'_>, plan: &Plan, from: &Token) {
    let mut given = from.given;
    while stream.fill().await {
        let row = &stream.rows[0];
        let order = compare(&plan.descending, &row.values, &from.last.values).then_with(|| {
            let order = number_of(&row.rid).cmp(&number_of(&from.last.rid));
            if plan.descending[0] { order.reverse() } else { order }
        });
        match order {
            Ordering::Less => {}
            Ordering::Equal if given > 0 => given -= 1,
            Ordering::Equal | Ordering::Greater => return,
        }
        stream.rows.pop_front();
    }
}

fn number_of(rid: &str) -> u64 {
    bolide_model::rid::ItemRid::parse(rid).unwrap().number
}

fn overlap(one: &EpkRange, other: &EpkRange) -> bool {
    one.intersect(other).is_some()
}
