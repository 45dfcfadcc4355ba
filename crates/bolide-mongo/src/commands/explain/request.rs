//! The command that is explained.

use bolide_mql::update::ParseOptions;
use bolide_mql::value::number;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument};

use super::cannot_explain;
use crate::commands::arguments::Arguments;
use crate::commands::context::CommandContext;
use crate::commands::data::language::{LanguageArguments, read_hint};
use crate::commands::table::{Command, Rights};
use crate::namespace::Namespace;

/// MongoDB's text for batches with several statements.
const ONE_STATEMENT: &str = "explained write batches must be of size 1";

/// What a command reads, and what it would do with it.
pub struct Explained<'a> {
    pub namespace: Namespace,
    pub filter: Option<&'a RawDocument>,
    pub sort: Option<&'a RawDocument>,
    pub projection: Option<&'a RawDocument>,
    pub skip: u64,
    /// 0: none.
    pub limit: u64,
    pub hint: Option<RawBsonRef<'a>>,
    pub language: LanguageArguments<'a>,
    pub purpose: Purpose<'a>,
}

/// What is done with the documents that match.
pub enum Purpose<'a> {
    /// `find` and `distinct`.
    Return,
    Count,
    Delete,
    Update {
        update: RawBsonRef<'a>,
        array_filters: Option<&'a RawArray>,
        options: ParseOptions,
        is_upsert: bool,
    },
}

/// The command that is explained, before its arguments are read.
pub struct NamedCommand<'a> {
    /// Its name, in the spelling of the table.
    pub name: &'static str,
    document: &'a RawDocument,
    /// Its arguments.
    pub arguments: Arguments<'a>,
}

impl<'a> NamedCommand<'a> {
    /// Finds the command.
    ///
    /// # Errors
    /// `CommandNotFound`; `InvalidNamespace` for another database; `Unauthorized` for a write without the right to write.
    pub fn read(context: &CommandContext<'_>, document: &'a RawDocument) -> Result<NamedCommand<'a>> {
        let name = match document.iter().next() {
            Some(Ok((name, _))) => name.as_str(),
            _ => "",
        };
        let command = Command::named(name).ok_or_else(|| {
            let text = format!("Explain failed due to unknown command: {name}");
            Error::new(Code::COMMAND_NOT_FOUND, text)
        })?;
        if let Ok(Some(RawBsonRef::String(database))) = document.get("$db")
            && database != context.database
        {
            let text = format!("Mismatched $db in explain command. Expected {}", context.database);
            return Err(Error::new(Code::INVALID_NAMESPACE, text));
        }
        if command.rights == Rights::Write {
            context.require(Rights::Write)?;
        }
        Ok(NamedCommand {
            name: command.name,
            document,
            arguments: Arguments::of_inner_command(command.name, document)?,
        })
    }
}

impl<'a> Explained<'a> {
    /// Reads a command that can be explained.
    ///
    /// # Errors
    /// Those of its arguments; `IllegalOperation` if it cannot be explained.
    pub fn read(context: &CommandContext<'_>, command: NamedCommand<'a>) -> Result<Explained<'a>> {
        let mut arguments = command.arguments;
        let namespace = arguments.collection(context.database)?;
        let explained = match command.name {
            "find" => find(&mut arguments, namespace),
            "count" => count(&mut arguments, namespace),
            "distinct" => distinct(&mut arguments, namespace),
            "delete" => delete(&mut arguments, namespace),
            "update" => update(&mut arguments, namespace),
            "findAndModify" => find_and_modify(&mut arguments, namespace),
            _ => Err(cannot_explain(command.document)),
        }?;
        arguments.finish()?;
        Ok(explained)
    }
}

fn find<'a>(arguments: &mut Arguments<'a>, namespace: Namespace) -> Result<Explained<'a>> {
    let explained = Explained {
        namespace,
        filter: arguments.document("filter")?,
        sort: arguments.document("sort")?.filter(|sort| !sort.is_empty()),
        projection: arguments
            .document("projection")?
            .filter(|projection| !projection.is_empty()),
        skip: arguments.non_negative("skip")?.unwrap_or(0),
        limit: arguments.non_negative("limit")?.unwrap_or(0),
        hint: read_hint(arguments)?,
        language: LanguageArguments::read(arguments)?,
        purpose: Purpose::Return,
    };
    // They change what is returned in which batches, and not what is read.
    arguments.non_negative("batchSize")?;
    for option in ["singleBatch", "noCursorTimeout", "allowDiskUse", "allowPartialResults"] {
        arguments.boolean(option)?;
    }
    Ok(explained)
}

fn count<'a>(arguments: &mut Arguments<'a>, namespace: Namespace) -> Result<Explained<'a>> {
    let explained = Explained {
        namespace,
        filter: arguments.document("query")?,
        sort: None,
        projection: None,
        skip: arguments.non_negative("skip")?.unwrap_or(0),
        limit: arguments
            .value("limit")
            .and_then(number::whole)
            .unwrap_or(0)
            .unsigned_abs(),
        hint: read_hint(arguments)?,
        language: LanguageArguments::read(arguments)?,
        purpose: Purpose::Count,
    };
    arguments.ignore(&["fields"]);
    Ok(explained)
}

fn distinct<'a>(arguments: &mut Arguments<'a>, namespace: Namespace) -> Result<Explained<'a>> {
    let key = arguments.string("key")?;
    arguments.required("key", key)?;
    Ok(Explained {
        namespace,
        filter: arguments.document("query")?,
        sort: None,
        projection: None,
        skip: 0,
        limit: 0,
        hint: read_hint(arguments)?,
        language: LanguageArguments::read(arguments)?,
        purpose: Purpose::Return,
    })
}

/// The fields of the only statement of a write command.
fn only_statement<'a>(arguments: &mut Arguments<'a>, field: &'static str, path: &str) -> Result<Arguments<'a>> {
    let statements = arguments.documents(field)?;
    let statements = arguments.required(field, statements)?;
    arguments.boolean("ordered")?;
    arguments.boolean("bypassDocumentValidation")?;
    match statements[..] {
        [statement] => Arguments::of_document(path, statement),
        _ => Err(Error::new(Code::INVALID_LENGTH, ONE_STATEMENT)),
    }
}

fn delete<'a>(arguments: &mut Arguments<'a>, namespace: Namespace) -> Result<Explained<'a>> {
    let language = LanguageArguments::read(arguments)?;
    let mut fields = only_statement(arguments, "deletes", "delete.deletes")?;
    let query = fields.document("q")?;
    let query = fields.required("q", query)?;
    let limit = fields.integer("limit")?;
    let limit = fields.required("limit", limit)?;
    let language = language.with_collation(fields.document("collation")?);
    let hint = read_hint(&mut fields)?;
    fields.finish()?;
    Ok(Explained {
        namespace,
        filter: Some(query),
        sort: None,
        projection: None,
        skip: 0,
        limit: u64::from(limit != 0),
        hint,
        language,
        purpose: Purpose::Delete,
    })
}

fn update<'a>(arguments: &mut Arguments<'a>, namespace: Namespace) -> Result<Explained<'a>> {
    let language = LanguageArguments::read(arguments)?;
    let mut fields = only_statement(arguments, "updates", "update.updates")?;
    let query = fields.document("q")?;
    let query = fields.required("q", query)?;
    let value = fields.value("u");
    let value = fields.required("u", value)?;
    let is_multi = fields.boolean("multi")?.unwrap_or(false);
    let is_upsert = fields.boolean("upsert")?.unwrap_or(false);
    let array_filters = fields.array("arrayFilters")?;
    let language = language.with_collation(fields.document("collation")?);
    let hint = read_hint(&mut fields)?;
    let constants = fields.document("c")?;
    fields.finish()?;
    Ok(Explained {
        namespace,
        filter: Some(query),
        sort: None,
        projection: None,
        skip: 0,
        limit: u64::from(!is_multi),
        hint,
        language,
        purpose: Purpose::Update {
            update: value,
            array_filters,
            options: ParseOptions {
                multi: is_multi,
                has_constants: constants.is_some(),
                keeps_empty_timestamps: false,
            },
            is_upsert,
        },
    })
}

fn find_and_modify<'a>(arguments: &mut Arguments<'a>, namespace: Namespace) -> Result<Explained<'a>> {
    let is_remove = arguments.boolean("remove")?.unwrap_or(false);
    let update = arguments.value("update");
    let is_upsert = arguments.boolean("upsert")?.unwrap_or(false);
    let array_filters = arguments.array("arrayFilters")?;
    let purpose = match update {
        Some(_) if is_remove => {
            let text = "Cannot specify both an update and remove=true";
            return Err(Error::new(Code::FAILED_TO_PARSE, text));
        }
        None if !is_remove => {
            let text = "Either an update or remove=true must be specified";
            return Err(Error::new(Code::FAILED_TO_PARSE, text));
        }
        None => Purpose::Delete,
        Some(update) => Purpose::Update {
            update,
            array_filters,
            options: ParseOptions {
                multi: false,
                has_constants: false,
                keeps_empty_timestamps: false,
            },
            is_upsert,
        },
    };
    for option in ["new", "bypassDocumentValidation"] {
        arguments.boolean(option)?;
    }
    Ok(Explained {
        namespace,
        filter: arguments.document("query")?,
        sort: arguments.document("sort")?.filter(|sort| !sort.is_empty()),
        projection: arguments
            .document("fields")?
            .filter(|projection| !projection.is_empty()),
        skip: 0,
        limit: 1,
        hint: read_hint(arguments)?,
        language: LanguageArguments::read(arguments)?,
        purpose,
    })
}
