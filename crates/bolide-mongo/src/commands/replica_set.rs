//! `replSetGetStatus`, `replSetGetConfig`: a set with one member.

use bolide_mql::Result;
use bson::{DateTime, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::hello;

/// `{replSetGetStatus: 1}`.
pub async fn status(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    arguments.ignore(&["initialSync"]);
    arguments.finish()?;
    let state = context.state;
    let now = state.account.shown_time().await;
    let date = DateTime::from_millis(now.0);
    let optime = rawdoc! { "ts": state.operation_time(now), "t": hello::TERM };
    let uptime = i64::try_from(state.monotonic().since(state.started()).as_secs()).unwrap_or(i64::MAX);
    let member = rawdoc! {
        "_id": 0,
        "name": hello::address(state, context.client),
        "health": 1.0,
        "state": 1,
        "stateStr": "PRIMARY",
        "uptime": uptime,
        "optime": optime.clone(),
        "optimeDate": date,
        "electionTime": state.operation_time(now),
        "electionDate": date,
        "configVersion": hello::SET_VERSION,
        "configTerm": hello::TERM,
        "self": true,
    };
    let reply = rawdoc! {
        "set": state.options.set_name.as_str(),
        "date": date,
        "myState": 1,
        "term": hello::TERM,
        "heartbeatIntervalMillis": 2000_i64,
        "majorityVoteCount": 1,
        "writeMajorityCount": 1,
        "votingMembersCount": 1,
        "writableVotingMembersCount": 1,
        "optimes": {
            "lastCommittedOpTime": optime.clone(),
            "lastCommittedWallTime": date,
            "readConcernMajorityOpTime": optime.clone(),
            "appliedOpTime": optime.clone(),
            "durableOpTime": optime,
            "lastAppliedWallTime": date,
            "lastDurableWallTime": date,
        },
        "members": [member],
    };
    Ok(reply.into())
}

/// `{replSetGetConfig: 1}`.
pub async fn config(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    arguments.ignore(&["commitmentStatus", "$_internalIncludeNewlyAdded"]);
    arguments.finish()?;
    let state = context.state;
    let member = rawdoc! {
        "_id": 0,
        "host": hello::address(state, context.client),
        "arbiterOnly": false,
        "buildIndexes": true,
        "hidden": false,
        "priority": 1.0,
        "tags": {},
        "secondaryDelaySecs": 0_i64,
        "votes": 1,
    };
    let config = rawdoc! {
        "_id": state.options.set_name.as_str(),
        "version": hello::SET_VERSION,
        "term": hello::TERM,
        "members": [member],
        "protocolVersion": 1_i64,
        "writeConcernMajorityJournalDefault": true,
        "settings": {
            "chainingAllowed": true,
            "heartbeatIntervalMillis": 2000,
            "electionTimeoutMillis": 10000,
            "getLastErrorDefaults": { "w": 1, "wtimeout": 0 },
        },
    };
    Ok(rawdoc! { "config": config }.into())
}
