//! Users of a database (cosmos-rest §12.1).

use bolide_core::{Account, UserInfo};
use bolide_model::rid::UserRid;
use bolide_model::{Error, Result};
use http::StatusCode;
use serde_json::{Value, json};

use super::if_match;
use super::metadata::{Feed, Ids};
use crate::addressing;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, body};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::parent_database(call.account(), &call.route)?;
    let user = call
        .account()
        .create_user(&call.ctx, database.rid, &sent_id(call)?)
        .await?;
    Ok(reply(StatusCode::CREATED, &user))
}

pub(super) async fn upsert(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::parent_database(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    let (user, is_new) = call
        .account()
        .upsert_user(&call.ctx, database.rid, &sent_id(call)?, if_match.as_deref())
        .await?;
    Ok(reply(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &user))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let ids = Ids {
        parse: UserRid::parse,
        of: |user: &UserInfo| user.rid,
    };
    feed(&parent.to_string())
        .list(call, ids, to_json, move |account| account.list_users(parent))
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let gather = move |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let users = account.list_users(parent)?;
        users.iter().try_for_each(|user| each(&to_json(user)))
    };
    feed(&parent.to_string()).query(call, gather).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let user = addressing::user(call.account(), &call.route)?;
    Ok(reply(StatusCode::OK, &user))
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let user = addressing::user(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    let user = call
        .account()
        .replace_user(&call.ctx, user.rid, &sent_id(call)?, if_match.as_deref())
        .await?;
    Ok(reply(StatusCode::OK, &user))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply, Failure> {
    let user = addressing::user(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    call.account()
        .delete_user(&call.ctx, user.rid, if_match.as_deref())
        .await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

/// The name is the only property of a user.
fn sent_id(call: &Call<'_>) -> Result<String> {
    match body::object(call.body)?.remove("id") {
        Some(Value::String(id)) => Ok(id),
        _ => Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing or no strings.",
        )),
    }
}

fn feed(parent: &str) -> Feed<'_> {
    Feed { array: "Users", parent }
}

fn reply(status: StatusCode, user: &UserInfo) -> Reply {
    Reply::value(status, &to_json(user)).etag(user.etag)
}

fn to_json(user: &UserInfo) -> Value {
    json!({
        "id": user.id,
        "_rid": user.rid.to_string(),
        "_self": format!("dbs/{}/users/{}/", user.rid.database(), user.rid),
        "_etag": user.etag.to_string(),
        "_permissions": "permissions/",
        "_ts": user.last_modified.0,
    })
}
