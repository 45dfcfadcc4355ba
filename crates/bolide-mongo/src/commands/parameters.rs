//! `getParameter`, `setParameter`.

use std::sync::atomic::Ordering;

use bolide_mql::value::number;
use bolide_mql::{Code, Error, Result, value};
use bson::raw::{CStr, RawBsonRef};
use bson::{RawBson, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::global::is_global;
use crate::authentication::Mechanism;
use crate::limits;
use crate::state::MongoState;

/// Reads the value of a parameter.
type Reader = fn(&MongoState) -> RawBson;

/// Parameters by name, with how their values are read.
const PARAMETERS: [(&str, Reader); 12] = [
    ("authSchemaVersion", |_| RawBson::Int32(5)),
    ("authenticationMechanisms", mechanisms),
    ("cursorTimeoutMillis", |_| millis(limits::CURSOR_IDLE.as_millis())),
    ("enableTestCommands", |state| {
        RawBson::Boolean(state.options.faults_enabled)
    }),
    ("featureCompatibilityVersion", |_| {
        RawBson::Document(rawdoc! { "version": "7.0" })
    }),
    ("localLogicalSessionTimeoutMinutes", |_| {
        RawBson::Int32(i32::try_from(limits::SESSION_IDLE.as_secs() / 60).unwrap_or(i32::MAX))
    }),
    ("maxSessions", |_| {
        RawBson::Int32(i32::try_from(limits::SESSIONS).unwrap_or(i32::MAX))
    }),
    (QUIET, |_| RawBson::Boolean(false)),
    ("requireApiVersion", |_| RawBson::Boolean(false)),
    ("scramSHA256IterationCount", |_| RawBson::Int32(15_000)),
    (TTL_ENABLED, |state| {
        RawBson::Boolean(state.ttl_monitor.is_enabled.load(Ordering::Relaxed))
    }),
    (TTL_SLEEP, |state| {
        RawBson::Int32(state.ttl_monitor.sleep_seconds.load(Ordering::Relaxed))
    }),
];

const QUIET: &str = "quiet";
const TTL_ENABLED: &str = "ttlMonitorEnabled";
const TTL_SLEEP: &str = "ttlMonitorSleepSecs";

/// `{getParameter: "*" | 1 | {showDetails, allParameters}, name: 1, …}` → `{name: value, …}`, with details
/// `{name: {value, settableAtRuntime, settableAtStartup}, …}`.
pub async fn get(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let (is_all, shows_details) = match arguments.first() {
        Some(RawBsonRef::String("*")) => (true, false),
        Some(RawBsonRef::Document(options)) => {
            let mut options = Arguments::of_document("getParameter", options)?;
            let shows_details = options.boolean("showDetails")?.unwrap_or(false);
            (options.boolean("allParameters")?.unwrap_or(false), shows_details)
        }
        _ => (false, false),
    };
    let asked: Vec<&str> = arguments.all().skip(1).map(|(key, _)| key).collect();
    let mut reply = RawDocumentBuf::new();
    for (name, read) in PARAMETERS {
        if (is_all || asked.contains(&name))
            && let Ok(key) = <&CStr>::try_from(name)
        {
            let value = read(context.state);
            match shows_details {
                true => reply.append(key, details(name, value)),
                false => reply.append(key, value),
            }
        }
    }
    if reply.is_empty() {
        return Err(Error::new(Code::INVALID_OPTIONS, "no option found to get"));
    }
    Ok(reply.into())
}

fn details(name: &str, value: RawBson) -> RawDocumentBuf {
    let is_settable = [QUIET, TTL_ENABLED, TTL_SLEEP].contains(&name);
    // Options and the limits of the server decide the others, all but these.
    let is_fixed = ["authSchemaVersion", "featureCompatibilityVersion"].contains(&name);
    rawdoc! {"value": value, "settableAtRuntime": is_settable, "settableAtStartup": !is_fixed}
}

/// `{setParameter: 1, name: value}` → `{was}`. Only the parameters of the TTL monitor can be set, because tests do, and nothing depends on them.
pub async fn set(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let mut given = arguments.all().skip(1).filter(|(key, _)| !is_global(key));
    let (Some((name, new)), None) = (given.next(), given.next()) else {
        return Err(Error::new(
            Code::INVALID_OPTIONS,
            "setParameter needs exactly one parameter",
        ));
    };
    let parameters = &context.state.ttl_monitor;
    let was = match name {
        TTL_ENABLED => {
            let is_enabled = value::is_truthy(new);
            RawBson::Boolean(parameters.is_enabled.swap(is_enabled, Ordering::Relaxed))
        }
        TTL_SLEEP => {
            let seconds = number::whole(new)
                .and_then(|seconds| i32::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0);
            let seconds =
                seconds.ok_or_else(|| Error::bad_value(format!("{TTL_SLEEP} must be a whole number above 0")))?;
            RawBson::Int32(parameters.sleep_seconds.swap(seconds, Ordering::Relaxed))
        }
        // There is nothing that could be logged less.
        QUIET => RawBson::Boolean(false),
        known if PARAMETERS.iter().any(|(name, _)| *name == known) => {
            let text = format!("not allowed to change [{known}] at runtime");
            return Err(Error::new(Code::ILLEGAL_OPERATION, text));
        }
        unknown => {
            let text = format!("attempted to set unrecognized parameter [{unknown}], use help:true to see options ");
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
    };
    Ok(rawdoc! { "was": was }.into())
}

fn mechanisms(_: &MongoState) -> RawBson {
    let mut names = bson::RawArrayBuf::new();
    for mechanism in Mechanism::ALL {
        names.push(mechanism.name());
    }
    RawBson::Array(names)
}

fn millis(number: u128) -> RawBson {
    RawBson::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}
