//! `distinct`.

use std::collections::HashSet;

use bolide_core::{ReadScope, Task};
use bolide_mql::path::{LastArray, Path};
use bolide_mql::{Context, Error, Result, value};
use bson::raw::RawBsonRef;
use bson::{RawArrayBuf, RawDocument, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::find::Matches;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::writer::DataContext;
use super::data::{collections, tasks};
use crate::limits;

/// MongoDB's code for a result that is too large.
const TOO_BIG: i32 = 17217;

/// `{distinct, key, query?, collation?, hint?}` → `{values}`: each value once, in the order in which documents have them. An array at the end of the path
/// stands for its elements.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let key = arguments.string("key")?;
    let path = Path::parse(arguments.required("key", key)?)?;
    let query = arguments.document("query")?;
    let language = LanguageArguments::read(&mut arguments)?;
    let hint = read_hint(&mut arguments)?;
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let Some(container) = collections::find(context, &namespace) else {
        // Bad queries are refused all the same.
        let language = language.context(context, &data.request, None)?;
        filter(query, &language)?;
        return Ok(rawdoc! {"values": []}.into());
    };
    check_hint(&container, hint)?;
    let mut language = language.context(context, &data.request, Some(&container))?;
    let search = Search {
        matches: Matches::new(container.clone(), filter(query, &language)?, &language)?,
        scope: data.scope(),
        path,
    };
    let values = tasks::run(context.state, move |task: &Task| {
        language.interrupt = tasks::interrupt(task, language.interrupt.clone());
        search.run(task, &language)
    });
    Ok(rawdoc! {"values": values.await?}.into())
}

struct Search {
    matches: Matches,
    scope: ReadScope,
    path: Path,
}

impl Search {
    fn run(mut self, task: &Task, language: &Context) -> Result<RawArrayBuf> {
        let mut values = DistinctValues::default();
        while let Some(document) = task.wait(self.matches.next(&self.scope, language))? {
            values.add(document.document(), &self.path, language)?;
        }
        Ok(values.values)
    }
}

/// The values that were found.
#[derive(Default)]
struct DistinctValues {
    values: RawArrayBuf,
    /// Their canonical keys, by which 1 and 1.0 are the same.
    keys: HashSet<Vec<u8>>,
}

impl DistinctValues {
    fn add(&mut self, document: &RawDocument, path: &Path, language: &Context) -> Result<()> {
        path.any(document, LastArray::Whole, |place| {
            match place.value {
                None => {}
                Some(RawBsonRef::Array(array)) => {
                    for element in array {
                        self.add_value(element?, language)?;
                    }
                }
                Some(value) => self.add_value(value, language)?,
            }
            Ok(false)
        })?;
        Ok(())
    }

    fn add_value(&mut self, found: RawBsonRef<'_>, language: &Context) -> Result<()> {
        if !self.keys.insert(value::key::of(found, language.collation.as_deref())) {
            return Ok(());
        }
        self.values.push(found);
        if self.values.as_bytes().len() > limits::DOCUMENT_BYTES {
            return Err(Error::new(TOO_BIG, "distinct too big, 16mb cap"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
