//! `configureFailPoint`: for the tests of drivers, only with `--enable-faults`.

use std::time::Duration;

use bolide_mql::value::number;
use bolide_mql::{Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::table::Command;
use crate::fail_points::{FailCommand, FailPoint, FailWrite, Mode};

/// `{configureFailPoint: name, mode, data}` → `{count}`, how often the previous one applied.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let name = match arguments.first() {
        Some(RawBsonRef::String(name)) => name,
        other => {
            return Err(wrong_type(
                "configureFailPoint",
                other.unwrap_or(RawBsonRef::Null),
                "type 'string'",
            ));
        }
    };
    let mode = arguments.value("mode");
    let mode = mode_of(arguments.required("mode", mode)?)?;
    let data = arguments.document("data")?;
    arguments.finish()?;
    let points = &context.state.fail_points;
    let count = match name {
        "failCommand" => set(&points.command, mode, data, fail_command),
        "onPrimaryTransactionalWrite" => set(&points.write, mode, data, fail_write),
        "failGetMoreAfterCursorCheckout" => set(&points.get_more, mode, data, fail_get_more),
        "maxTimeAlwaysTimeOut" => set(&points.always_late, mode, data, nothing),
        "maxTimeNeverTimeOut" => set(&points.never_late, mode, data, nothing),
        _ => Err(Error::bad_value(format!("failpoint not found. name=`{name}`"))),
    };
    Ok(rawdoc! { "count": count? }.into())
}

fn set<T: Clone>(
    point: &FailPoint<T>,
    mode: Option<Mode>,
    data: Option<&RawDocument>,
    read: fn(&RawDocument) -> Result<T>,
) -> Result<i64> {
    let Some(mode) = mode else {
        return Ok(point.set(None));
    };
    let does = match data {
        Some(data) => read(data)?,
        None => read(&RawDocumentBuf::new())?,
    };
    Ok(point.set(Some((mode, does))))
}

/// Reads `mode`; `None` for `off`.
fn mode_of(value: RawBsonRef<'_>) -> Result<Option<Mode>> {
    let document = match value {
        RawBsonRef::String("off") => return Ok(None),
        RawBsonRef::String("alwaysOn") => return Ok(Some(Mode::AlwaysOn)),
        RawBsonRef::Document(document) => document,
        RawBsonRef::String(other) => return Err(Error::bad_value(format!("unknown mode: {other}"))),
        other => return Err(wrong_type("configureFailPoint.mode", other, "types '[string, object']")),
    };
    let mut fields = Arguments::of_document("configureFailPoint.mode", document)?;
    let (times, skip) = (fields.non_negative("times")?, fields.non_negative("skip")?);
    let probability = fields.value("activationProbability").and_then(number::Number::of);
    fields.finish()?;
    match (times, skip, probability) {
        (Some(times), None, None) => Ok(Some(Mode::Times(times))),
        (None, Some(skip), None) => Ok(Some(Mode::Skip(skip))),
        (None, None, Some(probability)) => Ok(Some(Mode::Probability(probability.to_f64()))),
        _ => Err(Error::bad_value(
            "mode must have one of 'times', 'skip', 'activationProbability'",
        )),
    }
}

fn fail_command(data: &RawDocument) -> Result<FailCommand> {
    let mut fields = Arguments::of_document("configureFailPoint.data", data)?;
    let error_code = error_code(&mut fields, "errorCode")?;
    let block_time = fields.non_negative("blockTimeMS")?;
    let blocks = fields.boolean("blockConnection")? == Some(true);
    let commands = fields.array("failCommands")?.map(strings).transpose()?;
    let fail_command = FailCommand {
        commands: commands.unwrap_or_default().into_iter().map(own_name).collect(),
        application: fields.string("appName")?.map(str::to_owned),
        namespace: fields.string("namespace")?.map(str::to_owned),
        error_code,
        error_labels: fields.array("errorLabels")?.map(strings).transpose()?,
        closes_connection: fields.boolean("closeConnection")? == Some(true),
        write_concern_error: fields.document("writeConcernError")?.map(ToOwned::to_owned),
        block: block_time.filter(|_| blocks).map(Duration::from_millis),
    };
    fields.ignore(&["failInternalCommands", "failLocalClients"]);
    fields.finish()?;
    Ok(fail_command)
}

fn fail_write(data: &RawDocument) -> Result<FailWrite> {
    let mut fields = Arguments::of_document("configureFailPoint.data", data)?;
    let closes_connection = fields.boolean("closeConnection")?.unwrap_or(true);
    let error_code = error_code(&mut fields, "failBeforeCommitExceptionCode")?;
    fields.finish()?;
    Ok(FailWrite {
        closes_connection,
        error_code,
    })
}

fn fail_get_more(data: &RawDocument) -> Result<i32> {
    let mut fields = Arguments::of_document("configureFailPoint.data", data)?;
    let code = error_code(&mut fields, "errorCode")?;
    let code = fields.required("errorCode", code)?;
    if fields.boolean("closeConnection")? == Some(true) {
        return Err(Error::bad_value(
            "failGetMoreAfterCursorCheckout does not close connections",
        ));
    }
    fields.finish()?;
    Ok(code)
}

fn nothing(data: &RawDocument) -> Result<()> {
    Arguments::of_document("configureFailPoint.data", data)?.finish()
}

fn error_code(fields: &mut Arguments<'_>, field: &'static str) -> Result<Option<i32>> {
    let code = fields.integer(field)?.map(i32::try_from).transpose();
    code.map_err(|_| Error::bad_value(format!("{field} does not fit in 32 bits")))
}

/// A command has the same fail point under all its spellings.
fn own_name(spelling: String) -> String {
    Command::named(&spelling).map_or(spelling, |command| command.name.to_owned())
}

fn strings(array: &RawArray) -> Result<Vec<String>> {
    let strings = array.into_iter().map(|element| match element {
        Ok(RawBsonRef::String(text)) => Ok(text.to_owned()),
        _ => Err(Error::bad_value("expected an array of strings")),
    });
    strings.collect()
}
