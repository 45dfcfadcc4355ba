//! `explain` of `aggregate`.
//!
//! The stages at the start that a query could do are shown as the plan of one. If nothing follows, that is all; otherwise it is the stage `$cursor`, and the
//! other stages follow as they were sent.

use bolide_core::Task;
use bolide_mql::aggregation::{Passed, Pipeline, stage_of};
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::{CString, RawBsonRef, cstr};
use bson::{RawArray, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::plan::{Execution, Plan};
use super::request::{Explained, Purpose};
use super::{Verbosity, execution_stats, planner};
use crate::commands::aggregate::{DATABASE, PipelineArguments};
use crate::commands::context::CommandContext;
use crate::commands::data::pipeline::{Input, OpenPipeline, ReadInOrder};
use crate::commands::data::statements::count;
use crate::commands::data::tasks;
use crate::commands::data::writer::DataContext;

/// Returns the first fields of the reply: those of a query's plan, or `stages`.
///
/// # Errors
/// Those of the pipeline; `IllegalOperation` for statistics of one that would write.
pub async fn explain(
    context: &CommandContext<'_>,
    read: &PipelineArguments<'_>,
    verbosity: Verbosity,
) -> Result<RawDocumentBuf> {
    let data = DataContext::begin(context).await?;
    let (pipeline, input, language) = read.prepare(context, &data).await?;
    let is_executed = verbosity > Verbosity::QueryPlanner;
    if is_executed && pipeline.sink().is_some() {
        let text = "statistics of a pipeline with $out or $merge cannot be explained: it would have to be carried out";
        return Err(Error::new(Code::ILLEGAL_OPERATION, text));
    }
    let front = Front::of(read.stages)?;
    let reads_collection = matches!(input, Input::Collection(..)) && read.namespace.collection != DATABASE;
    let plan = match reads_collection {
        true => Some(Plan::new(context, &data, front.query(read)).await?),
        false => None,
    };
    let execution = match is_executed {
        true => Some(execute(context, &data, (&pipeline, input, language)).await?),
        false => None,
    };
    let query = plan.as_ref().map(|plan| -> Result<RawDocumentBuf> {
        let mut query = rawdoc! { "queryPlanner": planner(plan, &read.namespace)? };
        if let Some(executed) = &execution {
            let execution = executed.of_query(plan, front.filters);
            query.append(cstr!("executionStats"), execution_stats(plan, &execution, verbosity));
        }
        Ok(query)
    });
    let query = query.transpose()?;
    let length = read.stages.into_iter().count();
    let mut reply = rawdoc! { "explainVersion": "1" };
    let mut stages = RawArrayBuf::new();
    let begin = match query {
        Some(query) if front.elements == length => {
            append_all(&mut reply, &query)?;
            return Ok(reply);
        }
        Some(query) => {
            let mut stage = rawdoc! { "$cursor": query };
            append_counts(&mut stage, front.elements, execution.as_ref());
            stages.push(stage);
            front.elements
        }
        None => 0,
    };
    for (index, element) in read.stages.into_iter().enumerate().skip(begin) {
        let (name, specification) = stage_of(element?)?;
        let mut stage = RawDocumentBuf::new();
        stage.append(CString::try_from(name)?, specification);
        append_counts(&mut stage, index + 1, execution.as_ref());
        stages.push(stage);
    }
    reply.append(cstr!("stages"), stages);
    Ok(reply)
}

fn append_counts(stage: &mut RawDocumentBuf, elements: usize, execution: Option<&Executed>) {
    if let Some(executed) = execution {
        stage.append(cstr!("nReturned"), count(executed.passed.after(elements)));
        stage.append(cstr!("executionTimeMillisEstimate"), executed.millis);
    }
}

fn append_all(document: &mut RawDocumentBuf, fields: &RawDocument) -> Result<()> {
    for field in fields {
        let (name, value) = field?;
        document.append(name, value);
    }
    Ok(())
}

/// What an execution counted.
struct Executed {
    /// Documents between the stages.
    passed: Passed,
    /// What was read of a collection in the order of an index.
    in_order: Option<ReadInOrder>,
    /// Time in milliseconds.
    millis: i32,
}

impl Executed {
    /// What the query counts that does what the stages at the start do, so many of which are filters.
    fn of_query(&self, plan: &Plan, filters: usize) -> Execution {
        let (read, matched) = (self.passed.read(), self.passed.after(filters));
        match self.in_order {
            None => Execution::of_reads(read, matched, self.millis, plan.keys_of(read)),
            Some(read) => {
                Execution::of_reads(read.documents, matched, self.millis, read.keys).sorted_if(read.has_sorted)
            }
        }
    }
}

/// Carries the pipeline out.
async fn execute(
    context: &CommandContext<'_>,
    data: &DataContext,
    (pipeline, input, language): (&Pipeline, Input, Context),
) -> Result<Executed> {
    let monotonic = context.state.monotonic().clone();
    let begun = monotonic.now();
    let (mut open, passed) = OpenPipeline::open_counted(context.state.clone(), pipeline, input, language)?;
    let (scope, interrupt) = (std::sync::Arc::new(data.scope()), context.interrupt());
    let in_order = tasks::run(context.state, move |task: &Task| {
        open.enter(task, scope, interrupt);
        let mut pulled = open.pull();
        while let Ok(Some(_)) = pulled {
            pulled = open.pull();
        }
        open.leave();
        pulled.map(|_| open.read_in_order())
    })
    .await?;
    let millis = i32::try_from(monotonic.since(begun).as_millis()).unwrap_or(i32::MAX);
    Ok(Executed {
        passed,
        in_order,
        millis,
    })
}

/// The stages at the start of a pipeline that a query could do: filters, then an order, then how many are left out and how many are returned.
#[derive(Debug, Default)]
struct Front {
    /// Number of these stages, and how many of them are filters.
    elements: usize,
    filters: usize,
    filter: RawDocumentBuf,
    sort: Option<RawDocumentBuf>,
    skip: u64,
    limit: u64,
}

impl Front {
    fn of(stages: &RawArray) -> Result<Front> {
        let mut front = Front::default();
        let mut filters: Vec<&RawDocument> = Vec::new();
        for element in stages {
            let is_part = match stage_of(element?)? {
                ("$match", RawBsonRef::Document(filter)) if front.elements == filters.len() => {
                    filters.push(filter);
                    true
                }
                ("$sort", RawBsonRef::Document(sort)) if front.elements == filters.len() => {
                    front.sort = Some(sort.to_owned());
                    true
                }
                ("$skip", skip) if front.skip == 0 && front.limit == 0 => {
                    front.skip = whole(skip);
                    front.skip > 0
                }
                ("$limit", limit) if front.limit == 0 => {
                    front.limit = whole(limit);
                    front.limit > 0
                }
                _ => false,
            };
            if !is_part {
                break;
            }
            front.elements += 1;
        }
        front.filters = filters.len();
        front.filter = match filters[..] {
            [] => RawDocumentBuf::new(),
            [only] => only.to_owned(),
            _ => {
                let mut all = RawArrayBuf::new();
                for filter in filters {
                    all.push(filter.to_owned());
                }
                rawdoc! { "$and": all }
            }
        };
        Ok(front)
    }

    /// The query that does the same.
    fn query<'a>(&'a self, read: &PipelineArguments<'a>) -> Explained<'a> {
        Explained {
            namespace: read.namespace.clone(),
            filter: Some(&self.filter),
            sort: self.sort.as_deref(),
            projection: None,
            skip: self.skip,
            limit: self.limit,
            hint: read.hint,
            language: read.language.clone(),
            purpose: Purpose::Return,
        }
    }
}

/// Reads the number of a `$skip` or `$limit`, which the pipeline's parser has checked.
fn whole(value: RawBsonRef<'_>) -> u64 {
    let number = bolide_mql::value::number::whole(value);
    number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
