//! Fields that may be on any command.
//!
//! Source: mongo.md §2, §7.

use std::sync::Arc;
use std::time::Duration;

use bolide_mql::value::number::Number;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::spec::BinarySubtype;
use uuid::Uuid;

use super::arguments::{Arguments, wrong_type};
use super::concerns::{ReadConcern, WriteConcern};
use crate::sessions::SessionId;

/// Their names.
const NAMES: [&str; 28] = [
    "$audit",
    "$client",
    "$clusterTime",
    "$configServerState",
    "$configTime",
    "$db",
    "$oplogQueryData",
    "$queryOptions",
    "$readPreference",
    "$replData",
    "$topologyTime",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "comment",
    "databaseVersion",
    "help",
    "lsid",
    "maxTimeMS",
    "maxTimeMSOpOnly",
    "rawData",
    "readConcern",
    "recoveryToken",
    "shardVersion",
    "startTransaction",
    "txnNumber",
    "writeConcern",
];
/// Also global, but read by the commands that have statements.
const STATEMENTS: [&str; 2] = ["stmtId", "stmtIds"];

/// Whether a field may be on any command.
pub fn is_global(field: &str) -> bool {
    NAMES.contains(&field) || STATEMENTS.contains(&field)
}

/// The values of these fields that matter here.
#[derive(Debug, Clone, Default)]
pub struct GlobalArguments {
    /// `lsid`.
    pub session: Option<SessionId>,
    /// `txnNumber`, `autocommit`, `startTransaction`.
    pub transaction: Option<TransactionArguments>,
    /// `readConcern`.
    pub read_concern: ReadConcern,
    /// `writeConcern`.
    pub write_concern: WriteConcern,
    /// `maxTimeMS`; `None` without a limit.
    pub max_time: Option<Duration>,
    /// Whether only commands of the stable API are allowed.
    pub is_api_strict: bool,
}

/// The number of a retryable write or a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionArguments {
    /// `txnNumber`.
    pub number: i64,
    /// Whether it is a transaction: `autocommit: false`. Otherwise it is a retryable write.
    pub is_multi_statement: bool,
    /// Whether the transaction begins with this command.
    pub starts: bool,
}

impl GlobalArguments {
    /// Reads them.
    ///
    /// # Errors
    /// `TypeMismatch`, `InvalidOptions`, and the errors of API versions.
    pub fn parse(arguments: &mut Arguments<'_>, user: Option<Arc<str>>) -> Result<GlobalArguments> {
        let session = session(arguments, user)?;
        let transaction = transaction(arguments, session.is_some())?;
        let max_time = max_time(arguments)?;
        // There is one member, which every preference chooses, and one clock.
        arguments.document("$readPreference")?;
        arguments.document("$clusterTime")?;
        Ok(GlobalArguments {
            session,
            transaction,
            read_concern: ReadConcern::parse(arguments.document("readConcern")?)?,
            write_concern: WriteConcern::parse(arguments.document("writeConcern")?)?,
            max_time,
            is_api_strict: is_api_strict(arguments)?,
        })
    }
}

/// Reads `lsid`. Its `uid` is ignored: a session belongs to the user of the connection.
fn session(arguments: &mut Arguments<'_>, user: Option<Arc<str>>) -> Result<Option<SessionId>> {
    let Some(lsid) = arguments.document("lsid")? else {
        return Ok(None);
    };
    let mut fields = Arguments::of_document("lsid", lsid)?;
    let id = fields.value("id");
    let id = session_uuid("lsid.id", fields.required("id", id)?)?;
    fields.ignore(&["uid", "txnNumber", "txnUUID"]);
    fields.finish()?;
    Ok(Some(SessionId { id, user }))
}

/// Reads the id of a session; `path` is for errors.
///
/// # Errors
/// `TypeMismatch` if it is not a UUID.
pub fn session_uuid(path: &str, value: RawBsonRef<'_>) -> Result<Uuid> {
    let uuid = match value {
        RawBsonRef::Binary(binary) if binary.subtype == BinarySubtype::Uuid => Uuid::from_slice(binary.bytes).ok(),
        _ => None,
    };
    uuid.ok_or_else(|| wrong_type(path, value, "type 'UUID'"))
}

fn transaction(arguments: &mut Arguments<'_>, has_session: bool) -> Result<Option<TransactionArguments>> {
    let invalid = |text: &str| Err(Error::new(Code::INVALID_OPTIONS, text));
    let number = arguments.integer("txnNumber")?;
    let autocommit = arguments.strict_boolean("autocommit")?;
    let starts = arguments.strict_boolean("startTransaction")?;
    let Some(number) = number else {
        return match (autocommit, starts) {
            (Some(_), _) => invalid("'autocommit' field requires a transaction number to also be specified"),
            (_, Some(_)) => invalid("'startTransaction' field requires a transaction number to also be specified"),
            (None, None) => Ok(None),
        };
    };
    if !has_session {
        return invalid("Transaction number requires a session ID to also be specified");
    }
    if number < 0 {
        return invalid("Transaction number cannot be negative");
    }
    match (autocommit, starts) {
        (Some(true), _) => invalid("Specifying autocommit=true is not allowed."),
        (_, Some(false)) => invalid("Specifying startTransaction=false is not allowed."),
        (None, Some(true)) => invalid("'startTransaction' field requires 'autocommit' field to also be specified"),
        (autocommit, starts) => Ok(Some(TransactionArguments {
            number,
            is_multi_statement: autocommit == Some(false),
            starts: starts == Some(true),
        })),
    }
}

/// Reads `maxTimeMS`. `aggregate` reads it like its other options first, which gives other errors.
fn max_time(arguments: &mut Arguments<'_>) -> Result<Option<Duration>> {
    let Some(value) = arguments.any_value("maxTimeMS") else {
        return Ok(None);
    };
    if arguments.name() != "find" {
        arguments.integer("maxTimeMS")?;
    }
    if arguments.name() == "aggregate" {
        arguments.non_negative("maxTimeMS")?;
    }
    let Some(number) = Number::of(value) else {
        return Err(Error::bad_value("maxTimeMS must be a number"));
    };
    let ms = number.clamped();
    if number.whole().is_none() && (0..=i64::from(i32::MAX)).contains(&ms) {
        return Err(Error::bad_value("maxTimeMS has non-integral value"));
    }
    match u32::try_from(ms).ok().filter(|ms| i32::try_from(*ms).is_ok()) {
        Some(0) => Ok(None),
        Some(ms) => Ok(Some(Duration::from_millis(u64::from(ms)))),
        None => Err(Error::bad_value(format!(
            "{ms} value for maxTimeMS is out of range [0, {}]",
            i32::MAX
        ))),
    }
}

fn is_api_strict(arguments: &mut Arguments<'_>) -> Result<bool> {
    let version = arguments.string("apiVersion")?;
    let is_strict = arguments.strict_boolean("apiStrict")?;
    let reports_deprecation = arguments.strict_boolean("apiDeprecationErrors")?;
    match version {
        Some("1") => Ok(is_strict == Some(true)),
        Some(_) => Err(Error::new(Code::API_VERSION_ERROR, "API version must be \"1\"")),
        None if is_strict.is_some() || reports_deprecation.is_some() => Err(Error::new(
            4_886_600,
            "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
        )),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests;
