//! Databases (cosmos-rest §4.1).

use bolide_core::{Account, DatabaseInfo};
use bolide_model::rid::DatabaseRid;
use bolide_model::{Error, Result};
use http::StatusCode;
use serde_json::{Value, json};

use super::metadata::{Feed, Ids, created};
use super::{if_match, offers};
use crate::addressing;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, body};

const FEED: Feed<'static> = Feed {
    array: "Databases",
    parent: "",
};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let members = body::object(call.body)?;
    let Some(Value::String(id)) = members.get("id") else {
        return Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing or no strings.",
        )
        .into());
    };
    let throughput = offers::requested(call.headers())?;
    let database = call.account().create_database(&call.ctx, id, throughput).await?;
    Ok(created(call.headers(), reply(StatusCode::CREATED, &database)))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let ids = Ids {
        parse: DatabaseRid::parse,
        of: |database: &DatabaseInfo| database.rid,
    };
    FEED.list(call, ids, to_json, |account| Ok(account.list_databases()))
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let gather = |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let databases = account.list_databases();
        databases.iter().try_for_each(|database| each(&to_json(database)))
    };
    FEED.query(call, gather).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::database(call.account(), &call.route)?;
    Ok(reply(StatusCode::OK, &database))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::database(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    call.account()
        .delete_database(&call.ctx, database.rid, if_match.as_deref())
        .await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

fn reply(status: StatusCode, database: &DatabaseInfo) -> Reply {
    Reply::value(status, &to_json(database)).version(database.etag)
}

fn to_json(database: &DatabaseInfo) -> Value {
    json!({
        "id": database.id,
        "_rid": database.rid.to_string(),
        "_self": format!("dbs/{}/", database.rid),
        "_etag": database.etag.to_string(),
        "_colls": "colls/",
        "_users": "users/",
        "_ts": database.last_modified.0,
    })
}
