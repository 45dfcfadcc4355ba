//! Containers (cosmos-rest §§4.2, 4.3).

use std::sync::Arc;

use bolide_core::{Account, Container, ContainerInfo, Usage};
use bolide_model::Result;
use bolide_model::container::ContainerProperties;
use bolide_model::partition_key::PartitionKeyDefinition;
use bolide_model::rid::ContainerRid;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::data_plane::RESOURCE_QUOTA;
use super::metadata::{Feed, Ids, created};
use super::{if_match, offers};
use crate::addressing;
use crate::content_paths::owner_path;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::{Reply, body, headers};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::parent_database(call.account(), &call.route)?;
    let mut sent = body::object(call.body)?;
    if headers::knows_no_system_key(call.headers()) && !names_key(&sent) {
        sent.insert("partitionKey".to_owned(), PartitionKeyDefinition::system().to_json());
    }
    let properties = ContainerProperties::from_json(&Value::Object(sent))?;
    let offer = (
        offers::requested(call.headers())?,
        offers::requested_type(call.headers())?,
    );
    let container = call
        .account()
        .create_container_of_type(database.rid, properties, offer)
        .await?;
    let mut reply = reply(call, StatusCode::CREATED, &container.info());
    if container.shares_throughput() {
        reply.fixed(&headers::SHARE_THROUGHPUT, "true");
    }
    Ok(created(call.headers(), reply))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let ids = Ids {
        parse: ContainerRid::parse,
        of: |container: &Arc<Container>| container.rid(),
    };
    let is_old = headers::knows_no_system_key(call.headers());
    let shape = move |container: &Arc<Container>| Value::Object(to_json(&container.info(), is_old));
    feed(&parent.to_string())
        .list(call, ids, shape, move |account| account.list_containers(parent))
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let is_old = headers::knows_no_system_key(call.headers());
    let gather = move |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let containers = account.list_containers(parent)?;
        containers
            .iter()
            .try_for_each(|container| each(&Value::Object(to_json(&container.info(), is_old))))
    };
    feed(&parent.to_string()).query(call, gather).await
}

pub(super) async fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::container(call.account(), &call.route)?;
    let info = container.info();
    let mut members = to_json(&info, headers::knows_no_system_key(call.headers()));
    if headers::flag(call.headers(), &headers::POPULATE_STATISTICS) {
        members.insert("statistics".to_owned(), statistics(call, &container).await?);
    }
    let mut reply = reply_with(StatusCode::OK, &info, members);
    if headers::flag(call.headers(), &headers::POPULATE_QUOTA) {
        let usage = call.account().usage(&container).await?;
        reply.text(&headers::RESOURCE_USAGE, usage_header(&usage));
        reply.fixed(&headers::RESOURCE_QUOTA, RESOURCE_QUOTA);
        // A change of the indexing policy takes effect with the replace.
        reply.fixed(&headers::INDEX_PROGRESS, "100");
    }
    Ok(reply)
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::container(call.account(), &call.route)?;
    let mut sent = body::object(call.body)?;
    let key = &container.properties().partition_key;
    if key.is_system && !names_key(&sent) {
        sent.insert("partitionKey".to_owned(), key.to_json());
    }
    let if_match = if_match(call.headers())?;
    let info = call
        .account()
        .replace_container(&call.ctx, &container, &Value::Object(sent), if_match.as_deref())
        .await?;
    Ok(reply(call, StatusCode::OK, &info))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::container(call.account(), &call.route)?;
    let if_match = if_match(call.headers())?;
    call.account()
        .delete_container(&call.ctx, container.rid(), if_match.as_deref())
        .await?;
    Ok(Reply::empty(StatusCode::NO_CONTENT))
}

fn feed(parent: &str) -> Feed<'_> {
    Feed {
        array: "DocumentCollections",
        parent,
    }
}

/// Whether a definition names a path of a partition key; old .NET clients send an empty list for none.
fn names_key(sent: &Map<String, Value>) -> bool {
    let key = sent.get("partitionKey").filter(|key| !key.is_null());
    key.is_some_and(|key| key.get("paths") != Some(&Value::Array(Vec::new())))
}

fn reply(call: &Call<'_>, status: StatusCode, info: &ContainerInfo) -> Reply {
    reply_with(
        status,
        info,
        to_json(info, headers::knows_no_system_key(call.headers())),
    )
}

fn reply_with(status: StatusCode, info: &ContainerInfo, members: Map<String, Value>) -> Reply {
    let mut reply = Reply::value(status, &Value::Object(members)).version(info.etag);
    reply.text(&headers::ALT_CONTENT_PATH, owner_path(info));
    reply
}

fn to_json(info: &ContainerInfo, is_for_old_client: bool) -> Map<String, Value> {
    let mut members = info.properties.to_json();
    if is_for_old_client {
        if info.properties.partition_key.is_system {
            members.remove("partitionKey");
        }
        show_indexes(&mut members);
    }
    let system = json!({
        "_rid": info.rid.to_string(),
        "_ts": info.last_modified.0,
        "_self": info.rid.self_link(),
        "_etag": info.etag.to_string(),
        "_docs": "docs/",
        "_sprocs": "sprocs/",
        "_triggers": "triggers/",
        "_udfs": "udfs/",
        "_conflicts": "conflicts/",
    });
    if let Value::Object(system) = system {
        members.extend(system);
    }
    members
}

/// Adds to each included path its indexes, which newer API versions no longer list.
fn show_indexes(members: &mut Map<String, Value>) {
    let paths = members["indexingPolicy"]["includedPaths"].as_array_mut();
    for path in paths.into_iter().flatten() {
        let index = |of: &str| json!({"kind": "Range", "dataType": of, "precision": -1});
        path["indexes"] = json!([index("Number"), index("String")]);
    }
}

/// The number of live items and their size (TTL-253), in the service's format. Sizes are in kilobytes, rounded up.
fn usage_header(usage: &Usage) -> String {
    let kilobytes = usage.bytes.div_ceil(1024);
    format!(
        "documentSize=0;documentsSize={kilobytes};documentsCount={};collectionSize={kilobytes};",
        usage.items
    )
}

async fn statistics(call: &Call<'_>, container: &Arc<Container>) -> Result<Value> {
    let ranges = call.account().range_usage(container).await?;
    let statistics = ranges.iter().map(|(range, usage)| {
        json!({
            "id": range.to_string(),
            "sizeInKB": usage.bytes.div_ceil(1024),
            "documentCount": usage.items,
            "partitionKeys": [],
        })
    });
    Ok(statistics.collect())
}
