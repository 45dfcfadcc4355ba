//! `find`.

mod results;
mod shape;

use bolide_core::{MemoryShare, ScanDirection};
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArrayBuf, RawDocument, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch, Known};
use super::data::collections;
use super::data::find::Matches;
use super::data::in_order::InOrder;
use super::data::index_range::{self, IndexRange};
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::order::Order;
use super::data::views::{self, View};
use super::data::writer::DataContext;
use crate::cursors::CursorSource;
use crate::namespace::Namespace;
use results::{FindCursor, Query};
use shape::Shape;

/// `{find, filter?, sort?, projection?, skip?, limit?, batchSize?, singleBatch?, collation?, let?, hint?, …}` → a cursor.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    context.state.metrics.operations.query.add(1);
    let namespace = arguments.collection(context.database)?;
    let query = FindArguments::read(&mut arguments)?;
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let now = data.request;
    let first = FirstBatch {
        snapshot: data.snapshot_time(),
        ..query.first
    };
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
    // Long: one line for each argument.
    fn read(arguments: &mut Arguments<'a>) -> Result<FindArguments<'a>> {
        let filter = arguments.document("filter")?;
        let projection = arguments
            .document("projection")?
            .filter(|projection| !projection.is_empty());
        let sort = read_sort(arguments)?;
        let skip = arguments.non_negative("skip")?.unwrap_or(0);
        let limit = arguments.non_negative("limit")?.unwrap_or(0);
        let batch_size = arguments.non_negative("batchSize")?;
        let is_single = arguments.boolean("singleBatch")?.unwrap_or(false);
        let language = LanguageArguments::read(arguments)?;
        let hint = read_hint(arguments)?;
        refuse_tailable(arguments)?;
        let has_no_timeout = arguments.boolean("noCursorTimeout")?.unwrap_or(false);
        let shows_record_id = arguments.exact_boolean("showRecordId")?.unwrap_or(false);
        let returns_key = arguments.exact_boolean("returnKey")?.unwrap_or(false);
        let min = arguments.document("min")?.filter(|min| !min.is_empty());
        let max = arguments.document("max")?.filter(|max| !max.is_empty());
        index_range::check(min, max)?;
        if returns_key && hint.is_some() {
            let text = "returnKey together with a hint is not supported";
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
        // Nothing is written to the disk, and there are no other members.
        arguments.strict_boolean("allowDiskUse")?;
        arguments.boolean("allowPartialResults")?;
        arguments.boolean("oplogReplay")?;
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
                keeps_time_limit: true,
                snapshot: None,
                is_change_stream: false,
            },
        })
    }

    /// The same query as stages, with which a view is read.
    fn stages(&self) -> Result<RawArrayBuf> {
        let refused = [
            ("returnKey", self.additions.1),
            ("showRecordId", self.additions.0),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
        ];
        if let Some((name, _)) = refused.iter().find(|(_, is_given)| *is_given) {
            let text = format!("Option {name} not supported in aggregation.");
            return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, text));
        }
        let mut stages = RawArrayBuf::new();
        if let Some(filter) = self.filter {
            stages.push(rawdoc! {"$match": filter.to_owned()});
        }
        if let Some(sort) = self.sort {
            stages.push(rawdoc! {"$sort": sort.to_owned()});
        }
        if self.skip > 0 {
            stages.push(rawdoc! {"$skip": i64::try_from(self.skip).unwrap_or(i64::MAX)});
        }
        if self.limit > 0 {
            stages.push(rawdoc! {"$limit": i64::try_from(self.limit).unwrap_or(i64::MAX)});
        }
        if let Some(projection) = self.projection {
            stages.push(rawdoc! {"$project": projection.to_owned()});
        }
        Ok(stages)
    }

    fn open(
        self,
        context: &CommandContext<'_>,
        namespace: &Namespace,
        data: DataContext,
    ) -> Result<Box<dyn CursorSource>> {
        let container = data.find(context, namespace)?;
        let language = self.language.context(context, &data.request, container.as_ref())?;
        let filter = filter(self.filter, &language)?;
        let order = Order::parse(self.sort, self.hint, &filter)?;
        let shape = Shape::parse(self.projection, self.additions, &filter, &language)?;
        let Some(container) = container else {
            return Ok(Box::new(Known::new(Vec::new())));
        };
        if View::of(&container, &namespace.database).is_some() {
            let stages = self.stages()?;
            return Ok(Box::new(views::open(context, namespace, &stages, language, data)?));
        }
        let hinted = check_hint(&container, self.hint)?;
        let range = IndexRange::parse(self.min, self.max, self.hint, &*collections::definition(&container)?)?;
        let mut matches = Matches::new(container, filter.clone(), &language)?;
        let direction = match order.scan_direction() {
            // It returns keys of the index on `_id` only.
            None if self.additions.1 && matches.ids().is_none() => Some(ScanDirection::Forward),
            direction => direction,
        };
        match direction {
            Some(direction) => matches.scan(direction),
            // A part of the index is read in its order.
            None if range.is_none() => matches.follow(&hinted),
            None => {}
        }
        let wanted = (self.limit > 0).then(|| self.limit.saturating_add(self.skip));
        Ok(Box::new(FindCursor {
            state: context.state.clone(),
            data,
            query: Some(Query {
                documents: InOrder::new(matches, (order, &hinted), range, wanted).by_hint(&hinted),
                filter,
                shape,
                skip: self.skip,
                left: (self.limit > 0).then_some(self.limit),
                kept: None,
            }),
            language,
            has_begun: false,
            memory: MemoryShare::default(),
        }))
    }
}

fn read_sort<'a>(arguments: &mut Arguments<'a>) -> Result<Option<&'a RawDocument>> {
    match arguments.value("sort") {
        None => Ok(None),
        Some(RawBsonRef::Document(sort)) => Ok(Some(sort).filter(|sort| !sort.is_empty())),
        // The text is MongoDB's.
        Some(_) => Err(Error::new(
            Code::TYPE_MISMATCH,
            "Expected field sortto be of type object",
        )),
    }
}

/// Refuses tailable cursors, for which there are no collections.
fn refuse_tailable(arguments: &mut Arguments<'_>) -> Result<()> {
    let is_tailable = arguments.boolean("tailable")? == Some(true);
    if arguments.boolean("awaitData")? == Some(true) && !is_tailable {
        let text = "Cannot set 'awaitData' without also setting 'tailable'";
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    if is_tailable {
        let text = "error processing query: tailable cursor requested on non capped collection";
        return Err(Error::bad_value(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
