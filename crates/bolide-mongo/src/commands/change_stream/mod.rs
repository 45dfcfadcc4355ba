//! Change streams: `aggregate` with `$changeStream` as its first stage (mongo.md §7).
//!
//! ```text
//!   options ──▶ bolide_core::ChangeStream ──events──▶ documents of events ──▶ the other stages ──▶ a batch
//!      ▲                                                    │
//!      └───────────── resume tokens (token) ◀───────────────┘
//! ```
//!
//! A cursor that waits for events costs no thread: it is woken by commits, and when a document ends.

mod cursor;
mod event;
mod options;
mod stages;
mod token;

use std::sync::Arc;

use bolide_core::{RequestContext, StreamPosition, StreamScope};
use bolide_model::time::CommitTime;
use bolide_mql::aggregation::Pipeline;
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::{RawArray, RawBson};

use super::context::{CommandContext, Reply};
use super::cursor::{self as batches, FirstBatch};
use super::table::Rights;
use crate::codes;
use crate::namespace::Namespace;
use cursor::ChangeStreamCursor;
use event::At;
use options::{Options, Start};
use token::Kind;

/// The stage.
pub const STAGE: &str = "$changeStream";

/// The database on which a stream on all databases is opened.
const CLUSTER_DATABASE: &str = "admin";

/// The command that opens a stream.
pub struct Opening<'a> {
    /// The collection, or the database.
    pub namespace: Namespace,
    /// Whether it is on a database.
    pub is_on_database: bool,
    /// All stages.
    pub stages: &'a RawArray,
    /// The parsed stages but the first.
    pub pipeline: Pipeline,
    /// The specification of the first stage.
    pub specification: RawBson,
    /// Collation and variables.
    pub language: Context,
    /// `cursor`.
    pub first: FirstBatch,
}

/// Opens a stream, and makes its first batch.
///
/// # Errors
/// Of the options; `IllegalOperation` for stages that are not possible; `ChangeStreamHistoryLost`.
pub async fn open(context: &CommandContext<'_>, now: RequestContext, opening: Opening<'_>) -> Result<Reply> {
    check(context)?;
    let options = Options::parse(&opening.specification)?;
    stages::check(opening.stages)?;
    let scope = scope(context, &options, &opening)?;
    let account = &context.state.account;
    let (after, ends_at_once) = start(&options)?;
    let stream = account.open_change_stream(scope.clone(), after, is_hidden).await;
    let stream = stream.map_err(|error| codes::error(&error))?;
    let source = ChangeStreamCursor::new(
        context.state.clone(),
        cursor::Parts {
            stream,
            scope,
            options,
            pipeline: Arc::new(opening.pipeline),
            has_stages: opening.stages.into_iter().count() > 1,
            language: opening.language,
            ends_at_once,
        },
    );
    let first = FirstBatch {
        is_change_stream: true,
        ..opening.first
    };
    batches::first(context, now, opening.namespace, Box::new(source), first).await
}

/// Checks what does not depend on the options.
fn check(context: &CommandContext<'_>) -> Result<()> {
    if context.transaction.is_some() {
        let text = format!(
            "Operation not permitted in transaction :: caused by :: Aggregation stage {STAGE} cannot run within a multi-document transaction"
        );
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    if context.global.read_concern.is_not_majority {
        let text = format!("{STAGE} cannot run with a readConcern other than 'majority'");
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    Ok(())
}

/// Returns what the stream is about.
fn scope(context: &CommandContext<'_>, options: &Options, opening: &Opening<'_>) -> Result<StreamScope> {
    let Namespace { database, collection } = &opening.namespace;
    if options.is_for_cluster {
        if !opening.is_on_database || database != CLUSTER_DATABASE {
            let text = format!(
                "A {STAGE} with 'allChangesForCluster:true' may only be opened on the 'admin' database, and with no collection name; found {}",
                opening.namespace
            );
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        if !context.grants.allow_everywhere(Rights::Read) {
            return Err(context.unauthorized(database));
        }
        return Ok(StreamScope::Cluster);
    }
    if is_internal_database(database) {
        let text = format!("{STAGE} may not be opened on the internal {database} database");
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    if opening.is_on_database {
        return Ok(StreamScope::Database(database.clone()));
    }
    if is_hidden(database, collection) {
        let text = format!(
            "{STAGE} may not be opened on the internal {} collection",
            opening.namespace
        );
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    Ok(StreamScope::Collection {
        database: database.clone(),
        name: collection.clone(),
    })
}

/// Returns the position after which the stream goes on; `None`: now. With it the time of an event that ends the stream at once, because it was the last
/// one before the stream was resumed.
fn start(options: &Options) -> Result<(Option<StreamPosition>, Option<At>)> {
    let token = match &options.start {
        Start::Now => return Ok((None, None)),
        Start::At(time) => {
            let time = CommitTime::from_parts(time.time, time.increment);
            return Ok((Some(StreamPosition::before(time)), None));
        }
        Start::Resume(token) | Start::After(token) => token,
    };
    match (token.kind, &options.start) {
        (Kind::Invalidation, Start::Resume(_)) => {
            let text = "Attempting to resume a change stream using 'resumeAfter' is not allowed from an invalidate notification.";
            Err(Error::new(Code::INVALID_RESUME_TOKEN, text))
        }
        (Kind::BeforeInvalidation, _) => {
            let time = token.position.time();
            Ok((Some(token.position), Some((time, time.millis()))))
        }
        _ => Ok((Some(token.position), None)),
    }
}

/// Whether streams on databases leave out a collection.
fn is_hidden(database: &str, collection: &str) -> bool {
    is_internal_database(database) || collection.starts_with("system.")
}

fn is_internal_database(database: &str) -> bool {
    ["admin", "config", "local"].contains(&database)
}

#[cfg(test)]
mod tests;
