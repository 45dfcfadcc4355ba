//! The text for Cosmos clients of every reason for a refusal. It is the text of the service where the service has one, because clients and people
//! search for it (cosmos-rest §12.5).

use std::borrow::Cow;

use bolide_model::error::{BadContinuation, Detail, HistoryStart, ItemOperation};
use bolide_model::{Error, ErrorKind, Reason};

/// The message of an error: the phrase of its status, and then the text of the error.
pub(super) fn message(error: &Error) -> String {
    if let ErrorKind::QuerySyntax { body } = &error.kind {
        return format!("Message: {body}");
    }
    let phrase = phrase(&error.kind);
    let sentence = phrase.split('.').next().unwrap_or_default();
    let text = text(&error.detail);
    if text.contains(sentence) {
        text.into_owned()
    } else {
        format!("{phrase}{text}")
    }
}

/// The phrase that clients search for; our text follows it. Source: cosmos-rest §12.5.
fn phrase(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound | ErrorKind::OwnerNotFound => {
            "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found. "
        }
        ErrorKind::SessionNotAvailable => "The read session is not available for the input session token. ",
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => {
            "Resource with specified id, name, or unique index already exists. "
        }
        ErrorKind::PreconditionFailed | ErrorKind::PatchConditionFailed => {
            "One of the specified pre-condition is not met. "
        }
        ErrorKind::PartitionKeyMismatch => {
            "Partition key provided either doesn't correspond to definition in the collection or doesn't match \
             partition key field values specified in the document. "
        }
        ErrorKind::CrossPartitionQuery => {
            "The provided cross partition query can not be directly served by the gateway. "
        }
        ErrorKind::TooLarge => "Request size is too large. ",
        ErrorKind::Throttled { .. } => "Request rate is large. ",
        _ => "",
    }
}

/// The text of the error without the phrase of the status, as scripts read it.
pub(super) fn text(detail: &Detail) -> Cow<'_, str> {
    match detail {
        Detail::Text(text) => text.into(),
        Detail::Context { context, cause } => format!("{context}: {}", text(cause)).into(),
        Detail::Reason(reason) => of_reason(reason),
    }
}

// Long: it is a table, and the compiler checks that it is complete.
fn of_reason(reason: &Reason) -> Cow<'static, str> {
    match reason {
        Reason::ResourceMissing { resource, name } => {
            format!("Resource Not Found: there is no {resource} '{name}'.").into()
        }
        Reason::WriteConflict
        | Reason::SnapshotEnded
        | Reason::SnapshotTooOld
        | Reason::SnapshotUnavailable
        | Reason::SettingsChanged
        | Reason::WritesSealed
        | Reason::StoreMoved
        | Reason::UnfinishedCopy
        | Reason::OtherDatabase => reason.to_string().into(),
        Reason::NotForCollections { container, refused } => not_for_collections(container, *refused).into(),
        Reason::ContainerDeleted => "the container was deleted".into(),
        Reason::NameTaken { resource, name } => exists_already(&format!("{resource} '{name}'")),
        Reason::PermissionTaken { name } => exists_already(&format!("permission '{name}' for this resource")),
        Reason::ItemMissing => "Entity with the specified id does not exist in the system. Resource Not Found. \
                                Learn more: https://aka.ms/cosmosdb-tsg-not-found"
            .into(),
        Reason::ItemExists => "Resource with specified id, name, or unique index already exists.".into(),
        Reason::UniqueKeyTaken => {
            "Unique index constraint violation: Resource with specified id, name, or unique index already exists.".into()
        }
        Reason::VersionDiffers => "One of the specified pre-condition is not met.".into(),
        Reason::PatchConditionFalse => {
            "One of the specified pre-condition is not met: the condition of the patch does not hold.".into()
        }
        Reason::PartitionKeyMismatch => PARTITION_KEY_MISMATCH.into(),
        Reason::PartitionKeyRequired => "PartitionKey value must be supplied for this operation.".into(),
        Reason::ItemTooLarge { bytes, limit } => {
            format!("Request size is too large: the item takes {bytes} bytes, and at most {limit} are allowed.").into()
        }
        Reason::TransactionTooLarge => "The transaction is too large.".into(),
        Reason::ThroughputUsedUp { .. } => {
            "Request rate is large. More Request Units may be needed, so no changes were made.".into()
        }
        Reason::ManualThroughput { ru } => format!(
            "The offer should have valid throughput values between 400 and 10000 inclusive in increments of 100, or up to 1000000 over \
             several partition key ranges. Requested throughput {ru}."
        )
        .into(),
        Reason::AutoscaleThroughput { max_ru } => {
            format!("Requested throughput {max_ru} is less than required minimum throughput 1000.").into()
        }
        Reason::AutoscaleStep { max_ru } => {
            format!("Requested maximum throughput {max_ru} must be specified in increments of 1000.").into()
        }
        Reason::RangeGone { range } => format!("the partition key range is gone. range={range}").into(),
        Reason::BadContinuation(why) => format!("Invalid Continuation Token: {}.", continuation(why)).into(),
        Reason::ContinuationTooLong { bytes, limit_kb } => format!(
            "The continuation token limit specified is not large enough: {bytes} bytes are needed, {limit_kb} KB are allowed."
        )
        .into(),
        Reason::CrossPartitionDisabled => CROSS_PARTITION_DISABLED.into(),
        Reason::ClientMergeNeeded { .. } => CLIENT_MERGE_NEEDED.into(),
        Reason::HistoryOff => HISTORY_OFF.into(),
        Reason::HistoryLeft => HISTORY_LEFT.into(),
        Reason::HistoryStart { start } => history_start(*start).into(),
        Reason::ScriptBlocked { id, seconds } => format!(
            "The script with id '{id}' is blocked for execution because it has violated its allowed resource limit several times. It may \
             run again in {seconds} seconds, or once it is replaced."
        )
        .into(),
        Reason::TooManyScripts { resource, limit } => {
            format!("a container has at most {limit} resources of the kind {resource}").into()
        }
        Reason::ScriptsTooLarge { others, bytes, limit } => {
            format!("the scripts of a container take at most {limit} bytes together. others={others} bytes={bytes}").into()
        }
        Reason::DefinitionsTooLarge { used, more, limit } => format!(
            "The definitions of databases, containers, users, permissions, client encryption keys and scripts stay in memory, and would \
             take more than they may. Delete some, or start the server with a higher --memory-limit: they may take a quarter of it. \
             used={used} more={more} limit={limit} bytes"
        )
        .into(),
        Reason::EncryptionKeyRenamed { id, new } => {
            format!("The 'id' of a client encryption key cannot be changed from '{id}' to '{new}'.").into()
        }
        Reason::EncryptionKeyUnknown { id } => format!("ClientEncryptionKey with id '[{id}]' does not exist.").into(),
    }
}

const PARTITION_KEY_MISMATCH: &str = "Partition key provided either doesn't correspond to definition in the collection or doesn't match \
                                      partition key field values specified in the document.";

const CROSS_PARTITION_DISABLED: &str = "Cross partition query is required but disabled. Please set \
                                        x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or \
                                        revise your query to avoid this exception.";

const CLIENT_MERGE_NEEDED: &str = "The provided cross partition query can not be directly served by the gateway. This is a first chance \
                                   (internal) exception that all newer clients will know how to handle gracefully. This exception is \
                                   traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), \
                                   then you can safely ignore this message.";

/// The text by which clients recognise it (cosmos-rest §8.4).
const HISTORY_OFF: &str = "The change feed mode 'All Versions and Deletes' must be enabled for the container: set \
                           changeFeedPolicy.retentionDuration to a number of minutes above 0, or leave the policy out and start from now \
                           with a read-write key, which begins a history of seven days.";

const HISTORY_LEFT: &str = "You must read the change feed from within the retention period. The continuation is older than \
                            changeFeedPolicy.retentionDuration: changes behind it have left the feed. Start from now.";

fn history_start(start: HistoryStart) -> String {
    let start = match start {
        HistoryStart::Beginning => "beginning",
        HistoryStart::Time => "a point in time",
    };
    format!(
        "Start from {start} is not supported with 'All Versions and Deletes' mode. You must read the change feed from within the \
         retention period. Start from now or from a continuation."
    )
}

fn not_for_collections(container: &str, refused: ItemOperation) -> String {
    let refused = match refused {
        ItemOperation::Write => "this API reads and queries its documents. Write them through the MongoDB API.",
        ItemOperation::Definition => "change its options and indexes through the MongoDB API.",
        ItemOperation::Script => {
            "stored procedures and triggers are for items. User-defined functions can be used in queries."
        }
        ItemOperation::AllVersions => {
            "this API has the latest-version mode of its change feed. Versions and deletes are in the change streams of the MongoDB API."
        }
    };
    format!("'{container}' is a MongoDB collection: {refused}")
}

fn exists_already(what: &str) -> Cow<'static, str> {
    format!("Resource with specified id, name, or unique index already exists: {what}.").into()
}

fn continuation(why: &BadContinuation) -> Cow<'static, str> {
    match why {
        BadContinuation::Malformed => "it is malformed".into(),
        BadContinuation::OtherRequest => "it is malformed, or belongs to another request".into(),
        BadContinuation::OtherPart => "it was given for another part of the container".into(),
        BadContinuation::NoChangeFeed { text } => format!("'{text}' is none of a change feed").into(),
    }
}
