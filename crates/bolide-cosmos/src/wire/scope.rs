//! The part of a container that a feed or query reads, and the size of a page.

use bolide_core::{Container, ScanScope};
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::{Error, Result};
use http::HeaderMap;

use super::headers;

/// Page size if the client sets none (cosmos-rest §3.7).
const DEFAULT_PAGE_ITEMS: usize = 100;

/// Reads the partition key header of a request on a container. An empty array means none, or the key of items without one if the container has no
/// partition key.
///
/// # Errors
/// `BadRequest` if it is not a JSON array of scalars.
pub(crate) fn partition_key(headers: &HeaderMap, container: &Container) -> Result<Option<PartitionKey>> {
    Ok(match sent_key(headers)? {
        Some(key) if key.is_empty() => container.properties().partition_key.meant_by(key),
        sent => sent,
    })
}

/// Reads the partition key header of a request on items of one key. If the container has no partition key, clients from before partition keys existed
/// send none.
///
/// # Errors
/// `BadRequest` if it is not a JSON array of scalars, or missing.
pub(crate) fn one_key(headers: &HeaderMap, container: &Container) -> Result<PartitionKey> {
    key_or_none(partition_key(headers, container)?, container)
}

/// The key sent with an operation on items of one key, or the key of items without one.
///
/// # Errors
/// `BadRequest` if there is neither.
pub(crate) fn key_or_none(sent: Option<PartitionKey>, container: &Container) -> Result<PartitionKey> {
    sent.or_else(|| container.properties().partition_key.key_of_none())
        .ok_or_else(|| {
            let header = &headers::PARTITION_KEY;
            Error::bad_request(format!(
                "PartitionKey value must be supplied for this operation in header `{header}`."
            ))
        })
}

/// Reads the partition key header as sent.
///
/// # Errors
/// `BadRequest` if it is not a JSON array of scalars.
fn sent_key(headers: &HeaderMap) -> Result<Option<PartitionKey>> {
    let Some(text) = headers::non_empty(headers, &headers::PARTITION_KEY)? else {
        return Ok(None);
    };
    if let Some(string) = plain_string(text) {
        return Ok(Some(PartitionKey(vec![Component::String(string.to_owned())])));
    }
    PartitionKey::from_header(text).map(Some)
}

/// The value of a key that is a single string without escapes: most keys are, and need no JSON parser.
fn plain_string(key: &str) -> Option<&str> {
    let string = key.strip_prefix("[\"")?.strip_suffix("\"]")?;
    let is_plain = string.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\');
    is_plain.then_some(string)
}

/// Reads the headers that restrict a feed or query to a part of the container (cosmos-rest §6.1, §8.1).
///
/// # Errors
/// `BadRequest` for malformed values, and for ends of an interval without the header that declares their type.
pub(crate) fn scope(headers: &HeaderMap, container: &Container) -> Result<ScanScope> {
    Ok(ScanScope {
        partition_key: partition_key(headers, container)?,
        range: range(headers)?,
        epk: epk(headers)?.map(|epk| epk.meant_by_client(&container.properties().partition_key)),
    })
}

/// The requested page size: `None` leaves it to the server.
///
/// # Errors
/// `BadRequest` for numbers below -1.
pub(crate) fn max_items(headers: &HeaderMap) -> Result<Option<usize>> {
    match headers::integer(headers, &headers::MAX_ITEM_COUNT)? {
        // Java sends 0 with `TOP 0`.
        None | Some(0) => Ok(Some(DEFAULT_PAGE_ITEMS)),
        Some(-1) => Ok(None),
        Some(count @ 1..) => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
        Some(count) => Err(Error::bad_request(format!(
            "header `{}` must be -1 or more. value={count}",
            headers::MAX_ITEM_COUNT
        ))),
    }
}

/// The id of the range that a request names.
///
/// # Errors
/// `BadRequest` for anything but a number, perhaps after the resource id of its container and a comma.
pub(crate) fn range(headers: &HeaderMap) -> Result<Option<u32>> {
    let Some(text) = headers::non_empty(headers, &headers::PARTITION_KEY_RANGE_ID)? else {
        return Ok(None);
    };
    // Java and .NET may send `<container rid>,<range id>`.
    let id = text.rsplit_once(',').map_or(text, |(_, id)| id.trim());
    let id = id
        .parse()
        .map_err(|_| Error::bad_request(format!("malformed partition key range id. value=`{text}`")))?;
    Ok(Some(id))
}

fn epk(headers: &HeaderMap) -> Result<Option<EpkRange>> {
    let start = headers::text(headers, &headers::START_EPK)?;
    let end = headers::text(headers, &headers::END_EPK)?;
    if start.is_none() && end.is_none() {
        return Ok(None);
    }
    let key_type = headers::text(headers, &headers::READ_KEY_TYPE)?.unwrap_or_default();
    if !key_type.eq_ignore_ascii_case("EffectivePartitionKeyRange") {
        return Err(Error::bad_request(format!(
            "an interval of effective partition keys needs the header `{}: EffectivePartitionKeyRange`. value=`{key_type}`",
            headers::READ_KEY_TYPE
        )));
    }
    let min = Epk::from_hex(start.unwrap_or_default())?;
    let max = end.map_or_else(|| Ok(Epk::end()), Epk::from_hex)?;
    Ok(Some(EpkRange::new(min, max)))
}

#[cfg(test)]
mod tests;
