//! Feeds and queries over databases, containers and offers.
//!
//! They are in memory, so a page is taken from all of them; only resources on the page are written as JSON, and the input of a query counts as memory
//! of its request. A continuation names the end of the last page: for a feed the resource, so that deleting listed resources skips nothing; for a
//! query the number of rows.

use std::fmt::Display;
use std::str::FromStr;

use bolide_core::{Account, MemoryShare};
use bolide_model::{Error, Result, limits};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::request::Call;
use crate::session;
use crate::status::Failure;
use crate::wire::{Reply, body, envelope, headers, scope};

/// The response for a new database or container, without a body if the client wants none.
///
/// Source: `create_database_and_container_through_driver` of the Rust SDK's tests.
pub(super) fn created(sent: &HeaderMap, mut reply: Reply) -> Reply {
    reply.fixed(&headers::SESSION_TOKEN, session::DEFINITIONS_TOKEN);
    if headers::prefers_minimal(sent) {
        reply.without_body()
    } else {
        reply
    }
}

/// A kind of resource that has feeds.
pub(super) struct Feed<'f> {
    /// Name of the array in the envelope.
    pub array: &'static str,
    /// Resource id of the parent; empty for the account.
    pub parent: &'f str,
}

/// The resource ids of a kind.
pub(super) struct Ids<R, T> {
    /// Parses one from a continuation.
    pub parse: fn(&str) -> Option<R>,
    /// The id of a resource.
    pub of: fn(&T) -> R,
}

impl Feed<'_> {
    /// A page of the resources, in the order of their ids. There may be thousands, so this runs on the threads for queries.
    pub(super) async fn list<R, T>(
        &self,
        call: &Call<'_>,
        ids: Ids<R, T>,
        shape: impl Fn(&T) -> Value + Send + 'static,
        gather: impl FnOnce(&Account) -> Result<Vec<T>> + Send + 'static,
    ) -> Result<Reply, Failure>
    where
        R: Ord + Display + 'static,
        T: Send + 'static,
    {
        let (account, headers) = (call.state.account.clone(), call.headers().clone());
        let (array, parent) = (self.array, self.parent.to_owned());
        let page = move || {
            let resources = gather(&account)?;
            let feed = Feed { array, parent: &parent };
            let shown = resources
                .iter()
                .map(|resource| ((ids.of)(resource), || shape(resource)));
            feed.page(&headers, ids.parse, shown)
        };
        call.account().aside(page).await?
    }

    /// A page of resources. Each comes with a function that makes its JSON.
    fn page<R: Ord + Display, F: FnOnce() -> Value>(
        &self,
        headers: &HeaderMap,
        parse: fn(&str) -> Option<R>,
        resources: impl Iterator<Item = (R, F)>,
    ) -> Result<Reply, Failure> {
        let mut resources: Vec<(R, F)> = resources.collect();
        resources.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(last) = continuation::<RidText>(headers, 'M')? {
            let last = parse(&last.0).ok_or_else(|| malformed(&last.0))?;
            resources.retain(|(rid, _)| *rid > last);
        }
        let size = page_size(headers)?;
        let mut left = resources.into_iter();
        let (mut page, mut bytes, mut last) = (Vec::new(), 0, None);
        while page.len() < size
            && bytes < limits::PAGE_BYTES
            && let Some((rid, resource)) = left.next()
        {
            let text = resource().to_string();
            bytes += text.len();
            page.push(text);
            last = Some(rid);
        }
        let next = last.filter(|_| left.len() > 0).map(|last| format!("M1:{last}"));
        Ok(self.reply(&page, next))
    }

    /// A page of the rows of a query over the resources.
    pub(super) async fn query(
        &self,
        call: &Call<'_>,
        gather: impl FnOnce(&Account, &mut dyn FnMut(&Value) -> Result<()>) -> Result<()> + Send + 'static,
    ) -> Result<Reply, Failure> {
        let query = call
            .decoded(|| body::sent_query(call.headers(), call.body))
            .await?
            .without_resume_filter()?;
        let account = call.state.account.clone();
        let written = call.account().aside(move || written(&account, gather));
        let (resources, _share) = written.await??;
        let rows = call
            .account()
            .query_documents(&call.ctx, &query.text, &query.parameters, resources)
            .await?;
        let start = continuation::<usize>(call.headers(), 'Q')?.unwrap_or(0).min(rows.len());
        let end = start.saturating_add(page_size(call.headers())?).min(rows.len());
        let next = (end < rows.len()).then(|| format!("Q1:{end}"));
        Ok(self.reply(&rows[start..end], next))
    }

    fn reply<T: AsRef<[u8]>>(&self, rows: &[T], next: Option<String>) -> Reply {
        let text = rows.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(&b',');
        let mut reply = Reply::json(StatusCode::OK, envelope(self.parent, self.array, &text, rows.len()));
        reply.number(&headers::ITEM_COUNT, rows.len() as u64);
        if let Some(next) = next {
            reply.text(&headers::CONTINUATION, next);
        }
        reply
    }
}

/// Resources as JSON, with their memory.
fn written(
    account: &Account,
    gather: impl FnOnce(&Account, &mut dyn FnMut(&Value) -> Result<()>) -> Result<()>,
) -> Result<(Vec<Bytes>, MemoryShare)> {
    let memory = account.memory();
    let mut share = MemoryShare::default();
    let (mut texts, mut bytes) = (Vec::new(), 0);
    gather(account, &mut |resource| {
        let text = resource.to_string();
        bytes += text.len();
        memory.try_grow(&mut share, bytes)?;
        texts.push(text.into());
        Ok(())
    })?;
    Ok((texts, share))
}

struct RidText(String);

impl FromStr for RidText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<RidText, Self::Err> {
        Ok(RidText(text.to_owned()))
    }
}

/// Parses a continuation: a letter for its kind, a version, and the position.
fn continuation<T: FromStr>(headers: &HeaderMap, kind: char) -> Result<Option<T>> {
    let Some(text) = headers::non_empty(headers, &headers::CONTINUATION)? else {
        return Ok(None);
    };
    let position = text.strip_prefix(kind).and_then(|rest| rest.strip_prefix("1:"));
    let position = position.and_then(|position| position.parse().ok());
    position.map(Some).ok_or_else(|| malformed(text))
}

fn malformed(text: &str) -> Error {
    Error::bad_request(format!(
        "Invalid Continuation Token: it is not one of this feed. value=`{text}`"
    ))
}

fn page_size(headers: &HeaderMap) -> Result<usize> {
    Ok(scope::max_items(headers)?.unwrap_or(limits::PAGE_ITEMS))
}

#[cfg(test)]
mod tests;
