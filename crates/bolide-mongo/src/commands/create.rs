//! `create`.

use bolide_core::CollectionDefinition;
use bolide_model::ttl::Policy;
use bolide_mql::index::IndexDefinition;
use bolide_mql::{Code, Error, Result, namespace};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::collections;
use super::data::options::CollectionOptions;

/// `{create: collection, validator?, validationLevel?, validationAction?, collation?, changeStreamPreAndPostImages?, indexOptionDefaults?}`.
///
/// A collection that exists with the same options is created already, except in a transaction.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let name = arguments.collection(context.database)?;
    namespace::check_writable(&name.database, &name.collection)?;
    let options = CollectionOptions::read(&mut arguments, &name)?;
    arguments.finish()?;
    if let Some(view) = options.view(context.database) {
        if context.transaction.is_some() {
            let text = "Cannot create a view in a multi-document transaction.";
            return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
        }
        view.check(context, &name, &context.language(&context.begin().await?))?;
    }
    let id_index = IndexDefinition::id_index(options.collation.as_ref())?;
    let definition = CollectionDefinition::new(options.document.clone(), options.collation.clone(), id_index);
    match collections::create(context, &name, definition, Policy::Off).await {
        Ok(_) => Ok(Reply::default()),
        Err(error) if error.code == Code::NAMESPACE_EXISTS => {
            let existing = collections::find(context, &name).and_then(|container| container.collection());
            match existing {
                Some(existing) if options.are_those_of(&existing) && context.transaction.is_none() => {
                    Ok(Reply::default())
                }
                _ => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
