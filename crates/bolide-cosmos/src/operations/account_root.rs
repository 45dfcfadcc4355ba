//! `GET /`: what the account is and where to reach it (cosmos-rest §1).

use http::StatusCode;
use serde_json::json;

use crate::service::Call;
use crate::wire::{Reply, headers};

/// What planners of .NET and Java read: a string with JSON in it.
const QUERY_ENGINE: &str = concat!(
    r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2147483647,"#,
    r#""maxLogicalOrPerSqlQuery":2147483647,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":2147483647,"#,
    r#""queryMaxInMemorySortDocumentCount":-1000,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"#,
    r#""sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"#,
    r#""sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":2147483647,"#,
    r#""spatialMaxGeometryPointCount":256,"sqlDisableOptimizationFlags":0,"sqlAllowTop":true,"enableSpatialIndexing":true}"#,
);

pub(super) fn read(call: &Call<'_>) -> Reply {
    let locations =
        json!([{"name": "South Central US", "databaseAccountEndpoint": call.listener.origin(call.head) + "/"}]);
    let replication = json!({"asyncReplication": false, "minReplicaSetSize": 1, "maxReplicasetSize": 4});
    let body = json!({
        "_self": "",
        // With this id the JavaScript SDK keeps to the endpoint it was given, whatever the locations say.
        "id": "localhost",
        "_rid": "localhost",
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
        "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
        "systemReplicationPolicy": {"minReplicaSetSize": 1, "maxReplicasetSize": 4},
        "readPolicy": {"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
        "queryEngineConfiguration": QUERY_ENGINE,
    });
    let mut reply = Reply::value(StatusCode::OK, &body);
    reply.number(&headers::ITEM_COUNT, 1);
    // Of the media that items once had. Java 3 parses both without asking whether they are there.
    reply.number(&headers::MAX_MEDIA_USAGE_MB, 10_240);
    reply.number(&headers::MEDIA_USAGE_MB, 0);
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_engine_configuration_is_json() {
        let parsed: serde_json::Value = serde_json::from_str(QUERY_ENGINE).expect("SDKs parse it");
        assert_eq!(parsed["maxSqlQueryInputLength"], 524_288);
    }
}
