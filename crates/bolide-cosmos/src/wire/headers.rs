//! The headers of the protocol, and typed access to those of requests.

use std::str::FromStr;

use bolide_model::{Error, Result};
use http::{HeaderMap, HeaderName, HeaderValue};

macro_rules! headers {
    ($($name:ident = $text:literal,)*) => {
        $(pub(crate) static $name: HeaderName = HeaderName::from_static($text);)*
    };
}

// Headers of requests.
headers! {
    A_IM = "a-im",
    AUTOPILOT_SETTINGS = "x-ms-cosmos-offer-autopilot-settings",
    BATCH_ATOMIC = "x-ms-cosmos-batch-atomic",
    BATCH_CONTINUE_ON_ERROR = "x-ms-cosmos-batch-continue-on-error",
    CONSISTENCY_LEVEL = "x-ms-consistency-level",
    CONTENT_FORMAT = "x-ms-documentdb-content-serialization-format",
    CONTINUATION_LIMIT_KB = "x-ms-documentdb-responsecontinuationtokenlimitinkb",
    CROSS_PARTITION = "x-ms-documentdb-query-enablecrosspartition",
    END_EPK = "x-ms-end-epk",
    EXCLUDE_SYSTEM_PROPERTIES = "x-ms-exclude-system-properties",
    EXPIRY_SECONDS = "x-ms-documentdb-expiry-seconds",
    FORWARDED_HOST = "x-forwarded-host",
    FORWARDED_PROTO = "x-forwarded-proto",
    FEED_WIRE_FORMAT = "x-ms-cosmos-changefeed-wire-format-version",
    INDEX_USE = "x-bolide-index-use",
    INDEXING_DIRECTIVE = "x-ms-indexing-directive",
    INTENDED_RID = "x-ms-cosmos-intended-collection-rid",
    IS_BATCH = "x-ms-cosmos-is-batch-request",
    IS_QUERY = "x-ms-documentdb-isquery",
    IS_QUERY_GO = "x-ms-documentdb-query",
    IS_QUERY_PLAN = "x-ms-cosmos-is-query-plan-request",
    IS_UPSERT = "x-ms-documentdb-is-upsert",
    MAX_ITEM_COUNT = "x-ms-max-item-count",
    MIGRATE_TO_AUTOPILOT = "x-ms-cosmos-migrate-offer-to-autopilot",
    MIGRATE_TO_MANUAL = "x-ms-cosmos-migrate-offer-to-manual-throughput",
    MS_DATE = "x-ms-date",
    OFFER_THROUGHPUT = "x-ms-offer-throughput",
    OFFER_TYPE = "x-ms-offer-type",
    PARTITION_KEY = "x-ms-documentdb-partitionkey",
    POPULATE_INDEX_METRICS = "x-ms-cosmos-populateindexmetrics",
    POPULATE_INDEX_METRICS_V2 = "x-ms-cosmos-populateindexmetrics-v2",
    POPULATE_QUERY_ADVICE = "x-ms-cosmos-populatequeryadvice",
    POPULATE_QUERY_METRICS = "x-ms-documentdb-populatequerymetrics",
    POPULATE_QUOTA = "x-ms-documentdb-populatequotainfo",
    POPULATE_STATISTICS = "x-ms-documentdb-populatepartitionstatistics",
    POST_TRIGGERS = "x-ms-documentdb-post-trigger-include",
    PRE_TRIGGERS = "x-ms-documentdb-pre-trigger-include",
    PREFER = "prefer",
    PREVIOUS_IMAGES = "x-bolide-previous-images",
    QUERY_FEATURES = "x-ms-cosmos-supported-query-features",
    QUORUM_ACKED_LSN = "x-ms-quorum-acked-lsn",
    READ_CONSISTENCY_STRATEGY = "x-ms-cosmos-read-consistency-strategy",
    READ_KEY_TYPE = "x-ms-read-key-type",
    SCRIPT_LOGGING = "x-ms-documentdb-script-enable-logging",
    SDK_CAPABILITIES = "x-ms-cosmos-sdk-supportedcapabilities",
    START_EPK = "x-ms-start-epk",
}

// Headers of responses, some of which are also in requests.
headers! {
    ACTIVITY_ID = "x-ms-activity-id",
    ALT_CONTENT_PATH = "x-ms-alt-content-path",
    CACHE_CONTROL = "cache-control",
    CONTENT_ENCODING = "content-encoding",
    CONTENT_LOCATION = "content-location",
    CONTENT_PATH = "x-ms-content-path",
    CONTENT_SECURITY_POLICY = "content-security-policy",
    CONTENT_TYPE = "content-type",
    CONTENT_TYPE_OPTIONS = "x-content-type-options",
    CONTINUATION = "x-ms-continuation",
    ETAG = "etag",
    GATEWAY_VERSION = "x-ms-gatewayversion",
    GLOBAL_COMMITTED_LSN = "x-ms-global-committed-lsn",
    INDEX_PROGRESS = "x-ms-documentdb-collection-index-transformation-progress",
    INDEX_UTILIZATION = "x-ms-cosmos-index-utilization",
    ITEM_COUNT = "x-ms-item-count",
    ITEM_LLSN = "x-ms-cosmos-item-llsn",
    ITEM_LSN = "x-ms-item-lsn",
    KEY_DELETE_PENDING = "x-ms-cosmos-is-partition-key-delete-pending",
    LLSN = "x-ms-cosmos-llsn",
    LSN = "lsn",
    MAX_MEDIA_USAGE_MB = "x-ms-max-media-storage-usage-mb",
    MEDIA_USAGE_MB = "x-ms-media-storage-usage-mb",
    MIN_THROUGHPUT = "x-ms-cosmos-min-throughput",
    OFFER_REPLACE_PENDING = "x-ms-offer-replace-pending",
    PARTITION_KEY_RANGE_ID = "x-ms-documentdb-partitionkeyrangeid",
    OPENER_POLICY = "cross-origin-opener-policy",
    QUERY_ADVICE = "x-ms-cosmos-query-advice",
    QUERY_METRICS = "x-ms-documentdb-query-metrics",
    READ_REGIONS = "x-ms-number-of-read-regions",
    REFERRER_POLICY = "referrer-policy",
    REPLICA_SET_SIZE = "x-ms-current-replica-set-size",
    REQUEST_CHARGE = "x-ms-request-charge",
    REQUEST_DURATION = "x-ms-request-duration-ms",
    RESOURCE_POLICY = "cross-origin-resource-policy",
    RESOURCE_QUOTA = "x-ms-resource-quota",
    RESOURCE_USAGE = "x-ms-resource-usage",
    RETRY_AFTER_MS = "x-ms-retry-after-ms",
    SCHEMA_VERSION = "x-ms-schemaversion",
    SCRIPT_LOG = "x-ms-documentdb-script-log-results",
    SERVICE_VERSION = "x-ms-serviceversion",
    SESSION_TOKEN = "x-ms-session-token",
    SHARE_THROUGHPUT = "x-ms-share-throughput",
    SUB_STATUS = "x-ms-substatus",
    VERSION = "x-ms-version",
    WRITE_QUORUM = "x-ms-current-write-quorum",
}

// CORS headers.
headers! {
    ALLOW_HEADERS = "access-control-allow-headers",
    ALLOW_METHODS = "access-control-allow-methods",
    ALLOW_ORIGIN = "access-control-allow-origin",
    ALLOW_PRIVATE_NETWORK = "access-control-allow-private-network",
    EXPOSE_HEADERS = "access-control-expose-headers",
    MAX_AGE = "access-control-max-age",
    REQUEST_PRIVATE_NETWORK = "access-control-request-private-network",
    VARY = "vary",
}

/// Values of `A-IM`: the modes of the change feed (cosmos-rest §8.1).
pub(crate) const LATEST_VERSIONS: &str = "Incremental Feed";
/// See [`LATEST_VERSIONS`].
pub(crate) const ALL_VERSIONS: &str = "Full-Fidelity Feed";

/// The first API version that shows a partition key for containers that have none.
const FIRST_VERSION_WITH_SYSTEM_KEY: &str = "2018-12-31";
/// See [`knows_no_backslash`].
const FIRST_VERSION_WITH_BACKSLASH: &str = "2020-11-05";

/// Whether a client is from before containers without a partition key were shown with a system key: it creates such containers, sees them without a
/// key, and sends none.
pub(crate) fn knows_no_system_key(headers: &HeaderMap) -> bool {
    is_before(headers, FIRST_VERSION_WITH_SYSTEM_KEY)
}

/// Whether a client is from before ids of items could contain a backslash.
///
/// Source: .NET's and Java's tests of ids (2020-07-15) expect a 400, Go's (2020-11-05) a 201, from the same emulator.
pub(crate) fn knows_no_backslash(headers: &HeaderMap) -> bool {
    is_before(headers, FIRST_VERSION_WITH_BACKSLASH)
}

/// Whether a client states an older version than this one.
fn is_before(headers: &HeaderMap, first: &str) -> bool {
    let version = non_empty(headers, &VERSION).ok().flatten();
    version.is_some_and(|version| version < first)
}

/// Reads a header as text.
///
/// # Errors
/// `BadRequest` if it is not UTF-8. (Headers should be ASCII, but not every client escapes partition keys.)
pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|_| Error::bad_request(format!("header `{name}` is not UTF-8")))?;
    Ok(Some(text.trim()))
}

/// The text of a value that is ASCII. As `HeaderValue::to_str`, which looks at each byte by itself: that took 4 % of a point read.
pub(crate) fn ascii(value: &HeaderValue) -> Option<&str> {
    let bytes = value.as_bytes();
    // A value never has control characters, except for the tab.
    let text = bytes.is_ascii().then(|| std::str::from_utf8(bytes));
    text.and_then(Result::ok)
}

/// The number that a value of a response is in digits.
pub(crate) fn number<N: FromStr>(value: &[u8]) -> Option<N> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Reads a header as text; an empty one counts as absent.
///
/// # Errors
/// As [`text`].
pub(crate) fn non_empty<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>> {
    Ok(text(headers, name)?.filter(|text| !text.is_empty()))
}

/// Whether a boolean header is true. SDKs write `True`, `true` and `False` (cosmos-rest §0.4); any other value is false.
pub(crate) fn flag(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers
        .get(name)
        .is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"true"))
}

/// Reads a whole number.
///
/// # Errors
/// `BadRequest` if it is not one.
pub(crate) fn integer(headers: &HeaderMap, name: &HeaderName) -> Result<Option<i64>> {
    let Some(text) = non_empty(headers, name)? else {
        return Ok(None);
    };
    let number = text
        .parse()
        .map_err(|_| Error::bad_request(format!("header `{name}` must be a whole number. value=`{text}`")))?;
    Ok(Some(number))
}

/// Refuses a value that is not one of the known ones, in any case.
///
/// # Errors
/// `BadRequest`, with the header and its valid values.
pub(crate) fn check_choices(headers: &HeaderMap, name: &HeaderName, known: &[&str]) -> Result<()> {
    let Some(text) = non_empty(headers, name)? else {
        return Ok(());
    };
    // Several may be given, the preferred one first.
    let mut values = text.split(',').map(str::trim);
    if values.all(|value| known.iter().any(|known| known.eq_ignore_ascii_case(value))) {
        return Ok(());
    }
    let text = bolide_model::error::excerpt(text);
    Err(Error::bad_request(format!(
        "Invalid value of header `{name}`: it must be one of {}. value=`{text}`",
        known.join(", ")
    )))
}

/// Whether the client wants responses of writes without a body.
pub(crate) fn prefers_minimal(headers: &HeaderMap) -> bool {
    headers
        .get(&PREFER)
        .is_some_and(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"return=minimal"))
}

/// Whether a write names triggers to run.
pub(crate) fn names_triggers(headers: &HeaderMap) -> bool {
    [&PRE_TRIGGERS, &POST_TRIGGERS]
        .iter()
        .any(|name| headers.get(*name).is_some_and(|value| !value.is_empty()))
}

/// Whether a `POST` to a feed is a query: by either marker header or by its content type (cosmos-rest §0.2).
pub(crate) fn is_query(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(http::header::CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    flag(headers, &IS_QUERY)
        || flag(headers, &IS_QUERY_GO)
        || content_type
            .get(..22)
            .is_some_and(|head| head.eq_ignore_ascii_case(b"application/query+json"))
}

#[cfg(test)]
mod tests;
