use bolide_model::error::{BadContinuation, HistoryStart, ItemOperation, Resource};

use super::*;

const EXISTS: &str = "Resource with specified id, name, or unique index already exists";

/// What clients read for a reason: status, sub-status, message.
fn check(reason: Reason, http: u16, sub: u32, message: &str) {
    let failure = Failure::from(Error::from(reason.clone()));
    assert_eq!(
        (failure.status.http.as_u16(), failure.status.sub),
        (http, sub),
        "{reason:?}"
    );
    assert_eq!(failure.message, message, "{reason:?}");
}

fn name() -> String {
    "n".to_owned()
}

#[test]
fn resources_that_are_missing_or_there_already() {
    let nouns = [
        (Resource::Database, "database"),
        (Resource::Container, "container"),
        (Resource::User, "user"),
        (Resource::Permission, "permission"),
        (Resource::Offer, "offer"),
        (Resource::EncryptionKey, "client encryption key"),
        (Resource::StoredProcedure, "stored procedure"),
        (Resource::Trigger, "trigger"),
        (Resource::UserDefinedFunction, "user-defined function"),
    ];
    for (resource, noun) in nouns {
        let missing = Reason::ResourceMissing { resource, name: name() };
        check(missing, 404, 0, &format!("Resource Not Found: there is no {noun} 'n'."));
        let taken = Reason::NameTaken { resource, name: name() };
        check(taken, 409, 0, &format!("{EXISTS}: {noun} 'n'."));
        let many = Reason::TooManyScripts { resource, limit: 500 };
        check(
            many,
            403,
            0,
            &format!("a container has at most 500 resources of the kind {noun}"),
        );
    }
    let taken = Reason::PermissionTaken { name: name() };
    check(taken, 409, 0, &format!("{EXISTS}: permission 'n' for this resource."));
    let deleted = "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found. the container was deleted";
    check(Reason::ContainerDeleted, 404, 0, deleted);
}

#[test]
fn collections() {
    for (refused, text) in [
        (
            ItemOperation::Write,
            "this API reads and queries its documents. Write them through the MongoDB API.",
        ),
        (
            ItemOperation::Definition,
            "change its options and indexes through the MongoDB API.",
        ),
        (
            ItemOperation::Script,
            "stored procedures and triggers are for items. User-defined functions can be used in queries.",
        ),
        (
            ItemOperation::AllVersions,
            "this API has the latest-version mode of its change feed. Versions and deletes are in the change streams of the \
             MongoDB API.",
        ),
    ] {
        let reason = Reason::NotForCollections {
            container: "n".to_owned(),
            refused,
        };
        check(reason, 400, 0, &format!("'n' is a MongoDB collection: {text}"));
    }
}

#[test]
fn items() {
    check(
        Reason::ItemMissing,
        404,
        0,
        "Entity with the specified id does not exist in the system. Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found",
    );
    check(
        Reason::ItemExists,
        409,
        0,
        "Resource with specified id, name, or unique index already exists.",
    );
    check(
        Reason::UniqueKeyTaken,
        409,
        0,
        "Unique index constraint violation: Resource with specified id, name, or unique index already exists.",
    );
    check(
        Reason::VersionDiffers,
        412,
        0,
        "One of the specified pre-condition is not met.",
    );
    check(
        Reason::PatchConditionFalse,
        412,
        1110,
        "One of the specified pre-condition is not met: the condition of the patch does not hold.",
    );
    check(
        Reason::PartitionKeyMismatch,
        400,
        1001,
        "Partition key provided either doesn't correspond to definition in the collection or doesn't match partition key field values \
         specified in the document.",
    );
    check(
        Reason::PartitionKeyRequired,
        400,
        0,
        "PartitionKey value must be supplied for this operation.",
    );
    check(
        Reason::ItemTooLarge {
            bytes: 2_097_153,
            limit: 2_097_152,
        },
        413,
        0,
        "Request size is too large: the item takes 2097153 bytes, and at most 2097152 are allowed.",
    );
}

#[test]
fn throughput_and_ranges() {
    check(
        Reason::ThroughputUsedUp {
            retry_after: Duration::from_millis(7),
        },
        429,
        3200,
        "Request rate is large. More Request Units may be needed, so no changes were made.",
    );
    check(
        Reason::ManualThroughput { ru: -100 },
        400,
        0,
        "The offer should have valid throughput values between 400 and 10000 inclusive in increments of 100, or up to 1000000 over several \
         partition key ranges. Requested throughput -100.",
    );
    check(
        Reason::AutoscaleThroughput { max_ru: 900 },
        400,
        0,
        "Requested throughput 900 is less than required minimum throughput 1000.",
    );
    check(
        Reason::AutoscaleStep { max_ru: 1001 },
        400,
        0,
        "Requested maximum throughput 1001 must be specified in increments of 1000.",
    );
    check(
        Reason::RangeGone { range: 3 },
        410,
        1002,
        "the partition key range is gone. range=3",
    );
}

#[test]
fn continuations_and_queries() {
    let continuations = [
        (
            BadContinuation::Malformed,
            "Invalid Continuation Token: it is malformed.",
        ),
        (
            BadContinuation::OtherRequest,
            "Invalid Continuation Token: it is malformed, or belongs to another request.",
        ),
        (
            BadContinuation::OtherPart,
            "Invalid Continuation Token: it was given for another part of the container.",
        ),
        (
            BadContinuation::NoChangeFeed { text: "x".to_owned() },
            "Invalid Continuation Token: 'x' is none of a change feed.",
        ),
    ];
    for (why, message) in continuations {
        check(Reason::BadContinuation(why), 400, 0, message);
    }
    check(
        Reason::ContinuationTooLong {
            bytes: 1500,
            limit_kb: 1,
        },
        400,
        0,
        "The continuation token limit specified is not large enough: 1500 bytes are needed, 1 KB are allowed.",
    );
    check(
        Reason::CrossPartitionDisabled,
        400,
        0,
        "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify \
         x-ms-documentdb-partitionkey, or revise your query to avoid this exception.",
    );
    check(
        Reason::ClientMergeNeeded { plan: "{}".to_owned() },
        400,
        1004,
        "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) exception that all \
         newer clients will know how to handle gracefully. This exception is traced, but unless you see it bubble up as an exception (which \
         only happens on older SDK clients), then you can safely ignore this message.",
    );
}

#[test]
fn histories() {
    check(
        Reason::HistoryOff,
        400,
        0,
        "The change feed mode 'All Versions and Deletes' must be enabled for the container: set changeFeedPolicy.retentionDuration to a \
         number of minutes above 0, or leave the policy out and start from now with a read-write key, which begins a history of seven days.",
    );
    check(
        Reason::HistoryLeft,
        400,
        0,
        "You must read the change feed from within the retention period. The continuation is older than changeFeedPolicy.retentionDuration: \
         changes behind it have left the feed. Start from now.",
    );
    for (start, named) in [
        (HistoryStart::Beginning, "beginning"),
        (HistoryStart::Time, "a point in time"),
    ] {
        let message = format!(
            "Start from {named} is not supported with 'All Versions and Deletes' mode. You must read the change feed from within the \
             retention period. Start from now or from a continuation."
        );
        check(Reason::HistoryStart { start }, 400, 0, &message);
    }
}

#[test]
fn scripts_and_definitions() {
    check(
        Reason::ScriptBlocked {
            id: "greedy".to_owned(),
            seconds: 600,
        },
        403,
        0,
        "The script with id 'greedy' is blocked for execution because it has violated its allowed resource limit several times. It may run \
         again in 600 seconds, or once it is replaced.",
    );
    check(
        Reason::ScriptsTooLarge {
            others: 1,
            bytes: 2,
            limit: 3,
        },
        413,
        0,
        "Request size is too large. the scripts of a container take at most 3 bytes together. others=1 bytes=2",
    );
    check(
        Reason::DefinitionsTooLarge {
            used: 1,
            more: 2,
            limit: 3,
        },
        403,
        1005,
        "The definitions of databases, containers, users, permissions, client encryption keys and scripts stay in memory, and would take \
         more than they may. Delete some, or start the server with a higher --memory-limit: they may take a quarter of it. used=1 more=2 \
         limit=3 bytes",
    );
    check(
        Reason::EncryptionKeyRenamed {
            id: "a".to_owned(),
            new: "b".to_owned(),
        },
        400,
        0,
        "The 'id' of a client encryption key cannot be changed from 'a' to 'b'.",
    );
    check(
        Reason::EncryptionKeyUnknown { id: name() },
        400,
        0,
        "ClientEncryptionKey with id '[n]' does not exist.",
    );
}

#[test]
fn scripts_read_numbers_and_no_phrases() {
    let seen = |reason: Reason| {
        let error = script_error(&reason.into());
        (error.number, error.message)
    };
    let large = "The transaction is too large.".to_owned();
    assert_eq!(seen(Reason::TransactionTooLarge), (413, large));
    let missing = "Entity with the specified id does not exist in the system. Resource Not Found. Learn more: \
                   https://aka.ms/cosmosdb-tsg-not-found";
    assert_eq!(seen(Reason::ItemMissing), (404, missing.to_owned()));
    let broken = script_error(&Error::new(ErrorKind::Corrupt, "a stored item is damaged"));
    assert_eq!(
        (broken.number, broken.message.as_str()),
        (500, "a stored item is damaged")
    );
}

#[test]
fn the_operation_precedes_the_error_in_messages() {
    let failure = Failure::from(Error::from(Reason::ItemExists).context("line 2"));
    assert_eq!(failure.status.http.as_u16(), 409);
    assert_eq!(failure.message, format!("line 2: {EXISTS}."));
}

#[test]
fn phrases_clients_search_for_come_first() {
    let failure = Failure::from(Error::not_found("no item has this id. id=`a`"));
    assert!(failure.message.starts_with("Resource Not Found"), "{}", failure.message);
    assert!(failure.message.ends_with("id=`a`"), "{}", failure.message);
}

#[test]
fn a_phrase_of_the_core_is_not_repeated() {
    let failure = Failure::from(Error::conflict(
        "Resource with specified id, name, or unique index already exists. id=`a`",
    ));
    assert_eq!(failure.message.matches("already exists").count(), 1);
}

#[test]
fn an_account_that_is_full_is_forbidden_more_in_the_services_words() {
    let failure = Failure::from(Error::new(ErrorKind::QuotaExceeded, "too many"));
    assert_eq!((failure.status.http.as_u16(), failure.status.sub), (403, 1005));
    assert_eq!(failure.message, "too many");
}

#[test]
fn a_cross_partition_query_carries_its_plan() {
    let failure = Failure::from(Error::from(Reason::ClientMergeNeeded { plan: "{}".to_owned() }));
    assert_eq!(failure.additional.as_deref(), Some("{}"));
}

#[test]
fn throttling_has_the_time_to_wait() {
    let retry_after = Duration::from_millis(7);
    let failure = Failure::from(Error::from(Reason::ThroughputUsedUp { retry_after }));
    assert_eq!(failure.retry_after, Some(retry_after));
}
