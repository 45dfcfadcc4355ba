//! `reIndex`.

use bolide_mql::{Code, Error, Result};
use bson::{RawArrayBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, indexes, statements};

/// `{reIndex: collection}` → `{nIndexesWas, nIndexes, indexes}`: gives every document the keys and deadlines that the definitions of the indexes say.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    arguments.finish()?;
    let Some(container) = collections::find(context, &namespace) else {
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, "collection does not exist"));
    };
    indexes::rebuild(context, &namespace, &container).await?;
    let definition = collections::definition(&container)?;
    let mut listed = RawArrayBuf::new();
    for index in &definition.indexes {
        listed.push(index.definition.to_document());
    }
    let number = statements::count(definition.indexes.len() as u64);
    Ok(rawdoc! {"nIndexesWas": number.clone(), "nIndexes": number, "indexes": listed}.into())
}

#[cfg(test)]
mod tests;
