//! `commitTransaction` and `abortTransaction`.
//!
//! A commit leaves a record of its session with what it has written. So a commit that is sent again is known even if the server was killed before its
//! reply: otherwise the client would run the whole transaction again.

use bolide_model::epk::Epk;
use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::retry;
use super::data::writer::DataContext;
use crate::codes;
use crate::sessions::SessionId;
use crate::transactions::{SessionTransaction, no_such_transaction};

/// `{commitTransaction: 1, recoveryToken?}` → `{}`.
pub async fn commit(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let sent = context.global.transaction.filter(|sent| sent.is_multi_statement);
    let (Some(sent), Some(session)) = (sent, &context.global.session) else {
        return Err(outside_of_transactions(context));
    };
    let committed = match &context.transaction {
        Some(transaction) => {
            let record = retry::record_of_commit(session, sent.number);
            transaction.commit(&context.state.account, record).await
        }
        None => Err(no_such_transaction(sent.number)),
    };
    match committed {
        Err(error) if error.code == Code::NO_SUCH_TRANSACTION => {
            match was_committed(context, session, sent.number).await? {
                true => Ok(Reply::default()),
                false => Err(error),
            }
        }
        committed => committed.map(|()| Reply::default()),
    }
}

/// Looks for the record of a commit. The command does not tell the database, so all collections are asked that can be in transactions.
///
/// Another server may have sent the commit, and then died: it may still be on its way to the store. Since the client is told that the transaction is not committed, and makes it again, each
/// collection stores that it is refused: what was decided before comes too late then, and that server, if it is alive, finds the refusal.
async fn was_committed(context: &CommandContext<'_>, session: &SessionId, number: i64) -> Result<bool> {
    let data = DataContext::outside_of_transactions(context).await?;
    let is_shared = context.state.account.has_shared_store();
    if is_shared {
        // The transaction may be of a collection that this server does not know yet.
        let refreshed = context.state.account.refresh_catalog().await;
        refreshed.map_err(|error| codes::error(&error))?;
    }
    let containers = context.state.account.all_containers().into_iter();
    for container in
        containers.filter(|container| container.collection().is_some_and(|known| known.shard_key.is_none()))
    {
        let key = retry::session_key(session);
        let record = data
            .write(context, (&container, Epk::start()), move |batch| {
                let stored = batch.session(&key)?;
                // A later one has ended it already.
                if is_shared
                    && stored
                        .as_deref()
                        .and_then(retry::number_of)
                        .is_none_or(|last| last < number)
                {
                    batch.set_session(&key, &retry::record_of_refusal(number))?;
                }
                Ok(stored)
            })
            .await;
        match record {
            Ok(record) if record.as_deref().is_some_and(|record| retry::is_commit(record, number)) => return Ok(true),
            Ok(_) => {}
            // It was dropped meanwhile.
            Err(error) if error.code == Code::NAMESPACE_NOT_FOUND => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// `{abortTransaction: 1, recoveryToken?}` → `{}`.
pub async fn abort(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    of(context)?.abort().await?;
    Ok(Reply::default())
}

fn of<'a>(context: &'a CommandContext<'_>) -> Result<&'a SessionTransaction> {
    context
        .transaction
        .as_deref()
        .ok_or_else(|| outside_of_transactions(context))
}

fn outside_of_transactions(context: &CommandContext<'_>) -> Error {
    let text = format!("{} must be run within a transaction", context.command.name);
    Error::new(Code::INVALID_OPTIONS, text)
}
