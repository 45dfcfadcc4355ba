//! Containers (cosmos-rest §§4.2, 4.3).

use std::sync::Arc;

use bolide_core::{Account, Container, ContainerInfo, Usage};
use bolide_model::Result;
use bolide_model::container::ContainerProperties;
use bolide_model::rid::ContainerRid;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::data_plane::RESOURCE_QUOTA;
use super::metadata::{Feed, Ids};
use super::{if_match, offers};
use crate::addressing;
use crate::service::{Call, owner_path};
use crate::status::Failure;
use crate::wire::{Reply, body, headers};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let database = addressing::parent_database(call.account(), &call.route)?;
    let sent = Value::Object(body::object(call.body)?);
    let properties = ContainerProperties::from_json(&sent)?;
    let offer = (
        offers::requested(call.headers())?,
        offers::requested_type(call.headers())?,
    );
    let container = call
        .account()
        .create_container_of_type(database.rid, properties, offer)
        .await?;
    let mut reply = reply(StatusCode::CREATED, &container.info());
    if container.shares_throughput() {
        reply.fixed(&headers::SHARE_THROUGHPUT, "true");
    }
    Ok(reply)
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let ids = Ids {
        parse: ContainerRid::parse,
        of: |container: &Arc<Container>| container.rid(),
    };
    let shape = |container: &Arc<Container>| Value::Object(to_json(&container.info()));
    feed(&parent.to_string())
        .list(call, ids, shape, move |account| account.list_containers(parent))
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let parent = addressing::parent_database(call.account(), &call.route)?.rid;
    let gather = move |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let containers = account.list_containers(parent)?;
        containers
            .iter()
            .try_for_each(|container| each(&Value::Object(to_json(&container.info()))))
    };
    feed(&parent.to_string()).query(call, gather).await
}

pub(super) async fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::container(call.account(), &call.route)?;
    let info = container.info();
    let mut members = to_json(&info);
    if headers::flag(call.headers(), &headers::POPULATE_STATISTICS) {
        members.insert("statistics".to_owned(), statistics(call, &container).await?);
    }
    let mut reply = reply_with(StatusCode::OK, &info, members);
    if headers::flag(call.headers(), &headers::POPULATE_QUOTA) {
        let usage = call.account().usage(&container).await?;
        reply.text(&headers::RESOURCE_USAGE, usage_header(&usage));
        reply.fixed(&headers::RESOURCE_QUOTA, RESOURCE_QUOTA);
        // Changes of the indexing policy take effect with the replace that brings them.
        reply.fixed(&headers::INDEX_PROGRESS, "100");
    }
    Ok(reply)
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let container = addressing::container(call.account(), &call.route)?;
    let sent = Value::Object(body::object(call.body)?);
    let if_match = if_match(call.headers())?;
    let info = call
        .account()
        .replace_container(&call.ctx, &container, &sent, if_match.as_deref())
        .await?;
    Ok(reply(StatusCode::OK, &info))
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

fn reply(status: StatusCode, info: &ContainerInfo) -> Reply {
    reply_with(status, info, to_json(info))
}

fn reply_with(status: StatusCode, info: &ContainerInfo, members: Map<String, Value>) -> Reply {
    let mut reply = Reply::value(status, &Value::Object(members)).version(info.etag);
    reply.text(&headers::ALT_CONTENT_PATH, owner_path(info));
    reply
}

fn to_json(info: &ContainerInfo) -> Map<String, Value> {
    let mut members = info.properties.to_json();
    let system = json!({
        "_rid": info.rid.to_string(),
        "_ts": info.last_modified.0,
        "_self": format!("dbs/{}/colls/{}/", info.database_rid, info.rid),
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

/// Live items and their size (TTL-253), in the service's words. Sizes are in kilobytes, begun ones counted.
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
