//! Partition key ranges (cosmos-rest §7.1).
//!
//! Python and .NET read this feed incrementally until they get a 304; a server that never returns it makes them loop, and one that returns it for a
//! plain `GET` breaks the other SDKs.

use bolide_core::Range;
use bolide_model::rid::{ChildKind, ChildRid};
use http::header::IF_NONE_MATCH;
use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::addressing;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, envelope, headers};

pub(super) fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::parent_container(call.account(), &call.route)?;
    let info = container.info();
    let ranges = container.ranges();
    // Includes the container's id: a token of a deleted container must not be valid for a new one.
    let etag = format!("\"{}-{}\"", info.rid, ranges.version);
    let newest = ranges.ranges.iter().map(|range| range.lsn.0).max().unwrap_or(0);
    let mut reply = if is_known(call.headers(), &etag)? {
        let mut reply = Reply::empty(StatusCode::NOT_MODIFIED);
        reply.number(&headers::ITEM_COUNT, 0);
        reply
    } else {
        let link = info.rid.self_link();
        let count = ranges.ranges.len();
        let rows: Vec<String> = ranges
            .ranges
            .iter()
            .map(|range| {
                let rid = ChildRid::new(info.rid, ChildKind::PartitionKeyRange, u64::from(range.id) + 2);
                row(range, &rid.to_string(), &link, &etag, count, info.last_modified.0)
            })
            .collect();
        let mut reply = Reply::json(
            StatusCode::OK,
            envelope(
                &info.rid.to_string(),
                "PartitionKeyRanges",
                rows.join(",").as_bytes(),
                count,
            ),
        );
        reply.number(&headers::ITEM_COUNT, count as u64);
        reply
    };
    reply.number(&headers::LSN, newest);
    Ok(reply.etag(etag))
}

/// Whether the client reads incrementally and already has this version.
fn is_known(headers: &HeaderMap, etag: &str) -> bolide_model::Result<bool> {
    let mode = headers::text(headers, &headers::A_IM)?.unwrap_or_default();
    let seen = headers::text(headers, &IF_NONE_MATCH)?.unwrap_or_default();
    Ok(mode.eq_ignore_ascii_case("Incremental Feed") && seen.trim_matches('"') == etag.trim_matches('"'))
}

fn row(range: &Range, rid: &str, container_link: &str, etag: &str, count: usize, last_modified: i64) -> String {
    let parents: Vec<String> = range.parents.iter().map(u32::to_string).collect();
    json!({
        "_rid": rid,
        "id": range.id.to_string(),
        "_etag": etag,
        "minInclusive": range.epk.min.to_hex(),
        "maxExclusive": range.epk.max.to_hex(),
        "ridPrefix": range.id,
        "_self": format!("{container_link}pkranges/{rid}/"),
        "throughputFraction": 1.0 / count as f64,
        "status": "online",
        "parents": parents,
        "_ts": last_modified,
        "_lsn": range.lsn.0,
    })
    .to_string()
}

#[cfg(test)]
mod tests;
