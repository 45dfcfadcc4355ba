//! `findAndModify`.

use std::sync::Arc;

use bolide_mql::expression::{ParseScope, Scope};
use bolide_mql::filter::Filter;
use bolide_mql::projection::Projection;
use bolide_mql::update::{ParseOptions, Update};
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArray, RawBson, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::changes::{Action, Effect, ResultEncoder, Statement};
use super::data::collections;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::metadata;
use super::data::order::Order;
use super::data::retry::RetryableWrite;
use super::data::writer::DataContext;

/// `{findAndModify, query?, sort?, remove? | update?, new?, upsert?, fields?, arrayFilters?, collation?, hint?, let?, …}` →
/// `{lastErrorObject: {n, updatedExisting?, upserted?}, value}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let command = Modification::read(&mut arguments)?;
    let language = LanguageArguments::read(&mut arguments)?;
    let hint = read_hint(&mut arguments)?;
    let retry = RetryableWrite::of(context, arguments.first_statement()?).map(|retry| {
        let statement = retry.statement(0);
        (retry, statement)
    });
    arguments.finish()?;
    command.check()?;
    let mut data = DataContext::begin(context).await?;
    let container = match collections::find(context, &namespace) {
        Some(container) => container,
        None => {
            // What is wrong is refused before a collection is created, and if none is.
            command.parse(&language.context(context, &data.request, None)?, hint)?;
            if !command.is_upsert {
                return Ok(command.unmatched().into());
            }
            data.find_or_create(context, &namespace).await?
        }
    };
    let hinted = check_hint(&container, hint)?;
    let language = language.context(context, &data.request, Some(&container))?;
    let parsed = command.parse(&language, hint)?;
    let encode = parsed.encoder(&command, &language);
    let statement = Statement {
        context,
        data: &data,
        container: &container,
        namespace: &namespace,
        filter: parsed.filter,
        language,
        action: parsed.action,
        is_multi: false,
        order: parsed.order,
        hinted,
        retry,
    };
    let changed = statement.run(encode).await.map_err(|error| Error {
        message: format!(
            "Plan executor error during findAndModify :: caused by :: {}",
            error.message
        ),
        ..error
    })?;
    Ok(changed.result.unwrap_or_else(|| command.unmatched()).into())
}

/// What is to be done.
struct Modification<'a> {
    query: Option<&'a RawDocument>,
    sort: Option<&'a RawDocument>,
    fields: Option<&'a RawDocument>,
    update: Option<RawBsonRef<'a>>,
    array_filters: Option<&'a RawArray>,
    is_remove: bool,
    is_upsert: bool,
    /// Whether the document after the update is returned, not the one before.
    is_new: bool,
    bypasses_validation: bool,
    keeps_timestamps: bool,
}

/// The same, ready to be carried out.
struct Parsed {
    filter: Arc<Filter>,
    order: Order,
    action: Action,
    projection: Option<Arc<Projection>>,
}

impl<'a> Modification<'a> {
    fn read(arguments: &mut Arguments<'a>) -> Result<Modification<'a>> {
        Ok(Modification {
            query: arguments.document("query")?,
            sort: arguments.document("sort")?,
            fields: arguments.document("fields")?.filter(|fields| !fields.is_empty()),
            update: arguments.value("update"),
            array_filters: arguments.array("arrayFilters")?,
            is_remove: arguments.boolean("remove")?.unwrap_or(false),
            is_upsert: arguments.boolean("upsert")?.unwrap_or(false),
            is_new: arguments.boolean("new")?.unwrap_or(false),
            bypasses_validation: arguments.boolean("bypassDocumentValidation")?.unwrap_or(false),
            keeps_timestamps: arguments.boolean("bypassEmptyTsReplacement")?.unwrap_or(false),
        })
    }

    /// Checks that the arguments go together.
    fn check(&self) -> Result<()> {
        let refused = match (self.is_remove, self.update.is_some()) {
            (false, false) => "Either an update or remove=true must be specified",
            (false, true) => return Ok(()),
            (true, true) => "Cannot specify both an update and remove=true",
            (true, false) if self.is_upsert => "Cannot specify both upsert=true and remove=true ",
            (true, false) if self.is_new => {
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
            }
            (true, false) if self.array_filters.is_some() => "Cannot specify arrayFilters and remove=true",
            (true, false) => return Ok(()),
        };
        Err(Error::new(Code::FAILED_TO_PARSE, refused))
    }

    fn parse(&self, language: &Context, hint: Option<RawBsonRef<'_>>) -> Result<Parsed> {
        let filter = filter(self.query, language)?;
        let action = match self.update {
            Some(update) => {
                let options = ParseOptions {
                    multi: false,
                    has_constants: false,
                    keeps_empty_timestamps: self.keeps_timestamps,
                };
                Action::Update {
                    update: Arc::new(Update::parse(update, self.array_filters, options, language)?),
                    is_upsert: self.is_upsert,
                    bypasses_validation: self.bypasses_validation,
                }
            }
            None => Action::Delete,
        };
        Ok(Parsed {
            order: Order::parse(self.sort, hint, &filter)?,
            projection: self
                .fields
                .map(|fields| self.projection(fields, &filter, language))
                .transpose()?
                .map(Arc::new),
            filter,
            action,
        })
    }

    fn projection(&self, fields: &RawDocument, filter: &Filter, language: &Context) -> Result<Projection> {
        let projection = Projection::parse_find(fields, &mut ParseScope::new(language))?;
        if self.is_new && projection.is_positional() {
            let text = "cannot use a positional projection and return the new document";
            return Err(Error::bad_value(text));
        }
        let asked = metadata::asked(fields)?;
        if asked.contains("sortKey") {
            let text = "Cannot use a $meta sortKey projection in findAndModify commands.";
            return Err(Error::bad_value(text));
        }
        asked.check(filter)?;
        if ["recordId", "geoNearDistance", "textScore"]
            .iter()
            .any(|name| asked.contains(name))
        {
            let text = "metadata of documents is not supported in findAndModify";
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
        Ok(projection)
    }

    /// The reply if there was nothing to change.
    fn unmatched(&self) -> RawDocumentBuf {
        let last = match self.is_remove {
            true => rawdoc! {"n": 0},
            false => rawdoc! {"n": 0, "updatedExisting": false},
        };
        rawdoc! {"lastErrorObject": last, "value": RawBson::Null}
    }
}

impl Parsed {
    /// What makes the reply when a document is changed.
    fn encoder(&self, command: &Modification<'_>, language: &Context) -> ResultEncoder {
        let projection = self.projection.clone();
        let (filter, language, is_new) = (self.filter.clone(), language.clone(), command.is_new);
        Arc::new(move |effect: &Effect<'_>| {
            let mut last = rawdoc! {"n": 1};
            if effect.after.is_some() {
                last.append(cstr!("updatedExisting"), effect.upserted.is_none());
            }
            if let Some(id) = effect.upserted {
                last.append(cstr!("upserted"), id.clone());
            }
            let value = if is_new { effect.after } else { effect.before };
            let value = match (value, &projection) {
                (Some(value), Some(projection)) => {
                    let scope = Scope::new(&language, value);
                    RawBson::Document(projection.apply_matched(value, &filter, &scope)?)
                }
                (Some(value), None) => RawBson::Document(value.to_owned()),
                (None, _) => RawBson::Null,
            };
            Ok(rawdoc! {"lastErrorObject": last, "value": value})
        })
    }
}

#[cfg(test)]
mod tests;
