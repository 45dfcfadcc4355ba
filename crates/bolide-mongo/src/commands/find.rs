//! `find`.

mod range;
mod results;
mod shape;

use bolide_core::MemoryShare;
use bolide_mql::{Code, Error, Result};
use bson::RawDocument;
use bson::raw::RawBsonRef;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch, Known};
use super::data::collections;
use super::data::find::Matches;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::order::Order;
use super::data::writer::DataContext;
use crate::cursors::CursorSource;
use crate::namespace::Namespace;
use range::IndexRange;
use results::{FindCursor, Query, Waiting};
use shape::Shape;

/// `{find, filter?, sort?, projection?, skip?, limit?, batchSize?, singleBatch?, collation?, let?, hint?, …}` → a cursor.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    context.state.metrics.operations.query.add(1);
    let namespace = arguments.collection(context.database)?;
    let query = FindArguments::read(&mut arguments)?;
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let (now, first) = (data.request, query.first);
    let source = query.open(context, &namespace, data)?;
    cursor::first(context, now, namespace, source, first).await
}

/// The arguments of a query.
struct FindArguments<'a> {
    filter: Option<&'a RawDocument>,
    projection: Option<&'a RawDocument>,
    sort: Option<&'a RawDocument>,
    skip: u64,
    limit: u64,
    language: LanguageArguments<'a>,
    hint: Option<RawBsonRef<'a>>,
    min: Option<&'a RawDocument>,
    max: Option<&'a RawDocument>,
    /// `showRecordId` and `returnKey`.
    additions: (bool, bool),
    first: FirstBatch,
}

impl<'a> FindArguments<'a> {
    fn read(arguments: &mut Arguments<'a>) -> Result<FindArguments<'a>> {
        let filter = arguments.document("filter")?;
        let projection = arguments
            .document("projection")?
            .filter(|projection| !projection.is_empty());
        let sort = arguments.document("sort")?.filter(|sort| !sort.is_empty());
        let skip = arguments.non_negative("skip")?.unwrap_or(0);
        let limit = arguments.non_negative("limit")?.unwrap_or(0);
        let batch_size = arguments.non_negative("batchSize")?;
        let is_single = arguments.boolean("singleBatch")?.unwrap_or(false);
        let language = LanguageArguments::read(arguments)?;
        let hint = read_hint(arguments)?;
        if arguments.boolean("tailable")? == Some(true) || arguments.boolean("awaitData")? == Some(true) {
            return Err(Error::bad_value(
                "error processing query: tailable cursor requested on non capped collection",
            ));
        }
        let has_no_timeout = arguments.boolean("noCursorTimeout")?.unwrap_or(false);
        let shows_record_id = arguments.boolean("showRecordId")?.unwrap_or(false);
        let returns_key = arguments.boolean("returnKey")?.unwrap_or(false);
        let min = arguments.document("min")?.filter(|min| !min.is_empty());
        let max = arguments.document("max")?.filter(|max| !max.is_empty());
        range::check(min, max)?;
        if returns_key && hint.is_some() {
            let text = "returnKey together with a hint is not supported: no query reads by an index";
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
        // Nothing is written to the disk, and there are no other members.
        arguments.ignore(&["allowDiskUse", "allowPartialResults", "oplogReplay"]);
        Ok(FindArguments {
            filter,
            projection,
            sort,
            skip,
            limit,
            language,
            hint,
            min,
            max,
            additions: (shows_record_id, returns_key),
            first: FirstBatch {
                max_documents: batch_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
                is_single,
                has_no_timeout,
            },
        })
    }

    fn open(
        self,
        context: &CommandContext<'_>,
        namespace: &Namespace,
        data: DataContext,
    ) -> Result<Box<dyn CursorSource>> {
        let container = collections::find(context, namespace);
        let language = self.language.context(context, &data.request, container.as_ref())?;
        let filter = filter(self.filter, &language)?;
        let order = Order::parse(self.sort, self.hint, &filter)?;
        let shape = Shape::parse(self.projection, self.additions, &filter, &language)?;
        let Some(container) = container else {
            return Ok(Box::new(Known::new(Vec::new())));
        };
        check_hint(&container, self.hint)?;
        let range = IndexRange::parse(self.min, self.max, self.hint, &*collections::definition(&container)?)?;
        Ok(Box::new(FindCursor {
            state: context.state.clone(),
            data,
            query: Some(Query {
                matches: Matches::new(container, filter.clone(), &language)?,
                filter,
                order,
                range,
                shape,
                skip: self.skip,
                left: (self.limit > 0).then_some(self.limit),
                waiting: Waiting::default(),
            }),
            language,
            has_begun: false,
            memory: MemoryShare::default(),
        }))
    }
}

#[cfg(test)]
mod tests;
