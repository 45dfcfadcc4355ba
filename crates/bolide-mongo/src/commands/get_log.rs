//! `getLog`.

use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::rawdoc;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};

/// `{getLog: "global" | "startupWarnings" | "*"}` → no lines: the log goes to standard error and is not kept.
pub async fn run(_: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let first = arguments
        .first()
        .filter(|name| !matches!(name, RawBsonRef::Null | RawBsonRef::Undefined));
    let first = arguments.required("getLog", first)?;
    arguments.finish()?;
    match first {
        RawBsonRef::String("*") => Ok(rawdoc! { "names": ["global", "startupWarnings"] }.into()),
        RawBsonRef::String("global" | "startupWarnings") => Ok(rawdoc! { "totalLinesWritten": 0, "log": [] }.into()),
        RawBsonRef::String(other) => Err(Error::new(Code::OPERATION_FAILED, format!("No log named '{other}'"))),
        other => Err(wrong_type("getLog.getLog", other, "type 'string'")),
    }
}
