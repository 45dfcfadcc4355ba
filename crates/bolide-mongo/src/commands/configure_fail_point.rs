//! `configureFailPoint`: for the tests of drivers, only with `--enable-faults`.

use std::time::Duration;

use bolide_mql::value::number;
use bolide_mql::{Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, rawdoc};

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use crate::fail_points::{self, FailCommand, Mode};

/// `{configureFailPoint: "failCommand", mode, data}` → `{count}`, how often the previous one applied.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    match arguments.first() {
        Some(RawBsonRef::String(name)) => fail_points::check_name(name)?,
        Some(other) => return Err(wrong_type("configureFailPoint", other, "type 'string'")),
        None => {}
    }
    let mode = arguments.value("mode");
    let mode = mode_of(arguments.required("mode", mode)?)?;
    let data = arguments.document("data")?;
    arguments.finish()?;
    let fail_command = match (mode, data) {
        (None, _) => None,
        (Some(mode), data) => Some((mode, data.map(fail_command).transpose()?.unwrap_or_default())),
    };
    let count = context.state.fail_points.set(fail_command);
    Ok(rawdoc! { "count": count }.into())
}

/// Reads `mode`; `None` for `off`.
fn mode_of(value: RawBsonRef<'_>) -> Result<Option<Mode>> {
    let document = match value {
        RawBsonRef::String("off") => return Ok(None),
        RawBsonRef::String("alwaysOn") => return Ok(Some(Mode::AlwaysOn)),
        RawBsonRef::Document(document) => document,
        RawBsonRef::String(other) => return Err(Error::bad_value(format!("unknown mode: {other}"))),
        other => return Err(wrong_type("configureFailPoint.mode", other, "types '[string, object]'")),
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
    let code = fields.integer("errorCode")?.map(i32::try_from).transpose();
    let block_time = fields.non_negative("blockTimeMS")?;
    let blocks = fields.boolean("blockConnection")? == Some(true);
    let commands = fields.array("failCommands")?.map(strings).transpose()?;
    let fail_command = FailCommand {
        commands: commands.unwrap_or_default(),
        application: fields.string("appName")?.map(str::to_owned),
        namespace: fields.string("namespace")?.map(str::to_owned),
        error_code: code.map_err(|_| Error::bad_value("errorCode does not fit in 32 bits"))?,
        error_labels: fields.array("errorLabels")?.map(strings).transpose()?,
        closes_connection: fields.boolean("closeConnection")? == Some(true),
        write_concern_error: fields.document("writeConcernError")?.map(ToOwned::to_owned),
        block: block_time.filter(|_| blocks).map(Duration::from_millis),
    };
    fields.ignore(&["failInternalCommands", "failLocalClients"]);
    fields.finish()?;
    Ok(fail_command)
}

fn strings(array: &RawArray) -> Result<Vec<String>> {
    let strings = array.into_iter().map(|element| match element {
        Ok(RawBsonRef::String(text)) => Ok(text.to_owned()),
        _ => Err(Error::bad_value("expected an array of strings")),
    });
    strings.collect()
}
