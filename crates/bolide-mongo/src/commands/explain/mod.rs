//! `explain`.
//!
//! There is one plan for every query: a scan of the collection, reads by `_id`, or the indexes with the fewest keys that serve it. The statistics come from
//! running the reading side; nothing is written.

mod index_scan;
mod pipeline;
mod plan;
mod request;

use bolide_mql::value::text::render_document;
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::aggregate::PipelineArguments;
use super::arguments::{Arguments, wrong_type};
use super::build_info::VERSION;
use super::context::{CommandContext, Reply};
use super::data::statements;
use super::data::writer::DataContext;
use crate::namespace::Namespace;
use plan::{Execution, Plan};
use request::{Explained, NamedCommand};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verbosity {
    QueryPlanner,
    ExecutionStats,
    AllPlansExecution,
}

/// `{explain: command, verbosity?}` → `{explainVersion, queryPlanner, executionStats?, command, serverInfo, serverParameters}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let command = match arguments.first() {
        Some(RawBsonRef::Document(command)) => command,
        other => {
            let value = other.unwrap_or(RawBsonRef::Null);
            return Err(wrong_type("explain.explain", value, "type 'object'"));
        }
    };
    let verbosity = match arguments.string("verbosity")? {
        Some("queryPlanner") => Verbosity::QueryPlanner,
        Some("executionStats") => Verbosity::ExecutionStats,
        None | Some("allPlansExecution") => Verbosity::AllPlansExecution,
        Some(other) => {
            let text = format!("Enumeration value '{other}' for field 'explain.verbosity' is not a valid value.");
            return Err(Error::bad_value(text));
        }
    };
    arguments.finish()?;
    let named = NamedCommand::read(context, command)?;
    let reply = match named.name {
        "aggregate" => of_aggregate(context, named, verbosity).await?,
        _ => of_query(context, Explained::read(context, named)?, verbosity).await?,
    };
    complete(context, command, reply)
}

/// Explains an `aggregate` with the option `explain`.
///
/// # Errors
/// Those of the pipeline.
pub async fn of_pipeline(context: &CommandContext<'_>, read: &PipelineArguments<'_>) -> Result<Reply> {
    let reply = pipeline::explain(context, read, Verbosity::QueryPlanner).await?;
    complete(context, context.message.command(), reply)
}

async fn of_aggregate(
    context: &CommandContext<'_>,
    named: NamedCommand<'_>,
    verbosity: Verbosity,
) -> Result<RawDocumentBuf> {
    let mut arguments = named.arguments;
    let read = PipelineArguments::read(context, &mut arguments)?;
    if arguments.boolean("explain")? == Some(true) {
        let text = "The 'explain' option is illegal when a explain verbosity is also provided";
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    arguments.finish()?;
    pipeline::explain(context, &read, verbosity).await
}

async fn of_query(
    context: &CommandContext<'_>,
    explained: Explained<'_>,
    verbosity: Verbosity,
) -> Result<RawDocumentBuf> {
    let data = DataContext::begin(context).await?;
    let namespace = explained.namespace.clone();
    let plan = Plan::new(context, &data, explained).await?;
    let mut reply = rawdoc! {
        "explainVersion": "1",
        "queryPlanner": planner(&plan, &namespace)?,
    };
    if verbosity > Verbosity::QueryPlanner {
        let tree = plan.clone();
        let execution = plan.execute(context, &data).await?;
        reply.append(cstr!("executionStats"), execution_stats(&tree, &execution, verbosity));
    }
    Ok(reply)
}

/// Adds the fields that every reply has.
fn complete(context: &CommandContext<'_>, command: &RawDocument, mut reply: RawDocumentBuf) -> Result<Reply> {
    reply.append(cstr!("command"), shown(command, context.database)?);
    let host = &context.state.options.host;
    reply.append(
        cstr!("serverInfo"),
        rawdoc! {
            "host": host.name.as_str(),
            "port": i32::from(host.port),
            "version": VERSION,
            "gitVersion": "unknown",
        },
    );
    reply.append(cstr!("serverParameters"), RawDocumentBuf::new());
    Ok(reply.into())
}

/// The field `queryPlanner`.
fn planner(plan: &Plan, namespace: &Namespace) -> Result<RawDocumentBuf> {
    Ok(rawdoc! {
        "namespace": namespace.to_string(),
        "indexFilterSet": false,
        "parsedQuery": plan.parsed_query()?,
        "winningPlan": plan.tree(None),
        "rejectedPlans": [],
    })
}

/// The field `executionStats`.
fn execution_stats(plan: &Plan, execution: &Execution, verbosity: Verbosity) -> RawDocumentBuf {
    let mut statistics = rawdoc! {
        "executionSuccess": true,
        "nReturned": statements::count(plan.returned(execution)),
        "executionTimeMillis": execution.millis,
        "totalKeysExamined": statements::count(execution.keys_examined),
        "totalDocsExamined": statements::count(execution.examined),
        "executionStages": plan.tree(Some(execution)),
    };
    if verbosity == Verbosity::AllPlansExecution {
        statistics.append(cstr!("allPlansExecution"), RawArrayBuf::new());
    }
    statistics
}

/// The command that is explained, with its database.
fn shown(command: &RawDocument, database: &str) -> Result<RawDocumentBuf> {
    let mut shown = RawDocumentBuf::new();
    for field in command {
        let (name, value) = field?;
        if name.as_str() != "$db" {
            shown.append(name, value);
        }
    }
    shown.append(cstr!("$db"), database);
    Ok(shown)
}

/// The error for a command that cannot be explained.
fn cannot_explain(command: &RawDocument) -> Error {
    let text = format!("Cannot explain cmd: {}", render_document(command));
    Error::new(Code::ILLEGAL_OPERATION, text)
}

#[cfg(test)]
mod tests;
