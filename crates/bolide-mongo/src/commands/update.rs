//! `update`.

use std::sync::Arc;

use bolide_mql::update::{ParseOptions, Update};
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArray, RawArrayBuf, RawBson, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::changes::{Action, Changed, Effect, Statement, stored_count};
use super::data::collections;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::order::Order;
use super::data::retry::RetryableWrite;
use super::data::statements::{Statements, count};
use super::data::writer::DataContext;
use crate::namespace::Namespace;

/// `{update, updates: [{q, u, multi?, upsert?, arrayFilters?, collation?, hint?, c?}], ordered?, let?, bypassDocumentValidation?}` →
/// `{n, nModified, upserted?, writeErrors?}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let updates = arguments.documents("updates")?;
    let updates = arguments.required("updates", updates)?;
    context.state.metrics.operations.update.add_all(updates.len());
    let is_ordered = arguments.strict_boolean("ordered")?.unwrap_or(true);
    let command = CommandOptions {
        language: LanguageArguments::read(&mut arguments)?,
        bypasses_validation: arguments.boolean("bypassDocumentValidation")?.unwrap_or(false),
        keeps_timestamps: arguments.boolean("bypassEmptyTsReplacement")?.unwrap_or(false),
    };
    let retry = RetryableWrite::of(context, arguments.first_statement()?);
    arguments.finish()?;
    // A statement that cannot be read fails the whole command.
    let updates: Vec<UpdateArguments<'_>> = updates.into_iter().map(UpdateArguments::read).collect::<Result<_>>()?;
    let mut data = DataContext::begin(context).await?;
    let mut totals = Totals::default();
    for (at, update) in updates.iter().enumerate() {
        let retry = retry.as_ref().map(|retry| (retry.clone(), retry.statement(at)));
        let statement = retry.as_ref().map(|(_, statement)| *statement);
        match one(context, &mut data, &namespace, (update, &command), retry).await {
            Ok(changed) => totals.add(at, changed, statement),
            Err(error) if context.transaction.is_some() => return Err(error),
            Err(error) => {
                totals.statements.fail(at, error);
                if is_ordered {
                    break;
                }
            }
        }
    }
    totals.reply()
}

/// Options that hold for all statements.
struct CommandOptions<'a> {
    language: LanguageArguments<'a>,
    bypasses_validation: bool,
    keeps_timestamps: bool,
}

#[derive(Default)]
struct Totals {
    matched: u64,
    modified: u64,
    upserted: RawArrayBuf,
    statements: Statements,
}

impl Totals {
    fn add(&mut self, at: usize, changed: Changed, statement: Option<i32>) {
        let (matched, modified, upserted) = match &changed.result {
            Some(stored) if changed.is_retried => {
                self.statements.retried(statement.unwrap_or_default());
                let upserted = stored.get("upserted").ok().flatten().map(RawBson::from);
                (stored_count(stored, "n"), stored_count(stored, "nModified"), upserted)
            }
            _ => {
                let inserted = u64::from(changed.upserted.is_some());
                (changed.matched + inserted, changed.modified, changed.upserted)
            }
        };
        self.matched += matched;
        self.modified += modified;
        if let Some(id) = upserted {
            let mut entry = rawdoc! {"index": i32::try_from(at).unwrap_or(i32::MAX)};
            entry.append(cstr!("_id"), id);
            self.upserted.push(entry);
        }
    }

    fn reply(self) -> Result<Reply> {
        let mut body = rawdoc! {"n": count(self.matched), "nModified": count(self.modified)};
        if !self.upserted.is_empty() {
            body.append(cstr!("upserted"), self.upserted);
        }
        self.statements.reply(body)
    }
}

/// The stored result of a statement.
fn encode(effect: &Effect<'_>) -> Result<RawDocumentBuf> {
    let mut result = rawdoc! {"n": 1, "nModified": i32::from(effect.is_changed)};
    if let Some(id) = effect.upserted {
        result.append(cstr!("upserted"), id.clone());
    }
    Ok(result)
}

/// A statement.
struct UpdateArguments<'a> {
    query: &'a RawDocument,
    value: RawBsonRef<'a>,
    is_multi: bool,
    is_upsert: bool,
    array_filters: Option<&'a RawArray>,
    constants: Option<&'a RawDocument>,
    collation: Option<&'a RawDocument>,
    hint: Option<RawBsonRef<'a>>,
}

impl<'a> UpdateArguments<'a> {
    fn read(update: &'a RawDocument) -> Result<UpdateArguments<'a>> {
        let mut fields = Arguments::of_document("update.updates", update)?;
        let query = fields.document("q")?;
        let value = fields.value("u");
        let read = UpdateArguments {
            query: fields.required("q", query)?,
            value: fields.required("u", value)?,
            is_multi: fields.boolean("multi")?.unwrap_or(false),
            is_upsert: fields.boolean("upsert")?.unwrap_or(false),
            array_filters: fields.array("arrayFilters")?,
            constants: fields.document("c")?,
            collation: fields.document("collation")?,
            hint: read_hint(&mut fields)?,
        };
        // `sort` is of MongoDB 8.0. Clients that always send it send nothing in it.
        if fields.document("sort")?.is_some_and(|sort| !sort.is_empty()) {
            let text = "BSON field 'update.updates.sort' is an unknown field.";
            return Err(Error::new(40415, text));
        }
        fields.ignore(&["sampleId"]);
        fields.finish()?;
        Ok(read)
    }
}

async fn one(
    context: &CommandContext<'_>,
    data: &mut DataContext,
    namespace: &Namespace,
    (update, command): (&UpdateArguments<'_>, &CommandOptions<'_>),
    retry: Option<(RetryableWrite, i32)>,
) -> Result<Changed> {
    let UpdateArguments {
        query,
        value,
        is_multi,
        is_upsert,
        array_filters,
        constants,
        hint,
        ..
    } = *update;
    let language = command.language.with_collation(update.collation);
    let language = language.with_constants(constants);
    if retry.is_some() && is_multi {
        let text = "Cannot use retryable writes with multi=true";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    let options = parse_options(command, is_multi, constants);
    let container = match collections::find(context, namespace) {
        Some(container) => container,
        None => {
            // Bad filters and updates are refused before a collection is created, and if none is.
            let language = language.context(context, &data.request, None)?;
            filter(Some(query), &language)?;
            Update::parse(value, array_filters, options, &language)?;
            if !is_upsert {
                return Ok(Changed::default());
            }
            data.find_or_create(context, namespace).await?
        }
    };
    let hinted = check_hint(&container, hint)?;
    let language = language.context(context, &data.request, Some(&container))?;
    let update = Update::parse(value, array_filters, options, &language)?;
    let query = filter(Some(query), &language)?;
    let statement = Statement {
        context,
        data,
        container: &container,
        namespace,
        order: Order::parse(None, hint, &query)?,
        filter: query,
        language,
        action: Action::Update {
            update: Arc::new(update),
            is_upsert,
            bypasses_validation: command.bypasses_validation,
        },
        is_multi,
        hinted,
        retry,
    };
    statement.run(Arc::new(encode)).await
}

fn parse_options(command: &CommandOptions<'_>, multi: bool, constants: Option<&RawDocument>) -> ParseOptions {
    ParseOptions {
        multi,
        has_constants: constants.is_some(),
        keeps_empty_timestamps: command.keeps_timestamps,
    }
}

#[cfg(test)]
mod tests;
