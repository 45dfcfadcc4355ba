//! `GET /`: the properties of the account and its endpoints (cosmos-rest §1).

use http::StatusCode;
use http::request::Parts;
use serde_json::{Value, json};

use crate::consistency::ConsistencyLevel;
use crate::listener::Listener;
use crate::names;
use crate::request::Call;
use crate::state::CosmosOptions;
use crate::status::Failure;
use crate::wire::{Reply, headers};

/// Settings for the query planners of .NET and Java: a string with JSON in it.
const QUERY_ENGINE: &str = concat!(
    r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2147483647,"#,
    r#""maxLogicalOrPerSqlQuery":2147483647,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":2147483647,"#,
    r#""queryMaxInMemorySortDocumentCount":-1000,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"#,
    r#""sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"#,
    r#""sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":2147483647,"#,
    r#""spatialMaxGeometryPointCount":256,"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}"#,
);

/// The region of the account.
const REGION: &str = "South Central US";
/// The account's id.
const ACCOUNT_ID: &str = "bolide";

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    Ok(properties(&call.state.options, call.head, call.listener))
}

/// The properties of the account, with its endpoint for the sender of a request. There is no secret in them.
pub(crate) fn properties(options: &CosmosOptions, head: &Parts, listener: Listener) -> Reply {
    let endpoint = names::endpoint(options.endpoint.as_ref(), head, listener);
    let locations = json!([{"name": REGION, "databaseAccountEndpoint": format!("{endpoint}/")}]);
    // In direct mode clients see two replicas, so that a read by quorum asks one.
    let replicas = if options.has_direct { 2 } else { 4 };
    let replication = json!({"asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": replicas});
    let mut body = json!({
        "_self": "",
        // Not `localhost`, as in the emulator: the JavaScript SDK drops the locations of an account with that name, and then reads the account again
        // before every request.
        "id": ACCOUNT_ID,
        "_rid": ACCOUNT_ID,
        "media": "//media/",
        "addresses": "//addresses/",
        "_dbs": "//dbs/",
        "writableLocations": locations,
        "readableLocations": locations,
        "enableMultipleWriteLocations": false,
        "continuousBackupEnabled": false,
        "enableNRegionSynchronousCommit": false,
        "enablePerPartitionFailoverBehavior": false,
        "userReplicationPolicy": replication,
        "userConsistencyPolicy": consistency_policy(options.consistency),
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": replicas},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": QUERY_ENGINE,
    });
    if options.has_gateway_v2 {
        // Frames go over TLS, whatever the client has used for this.
        let place = format!("https://{}/", names::with_port(&endpoint));
        let places = json!([{"name": REGION, "databaseAccountEndpoint": place}]);
        body["thinClientWritableLocations"] = places.clone();
        body["thinClientReadableLocations"] = places;
    }
    let mut reply = Reply::value(StatusCode::OK, &body);
    reply.number(&headers::ITEM_COUNT, 1);
    // For the media that items had in old versions. Java 3 parses both without checking whether they exist.
    reply.number(&headers::MAX_MEDIA_USAGE_MB, 10_240);
    reply.number(&headers::MEDIA_USAGE_MB, 0);
    reply
}

fn consistency_policy(level: ConsistencyLevel) -> Value {
    let mut policy = json!({"defaultConsistencyLevel": level.name()});
    if level == ConsistencyLevel::BoundedStaleness {
        // The service's minimum for one region. Clients parse them; no read is stale here.
        policy["maxStalenessPrefix"] = 10.into();
        policy["maxIntervalInSeconds"] = 5.into();
    }
    policy
}

#[cfg(test)]
mod tests;
