//! `distinct`.

use std::collections::HashSet;

use bolide_core::{ReadScope, Task};
use bolide_mql::path::{LastArray, Path};
use bolide_mql::{Context, Error, Result, value};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawBson, RawDocument, Timestamp, rawdoc};

use super::aggregate::next_documents;
use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::find::Matches;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::tasks;
use super::data::views::{self, View};
use super::data::writer::DataContext;
use crate::limits;
use crate::namespace::Namespace;

/// MongoDB's code for a result that is too large.
const TOO_BIG: i32 = 17217;

/// `{distinct, key, query?, collation?, hint?}` → `{values}`: each value once, in their order. An array at the end of the path stands for its elements.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let key = arguments.string("key")?;
    let path = Path::parse(arguments.required("key", key)?)?;
    let query = arguments.document("query")?;
    let language = LanguageArguments::read(&mut arguments)?;
    let hint = read_hint(&mut arguments)?;
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let snapshot = data.snapshot_time();
    let Some(container) = data.find(context, &namespace)? else {
        // Bad queries are refused all the same.
        let language = language.context(context, &data.request, None)?;
        filter(query, &language)?;
        return Ok(reply(RawArrayBuf::new(), snapshot));
    };
    let mut language = language.context(context, &data.request, Some(&container))?;
    if View::of(&container, context.database).is_some() {
        let values = of_view(context, (&namespace, query), &path, language, data).await?;
        return Ok(reply(values, snapshot));
    }
    let hinted = check_hint(&container, hint)?;
    let mut matches = Matches::new(container.clone(), filter(query, &language)?, &language)?;
    matches.follow(&hinted);
    let search = Search {
        matches,
        scope: data.scope(),
        path,
    };
    let values = tasks::run(context.state, move |task: &Task| {
        language.interrupt = tasks::interrupt(task, language.interrupt.clone());
        search.run(task, &language)
    });
    Ok(reply(values.await?, snapshot))
}

/// Returns the values that a view has.
async fn of_view(
    context: &CommandContext<'_>,
    (namespace, query): (&Namespace, Option<&RawDocument>),
    path: &Path,
    language: Context,
    data: DataContext,
) -> Result<RawArrayBuf> {
    let mut stages = RawArrayBuf::new();
    if let Some(query) = query {
        stages.push(rawdoc! {"$match": query.to_owned()});
    }
    let mut results = views::open(context, namespace, &stages, language.clone(), data)?;
    let mut values = DistinctValues::default();
    loop {
        let (documents, is_last) = next_documents(context, &mut results).await?;
        for document in &documents {
            values.add(document, path, &language)?;
        }
        if is_last {
            return Ok(values.finish(&language));
        }
    }
}

/// The reply; a read of a snapshot tells its time, so that others can read the same.
fn reply(values: RawArrayBuf, snapshot: Option<Timestamp>) -> Reply {
    let mut reply = rawdoc! {"values": values};
    if let Some(snapshot) = snapshot {
        reply.append(cstr!("atClusterTime"), snapshot);
    }
    reply.into()
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
        Ok(values.finish(language))
    }
}

/// The values that were found.
#[derive(Default)]
struct DistinctValues {
    values: Vec<RawBson>,
    /// Their canonical keys, by which 1 and 1.0 are the same.
    keys: HashSet<Vec<u8>>,
    bytes: usize,
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
        let found = RawBson::from(found);
        self.bytes += rawdoc! {"": found.clone()}.as_bytes().len();
        if self.bytes > limits::DOCUMENT_BYTES {
            return Err(Error::new(TOO_BIG, "distinct too big, 16mb cap"));
        }
        self.values.push(found);
        Ok(())
    }

    /// The values in their order.
    fn finish(mut self, language: &Context) -> RawArrayBuf {
        let collation = language.collation.as_deref();
        self.values
            .sort_by(|a, b| value::compare_with(a.as_raw_bson_ref(), b.as_raw_bson_ref(), collation));
        let mut array = RawArrayBuf::new();
        for value in self.values {
            array.push(value);
        }
        array
    }
}

#[cfg(test)]
mod tests;
