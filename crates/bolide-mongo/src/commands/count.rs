//! `count`.

use bolide_core::Task;
use bolide_mql::Result;
use bolide_mql::value::number;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::find::Matches;
use super::data::language::{LanguageArguments, check_hint, filter, read_hint};
use super::data::writer::DataContext;
use super::data::{collections, statements, tasks};

/// `{count, query?, limit?, skip?, hint?, collation?}` → `{n}`. Documents that have ended do not count, with and without a query.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let query = arguments.document("query")?;
    // A negative limit counts like its absolute value.
    let limit = arguments
        .value("limit")
        .and_then(number::whole)
        .unwrap_or(0)
        .unsigned_abs();
    let skip = arguments.non_negative("skip")?.unwrap_or(0);
    let language = LanguageArguments::read(&mut arguments)?;
    let hint = read_hint(&mut arguments)?;
    arguments.ignore(&["fields"]);
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let Some(container) = collections::find(context, &namespace) else {
        return Ok(rawdoc! {"n": 0}.into());
    };
    check_hint(&container, hint)?;
    let mut language = language.context(context, &data.request, Some(&container))?;
    let mut matches = Matches::new(container, filter(query, &language)?, &language)?;
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
