//! `$currentDate`.

use bson::{DateTime, RawBson, RawBsonRef};

use crate::context::Context;
use crate::document;
use crate::error::{Error, Result};
use crate::value;

/// The type of the value that `$currentDate` sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurrentDate {
    /// A date.
    Date,
    /// A timestamp.
    Timestamp,
}

impl CurrentDate {
    /// Parses `true`, `{$type: "date"}` or `{$type: "timestamp"}`. As in MongoDB, `false` means the same as `true`.
    ///
    /// # Errors
    /// `BadValue`: anything else.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<CurrentDate> {
        let document = match argument {
            RawBsonRef::Boolean(_) => return Ok(CurrentDate::Date),
            RawBsonRef::Document(document) => document,
            _ => {
                return Err(Error::bad_value(format!(
                    "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
                    value::types::name(argument)
                )));
            }
        };
        let mut date = None;
        for field in document {
            let (name, argument) = field?;
            if name.as_str() != "$type" {
                return Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}")));
            }
            date = match argument.as_str() {
                Some("date") => Some(CurrentDate::Date),
                Some("timestamp") => Some(CurrentDate::Timestamp),
                _ => None,
            };
        }
        date.ok_or_else(|| {
            Error::bad_value(
                "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
            )
        })
    }

    /// Returns the time of the command.
    pub(super) fn value(self, ctx: &Context) -> RawBson {
        match self {
            CurrentDate::Date => RawBson::DateTime(DateTime::from_millis(ctx.now.0)),
            CurrentDate::Timestamp => RawBson::Timestamp(document::current_timestamp(ctx)),
        }
    }
}
