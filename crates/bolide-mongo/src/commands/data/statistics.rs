//! Numbers of documents and bytes, as `collStats`, `dbStats`, `dataSize` and `$collStats` report them. Documents that have ended do not count.

use std::sync::Arc;

use bolide_core::{Container, DocumentScan, ReadScope, StoredDocument, Task, Usage};
use bolide_mql::{Error, Result};
use bson::raw::{CStr, cstr};
use bson::{RawBson, RawDocumentBuf};

use super::super::arguments::Arguments;
use super::super::context::CommandContext;
use super::statements::count;
use super::{collections, tasks};
use crate::codes;
use crate::namespace::Namespace;

/// MongoDB's code for a number below the least one.
const OUT_OF_RANGE: i32 = 51024;

/// Reads `scale`, by which sizes are divided.
///
/// # Errors
/// `TypeMismatch`; 51024 for a number below 1, but `BadValue` in `dbStats`.
pub fn read_scale(arguments: &mut Arguments<'_>) -> Result<i64> {
    match arguments.integer("scale")? {
        None => Ok(1),
        Some(scale) if scale >= 1 => Ok(scale),
        Some(_) if arguments.name() == "dbStats" => Err(Error::bad_value("Scale factor must be greater than zero")),
        Some(scale) => {
            let text = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
            Err(Error::new(OUT_OF_RANGE, text))
        }
    }
}

/// Returns the exact number and size of a collection's live documents.
///
/// # Errors
/// Of the storage.
pub async fn usage(context: &CommandContext<'_>, container: &Arc<Container>) -> Result<Usage> {
    let definition = collections::definition(container)?;
    if definition.rules.is_empty() {
        let usage = context.state.account.usage(container).await;
        return usage.map_err(|error| codes::error(&error));
    }
    // Counters know of expiry by the second, and dates end at a millisecond.
    let add = |usage: &mut Usage, document: &StoredDocument| {
        usage.items += 1;
        usage.bytes += document.document().as_bytes().len() as u64;
        Ok(())
    };
    fold(context, container, Usage::default(), add).await
}

/// Goes through the live documents of a collection, in natural order.
///
/// # Errors
/// Of `step`; of the storage; the command is killed or late.
pub async fn fold<T, F>(context: &CommandContext<'_>, container: &Arc<Container>, start: T, mut step: F) -> Result<T>
where
    T: Send + 'static,
    F: FnMut(&mut T, &StoredDocument) -> Result<()> + Send + 'static,
{
    let scope = ReadScope::new(context.begin().await?.now);
    let (container, command) = (container.clone(), context.interrupt());
    tasks::run(context.state, move |task: &Task| {
        let interrupt = tasks::interrupt(task, command);
        let (mut scan, mut value) = (DocumentScan::default(), start);
        loop {
            let page = task.wait(scan.next_page(&scope, &container));
            let Some(page) = page.map_err(|error| codes::error(&error))? else {
                return Ok(value);
            };
            for document in &page.documents {
                interrupt.check(1)?;
                step(&mut value, document)?;
            }
        }
    })
    .await
}

/// Returns the statistics of a collection, as `collStats` and the stage `$collStats` show them; zeros if there is none.
///
/// The keys of indexes are not counted apart, so their sizes are 0.
///
/// # Errors
/// As [`usage`].
pub async fn storage(context: &CommandContext<'_>, namespace: &Namespace, scale: i64) -> Result<RawDocumentBuf> {
    let container = collections::find(context, namespace);
    let (used, definition) = match &container {
        Some(container) => (
            usage(context, container).await?,
            Some(collections::definition(container)?),
        ),
        None => (Usage::default(), None),
    };
    let size = scaled(used.bytes, scale);
    let mut sizes = RawDocumentBuf::new();
    let indexes = definition.iter().flat_map(|definition| &definition.indexes);
    let (mut number, mut building) = (0_u64, bson::RawArrayBuf::new());
    for index in indexes {
        number += 1;
        if index.is_building {
            building.push(index.definition.name());
        }
        // Names come from BSON, so they have no NUL.
        if let Ok(name) = <&CStr>::try_from(index.definition.name()) {
            sizes.append(name, 0);
        }
    }
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("ns"), namespace.to_string());
    document.append(cstr!("size"), size.clone());
    document.append(cstr!("count"), count(used.items));
    if let Some(average) = used.bytes.checked_div(used.items) {
        document.append(cstr!("avgObjSize"), count(average));
    }
    document.append(cstr!("numOrphanDocs"), 0);
    document.append(cstr!("storageSize"), size.clone());
    document.append(cstr!("freeStorageSize"), 0);
    if definition.is_some() {
        document.append(cstr!("capped"), false);
    }
    document.append(cstr!("nindexes"), count(number));
    document.append(cstr!("indexBuilds"), building);
    document.append(cstr!("totalIndexSize"), 0);
    document.append(cstr!("totalSize"), size);
    document.append(cstr!("indexSizes"), sizes);
    document.append(cstr!("scaleFactor"), count(scale.unsigned_abs()));
    Ok(document)
}

/// Returns a size in units of `scale` bytes, cut off.
pub fn scaled(bytes: u64, scale: i64) -> RawBson {
    count(bytes / scale.unsigned_abs().max(1))
}
