//! Steps that read lists: queries, read feed, read many, change feeds.

use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::answer;
use crate::Result;
use crate::conformance::expect::StepResult;
use crate::conformance::scenario::{ChangeFeed, FeedMode, OfContainer, Query, ReadMany};
use crate::conformance::session::Session;
use crate::conformance::wire::{Request, Response, Target};

/// More pages than any scenario can have; a server that always returns one more fails instead of looping forever.
const PAGES_LIMIT: usize = 1000;

/// Runs a query: one page if the step sets a page size, otherwise all pages.
pub fn query(session: &Session, query: &Query) -> Result<StepResult> {
    let from = query
        .continuation
        .as_ref()
        .map(|label| session.continuation_of(label))
        .transpose()?;
    let page_size = query.page_size.map_or("-1".to_owned(), |size| size.to_string());
    let body = json!({"query": query.sql, "parameters": []});
    let request =
        || query_request(session, &query.container, query.pk.as_ref(), &body).header("x-ms-max-item-count", &page_size);
    Ok(list(session, from, query.page_size.is_some(), request)?.answer())
}

/// Lists the ids of all items.
pub fn read_feed(session: &Session, of: &OfContainer) -> Result<StepResult> {
    let request = || Request::signed(Method::GET, Target::feed(&session.container(&of.container), "docs"));
    Ok(list(session, None, false, request)?.into_ids().answer())
}

/// Reads several items as SDKs do, with a query for their ids.
pub fn read_many(session: &Session, read: &ReadMany) -> Result<StepResult> {
    let names: Vec<String> = (0..read.ids.len()).map(|index| format!("@id{index}")).collect();
    let parameter = |(name, id)| json!({"name": name, "value": id});
    let body = json!({
        "query": format!("SELECT * FROM c WHERE c.id IN ({})", names.join(", ")),
        "parameters": names.iter().zip(&read.ids).map(parameter).collect::<Vec<Value>>(),
    });
    let request = || query_request(session, &read.container, Some(&read.pk), &body);
    Ok(list(session, None, false, request)?.into_ids().answer())
}

fn query_request(session: &Session, container: &str, partition_key: Option<&Value>, body: &Value) -> Request {
    let feed = Target::feed(&session.container(container), "docs");
    let request = Request::signed(Method::POST, feed)
        .header("x-ms-documentdb-isquery", "True")
        .text(body.to_string(), "application/query+json");
    match partition_key {
        Some(value) => request.partition_key(value),
        None => request.header("x-ms-documentdb-query-enablecrosspartition", "True"),
    }
}

/// Reads a change feed to its end; the status is that of the first page.
pub fn change_feed(session: &Session, feed: &ChangeFeed) -> Result<StepResult> {
    let mut from = match feed.from.as_str() {
        "beginning" => None,
        "now" => Some("*".to_owned()),
        label => Some(session.continuation_of(label)?),
    };
    let mut whole = None;
    let mut events = Vec::new();
    for _ in 0..PAGES_LIMIT {
        let response = session.client.send(change_request(session, feed, from.as_ref()))?;
        let is_end = response.status() == 304;
        if response.status() != 200 && !is_end {
            return Ok(answer(&response));
        }
        from = Some(
            response
                .header("etag")
                .ok_or("a page of the change feed has no etag")?
                .to_owned(),
        );
        let whole: &mut StepResult = whole.get_or_insert_with(|| answer(&response));
        if is_end {
            whole.kept.continuation = from;
            return Ok(std::mem::take(whole).with("events", events));
        }
        events.extend(documents(&response)?.iter().map(|row| event(feed.mode, row)));
    }
    Err("the change feed has no end".into())
}

fn change_request(session: &Session, feed: &ChangeFeed, from: Option<&String>) -> Request {
    let target = Target::feed(&session.container(&feed.container), "docs");
    let request = Request::signed(Method::GET, target)
        .header("x-ms-max-item-count", "-1")
        .optional_header("if-none-match", from);
    match feed.mode {
        FeedMode::Latest => request.header("a-im", "Incremental Feed"),
        FeedMode::Avad => request
            .header("a-im", "Full-Fidelity Feed")
            .header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15"),
    }
}

/// A row of a change feed in the format of scenarios, without members that the row does not have.
fn event(mode: FeedMode, row: &Value) -> Value {
    let mut event = Map::new();
    let mut put =
        |name: &str, value: Option<&Value>| event.extend(value.cloned().map(|value| (name.to_owned(), value)));
    match mode {
        FeedMode::Latest => put("id", row.get("id")),
        FeedMode::Avad => {
            put("op", row.pointer("/metadata/operationType"));
            put("id", row.pointer("/metadata/id").or_else(|| row.pointer("/current/id")));
            put("ttlExpired", row.pointer("/metadata/timeToLiveExpired"));
        }
    }
    Value::Object(event)
}

/// The rows of a feed's page.
fn documents(response: &Response) -> Result<Vec<Value>> {
    match response.json()?.get_mut("Documents").map(Value::take) {
        Some(Value::Array(rows)) => Ok(rows),
        _ => Err("the page has no Documents".into()),
    }
}

/// The rows of a list's pages.
struct Listing {
    rows: Vec<Value>,
    /// The last page, which has the final status.
    last: Response,
    continuation: Option<String>,
}

/// Reads page after page, or only one. A refusal is the last page and has no rows.
fn list(session: &Session, from: Option<String>, one_only: bool, request: impl Fn() -> Request) -> Result<Listing> {
    let mut rows = Vec::new();
    let mut continuation = from;
    for _ in 0..PAGES_LIMIT {
        let last = session
            .client
            .send(request().optional_header("x-ms-continuation", continuation.as_ref()))?;
        if last.succeeded() {
            rows.extend(documents(&last)?);
        }
        continuation = last.header("x-ms-continuation").map(str::to_owned);
        if one_only || continuation.is_none() {
            return Ok(Listing {
                rows,
                last,
                continuation,
            });
        }
    }
    Err("the list has no end".into())
}

impl Listing {
    /// Keeps only the id of each row.
    fn into_ids(mut self) -> Self {
        for row in &mut self.rows {
            *row = row["id"].take();
        }
        self
    }

    fn answer(self) -> StepResult {
        let mut answer = answer(&self.last).with("more", self.continuation.is_some());
        answer.kept.continuation = self.continuation;
        answer
            .with("valuesAnyOrder", self.rows.clone())
            .with("values", self.rows)
    }
}

#[cfg(test)]
mod tests;
