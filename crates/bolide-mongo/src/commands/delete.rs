//! `delete`.

use std::sync::Arc;

use bolide_mql::value::{number, text};
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawDocument, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::changes::{Action, Statement, stored_count};
use super::data::collections;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::order::Order;
use super::data::retry::RetryableWrite;
use super::data::statements::{Statements, count};
use super::data::writer::DataContext;
use crate::namespace::Namespace;

/// `{delete, deletes: [{q, limit, collation?, hint?}], ordered?, let?}` → `{n, writeErrors?}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let deletes = arguments.documents("deletes")?;
    let deletes = arguments.required("deletes", deletes)?;
    context.state.metrics.operations.delete.add_all(deletes.len());
    let is_ordered = arguments.strict_boolean("ordered")?.unwrap_or(true);
    let language = LanguageArguments::read(&mut arguments)?;
    let retry = RetryableWrite::of(context, arguments.first_statement()?);
    arguments.finish()?;
    // A statement that cannot be read fails the whole command.
    let deletes: Vec<Delete<'_>> = deletes.into_iter().map(Delete::read).collect::<Result<_>>()?;
    let data = DataContext::begin(context).await?;
    let (mut deleted, mut statements) = (0, Statements::default());
    for (at, delete) in deletes.iter().enumerate() {
        let retry = retry.as_ref().map(|retry| (retry.clone(), retry.statement(at)));
        let statement = retry.as_ref().map(|(_, statement)| *statement);
        match one(context, &data, &namespace, (delete, &language), retry).await {
            Ok((n, is_retried)) => {
                deleted += n;
                if let Some(statement) = statement.filter(|_| is_retried) {
                    statements.retried(statement);
                }
            }
            Err(error) if context.transaction.is_some() => return Err(error),
            Err(error) => {
                statements.fail(at, error);
                if is_ordered {
                    break;
                }
            }
        }
    }
    statements.reply(rawdoc! {"n": count(deleted)})
}

/// A statement.
struct Delete<'a> {
    query: &'a RawDocument,
    is_multi: bool,
    collation: Option<&'a RawDocument>,
    hint: Option<RawBsonRef<'a>>,
}

impl<'a> Delete<'a> {
    fn read(delete: &'a RawDocument) -> Result<Delete<'a>> {
        let mut fields = Arguments::of_document("delete.deletes", delete)?;
        let query = fields.document("q")?;
        let query = fields.required("q", query)?;
        let limit = fields.value("limit");
        let limit = fields.required("limit", limit)?;
        fields.integer("limit")?;
        let is_multi = match number::whole(limit) {
            Some(0) => true,
            Some(1) => false,
            _ => {
                let text = format!(
                    "The limit field in delete objects must be 0 or 1. Got {}",
                    text::render(limit)
                );
                return Err(Error::new(Code::FAILED_TO_PARSE, text));
            }
        };
        let collation = fields.document("collation")?;
        let hint = read_hint(&mut fields)?;
        fields.ignore(&["sampleId"]);
        fields.finish()?;
        Ok(Delete {
            query,
            is_multi,
            collation,
            hint,
        })
    }
}

/// Carries out one statement. Returns the number of deleted documents, and whether the statement was carried out before.
async fn one(
    context: &CommandContext<'_>,
    data: &DataContext,
    namespace: &Namespace,
    (delete, language): (&Delete<'_>, &LanguageArguments<'_>),
    retry: Option<(RetryableWrite, i32)>,
) -> Result<(u64, bool)> {
    let Delete {
        query, is_multi, hint, ..
    } = *delete;
    let language = language.with_collation(delete.collation);
    let Some(container) = collections::find(context, namespace) else {
        filter(Some(query), &language.context(context, &data.request, None)?)?;
        return Ok((0, false));
    };
    let hinted = check_hint(&container, hint)?;
    let language = language.context(context, &data.request, Some(&container))?;
    let query = filter(Some(query), &language)?;
    let statement = Statement {
        context,
        data,
        container: &container,
        namespace,
        order: Order::parse(None, hint, &query)?,
        filter: query,
        language,
        action: Action::Delete,
        is_multi,
        hinted,
        retry,
    };
    let changed = statement.run(Arc::new(|_| Ok(rawdoc! {"n": 1}))).await?;
    match &changed.result {
        Some(stored) if changed.is_retried => Ok((stored_count(stored, "n"), true)),
        _ => Ok((changed.modified, false)),
    }
}

#[cfg(test)]
mod tests;
