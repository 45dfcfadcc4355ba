//! `count`.

use bolide_core::Task;
use bolide_mql::value::number::Number;
use bolide_mql::value::text;
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArrayBuf, RawBson, RawDocument, rawdoc};

use super::aggregate::next_documents;
use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::find::Matches;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::views::{self, View};
use super::data::writer::DataContext;
use super::data::{collections, statements, tasks};
use crate::namespace::Namespace;

/// `{count, query?, limit?, skip?, hint?, collation?}` → `{n}`. Documents that have ended do not count, with and without a query.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let query = arguments.document("query")?;
    // A negative limit counts like its absolute value.
    let limit = match arguments.value("limit") {
        None => 0,
        Some(limit) => read_limit(limit)?,
    };
    let skip = arguments.non_negative("skip")?.unwrap_or(0);
    let language = LanguageArguments::read(&mut arguments)?;
    let hint = read_hint(&mut arguments)?;
    arguments.ignore(&["fields"]);
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let Some(container) = collections::find(context, &namespace) else {
        return Ok(rawdoc! {"n": 0}.into());
    };
    let mut language = language.context(context, &data.request, Some(&container))?;
    if View::of(&container, context.database).is_some() {
        let n = count_view(context, &namespace, (query, skip, limit), language, data).await?;
        return Ok(rawdoc! {"n": n}.into());
    }
    let hinted = check_hint(&container, hint)?;
    let mut matches = Matches::new(container, filter(query, &language)?, &language)?;
    matches.follow(&hinted);
    let scope = data.scope();
    let most = if limit == 0 {
        u64::MAX
    } else {
        limit.saturating_add(skip)
    };
    let matched = tasks::run(context.state, move |task: &Task| {
        language.interrupt = tasks::interrupt(task, language.interrupt.clone());
        let mut matched = 0;
        while matched < most && task.wait(matches.next(&scope, &language))?.is_some() {
            matched += 1;
        }
        Ok(matched)
    });
    let n = matched.await?.saturating_sub(skip);
    Ok(rawdoc! {"n": statements::count(n)}.into())
}

/// Counts what a view has.
async fn count_view(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    (query, skip, limit): (Option<&RawDocument>, u64, u64),
    language: Context,
    data: DataContext,
) -> Result<RawBson> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut stages = RawArrayBuf::new();
    if let Some(query) = query {
        stages.push(rawdoc! {"$match": query.to_owned()});
    }
    if skip > 0 {
        stages.push(rawdoc! {"$skip": number(skip)});
    }
    if limit > 0 {
        stages.push(rawdoc! {"$limit": number(limit)});
    }
    stages.push(rawdoc! {"$count": "n"});
    let mut counted = views::open(context, namespace, &stages, language, data)?;
    let (documents, _) = next_documents(context, &mut counted).await?;
    let n = documents.first().and_then(|counted| counted.get("n").ok().flatten());
    Ok(n.map_or(RawBson::Int32(0), RawBson::from))
}

/// Reads the limit: a whole number, of any sign.
fn read_limit(value: RawBsonRef<'_>) -> Result<u64> {
    let number = Number::of(value).ok_or_else(|| Error::bad_value("limit value is not a valid number"))?;
    let limit = number.whole().ok_or_else(|| {
        let text = format!(
            "Expected an integer, but found a number with a fraction or out of range in: limit: {}",
            text::render(value)
        );
        Error::new(Code::FAILED_TO_PARSE, text)
    })?;
    match limit {
        i64::MIN => Err(Error::bad_value("limit value cannot be min long")),
        limit => Ok(limit.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests;
