//! Admin routes about expiry: the backlog, the effect of another default, and why an item is live or not.

use std::sync::Arc;

use bolide_core::{Container, StoredItem, TtlRule, TtlWhy};
use bolide_model::partition_key::PartitionKey;
use bolide_model::ttl::{Own, Policy};
use bolide_model::{Error, Result};
use serde_json::{Value, json};

use super::{Admin, ok};
use crate::wire::Reply;

/// Items of one question for their ends.
const ENDS_AT_ONCE: usize = 100;

/// `…/ttl`: the values of TTL-272.
pub(super) async fn report(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let report = admin.state.account.ttl_report(container).await?;
    let forecast: Vec<Value> = report
        .forecast
        .iter()
        .map(|slice| {
            json!({"fromSeconds": slice.from_seconds, "toSeconds": open_end(slice.to_seconds), "items": slice.items})
        })
        .collect();
    Ok(ok(&json!({
        "defaultTtl": report.policy.to_number(),
        "state": report.state.name(),
        "backlogItems": report.backlog_items,
        "backlogBytes": report.backlog_bytes,
        "oldestPendingSeconds": report.oldest_pending_seconds,
        "purgedTotal": report.purged_total,
        "purgeRate": report.purge_rate,
        "ruSpentTotal": report.ru_spent_total.0,
        "ruBilledTotal": report.ru_billed_total.0,
        "credit": report.credit,
        "nextExpirySeconds": report.next_expiry_seconds,
        "forecast": forecast,
    })))
}

/// The end of a time range; `null` for one without end.
fn open_end(seconds: i64) -> Option<i64> {
    (seconds != i64::MAX).then_some(seconds)
}

/// `…/ttl/preview`: what would expire if this default was set now.
pub(super) async fn preview(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let default = admin.required("defaultTtl")?;
    let policy = match default.as_str() {
        "off" => Policy::from_number(None)?,
        number => {
            let number = number.parse::<f64>();
            let number =
                number.map_err(|_| Error::bad_request("`defaultTtl` must be `off`, -1 or a number of seconds"))?;
            Policy::from_number(Some(number))?
        }
    };
    let preview = admin.state.account.ttl_preview(container, policy).await?;
    Ok(ok(&json!({
        "expireNow": preview.expire_now,
        "expireWithinHour": preview.expire_within_hour,
        "expireWithinDay": preview.expire_within_day,
        "neverExpire": preview.never_expire,
    })))
}

/// `…/ttl/why`: the state of one item, and the rule for it.
pub(super) async fn why(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let id = admin.required("id")?;
    let key = match has_keys(container) {
        false => PartitionKey::default(),
        true => meant_by(container, &admin.required("pk")?)?,
    };
    let why = admin.state.account.ttl_why(container, &id, &key).await?;
    let ttl = match container.collection() {
        Some(_) => counted_ttl(why.own),
        None => why.item.as_ref().and_then(own_ttl),
    };
    let mut answer = json!({
        "state": state_name(&why),
        "_ts": why.item.as_ref().map(|item| item.last_modified().0),
        "ttl": ttl,
        "defaultTtl": why.policy.to_number(),
        "expiresAtSeconds": why.expires_at_seconds,
        "rule": rule_name(why.rule),
    });
    if container.collection().is_some() {
        answer["expiresAtMillis"] = why.expires_at_millis.into();
        answer["index"] = why.index.into();
    }
    Ok(ok(&answer))
}

/// `…/ttl/ends`: the state of each of some items, and when it ends or has ended, in milliseconds; `null` for one that never does or is not there.
pub(super) async fn ends(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let members = admin.members()?;
    let asked = members.get("items").and_then(Value::as_array);
    let asked = asked.ok_or_else(|| Error::bad_request("`items` must be an array of {\"id\", \"pk\"}"))?;
    if asked.len() > ENDS_AT_ONCE {
        let message = format!("too many items. items={}, limit={ENDS_AT_ONCE}", asked.len());
        return Err(Error::bad_request(message));
    }
    let mut ends = Vec::with_capacity(asked.len());
    for item in asked {
        let id = item.get("id").and_then(Value::as_str);
        let id = id.ok_or_else(|| Error::bad_request("the `id` of an item must be a string"))?;
        let key = match (has_keys(container), item.get("pk")) {
            (false, _) => PartitionKey::default(),
            (true, Some(key @ Value::Array(_))) => meant_by(container, &key.to_string())?,
            (true, _) => return Err(Error::bad_request("the `pk` of an item must be an array")),
        };
        let why = admin.state.account.ttl_why(container, id, &key).await?;
        let end = why.expires_at_millis.or(why.expires_at_seconds.map(|at| at * 1_000));
        ends.push(json!({ "state": state_name(&why), "endsMs": end }));
    }
    Ok(ok(&json!({ "items": ends })))
}

fn state_name(why: &TtlWhy) -> &'static str {
    match (&why.item, why.is_live) {
        (None, _) => "absent",
        (Some(_), true) => "live",
        (Some(_), false) => "expired",
    }
}

/// Whether items have partition keys: documents of an unsharded collection have none.
fn has_keys(container: &Container) -> bool {
    container
        .collection()
        .is_none_or(|collection| collection.shard_key.is_some())
}

fn meant_by(container: &Container, text: &str) -> Result<PartitionKey> {
    let key = PartitionKey::from_text(text)?;
    Ok(container.properties().partition_key.meant_by(key).unwrap_or_default())
}

/// The own ttl of a document of a MongoDB collection, as it counts.
fn counted_ttl(own: Own) -> Option<Value> {
    match own {
        Own::Absent => None,
        Own::Never => Some(json!(-1)),
        Own::After(seconds) => Some(json!(seconds)),
    }
}

/// The item's `ttl` as written.
fn own_ttl(item: &StoredItem) -> Option<Value> {
    let item: Value = serde_json::from_slice(&item.to_json()).ok()?;
    item.get("ttl").cloned()
}

fn rule_name(rule: TtlRule) -> &'static str {
    match rule {
        TtlRule::Own => "own",
        TtlRule::Default => "default",
        TtlRule::Never => "never",
        TtlRule::Off => "off",
        TtlRule::Floor => "floor",
        TtlRule::Date => "date",
    }
}
