//! Steps that list: queries, read feed, read many, change feeds.

use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::answer;
use crate::Result;
use crate::conformance::expect::Answer;
use crate::conformance::scenario::{ChangeFeed, FeedMode, OfContainer, Query, ReadMany};
use crate::conformance::session::Session;
use crate::conformance::wire::{Request, Response, Target};

/// More pages than any scenario can have; a server that always has one more fails instead of keeping us for ever.
const PAGES_LIMIT: usize = 1000;

/// Runs a query: one page of it if the step names a page size, all pages otherwise.
pub fn query(session: &Session, query: &Query) -> Result<Answer> {
    let mut continuation = match &query.continuation {
        Some(label) => Some(
            session
                .kept(label)?
                .continuation
                .clone()
                .ok_or("no continuation is kept under the label")?,
        ),
        None => None,
    };
    let body = json!({"query": query.sql, "parameters": []});
    let page = |continuation: Option<&String>| {
        let request = query_request(session, &query.container, query.pk.as_ref(), &body)
            .header(
                "x-ms-max-item-count",
                query.page_size.map_or("-1".to_owned(), |size| size.to_string()),
            )
            .optional_header("x-ms-continuation", continuation);
        session.client.send(request)
    };
    let mut pages = Pages::default();
    for _ in 0..PAGES_LIMIT {
        let response = page(continuation.as_ref())?;
        continuation = pages.add(&response)?;
        if query.page_size.is_some() || continuation.is_none() {
            return Ok(pages.answer(&response, continuation));
        }
    }
    Err("the query has no end".into())
}

/// Lists the ids of all items.
pub fn read_feed(session: &Session, of: &OfContainer) -> Result<Answer> {
    let mut continuation = None;
    let mut pages = Pages::default();
    for _ in 0..PAGES_LIMIT {
        let feed = Target::feed(&session.container(&of.container), "docs");
        let request = Request::signed(Method::GET, feed).optional_header("x-ms-continuation", continuation.as_ref());
        let response = session.client.send(request)?;
        continuation = pages.add(&response)?;
        if continuation.is_none() {
            return Ok(pages.into_ids().answer(&response, None));
        }
    }
    Err("the feed has no end".into())
}

/// Reads several items as SDKs do, by a query for their ids.
pub fn read_many(session: &Session, read: &ReadMany) -> Result<Answer> {
    let names: Vec<String> = (0..read.ids.len()).map(|index| format!("@id{index}")).collect();
    let parameters: Vec<Value> = names
        .iter()
        .zip(&read.ids)
        .map(|(name, id)| json!({"name": name, "value": id}))
        .collect();
    let body = json!({
        "query": format!("SELECT * FROM c WHERE c.id IN ({})", names.join(", ")),
        "parameters": parameters,
    });
    let response = session
        .client
        .send(query_request(session, &read.container, Some(&read.pk), &body))?;
    let mut pages = Pages::default();
    pages.add(&response)?;
    Ok(pages.into_ids().answer(&response, None))
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
pub fn change_feed(session: &Session, feed: &ChangeFeed) -> Result<Answer> {
    let mut from = match feed.from.as_str() {
        "beginning" => None,
        "now" => Some("*".to_owned()),
        label => Some(
            session
                .kept(label)?
                .continuation
                .clone()
                .ok_or("no continuation is kept under the label")?,
        ),
    };
    let mut first = None;
    let mut events = Vec::new();
    for _ in 0..PAGES_LIMIT {
        let response = session.client.send(change_request(session, feed, from.as_ref()))?;
        let answer = first.get_or_insert_with(|| answer(&response));
        if let Some(etag) = response.header("etag") {
            from = Some(etag.to_owned());
        }
        if response.status() != 200 {
            answer.kept.continuation = from;
            return Ok(std::mem::take(answer).with("events", events));
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

/// A row of a change feed as scenarios write it, with no member that the row does not have.
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

/// The rows of all pages so far.
#[derive(Default)]
struct Pages {
    rows: Vec<Value>,
}

impl Pages {
    /// Adds a page; returns where the next one begins, if there is one. A refusal is a page without rows.
    fn add(&mut self, response: &Response) -> Result<Option<String>> {
        if !response.succeeded() {
            return Ok(None);
        }
        self.rows.extend(documents(response)?);
        Ok(response.header("x-ms-continuation").map(str::to_owned))
    }

    /// Keeps of each row only its id.
    fn into_ids(mut self) -> Self {
        for row in &mut self.rows {
            *row = row["id"].take();
        }
        self
    }

    /// The answer of the last page's response with the rows of all.
    fn answer(self, response: &Response, continuation: Option<String>) -> Answer {
        let mut answer = answer(response).with("more", continuation.is_some());
        answer.kept.continuation = continuation;
        answer
            .with("valuesAnyOrder", self.rows.clone())
            .with("values", self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purged_item_is_a_marked_delete_named_by_its_metadata() {
        let row = json!({"current": {}, "metadata": {"operationType": "delete", "lsn": 7, "id": "a", "timeToLiveExpired": true}});
        assert_eq!(
            event(FeedMode::Avad, &row),
            json!({"op": "delete", "id": "a", "ttlExpired": true})
        );
    }

    #[test]
    fn an_event_has_no_mark_unless_the_row_has_one() {
        let created = json!({"current": {"id": "a"}, "metadata": {"operationType": "create", "lsn": 6}});
        assert_eq!(event(FeedMode::Avad, &created), json!({"op": "create", "id": "a"}));
        let denied =
            json!({"current": {"id": "a"}, "metadata": {"operationType": "create", "timeToLiveExpired": false}});
        assert_eq!(
            event(FeedMode::Avad, &denied),
            json!({"op": "create", "id": "a", "ttlExpired": false})
        );
    }

    #[test]
    fn a_latest_version_is_named_by_the_document_itself() {
        assert_eq!(
            event(FeedMode::Latest, &json!({"id": "a", "pk": "p", "_lsn": 3})),
            json!({"id": "a"})
        );
    }
}
