//! Stages whose documents the caller supplies, and stages that are known but not there yet.

use bson::raw::RawBsonRef;

use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::SourceStage;
use crate::error::{Code, Error, Result};
use crate::value::types;

/// Parses a stage such as `$collStats`; what is in its specification is the caller's.
pub(in crate::aggregation) fn parse(name: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(document) = spec else {
        let found = types::name(spec);
        let (code, text) = match name {
            "$collStats" => (
                40166,
                format!("$collStats must take a nested object but found: {found}"),
            ),
            "$indexStats" => (
                28803,
                "The $indexStats stage specification must be an empty object".to_owned(),
            ),
            "$changeStream" => (
                6188500,
                format!("$changeStream must take a nested object but found: {found}"),
            ),
            _ => {
                let text = format!("{name} options must be specified in an object, but found: {found}");
                (Code::FAILED_TO_PARSE.0, text)
            }
        };
        return Err(Error::new(code, text));
    };
    if name == "$indexStats" && !document.is_empty() {
        let text = "The $indexStats stage specification must be an empty object";
        return Err(Error::new(28803, text));
    }
    Ok(Parsed::Source(SourceStage {
        name,
        spec: spec.into(),
    }))
}

/// Refuses a stage that is not there yet.
pub(in crate::aggregation) fn not_implemented(name: &'static str, _: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    Err(Error::new(
        Code::NOT_IMPLEMENTED,
        format!("the stage {name} is not implemented"),
    ))
}
