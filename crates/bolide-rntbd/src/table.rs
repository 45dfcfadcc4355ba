//! The tables: types of resources and operations, and tokens with the headers that they stand for.
//!
//! A token that is in no table is one of the service's own or of its management. Its type byte says how long it is, and nothing here depends on it.
//!
//! Source: rntbd.md §3.3, §4.

use crate::token::Kind;

/// Types of resources.
pub mod resource {
    /// The connection itself.
    pub const CONNECTION: u16 = 0x00;
    /// The account.
    pub const ACCOUNT: u16 = 0x14;
    /// `dbs`.
    pub const DATABASE: u16 = 0x01;
    /// `colls`.
    pub const COLLECTION: u16 = 0x02;
    /// `docs`.
    pub const DOCUMENT: u16 = 0x03;
    /// `users`.
    pub const USER: u16 = 0x05;
    /// `permissions`.
    pub const PERMISSION: u16 = 0x06;
    /// `sprocs`.
    pub const STORED_PROCEDURE: u16 = 0x07;
    /// `conflicts`.
    pub const CONFLICT: u16 = 0x08;
    /// `triggers`.
    pub const TRIGGER: u16 = 0x09;
    /// `udfs`.
    pub const USER_DEFINED_FUNCTION: u16 = 0x0A;
}

/// Types of operations.
pub mod operation {
    /// The first frame of a connection.
    pub const CONNECTION: u16 = 0x00;
    /// POST to a feed.
    pub const CREATE: u16 = 0x01;
    /// PATCH.
    pub const PATCH: u16 = 0x02;
    /// GET.
    pub const READ: u16 = 0x03;
    /// GET of a feed.
    pub const READ_FEED: u16 = 0x04;
    /// DELETE.
    pub const DELETE: u16 = 0x05;
    /// PUT.
    pub const REPLACE: u16 = 0x06;
    /// POST to a stored procedure.
    pub const EXECUTE: u16 = 0x08;
    /// POST of a query as plain text.
    pub const SQL_QUERY: u16 = 0x09;
    /// POST of a query.
    pub const QUERY: u16 = 0x0F;
    /// A question for the position of a range.
    pub const HEAD: u16 = 0x11;
    /// A question for the position of the databases.
    pub const HEAD_FEED: u16 = 0x12;
    /// POST to a feed that may replace.
    pub const UPSERT: u16 = 0x13;
    /// POST of a batch.
    pub const BATCH: u16 = 0x25;
    /// POST of a query whose plan is wanted.
    pub const QUERY_PLAN: u16 = 0x42;
}

/// How the value of a token becomes that of a header, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text, as it is.
    Text,
    /// A number in digits.
    Number,
    /// The same, where all bits set are -1.
    NumberOrMinusOne,
    /// 0 and 1 for `False` and `True`.
    Flag,
    /// One of these numbers.
    Choice(&'static [(u8, &'static str)]),
    /// 16 bytes of a GUID, whose first three fields are little-endian.
    Guid,
    /// No header, or one that depends on other tokens.
    Own,
}

/// A row of a table of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: u16,
    /// Its type.
    pub kind: Kind,
    /// Its name in the protocol.
    pub name: &'static str,
    /// The header of HTTP that it stands for, in lower case; "" without one.
    pub header: &'static str,
    /// How.
    pub form: Form,
}

const fn row(id: u16, kind: Kind, name: &'static str, header: &'static str, form: Form) -> Row {
    Row {
        id,
        kind,
        name,
        header,
        form,
    }
}

/// Tokens of the first frame of a client.
pub mod context_request {
    /// The version of the frames.
    pub const PROTOCOL_VERSION: u16 = 0;
    /// The version of the API.
    pub const CLIENT_VERSION: u16 = 1;
    /// The client's name for itself.
    pub const USER_AGENT: u16 = 2;
}

/// Tokens of the first frame of a server.
pub mod context_response {
    /// The version of the frames.
    pub const PROTOCOL_VERSION: u16 = 0;
    /// The version of the API, as the client has sent it.
    pub const CLIENT_VERSION: u16 = 1;
    /// The server's name for itself.
    pub const SERVER_AGENT: u16 = 2;
    /// Its version.
    pub const SERVER_VERSION: u16 = 3;
    /// How long a connection may be unused.
    pub const IDLE_TIMEOUT_SECONDS: u16 = 4;
    /// How long it may be without an authorized request.
    pub const UNAUTHENTICATED_TIMEOUT_SECONDS: u16 = 5;
}

/// Ids of tokens of requests that have a meaning of their own.
pub mod request {
    /// The bytes of a resource id: that of the container, or of what is addressed without names.
    pub const RESOURCE_ID: u16 = 0x00;
    /// Whether a payload follows.
    pub const PAYLOAD_PRESENT: u16 = 0x02;
    /// How far the client knows its range.
    pub const SESSION_TOKEN: u16 = 0x05;
    /// `if-none-match` of a read, `if-match` of all others.
    pub const MATCH: u16 = 0x08;
    /// Names in the path, as they are.
    pub const DATABASE_NAME: u16 = 0x15;
    /// See [`DATABASE_NAME`].
    pub const COLLECTION_NAME: u16 = 0x16;
    /// See [`DATABASE_NAME`].
    pub const DOCUMENT_NAME: u16 = 0x17;
    /// See [`DATABASE_NAME`].
    pub const USER_NAME: u16 = 0x19;
    /// See [`DATABASE_NAME`].
    pub const PERMISSION_NAME: u16 = 0x1A;
    /// See [`DATABASE_NAME`].
    pub const STORED_PROCEDURE_NAME: u16 = 0x1B;
    /// See [`DATABASE_NAME`].
    pub const USER_DEFINED_FUNCTION_NAME: u16 = 0x1C;
    /// See [`DATABASE_NAME`].
    pub const TRIGGER_NAME: u16 = 0x1D;
    /// See [`DATABASE_NAME`].
    pub const CONFLICT_NAME: u16 = 0x20;
    /// The container that the client means.
    pub const COLLECTION_RID: u16 = 0x35;
    /// The number of the request on its connection.
    pub const TRANSPORT_REQUEST_ID: u16 = 0x4D;
    /// Where the replica is that the client means.
    pub const REPLICA_PATH: u16 = 0x13;
    /// The partition key, as JSON.
    pub const PARTITION_KEY: u16 = 0x2B;
    /// The hash of the partition key.
    pub const EFFECTIVE_PARTITION_KEY: u16 = 0x5A;
    /// Bounds of a part of a range as resource ids.
    pub const START_ID: u16 = 0x5F;
    /// See [`START_ID`].
    pub const END_ID: u16 = 0x60;
    /// Bounds of a part of a range as effective partition keys; the upper one is outside.
    pub const START_EPK: u16 = 0x62;
    /// See [`START_EPK`].
    pub const END_EPK: u16 = 0x63;
    /// How those are written.
    pub const READ_FEED_KEY_TYPE: u16 = 0x64;
    /// The bounds by which a request through the gateway is sent to a range.
    pub const START_EPK_HASH: u16 = 0xD2;
    /// See [`START_EPK_HASH`].
    pub const END_EPK_HASH: u16 = 0xD3;
    /// What the response has: 1 for nothing.
    pub const RETURN_PREFERENCE: u16 = 0x82;
}

const CONSISTENCY: Form = Form::Choice(&[
    (0, "Strong"),
    (1, "BoundedStaleness"),
    (2, "Session"),
    (3, "Eventual"),
    (4, "ConsistentPrefix"),
]);
const INDEXING: Form = Form::Choice(&[(0, "Default"), (1, "Include"), (2, "Exclude")]);
const DIRECTION: Form = Form::Choice(&[(1, "Forward"), (2, "Reverse")]);
const SERIALIZATION: Form = Form::Choice(&[(0, "JsonText"), (1, "CosmosBinary"), (2, "HybridRow")]);
const PRIORITY: Form = Form::Choice(&[(1, "High"), (2, "Low")]);
const READ_CONSISTENCY: Form = Form::Choice(&[
    (1, "Eventual"),
    (2, "Session"),
    (3, "LatestCommitted"),
    (4, "GlobalStrong"),
    (5, "LastCommittedSingleWriteRegion"),
]);

/// Tokens of requests that clients send or may send.
#[rustfmt::skip]
pub static REQUEST: &[Row] = &[
    row(0x00, Kind::Bytes,       "ResourceId",                          "", Form::Own),
    row(0x01, Kind::String,      "AuthorizationToken",                  "authorization", Form::Text),
    row(0x02, Kind::Byte,        "PayloadPresent",                      "", Form::Own),
    row(0x03, Kind::SmallString, "Date",                                "x-ms-date", Form::Text),
    row(0x04, Kind::ULong,       "PageSize",                            "x-ms-max-item-count", Form::NumberOrMinusOne),
    row(0x05, Kind::String,      "SessionToken",                        "x-ms-session-token", Form::Text),
    row(0x06, Kind::String,      "ContinuationToken",                   "x-ms-continuation", Form::Text),
    row(0x07, Kind::Byte,        "IndexingDirective",                   "x-ms-indexing-directive", INDEXING),
    row(0x08, Kind::String,      "Match",                               "", Form::Own),
    row(0x09, Kind::String,      "PreTriggerInclude",                   "x-ms-documentdb-pre-trigger-include", Form::Text),
    row(0x0A, Kind::String,      "PostTriggerInclude",                  "x-ms-documentdb-post-trigger-include", Form::Text),
    row(0x0E, Kind::String,      "PreTriggerExclude",                   "x-ms-documentdb-pre-trigger-exclude", Form::Text),
    row(0x0F, Kind::String,      "PostTriggerExclude",                  "x-ms-documentdb-post-trigger-exclude", Form::Text),
    row(0x10, Kind::Byte,        "ConsistencyLevel",                    "x-ms-consistency-level", CONSISTENCY),
    row(0x13, Kind::String,      "ReplicaPath",                         "", Form::Own),
    row(0x14, Kind::ULong,       "ResourceTokenExpiry",                 "x-ms-documentdb-expiry-seconds", Form::Number),
    row(0x15, Kind::String,      "DatabaseName",                        "", Form::Own),
    row(0x16, Kind::String,      "CollectionName",                      "", Form::Own),
    row(0x17, Kind::String,      "DocumentName",                        "", Form::Own),
    row(0x18, Kind::String,      "AttachmentName",                      "", Form::Own),
    row(0x19, Kind::String,      "UserName",                            "", Form::Own),
    row(0x1A, Kind::String,      "PermissionName",                      "", Form::Own),
    row(0x1B, Kind::String,      "StoredProcedureName",                 "", Form::Own),
    row(0x1C, Kind::String,      "UserDefinedFunctionName",             "", Form::Own),
    row(0x1D, Kind::String,      "TriggerName",                         "", Form::Own),
    row(0x1E, Kind::Byte,        "EnableScanInQuery",                   "x-ms-documentdb-query-enable-scan", Form::Flag),
    row(0x1F, Kind::Byte,        "EmitVerboseTracesInQuery",            "x-ms-documentdb-query-emit-traces", Form::Flag),
    row(0x20, Kind::String,      "ConflictName",                        "", Form::Own),
    row(0x27, Kind::Byte,        "EnableLowPrecisionOrderBy",           "x-ms-documentdb-query-enable-low-precision-order-by", Form::Flag),
    row(0x28, Kind::SmallString, "ClientVersion",                       "x-ms-version", Form::Text),
    row(0x2B, Kind::String,      "PartitionKey",                        "x-ms-documentdb-partitionkey", Form::Text),
    row(0x2C, Kind::String,      "PartitionKeyRangeId",                 "x-ms-documentdb-partitionkeyrangeid", Form::Text),
    row(0x33, Kind::Byte,        "SupportSpatialLegacyCoordinates",     "x-ms-documentdb-supportspatiallegacycoordinates", Form::Flag),
    row(0x35, Kind::String,      "CollectionRid",                       "x-ms-documentdb-collection-rid", Form::Own),
    row(0x3C, Kind::Byte,        "UsePolygonsSmallerThanAHemisphere",   "x-ms-documentdb-usepolygonssmallerthanahemisphere", Form::Flag),
    row(0x3E, Kind::Byte,        "EnableLogging",                       "x-ms-documentdb-script-enable-logging", Form::Flag),
    row(0x3F, Kind::String,      "A_IM",                                "a-im", Form::Text),
    row(0x40, Kind::Byte,        "PopulateQuotaInfo",                   "x-ms-documentdb-populatequotainfo", Form::Flag),
    row(0x42, Kind::Byte,        "PopulateQueryMetrics",                "x-ms-documentdb-populatequerymetrics", Form::Flag),
    row(0x43, Kind::ULong,       "ResponseContinuationTokenLimitInKb",  "x-ms-documentdb-responsecontinuationtokenlimitinkb", Form::Number),
    row(0x44, Kind::Byte,        "PopulatePartitionStatistics",         "x-ms-documentdb-populatepartitionstatistics", Form::Flag),
    row(0x47, Kind::String,      "IfModifiedSince",                     "if-modified-since", Form::Text),
    row(0x49, Kind::ULong,       "RemainingTimeInMsOnClientRequest",    "x-ms-remaining-time-in-ms-on-client", Form::Own),
    row(0x4A, Kind::ULong,       "ClientRetryAttemptCount",             "x-ms-client-retry-attempt-count", Form::Own),
    row(0x4B, Kind::LongLong,    "TargetLsn",                           "x-ms-target-lsn", Form::Number),
    row(0x4C, Kind::LongLong,    "TargetGlobalCommittedLsn",            "x-ms-target-global-committed-lsn", Form::Number),
    row(0x4D, Kind::ULong,       "TransportRequestID",                  "x-ms-transport-request-id", Form::Own),
    row(0x54, Kind::Byte,        "ForceQueryScan",                      "x-ms-documentdb-force-query-scan", Form::Flag),
    row(0x57, Kind::Byte,        "ExcludeSystemProperties",             "x-ms-exclude-system-properties", Form::Flag),
    row(0x5A, Kind::Bytes,       "EffectivePartitionKey",               "x-ms-effective-partition-key", Form::Own),
    row(0x5E, Kind::Byte,        "EnumerationDirection",                "x-ms-enumeration-direction", DIRECTION),
    row(0x5F, Kind::Bytes,       "StartId",                             "x-ms-start-id", Form::Own),
    row(0x60, Kind::Bytes,       "EndId",                               "x-ms-end-id", Form::Own),
    row(0x62, Kind::Bytes,       "StartEpk",                            "x-ms-start-epk", Form::Own),
    row(0x63, Kind::Bytes,       "EndEpk",                              "x-ms-end-epk", Form::Own),
    row(0x64, Kind::Byte,        "ReadFeedKeyType",                     "x-ms-read-key-type", Form::Own),
    row(0x65, Kind::Byte,        "ContentSerializationFormat",          "x-ms-documentdb-content-serialization-format", SERIALIZATION),
    row(0x66, Kind::Byte,        "AllowTentativeWrites",                "x-ms-cosmos-allow-tentative-writes", Form::Flag),
    row(0x70, Kind::Byte,        "IncludeTentativeWrites",              "x-ms-cosmos-include-tentative-writes", Form::Flag),
    row(0x71, Kind::Byte,        "PopulateResourceCount",               "x-ms-documentdb-populateresourcecount", Form::Flag),
    row(0x73, Kind::Byte,        "IsBatchAtomic",                       "x-ms-cosmos-batch-atomic", Form::Flag),
    row(0x74, Kind::Byte,        "ShouldBatchContinueOnError",          "x-ms-cosmos-batch-continue-on-error", Form::Flag),
    row(0x75, Kind::Byte,        "IsBatchOrdered",                      "x-ms-cosmos-batch-ordered", Form::Flag),
    row(0x82, Kind::Byte,        "ReturnPreference",                    "prefer", Form::Own),
    row(0x87, Kind::Byte,        "IsClientEncrypted",                   "x-ms-cosmos-is-client-encrypted", Form::Flag),
    row(0x9A, Kind::String,      "ChangeFeedStartFullFidelityIfNoneMatch", "x-ms-cosmos-start-full-fidelity-if-none-match", Form::Text),
    row(0x9D, Kind::String,      "IntendedCollectionRid",               "x-ms-cosmos-intended-collection-rid", Form::Text),
    row(0xA2, Kind::ULong,       "SDKSupportedCapabilities",            "x-ms-cosmos-sdk-supportedcapabilities", Form::Number),
    row(0xA9, Kind::Byte,        "PopulateIndexMetrics",                "x-ms-cosmos-populateindexmetrics", Form::Flag),
    row(0xB0, Kind::Guid,        "CorrelatedActivityId",                "x-ms-cosmos-correlated-activityid", Form::Guid),
    row(0xB2, Kind::String,      "ChangeFeedWireFormatVersion",         "x-ms-cosmos-changefeed-wire-format-version", Form::Text),
    row(0xBF, Kind::Byte,        "PriorityLevel",                       "x-ms-cosmos-priority-level", PRIORITY),
    row(0xC2, Kind::Byte,        "PopulateIndexMetricsV2",              "x-ms-cosmos-populateindexmetrics-v2", Form::Flag),
    row(0xC4, Kind::Byte,        "SupportedSerializationFormats",       "x-ms-cosmos-supported-serialization-formats", Form::Own),
    row(0xC8, Kind::Byte,        "OptimisticDirectExecute",             "x-ms-cosmos-query-optimisticdirectexecute", Form::Flag),
    row(0xCC, Kind::String,      "TraceParent",                         "traceparent", Form::Text),
    row(0xCD, Kind::String,      "TraceState",                          "tracestate", Form::Text),
    row(0xCE, Kind::String,      "GlobalDatabaseAccountName",           "", Form::Own),
    row(0xD2, Kind::Bytes,       "StartEpkHash",                        "x-ms-cosmos-start-epk-hash", Form::Own),
    row(0xD3, Kind::Bytes,       "EndEpkHash",                          "x-ms-cosmos-end-epk-hash", Form::Own),
    row(0xDA, Kind::Byte,        "PopulateQueryAdvice",                 "x-ms-cosmos-populatequeryadvice", Form::Flag),
    row(0xDB, Kind::Byte,        "ThroughputBucket",                    "x-ms-cosmos-throughput-bucket", Form::Number),
    row(0xE7, Kind::UShort,      "WorkloadId",                          "x-ms-cosmos-workload-id", Form::Number),
    row(0xE8, Kind::String,      "RegionalDatabaseAccountName",         "", Form::Own),
    row(0xEF, Kind::Byte,        "ShouldProcessOnlyInHubRegion",        "x-ms-cosmos-hub-region-processing-only", Form::Flag),
    row(0xFE, Kind::Byte,        "ReadConsistencyStrategy",             "x-ms-cosmos-read-consistency-strategy", READ_CONSISTENCY),
    row(0xFF, Kind::String,      "SupportedQueryFeatures",              "x-ms-cosmos-supported-query-features", Form::Text),
    row(0x100, Kind::SmallString, "QueryVersion",                      "x-ms-cosmos-query-version", Form::Text),
    row(0x101, Kind::UShort,     "SupportedSerializationFeatures",      "", Form::Own),
];

/// Ids of tokens of responses that have a meaning of their own.
pub mod response {
    /// Whether a payload follows.
    pub const PAYLOAD_PRESENT: u16 = 0x00;
    /// How far the range is: at least 1, in errors, too.
    pub const LSN: u16 = 0x13;
    /// The charge, in request units.
    pub const REQUEST_CHARGE: u16 = 0x15;
    /// See [`LSN`].
    pub const QUORUM_ACKED_LSN: u16 = 0x1A;
    /// How many replicas must have a write.
    pub const CURRENT_WRITE_QUORUM: u16 = 0x1E;
    /// How many replicas there are.
    pub const CURRENT_REPLICA_SET_SIZE: u16 = 0x1F;
    /// The id of the range.
    pub const PARTITION_KEY_RANGE_ID: u16 = 0x21;
    /// See [`LSN`].
    pub const GLOBAL_COMMITTED_LSN: u16 = 0x29;
    /// How many other regions there are.
    pub const NUMBER_OF_READ_REGIONS: u16 = 0x30;
    /// That of the item.
    pub const ITEM_LSN: u16 = 0x32;
    /// The number of the request.
    pub const TRANSPORT_REQUEST_ID: u16 = 0x35;
    /// See [`LSN`].
    pub const LOCAL_LSN: u16 = 0x3A;
    /// See [`LSN`].
    pub const QUORUM_ACKED_LOCAL_LSN: u16 = 0x3B;
    /// See [`ITEM_LSN`].
    pub const ITEM_LOCAL_LSN: u16 = 0x3C;
    /// The session token, without the id of its range.
    pub const SESSION_TOKEN: u16 = 0x3E;
}

/// Tokens of responses that the server sends.
#[rustfmt::skip]
pub static RESPONSE: &[Row] = &[
    row(0x00, Kind::Byte,        "PayloadPresent",                      "", Form::Own),
    row(0x02, Kind::SmallString, "LastStateChangeDateTime",             "x-ms-last-state-change-utc", Form::Text),
    row(0x03, Kind::String,      "ContinuationToken",                   "x-ms-continuation", Form::Text),
    row(0x04, Kind::String,      "ETag",                                "etag", Form::Text),
    row(0x0C, Kind::ULong,       "RetryAfterMilliseconds",              "x-ms-retry-after-ms", Form::Number),
    row(0x0E, Kind::String,      "StorageMaxResoureQuota",              "x-ms-resource-quota", Form::Text),
    row(0x0F, Kind::String,      "StorageResourceQuotaUsage",           "x-ms-resource-usage", Form::Text),
    row(0x10, Kind::SmallString, "SchemaVersion",                       "x-ms-schemaversion", Form::Text),
    row(0x13, Kind::LongLong,    "LSN",                                 "lsn", Form::Own),
    row(0x14, Kind::ULong,       "ItemCount",                           "x-ms-item-count", Form::Number),
    row(0x15, Kind::Double,      "RequestCharge",                       "x-ms-request-charge", Form::Number),
    row(0x17, Kind::String,      "OwnerFullName",                       "x-ms-alt-content-path", Form::Text),
    row(0x18, Kind::String,      "OwnerId",                             "x-ms-content-path", Form::Text),
    row(0x1A, Kind::LongLong,    "QuorumAckedLSN",                      "x-ms-quorum-acked-lsn", Form::Own),
    row(0x1C, Kind::ULong,       "SubStatus",                           "x-ms-substatus", Form::Number),
    row(0x1D, Kind::ULong,       "CollectionUpdateProgress",            "x-ms-documentdb-collection-index-transformation-progress", Form::Number),
    row(0x1E, Kind::ULong,       "CurrentWriteQuorum",                  "x-ms-current-write-quorum", Form::Own),
    row(0x1F, Kind::ULong,       "CurrentReplicaSetSize",               "x-ms-current-replica-set-size", Form::Own),
    row(0x20, Kind::ULong,       "CollectionLazyIndexProgress",         "x-ms-documentdb-collection-lazy-indexing-progress", Form::Number),
    row(0x21, Kind::String,      "PartitionKeyRangeId",                 "x-ms-documentdb-partitionkeyrangeid", Form::Own),
    row(0x25, Kind::String,      "LogResults",                          "x-ms-documentdb-script-log-results", Form::Text),
    row(0x28, Kind::String,      "QueryMetrics",                        "x-ms-documentdb-query-metrics", Form::Text),
    row(0x29, Kind::LongLong,    "GlobalCommittedLSN",                  "x-ms-global-committed-lsn", Form::Own),
    row(0x30, Kind::ULong,       "NumberOfReadRegions",                 "x-ms-number-of-read-regions", Form::Own),
    row(0x31, Kind::Byte,        "OfferReplacePending",                 "x-ms-offer-replace-pending", Form::Flag),
    row(0x32, Kind::LongLong,    "ItemLSN",                             "x-ms-item-lsn", Form::Own),
    row(0x35, Kind::ULong,       "TransportRequestID",                  "x-ms-transport-request-id", Form::Own),
    row(0x3A, Kind::LongLong,    "LocalLSN",                            "x-ms-cosmos-llsn", Form::Own),
    row(0x3B, Kind::LongLong,    "QuorumAckedLocalLSN",                 "x-ms-cosmos-quorum-acked-llsn", Form::Own),
    row(0x3C, Kind::LongLong,    "ItemLocalLSN",                        "x-ms-cosmos-item-llsn", Form::Own),
    row(0x3E, Kind::String,      "SessionToken",                        "x-ms-session-token", Form::Own),
    row(0x42, Kind::ULong,       "MinimumRUsForOffer",                  "x-ms-cosmos-min-throughput", Form::Number),
    row(0x44, Kind::String,      "IndexUtilization",                    "x-ms-cosmos-index-utilization", Form::Text),
    row(0x45, Kind::String,      "QueryExecutionInfo",                  "x-ms-cosmos-query-execution-info", Form::Text),
    row(0x51, Kind::Double,      "BackendRequestDurationMilliseconds",  "x-ms-request-duration-ms", Form::Number),
    row(0x66, Kind::Byte,        "RequiresDistribution",                "x-ms-cosmos-query-requiresdistribution", Form::Flag),
    row(0x75, Kind::String,      "QueryAdvice",                         "x-ms-cosmos-query-advice", Form::Text),
];

#[cfg(test)]
mod tests;
