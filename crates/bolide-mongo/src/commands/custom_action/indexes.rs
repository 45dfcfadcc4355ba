//! The whole set of a collection's indexes.

use std::sync::Arc;

use bolide_core::{CollectionChange, Container};
use bolide_mql::index::{IndexDefinition, ParseOptions, TtlMode};
use bolide_mql::value;
use bolide_mql::{Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf, rawdoc};

use crate::commands::arguments::Arguments;
use crate::commands::context::CommandContext;
use crate::commands::create_indexes;
use crate::commands::data::indexes;
use crate::namespace::Namespace;

/// Reads `indexes`, without the one on `_id`.
///
/// # Errors
/// `BadValue` without the index on `_id`.
pub fn read(arguments: &mut Arguments<'_>) -> Result<Option<Vec<RawDocumentBuf>>> {
    let Some(specifications) = arguments.documents("indexes")? else {
        return Ok(None);
    };
    let all = specifications.len();
    let others: Vec<RawDocumentBuf> = specifications
        .into_iter()
        .filter(|specification| !is_on_id(specification))
        .map(ToOwned::to_owned)
        .collect();
    if others.len() == all {
        return Err(Error::bad_value("The indexes must include one on _id."));
    }
    Ok(Some(others))
}

fn is_on_id(specification: &RawDocument) -> bool {
    let id = rawdoc! {"_id": 1};
    match specification.get("key") {
        Ok(Some(key)) => value::equal(key, RawBsonRef::Document(&id)),
        _ => false,
    }
}

/// Makes these the indexes of a collection, beside that on `_id`. Indexes that exist already are kept. Returns the ids of those to build.
///
/// # Errors
/// As `createIndexes`.
pub fn replace(
    change: &mut CollectionChange<'_>,
    namespace: &str,
    specifications: &[RawDocumentBuf],
    ttl_mode: TtlMode,
) -> Result<Vec<u32>> {
    let mut kept = Vec::new();
    for specification in specifications {
        let options = ParseOptions {
            ttl_mode,
            default_collation: change.definition.collation.as_ref(),
        };
        kept.push(IndexDefinition::parse(specification, &options)?.to_document());
    }
    for existing in indexes::definitions(change.definition).into_iter().skip(1) {
        let document = existing.to_document();
        let is_kept = kept
            .iter()
            .any(|kept| value::equal(RawBsonRef::Document(kept), RawBsonRef::Document(&document)));
        if !is_kept {
            indexes::remove(change, existing.name());
        }
    }
    Ok(create_indexes::add_all(change, namespace, specifications, ttl_mode)?.to_build)
}

/// As [`replace`], with the build.
///
/// # Errors
/// As `createIndexes`. If the build fails, the indexes that it was for do not exist.
pub async fn change(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    container: &Arc<Container>,
    specifications: Vec<RawDocumentBuf>,
) -> Result<()> {
    let (name, mode) = (namespace.to_string(), context.state.account.draft_options().ttl_mode);
    let decide = move |change: &mut CollectionChange<'_>| replace(change, &name, &specifications, mode);
    let to_build = indexes::change(context, container, decide).await?;
    indexes::build(context, namespace, container, to_build).await
}
