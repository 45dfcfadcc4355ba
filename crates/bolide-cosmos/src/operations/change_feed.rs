//! The change feed in latest-version mode (cosmos-rest §8).

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bolide_core::{Answered, ChangePage, Container, FeedStart, ReadChanges, StoredItem};
use bolide_model::{Error, Result, UnixSeconds};
use bytes::Bytes;
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};

use super::data_plane::map;
use super::feeds;
use crate::service::Call;
use crate::wire::{Reply, headers, scope};

/// The wire format whose rows are envelopes.
const ENVELOPES: &str = "2021-09-15";

pub(super) async fn read(call: &Call<'_>, container: &Arc<Container>) -> Answered<Reply> {
    let read = ReadChanges {
        scope: scope::scope(call.headers())?,
        start: start(call.headers())?,
        max_items: scope::max_items(call.headers())?,
    };
    let format = headers::non_empty(call.headers(), &headers::FEED_WIRE_FORMAT)?;
    let row = if format == Some(ENVELOPES) {
        enveloped
    } else {
        StoredItem::to_json_with_lsn
    };
    let answer = call.account().change_feed(&call.ctx, container, &read).await?;
    Ok(map(answer, |page| reply(container, &page, row)))
}

fn reply(container: &Container, page: &ChangePage, row: fn(&StoredItem) -> Bytes) -> Reply {
    let reply = if page.items.is_empty() {
        // .NET takes the item count and the continuation from this answer too.
        let mut reply = Reply::empty(StatusCode::NOT_MODIFIED);
        reply.number(&headers::ITEM_COUNT, 0);
        reply
    } else {
        let rows: Vec<Bytes> = page.items.iter().map(row).collect();
        feeds::documents(container, &rows.join(&b','), rows.len(), None)
    };
    reply.etag(format!("\"{}\"", page.continuation))
}

/// Where to start (cosmos-rest §8.1): a continuation goes before a time.
fn start(headers: &HeaderMap) -> Result<FeedStart> {
    if let Some(etag) = headers::non_empty(headers, &IF_NONE_MATCH)? {
        return Ok(match etag.trim_matches('"') {
            "*" => FeedStart::Now,
            continuation => FeedStart::After(continuation.to_owned()),
        });
    }
    let Some(since) = headers::non_empty(headers, &IF_MODIFIED_SINCE)? else {
        return Ok(FeedStart::Beginning);
    };
    let since = httpdate::parse_http_date(since).map_err(|_| {
        Error::bad_request(format!(
            "header `if-modified-since` is not an RFC 1123 date. value=`{since}`"
        ))
    })?;
    let seconds = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(FeedStart::Time(UnixSeconds(i64::try_from(seconds).unwrap_or(i64::MAX))))
}

fn enveloped(item: &StoredItem) -> Bytes {
    let json = item.to_json();
    let mut row = Vec::with_capacity(json.len() + 64);
    row.extend_from_slice(b"{\"current\":");
    row.extend_from_slice(&json);
    row.extend_from_slice(
        format!(
            ",\"metadata\":{{\"lsn\":{},\"crts\":{}}}}}",
            item.lsn(),
            item.last_modified().0
        )
        .as_bytes(),
    );
    row.into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn start_of(headers: &[(http::HeaderName, &'static str)]) -> Result<FeedStart> {
        start(
            &headers
                .iter()
                .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
                .collect(),
        )
    }

    #[test]
    fn a_continuation_goes_before_a_time_and_may_lack_quotes() {
        let time = (IF_MODIFIED_SINCE, "Thu, 01 Jan 1970 00:01:00 GMT");
        assert_eq!(start_of(&[]).expect("nothing given"), FeedStart::Beginning);
        assert_eq!(
            start_of(std::slice::from_ref(&time)).expect("a date"),
            FeedStart::Time(UnixSeconds(60))
        );
        assert_eq!(
            start_of(&[(IF_NONE_MATCH, "*"), time.clone()]).expect("now"),
            FeedStart::Now
        );
        for etag in ["\"57\"", "57"] {
            let start = start_of(&[(IF_NONE_MATCH, etag), time.clone()]).expect("a continuation");
            assert_eq!(start, FeedStart::After("57".to_owned()));
        }
        assert!(start_of(&[(IF_MODIFIED_SINCE, "yesterday")]).is_err());
    }
}
