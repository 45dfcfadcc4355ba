//! `dataSize`.

use bolide_core::Usage;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::rawdoc;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::data::{collections, statements, statistics};
use crate::namespace::Namespace;

/// `{dataSize: "db.collection", estimate?}` → `{estimate, size, numObjects, millis}`, of live documents; exact also when an estimate would do.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = match arguments.first() {
        Some(RawBsonRef::String(namespace)) if namespace.contains('.') => Namespace::parse(namespace)?,
        Some(RawBsonRef::String(namespace)) => {
            let text = format!("Namespace {namespace} is not a valid collection name");
            return Err(Error::new(Code::INVALID_NAMESPACE, text));
        }
        other => {
            let value = other.unwrap_or(RawBsonRef::Null);
            return Err(wrong_type("dataSize.dataSize", value, "type 'string'"));
        }
    };
    arguments.boolean("estimate")?;
    for field in ["keyPattern", "min", "max"] {
        if arguments.document(field)?.is_some_and(|bound| !bound.is_empty()) {
            let text = format!("the option '{field}' of dataSize is not supported");
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
    }
    for field in ["maxSize", "maxObjects"] {
        if arguments.value(field).is_some() {
            let text = format!("the option '{field}' of dataSize is not supported");
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
    }
    arguments.finish()?;
    let begun = context.state.monotonic().now();
    let usage = match collections::find(context, &namespace) {
        Some(container) => statistics::usage(context, &container).await?,
        None => Usage::default(),
    };
    let millis = context.state.monotonic().since(begun).as_millis();
    let reply = rawdoc! {
        "estimate": false,
        "size": statements::count(usage.bytes),
        "numObjects": statements::count(usage.items),
        "millis": i32::try_from(millis).unwrap_or(i32::MAX),
    };
    Ok(reply.into())
}

#[cfg(test)]
mod tests;
