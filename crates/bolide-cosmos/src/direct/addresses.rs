//! `GET //addresses/`: where clients send frames, for the ranges of a container, or for databases and containers themselves.
//!
//! Each range has two addresses, a primary and a secondary: clients write to the primary, and those that read by quorum ask one secondary, and are content with it.
//! Both are of this server, or of those of the store that the range is for: any of them can carry out any request, with everything that another one has acknowledged.
//!
//! Source: rntbd.md §1.2, §1.3, §1.6.

use bolide_core::Account;
use bolide_model::rid::ContainerRid;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::auth;
use crate::listener::Listener;
use crate::names;
use crate::request::Sender;
use crate::routes::Signed;
use crate::state::State;
use crate::status::{FORBIDDEN, Failure, METHOD_NOT_ALLOWED, NOT_FOUND};
use crate::wire::{Reply, percent};

/// The range of databases and containers themselves.
const MASTER: &str = "M";
/// Ranges in one request: clients ask for up to 50.
const RANGES: usize = 1_000;

/// What a client asks for.
enum Asked {
    /// Databases and containers themselves.
    Master,
    /// Ranges of a container.
    Ranges {
        rid: ContainerRid,
        text: String,
        ranges: Vec<String>,
    },
}

/// Answers a request.
///
/// # Errors
/// 400 if it is malformed, 401 without a key, 403 with a token of another container, 404 if there is no such container.
pub(crate) async fn answer(state: &State, head: &Parts, listener: Listener) -> Result<Reply, Failure> {
    auth::authorization(head)?;
    let query = head.uri.query().unwrap_or_default();
    let asked = Asked::of(query)?;
    let signed_rid;
    let signed = match &asked {
        Asked::Master => Signed {
            resource_type: "dbs",
            link: "",
        },
        Asked::Ranges { text, .. } => {
            signed_rid = text.to_ascii_lowercase();
            Signed {
                resource_type: "docs",
                link: &signed_rid,
            }
        }
    };
    let sender = auth::authenticate_link(&state.keys, head, signed)?;
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return Err(Failure::new(METHOD_NOT_ALLOWED, "addresses are only read"));
    }
    if !parameter(query, "$filter").is_none_or(|filter| filter.eq_ignore_ascii_case("protocol eq rntbd")) {
        return Ok(reply(&[]));
    }
    let endpoint = names::endpoint(state.options.endpoint.as_ref(), head, listener);
    let authority = &names::with_port(&endpoint);
    match asked {
        Asked::Master => {
            if let Sender::Token(_) = sender {
                return Err(Failure::new(
                    FORBIDDEN,
                    "a resource token gives no access to databases and containers",
                ));
            }
            Ok(reply(&addresses(&[authority], MASTER)))
        }
        Asked::Ranges { rid, ranges, .. } => {
            if let Sender::Token(grant) = &sender {
                grant.check_container(&state.account, rid)?;
            }
            let all = fresh_places(&state.account, &rid, &ranges).await?;
            // A range that is not there is left out: clients know what that means.
            let found = ranges
                .iter()
                .zip(&all)
                .filter_map(|(range, places)| Some((range, places.as_ref()?)));
            let told: Vec<Value> = found
                .flat_map(|(range, places)| {
                    let servers: Vec<&str> = places
                        .iter()
                        .map(|place| place.as_deref().unwrap_or(authority))
                        .collect();
                    addresses(&servers, range)
                })
                .collect();
            Ok(reply(&told))
        }
    }
}

/// Where the servers of a range are; `None` for this one.
type Places = Vec<Option<String>>;

/// The same, as far as any server of the store knows.
///
/// # Errors
/// 404 without the container.
async fn fresh_places(
    account: &Account,
    rid: &ContainerRid,
    ranges: &[String],
) -> Result<Vec<Option<Places>>, Failure> {
    let mut all = places(account, rid, ranges);
    if account.has_shared_store() && all.as_ref().is_none_or(|all| all.contains(&None)) {
        // Another server may have made it.
        account.refresh_catalog().await?;
        all = places(account, rid, ranges);
    }
    all.ok_or_else(|| Failure::new(NOT_FOUND, "there is no such container"))
}

/// The places of ranges, `None` for one that is not there; `None` without the container.
fn places(account: &Account, rid: &ContainerRid, ranges: &[String]) -> Option<Vec<Option<Places>>> {
    let container = account.container_by_rid(*rid).ok()?;
    let places = |range: &String| account.frame_places(&container, range.parse().ok()?).ok();
    Some(ranges.iter().map(places).collect())
}

impl Asked {
    fn of(query: &str) -> Result<Asked, Failure> {
        let wanted = parameter(query, "$resolveFor");
        let wanted = wanted.ok_or_else(|| Failure::bad_request("parameter `$resolveFor` is missing"))?;
        let segments: Vec<&str> = wanted.split('/').filter(|segment| !segment.is_empty()).collect();
        let rid = match segments[..] {
            ["dbs"] => return Ok(Asked::Master),
            ["dbs", _, "colls", rid, "docs"] => rid,
            _ => {
                return Err(Failure::bad_request(
                    "`$resolveFor` must be `dbs` or `dbs/{rid}/colls/{rid}/docs`",
                ));
            }
        };
        let found = ContainerRid::parse(rid).ok_or_else(|| Failure::new(NOT_FOUND, "there is no such container"))?;
        let ranges = parameter(query, "$partitionKeyRangeIds").unwrap_or_default();
        let ranges: Vec<String> = ranges
            .split(',')
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect();
        if ranges.len() > RANGES {
            return Err(Failure::bad_request(format!(
                "too many ranges. ranges={} limit={RANGES}",
                ranges.len()
            )));
        }
        Ok(Asked::Ranges {
            rid: found,
            text: rid.to_owned(),
            ranges,
        })
    }
}

/// A parameter of the query string, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let decoded = |text| percent::decode(text).map(|text| text.into_owned());
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(key, _)| decoded(key).is_some_and(|key| key == name));
    decoded(found.next()?.1)
}

/// The addresses of a range on one or two servers: on one alone both are of that one.
fn addresses(servers: &[&str], range: &str) -> Vec<Value> {
    let address = |is_primary: bool| {
        let authority = if is_primary { servers.first() } else { servers.last() };
        let authority = authority.copied().unwrap_or_default();
        let (number, kind) = if is_primary { (0, 'p') } else { (1, 's') };
        json!({
            "isPrimary": is_primary,
            "isAuxiliary": false,
            "protocol": "rntbd",
            "logicalUri": "",
            "physcialUri": format!("rntbd://{authority}/apps/bolide/services/s/partitions/p{range}/replicas/{number}{kind}/"),
            "partitionIndex": "0@0",
            "partitionKeyRangeId": range,
            "_rid": "", "id": "", "_self": "", "_etag": "", "_ts": 0,
        })
    };
    vec![address(true), address(false)]
}

/// The range of an address, from its path as clients send it.
pub(super) fn range_of(path: &str) -> Option<u32> {
    let (_, range) = path.split_once("/partitions/p")?;
    range.split('/').next()?.parse().ok()
}

fn reply(addresses: &[Value]) -> Reply {
    let body = json!({"_rid": "", "_count": addresses.len(), "Addresss": addresses});
    Reply::value(StatusCode::OK, &body)
}

#[cfg(test)]
mod tests;
