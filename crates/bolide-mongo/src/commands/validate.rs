//! `validate`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_core::{CollectionDefinition, Container};
use bolide_mql::{Code, Error, Result, index};
use bson::raw::{CStr, cstr};
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, statements, statistics};
use crate::codes;
use crate::namespace::Namespace;

/// `{validate: collection, full?, metadata?, …}` → what the full check of the collection's storage finds. `metadata`: the definition only.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    if arguments.boolean("repair")? == Some(true) || arguments.boolean("fixMultikey")? == Some(true) {
        let text = "Validate command with { repair: true } can only be run in standalone mode";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    let is_full = arguments.boolean("full")?.unwrap_or(false);
    let is_metadata_only = arguments.boolean("metadata")?.unwrap_or(false);
    if is_full && is_metadata_only {
        let text = "Running the validate command with { metadata: true } is not supported with any other options";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    if arguments.boolean("background")? == Some(true) && is_full {
        let text = "Running the validate command with both { background: true } and { full: true } is not supported.";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    // The check is always a full one, and always in the background.
    for field in ["scandata", "checkBSONConformance", "enforceFastCount"] {
        arguments.boolean(field)?;
    }
    arguments.finish()?;
    let Some(container) = collections::find(context, &namespace) else {
        let text = format!("Collection '{namespace}' does not exist to validate.");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    let found = match is_metadata_only {
        true => Found::default(),
        false => Found::of(context, &container).await?,
    };
    let definition = collections::definition(&container)?;
    Ok(found.reply(&namespace, &definition).into())
}

/// What the check found.
#[derive(Debug, Default)]
struct Found {
    records: u64,
    /// By the name of the index.
    keys: BTreeMap<String, u64>,
    problems: Vec<String>,
}

impl Found {
    async fn of(context: &CommandContext<'_>, container: &Arc<Container>) -> Result<Found> {
        let checked = context.state.account.verify(container).await;
        let problems = checked.map_err(|error| codes::error(&error))?.problems;
        let definition = collections::definition(container)?;
        let start = Found {
            problems,
            ..Found::default()
        };
        statistics::fold(context, container, start, move |found, document| {
            found.records += 1;
            for index in &definition.indexes {
                let keys = match index.definition.is_id() {
                    true => 1,
                    false => index::keys(&index.definition, document.document())?.keys.len(),
                };
                *found.keys.entry(index.definition.name().to_owned()).or_default() += keys as u64;
            }
            Ok(())
        })
        .await
    }

    fn reply(self, namespace: &Namespace, definition: &CollectionDefinition) -> RawDocumentBuf {
        let is_valid = self.problems.is_empty();
        let (mut keys, mut details) = (RawDocumentBuf::new(), RawDocumentBuf::new());
        for index in &definition.indexes {
            let name = index.definition.name();
            // Names come from BSON, so they have no NUL.
            let Ok(field) = <&CStr>::try_from(name) else { continue };
            let number = self.keys.get(name).copied().unwrap_or_default();
            keys.append(field, statements::count(number));
            details.append(
                field,
                rawdoc! {"valid": is_valid, "spec": index.definition.to_document()},
            );
        }
        let mut errors = RawArrayBuf::new();
        for problem in self.problems {
            errors.push(problem);
        }
        let mut reply = rawdoc! {
            "ns": namespace.to_string(),
            "uuid": collections::uuid(definition),
            "nInvalidDocuments": 0,
            "nNonCompliantDocuments": 0,
            "nrecords": statements::count(self.records),
            "nIndexes": statements::count(definition.indexes.len() as u64),
        };
        reply.append(cstr!("keysPerIndex"), keys);
        reply.append(cstr!("indexDetails"), details);
        reply.append(cstr!("valid"), is_valid);
        reply.append(cstr!("repaired"), false);
        reply.append(cstr!("warnings"), RawArrayBuf::new());
        reply.append(cstr!("errors"), errors);
        for field in [
            cstr!("extraIndexEntries"),
            cstr!("missingIndexEntries"),
            cstr!("corruptRecords"),
        ] {
            reply.append(field, RawArrayBuf::new());
        }
        reply
    }
}

#[cfg(test)]
mod tests;
