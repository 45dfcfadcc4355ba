//! Offers: throughput in the protocol (cosmos-rest §4.4).

use bolide_core::{Account, Offer, OfferResource, OfferType, Throughput};
use bolide_model::rid::OfferRid;
use bolide_model::{Error, Reason, Result};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::if_match;
use super::metadata::{Feed, Ids};
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, body, headers};

const FEED: Feed<'static> = Feed {
    array: "Offers",
    parent: "",
};

/// Reads the throughput for a new database or container.
///
/// # Errors
/// `BadRequest` if both kinds are given, or one is malformed. The core checks amounts.
pub(super) fn requested(headers: &HeaderMap) -> Result<Option<Throughput>> {
    let manual = headers::integer(headers, &headers::OFFER_THROUGHPUT)?;
    let autoscale = headers::non_empty(headers, &headers::AUTOPILOT_SETTINGS)?;
    match (manual, autoscale) {
        (None, None) => Ok(None),
        (Some(ru), None) => manual_of(ru).map(Some),
        (None, Some(settings)) => {
            let settings = serde_json::from_str(settings).map_err(|error| {
                Error::bad_request(format!("header `{}` is not JSON: {error}", headers::AUTOPILOT_SETTINGS))
            })?;
            autoscale_of(&settings).map(|autoscale| Some(with_increment(autoscale)))
        }
        (Some(_), Some(_)) => Err(Error::bad_request(
            "a resource cannot be created with both manual and autoscale throughput",
        )),
    }
}

/// Reads the performance level for a new container, which old clients send instead of a number.
///
/// # Errors
/// `BadRequest` for an unknown level.
pub(super) fn requested_type(headers: &HeaderMap) -> Result<OfferType> {
    let Some(name) = headers::non_empty(headers, &headers::OFFER_TYPE)? else {
        return Ok(OfferType::default());
    };
    OfferType::parse(name).ok_or_else(|| {
        let name = bolide_model::error::excerpt(name);
        Error::bad_request(format!(
            "header `{}` must be S1, S2 or S3, or left out. value=`{name}`",
            headers::OFFER_TYPE
        ))
    })
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let ids = Ids {
        parse: OfferRid::parse,
        of: |offer: &Offer| offer.rid,
    };
    FEED.list(call, ids, to_json, |account| Ok(account.list_offers())).await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let gather = |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let offers = account.list_offers();
        offers.iter().try_for_each(|offer| each(&to_json(offer)))
    };
    FEED.query(call, gather).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let offer = call.account().offer(addressed(call)?)?;
    Ok(reply(&offer))
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let rid = addressed(call)?;
    let offer = call.account().offer(rid)?;
    let sent = body::object(call.body)?;
    check_identity(&sent, &rid)?;
    let throughput = replacement(call.headers(), &sent, offer.throughput)?;
    let if_match = if_match(call.headers())?;
    let offer = call
        .account()
        .replace_offer(&call.ctx, rid, throughput, if_match.as_deref())
        .await?;
    Ok(reply(&offer))
}

/// Refuses the document of another offer, or without an id. Source: .NET's suite, `ValidateOfferReplace`.
fn check_identity(sent: &Map<String, Value>, rid: &OfferRid) -> Result<()> {
    let rid = rid.to_string();
    let named = ["id", "_rid"].map(|name| sent.get(name).filter(|value| !value.is_null()));
    let is_same = named.iter().flatten().all(|value| value.as_str() == Some(&rid));
    if is_same && named.iter().any(Option::is_some) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "The `id` and `_rid` of an offer cannot be changed or both left out: they must be `{rid}`."
    )))
}

fn addressed(call: &Call<'_>) -> Result<OfferRid> {
    let leaf = &call.route.leaf;
    OfferRid::parse(leaf).ok_or_else(|| Error::not_found(format!("no offer has this resource id. rid=`{leaf}`")))
}

/// The throughput in an offer document: from the migration headers, or else from its content.
fn replacement(headers: &HeaderMap, sent: &Map<String, Value>, current: Throughput) -> Result<Throughput> {
    let content = sent.get("content").and_then(Value::as_object);
    let content = content.ok_or_else(|| Error::bad_request("an offer must have an object `content`"))?;
    let autoscale = content
        .get("offerAutopilotSettings")
        .filter(|settings| !settings.is_null());
    if headers::flag(headers, &headers::MIGRATE_TO_AUTOPILOT) {
        return match autoscale {
            Some(settings) => autoscale_of(settings),
            None => Ok(as_autoscale(current)),
        };
    }
    if headers::flag(headers, &headers::MIGRATE_TO_MANUAL) {
        return Ok(as_manual(current));
    }
    match autoscale {
        Some(settings) => autoscale_of(settings),
        None => {
            let ru = content.get("offerThroughput").and_then(whole);
            manual_of(ru.ok_or_else(|| Error::bad_request("`content.offerThroughput` must be a whole number"))?)
        }
    }
}

/// The smallest autoscale maximum that gives at least the manual throughput.
fn as_autoscale(current: Throughput) -> Throughput {
    match current {
        Throughput::Manual { ru } => Throughput::Autoscale {
            max_ru: ru.next_multiple_of(1000).max(1000),
            increment_percent: Some(0),
        },
        autoscale @ Throughput::Autoscale { .. } => autoscale,
    }
}

/// The service's result of a migration: the maximum, which is a valid manual amount.
fn as_manual(current: Throughput) -> Throughput {
    Throughput::Manual { ru: current.max_ru() }
}

fn manual_of(ru: i64) -> Result<Throughput> {
    let ru = u32::try_from(ru).map_err(|_| Reason::ManualThroughput { ru })?;
    Ok(Throughput::Manual { ru })
}

fn autoscale_of(settings: &Value) -> Result<Throughput> {
    let max_ru = settings.get("maxThroughput").and_then(whole);
    let max_ru =
        max_ru.ok_or_else(|| Error::bad_request("autoscale settings must have a whole number `maxThroughput`"))?;
    let max_ru = u32::try_from(max_ru).map_err(|_| Reason::AutoscaleThroughput { max_ru })?;
    let increment = settings.pointer("/autoUpgradePolicy/throughputPolicy/incrementPercent");
    let increment_percent = match increment.filter(|increment| !increment.is_null()) {
        None => None,
        Some(increment) => Some(
            whole(increment)
                .and_then(|percent| u32::try_from(percent).ok())
                .ok_or_else(|| Error::bad_request("`incrementPercent` must be a whole number from 0"))?,
        ),
    };
    Ok(Throughput::Autoscale {
        max_ru,
        increment_percent,
    })
}

/// A new resource has a policy, even if none was sent; a replace without one removes it.
fn with_increment(throughput: Throughput) -> Throughput {
    match throughput {
        Throughput::Autoscale {
            max_ru,
            increment_percent,
        } => Throughput::Autoscale {
            max_ru,
            increment_percent: increment_percent.or(Some(0)),
        },
        manual @ Throughput::Manual { .. } => manual,
    }
}

/// An integer in any spelling: `400`, `400.0`.
fn whole(value: &Value) -> Option<i64> {
    let number = value
        .as_f64()
        .filter(|number| number.fract() == 0.0 && number.abs() < 1e15);
    number.map(|number| number as i64)
}

fn reply(offer: &Offer) -> Reply {
    let mut reply = Reply::value(StatusCode::OK, &to_json(offer)).version(offer.etag);
    reply.fixed(&headers::OFFER_REPLACE_PENDING, "false");
    let min_throughput = match offer.throughput {
        Throughput::Manual { .. } => "400",
        Throughput::Autoscale { .. } => "1000",
    };
    reply.fixed(&headers::MIN_THROUGHPUT, min_throughput);
    reply
}

fn to_json(offer: &Offer) -> Value {
    let rid = offer.rid.to_string();
    let (resource, resource_rid) = match offer.resource {
        OfferResource::Database(database) => (format!("dbs/{database}/"), database.to_string()),
        OfferResource::Container(container) => (container.self_link(), container.to_string()),
    };
    json!({
        "id": rid,
        "_rid": rid,
        "_self": format!("offers/{rid}/"),
        "_etag": offer.etag.to_string(),
        "_ts": offer.last_modified.0,
        "resource": resource,
        "offerResourceId": resource_rid,
        "offerType": offer.kind.name(),
        "offerVersion": "V2",
        "content": content(offer.throughput),
    })
}

/// The `content` of an offer. `offerThroughput` is present for autoscale too, because Python's SDK sets it without checking.
fn content(throughput: Throughput) -> Value {
    match throughput {
        Throughput::Manual { ru } => json!({
            "offerThroughput": ru,
            "offerIsRUPerMinuteThroughputEnabled": false,
            "offerMinimumThroughputParameters": {"maxThroughputEverProvisioned": ru, "maxConsumedStorageEverInKB": 0},
        }),
        Throughput::Autoscale {
            max_ru,
            increment_percent,
        } => {
            let mut settings = json!({"maxThroughput": max_ru});
            if let Some(increment) = increment_percent {
                settings["autoUpgradePolicy"] = json!({"throughputPolicy": {"incrementPercent": increment}});
            }
            json!({"offerThroughput": max_ru / 10, "offerAutopilotSettings": settings})
        }
    }
}

#[cfg(test)]
mod tests;
