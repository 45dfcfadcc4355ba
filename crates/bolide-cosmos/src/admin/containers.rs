//! Admin routes of one container, except those for expiry (see [`super::ttl`]).

use std::pin::pin;
use std::sync::Arc;

use bolide_core::{Container, Pacing, PacingSettings, PurgeMode};
use bolide_model::{Error, RequestUnits, Result};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{Admin, count, number, ok};
use crate::request_body::BodyError;
use crate::status::Failure;
use crate::wire::Reply;

/// Imports a body part by part.
pub(super) async fn import<S>(admin: &Admin<'_>, container: &Arc<Container>, parts: S) -> Result<Reply, Failure>
where
    S: Stream<Item = Result<Bytes, BodyError>> + Send,
{
    // An incomplete body has its own error.
    let broken = Mutex::new(None);
    let parts = parts.map(|part| {
        part.map_err(|error| {
            *broken.lock() = Some(error);
            Error::bad_request("the body ended before its time")
        })
    });
    let imported = admin.state.account.import(container, pin!(parts)).await;
    match (imported, broken.into_inner()) {
        (Ok(imported), _) => Ok(ok(&json!({ "imported": imported }))),
        (Err(_), Some(error)) => Err(error.into()),
        (Err(error), None) => Err(error.into()),
    }
}

pub(super) async fn purge(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let members = admin.members()?;
    let mode = match members.get("mode").map(Value::as_str) {
        None | Some(Some("force")) => PurgeMode::Force,
        Some(Some("paced")) => PurgeMode::Paced,
        Some(_) => return Err(Error::bad_request("`mode` must be `force` or `paced`")),
    };
    let purged = admin
        .state
        .account
        .purge(container, mode, count(&members, "max")?)
        .await?;
    Ok(ok(&json!({"purged": purged})))
}

/// `…/indexes`: the property indexes, and how far a build is.
pub(super) async fn indexes(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let report = admin.state.account.index_report(container).await?;
    let indexes = report.indexes.iter().map(|index| {
        let state = if index.is_ready { "ready" } else { "building" };
        json!({"path": index.path, "state": state, "automatic": index.is_automatic})
    });
    Ok(ok(&json!({
        "indexes": indexes.collect::<Vec<_>>(),
        "builtItems": report.built_items,
        "storedItems": report.stored_items,
        "dropped": report.dropped,
    })))
}

pub(super) async fn verify(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let report = admin.state.account.verify(container).await?;
    Ok(ok(
        &json!({"ok": report.problems.is_empty(), "stored": report.stored, "live": report.live, "problems": report.problems}),
    ))
}

pub(super) async fn load(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let ru = positive(&admin.members()?, "ru")?;
    admin.state.account.consume(container, RequestUnits(ru))?;
    Ok(ok(&json!({"ru": ru})))
}

pub(super) async fn split(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let members = admin.members()?;
    let range = match members.get("range") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.parse().map_err(|_| {
            Error::bad_request(format!("`range` must be the id of a partition key range. value=`{id}`"))
        })?),
        Some(_) => return Err(Error::bad_request("`range` must be a string")),
    };
    let report = admin.state.account.split(container, range).await?;
    let ids = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>();
    Ok(ok(
        &json!({"parents": ids(&report.parents), "children": ids(&report.children)}),
    ))
}

pub(super) async fn set_throughput(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let members = admin.members()?;
    let pacing = match members.get("mode").and_then(Value::as_str) {
        Some("provisioned") => Pacing::Provisioned {
            ru: positive(&members, "ru")?,
        },
        Some("autoscale") => Pacing::Autoscale {
            max_ru: positive(&members, "maxRu")?,
        },
        Some("serverless") => Pacing::Serverless,
        Some("unlimited") => Pacing::Unlimited,
        _ => {
            return Err(Error::bad_request(
                "`mode` must be `provisioned`, `autoscale`, `serverless` or `unlimited`",
            ));
        }
    };
    let delete_ru = members
        .get("deleteRu")
        .filter(|ru| !ru.is_null())
        .map(|_| positive(&members, "deleteRu"))
        .transpose()?;
    let count_only_load = match members.get("countOnlyLoad") {
        None | Some(Value::Null) => false,
        Some(value) => value
            .as_bool()
            .ok_or_else(|| Error::bad_request("`countOnlyLoad` must be true or false"))?,
    };
    admin
        .state
        .account
        .set_pacing(
            container,
            PacingSettings {
                pacing,
                delete_ru,
                count_only_load,
            },
        )
        .await?;
    Ok(ok(&Value::Object(members)))
}

fn positive(members: &Map<String, Value>, name: &str) -> Result<f64> {
    let value = number(members, name)?.filter(|value| *value >= 0.0);
    value.ok_or_else(|| Error::bad_request(format!("`{name}` must be a number from 0")))
}
