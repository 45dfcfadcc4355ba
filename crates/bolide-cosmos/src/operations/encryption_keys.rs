//! Client encryption keys of a database: stored and returned (cosmos-rest §0.1).

use bolide_core::{Account, EncryptionKeyInfo};
use bolide_model::Result;
use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::rid::EncryptionKeyRid;
use http::StatusCode;
use serde_json::{Value, json};

use super::metadata::{Feed, Ids};
use super::{if_match, if_none_match};
use crate::addressing;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, body};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::parent_database(call.account(), &call.route)?;
    let account = call.account();
    let key = account
        .create_encryption_key(&call.ctx, database.rid, sent(call)?)
        .await?;
    Ok(reply(StatusCode::CREATED, &key))
}

// Listing and querying resemble those of users on purpose: their common part is in `feed`, and the types differ in every line.
pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let ids = Ids {
        parse: EncryptionKeyRid::parse,
        of: |key: &EncryptionKeyInfo| key.rid,
    };
    feed(&parent.to_string())
        .list(call, ids, to_json, move |account| account.list_encryption_keys(parent))
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let gather = move |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let keys = account.list_encryption_keys(parent)?;
        keys.iter().try_for_each(|key| each(&to_json(key)))
    };
    feed(&parent.to_string()).query(call, gather).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let key = addressing::encryption_key(call.account(), &call.route)?;
    // Clients check from time to time whether the key they have is still current.
    match if_none_match(call.headers())? {
        Some(known) if key.etag.matches(&known) => Ok(Reply::empty(StatusCode::NOT_MODIFIED).version(key.etag)),
        _ => Ok(reply(StatusCode::OK, &key)),
    }
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let key = addressing::encryption_key(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    let account = call.account();
    let key = account
        .replace_encryption_key(&call.ctx, key.rid, sent(call)?, if_match.as_deref())
        .await?;
    Ok(reply(StatusCode::OK, &key))
}

fn sent(call: &Call<'_>) -> Result<EncryptionKeyProperties> {
    EncryptionKeyProperties::from_json(&Value::Object(body::object(call.body)?))
}

fn feed(parent: &str) -> Feed<'_> {
    Feed {
        array: "ClientEncryptionKeys",
        parent,
    }
}

fn reply(status: StatusCode, key: &EncryptionKeyInfo) -> Reply {
    Reply::value(status, &to_json(key)).etag(key.etag)
}

fn to_json(key: &EncryptionKeyInfo) -> Value {
    let mut members = key.properties.to_json();
    let database = key.rid.database;
    let link = format!("dbs/{database}/clientencryptionkeys/{}/", key.rid);
    members.insert("_rid".to_owned(), key.rid.to_string().into());
    members.insert("_self".to_owned(), link.into());
    members.insert("_etag".to_owned(), key.etag.to_string().into());
    members.insert("_cts".to_owned(), json!(key.created.0));
    members.insert("_ts".to_owned(), json!(key.last_modified.0));
    Value::Object(members)
}
