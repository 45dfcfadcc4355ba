//! Permissions of a user (cosmos-rest §12.1). Every response with a permission has a new token for it.

use std::sync::Arc;

use bolide_core::{Account, Container, PermissionInfo, PermissionMode, PermissionProperties};
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::PermissionRid;
use bolide_model::{Error, Result};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::if_match;
use super::metadata::{Feed, Ids};
use crate::addressing;
use crate::keys::Keys;
use crate::request::Call;
use crate::resource_token::{Grant, ResourceLink};
use crate::status::Failure;
use crate::wire::{Reply, body, headers};

/// Valid lifetimes of tokens, in seconds.
const EXPIRY_SECONDS: std::ops::RangeInclusive<i64> = 10..=18_000;
const DEFAULT_EXPIRY_SECONDS: i64 = 3_600;

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let view = PermissionView::of(call)?;
    let user = addressing::user(call.account(), &call.route).map_err(addressing::owner_not_found)?;
    let permission = call
        .account()
        .create_permission(&call.ctx, user.rid, sent(call)?)
        .await?;
    Ok(view.reply(StatusCode::CREATED, &permission))
}

pub(super) async fn upsert(call: &Call<'_>) -> Result<Reply, Failure> {
    let view = PermissionView::of(call)?;
    let user = addressing::user(call.account(), &call.route).map_err(addressing::owner_not_found)?;
    let if_match = if_match(call.headers())?;
    let (permission, is_new) = call
        .account()
        .upsert_permission(&call.ctx, user.rid, sent(call)?, if_match.as_deref())
        .await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(view.reply(status, &permission))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let view = PermissionView::of(call)?;
    let user = addressing::user(call.account(), &call.route).map_err(addressing::owner_not_found)?;
    let ids = Ids {
        parse: PermissionRid::parse,
        of: |permission: &PermissionInfo| permission.rid,
    };
    let parent = user.rid.to_string();
    feed(&parent)
        .list(
            call,
            ids,
            move |permission| view.to_json(permission),
            move |account| account.list_permissions(user.rid),
        )
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let view = PermissionView::of(call)?;
    let user = addressing::user(call.account(), &call.route).map_err(addressing::owner_not_found)?;
    let parent = user.rid.to_string();
    let gather = move |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let permissions = account.list_permissions(user.rid)?;
        permissions
            .iter()
            .try_for_each(|permission| each(&view.to_json(permission)))
    };
    feed(&parent).query(call, gather).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let view = PermissionView::of(call)?;
    let permission = addressing::permission(call.account(), &call.route)?;
    Ok(view.reply(StatusCode::OK, &permission))
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let view = PermissionView::of(call)?;
    let permission = addressing::permission(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    let permission = call
        .account()
        .replace_permission(&call.ctx, permission.rid, sent(call)?, if_match.as_deref())
        .await?;
    Ok(view.reply(StatusCode::OK, &permission))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply, Failure> {
    let permission = addressing::permission(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    call.account()
        .delete_permission(&call.ctx, permission.rid, if_match.as_deref())
        .await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// The requested lifetime of the tokens in this response, in seconds.
fn expiry(call: &Call<'_>) -> Result<i64> {
    let Some(seconds) = headers::integer(call.headers(), &headers::EXPIRY_SECONDS)? else {
        return Ok(DEFAULT_EXPIRY_SECONDS);
    };
    if EXPIRY_SECONDS.contains(&seconds) {
        return Ok(seconds);
    }
    Err(Error::bad_request(format!(
        "header `{}` must be between {} and {} seconds. value={seconds}",
        headers::EXPIRY_SECONDS,
        EXPIRY_SECONDS.start(),
        EXPIRY_SECONDS.end()
    )))
}

fn sent(call: &Call<'_>) -> Result<PermissionProperties> {
    let members = body::object(call.body)?;
    let mode_text = text(&members, "permissionMode")?;
    let mode = PermissionMode::parse(mode_text).ok_or_else(|| {
        Error::bad_request(format!(
            "`permissionMode` of a permission must be `All` or `Read`. value=`{mode_text}`"
        ))
    })?;
    let resource = text(&members, "resource")?;
    let container = ResourceLink::parse(resource)?.container(call.account());
    Ok(PermissionProperties {
        id: text(&members, "id")?.to_owned(),
        mode,
        mode_text: mode_text.to_owned(),
        resource: resource.to_owned(),
        partition_key: partition_key(members.get("resourcePartitionKey"), container.as_deref())?,
    })
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Result<&'m str> {
    members.get(name).and_then(Value::as_str).ok_or_else(|| {
        Error::bad_request(format!(
            "The input content is invalid because the required properties - '{name}; ' - are missing or no strings."
        ))
    })
}

/// The key that was sent; an empty array is the key of items without one, in containers that have such items.
fn partition_key(value: Option<&Value>, container: Option<&Container>) -> Result<Option<PartitionKey>> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let meant = |key: PartitionKey| match container {
        Some(container) => container.properties().partition_key.meant_by(key),
        None => Some(key).filter(|key| !key.is_empty()),
    };
    let key = PartitionKey::from_json(value).and_then(meant);
    key.map(Some).ok_or_else(|| {
        Error::bad_request("`resourcePartitionKey` of a permission must be an array with the key's values")
    })
}

fn feed(parent: &str) -> Feed<'_> {
    Feed {
        array: "Permissions",
        parent,
    }
}

/// Shows permissions, each with its token.
struct PermissionView {
    account: Arc<Account>,
    keys: Keys,
    /// Expiry of the tokens.
    expires: i64,
}

impl PermissionView {
    fn of(call: &Call<'_>) -> Result<PermissionView, Failure> {
        Ok(PermissionView {
            account: call.state.account.clone(),
            keys: call.state.keys.clone(),
            expires: call.ctx.now.seconds().0.saturating_add(expiry(call)?),
        })
    }

    fn reply(&self, status: StatusCode, permission: &PermissionInfo) -> Reply {
        Reply::value(status, &self.to_json(permission)).etag(permission.etag)
    }

    fn to_json(&self, permission: &PermissionInfo) -> Value {
        let (rid, properties) = (permission.rid, &permission.properties);
        let mut shown = json!({
            "id": properties.id,
            "permissionMode": properties.mode_text,
            "resource": properties.resource,
        });
        if let Some(key) = &properties.partition_key {
            shown["resourcePartitionKey"] = key.0.iter().map(|component| component.to_json()).collect();
        }
        let grant = Grant {
            mode: properties.mode,
            resource: properties.resource.clone(),
            container: ResourceLink::parse(&properties.resource)
                .ok()
                .and_then(|link| link.container(&self.account))
                .map(|container| container.rid()),
            partition_key: properties.partition_key.clone(),
            expires: self.expires,
        };
        shown["_rid"] = rid.to_string().into();
        shown["_self"] = format!("dbs/{}/users/{}/permissions/{rid}/", rid.user.database(), rid.user).into();
        shown["_etag"] = permission.etag.to_string().into();
        shown["_ts"] = permission.last_modified.0.into();
        shown["_token"] = grant.seal(&self.keys).into();
        shown
    }
}
